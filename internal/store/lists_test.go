package store_test

import (
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// A page whose size is not given has default.page.size rows; -1 is all of them.
//
// Keeps: §2.6/default-page.
func TestDefaultPageIsOfFiveHundred(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	storetest.Fixture(t, st, storetest.Spec{})
	sql(t, st, `INSERT INTO clusters (name, account_id, zone_id, control_nodes, size, state)
		SELECT name || i, account_id, zone_id, 0, 0, 'Stopped' FROM clusters, generate_series(1, 500) i`)
	for size, want := range map[int]int{0: 500, -1: 501} {
		list, total, err := st.Views(t.Context(), cks.ClusterFilter{Page: cks.Page{Size: size}}, "")
		ok(t, err)
		if len(list) != want || total != 501 {
			t.Errorf("page size %d: %d of %d clusters, want %d of 501", size, len(list), total, want)
		}
	}
}
