package jobs

import (
	"context"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// TestStopDoesNotLoseAClaim: a claim that is under way when the stop is asked
// for is finished, so that the runner knows what it has and can hand it back;
// the jobs would be nobody's until the lease ends (A52).
//
// Keeps: A52.
func TestStopDoesNotLoseAClaim(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.Lease = time.Minute
	job := b.ask(cks.ScaleUp, cks.Args{Size: 2})
	ctx, stop := context.WithCancel(b.ctx)
	stop()
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	claimed, err := r.claimJobs(ctx, 1)
	b.must(err)
	if len(claimed) != 1 || claimed[0].job.ID != job.ID {
		t.Errorf("claimed %v", claimed)
	}
}
