package sim

import (
	"testing"

	"ckscale/internal/cks"
)

// A repeated create finds its own place, also on hosts that are full by now;
// what is adopted is there already and asks for no room.
func TestPlacesAreByVM(t *testing.T) {
	t.Parallel()
	var h hosts
	for _, step := range []struct {
		id    string
		force bool
		full  bool
	}{
		{id: "a"}, {id: "a"}, {id: "b", full: true}, {id: "c", force: true}, {id: "c"}, {id: "a"},
	} {
		err := h.take(1, step.force, step.id)
		if (err != nil) != step.full || step.full && cks.CodeOf(err) != cks.Failed {
			t.Errorf("%+v: %v", step, err)
		}
	}
	if len(h.Places) != 2 {
		t.Errorf("places: %v", h.Places)
	}
}
