package store_test

import (
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// A server that stands still in the middle of adding a job keeps no other from
// starting: with the keys that it has, the account admin is only read.
func TestKnownAdminIsOnlyRead(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	admin := must[cks.Account](t)(st.EnsureAdmin(t.Context(), "key", "secret"))
	ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
		if _, err := q.AddJob(t.Context(), store.NewJob{Command: "c", Kind: "nothing", AccountID: admin.ID}); err != nil {
			return err
		}
		diff(t, admin, must[cks.Account](t)(st.EnsureAdmin(t.Context(), "key", "secret")))
		return nil
	}))
}
