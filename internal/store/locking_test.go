package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// Whoever locks several jobs takes the lower id first, in whatever order they
// lie or are named: while he waits for it he holds no other, so that a wake and
// a renewal of leases cannot end in a deadlock, which would cost the renewal.
func TestJobsAreLockedInOneOrder(t *testing.T) {
	t.Parallel()
	const low, high = "00000000-0000-4000-8000-000000000001", "ffffffff-0000-4000-8000-000000000002"
	for name, lock := range map[string]func(context.Context, *store.Store, cks.ClusterView, []cks.Job) error{
		"renewal": func(ctx context.Context, st *store.Store, _ cks.ClusterView, jobs []cks.Job) error {
			_, err := st.KeepLeases(ctx, "tester", jobs, time.Hour)
			return err
		},
		"wake": func(ctx context.Context, st *store.Store, v cks.ClusterView, _ []cks.Job) error {
			_, err := st.WakeCluster(ctx, v.Cluster.ID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := storetest.New(t)
			v := storetest.Fixture(t, st, storetest.Spec{State: cks.Running, Workers: 2})
			for i, id := range []string{high, low} {
				j := loose(v)
				j.ID, j.VMID = id, v.VMs[i].ID
				must[cks.Job](t)(st.AddJob(t.Context(), j))
			}
			jobs := []cks.Job{claim(t, st, high), claim(t, st, low)}
			other, err := pgx.Connect(t.Context(), st.Pool().Config().ConnString())
			ok(t, err)
			defer other.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // the test is over
			tx := must[pgx.Tx](t)(other.Begin(t.Context()))
			_, err = tx.Exec(t.Context(), `SELECT 1 FROM jobs WHERE id = $1 FOR UPDATE`, low)
			ok(t, err)
			done := make(chan error, 1)
			go func() { done <- lock(t.Context(), st, v, jobs) }()
			waitBlocked(t, st, 1)
			_, err = tx.Exec(t.Context(), `SELECT 1 FROM jobs WHERE id = $1 FOR UPDATE NOWAIT`, high)
			ok(t, err)
			ok(t, tx.Rollback(t.Context()))
			ok(t, <-done)
		})
	}
}
