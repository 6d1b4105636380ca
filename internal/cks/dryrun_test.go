package cks

import (
	"strings"
	"testing"
)

// What a dry run shows is what the job will do: the size afterwards, and the
// workers that go, the down ones first and then the newest.
//
// Keeps: ours/dry-run-order.
func TestForesee(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		facts   edit
		req     ScaleRequest
		kind    Kind
		to      int
		leaving string
	}{
		{"already so", nothing, toSize(2), Nothing, 2, ""},
		{"up", nothing, toSize(4), ScaleUp, 4, ""},
		{"down", nodesOf(1, 0, 4, 0), toSize(2), ScaleDown, 2, "w4 w3"},
		{"down, the oldest is down", with(nodesOf(1, 0, 4, 0), inTheState(Alert), vm("w1", VMStopped)), toSize(2), ScaleDown, 2, "w1 w4"},
		{"external nodes stay", nodesOf(1, 0, 2, 2), toSize(3), ScaleDown, 3, "w2"},
		{"one that is doomed is no choice", with(nodesOf(1, 0, 3, 0), onVM("w3", func(v *VM) { v.Phase = Doomed })), toSize(2), ScaleDown, 2, "w2"},
		{"named ones", nodesOf(1, 0, 4, 0), without("w2", "w3"), RemoveNodes, 2, "w3 w2"},
		{"in Created", inTheState(Created), toSize(1), RecordSize, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFacts(c.facts)
			resolve(&f, c.req)
			change, err := CheckScale(f, c.req)
			if err != nil {
				t.Fatal(err)
			}
			d := change.Foresee(f)
			var leaving []string
			for _, v := range d.Leaving {
				leaving = append(leaving, v.ID)
			}
			if got := strings.Join(leaving, " "); d.Kind != c.kind || d.From != f.View.Cluster.Size || d.To != c.to || got != c.leaving {
				t.Errorf("got %s from %d to %d without %q, want %s to %d without %q", d.Kind, d.From, d.To, got, c.kind, c.to, c.leaving)
			}
		})
	}
}

// A dry run names the offerings and the autoscaling that would change, and
// nothing else.
func TestForeseeNamesWhatElseChanges(t *testing.T) {
	t.Parallel()
	f := newFacts()
	of := func(req ScaleRequest) DryRun {
		change, err := CheckScale(f, req)
		if err != nil {
			t.Fatal(err)
		}
		return change.Foresee(f)
	}
	if d := of(toSize(3)); d.Offerings != nil || d.DefaultOffering != nil || d.Autoscaling != nil {
		t.Errorf("a change of size changes %+v", d)
	}
	all := of(both(toSize(3), offering("large")))
	if all.Kind != OfferingThenScaleUp || all.Offerings[Worker].Name != "large" || all.Offerings[Control].Name != "large" || all.To != 3 {
		t.Errorf("got %+v", all)
	}
	scaled := of(ScaleRequest{Autoscaling: ptr(true), MinSize: ptr(int64(1)), MaxSize: ptr(int64(4))})
	if scaled.Kind != Autoscale || scaled.Autoscaling == nil || *scaled.Autoscaling != (Autoscaling{Enabled: true, Min: 1, Max: 4}) || scaled.To != 2 {
		t.Errorf("got %+v", scaled)
	}
}
