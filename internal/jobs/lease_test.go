package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// TestCallUnderWayEndsWithItsLease: nobody renews the lease, as when the
// database does not answer or the process has been paused. The call that is
// under way is given up by itself, before another runner can have the job.
func TestCallUnderWayEndsWithItsLease(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.Lease = time.Second
	b.ask(cks.ScaleUp, cks.Args{Size: 2})
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	jobs, err := r.claimJobs(b.ctx, 1)
	b.must(err)
	ctx, cancel := context.WithCancelCause(b.ctx)
	defer cancel(nil)
	jobs[0].lease.onLost(cancel)
	at := &run{Runner: r, job: jobs[0].job, lease: jobs[0].lease}
	err = at.call(ctx, "act", 30*time.Second, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	if !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the call ended with %v", err)
	}
}

// TestRenewedLeaseGoesOn: the timer of a lease may fire just when the lease has
// been renewed; that is no loss.
func TestRenewedLeaseGoesOn(t *testing.T) {
	t.Parallel()
	l := newLease(cks.Job{}, time.Now(), time.Hour)
	l.renewed(time.Now())
	l.runOut()
	if err := l.check(); err != nil || l.lost {
		t.Errorf("lost %t, %v", l.lost, err)
	}
}
