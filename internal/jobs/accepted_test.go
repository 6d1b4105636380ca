package jobs

import (
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// TestAcceptedJobIsNotJudgedAgain: CloudStack validates a request again when
// its job begins. Here the check and the hold are one commit, so that nobody
// else can have changed the cluster; what was accepted is carried out, though
// the same request would be refused by now (cks.md §1.5; design.md §1.3).
//
// Keeps: §1.5/run-again.
func TestAcceptedJobIsNotJudgedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	job := b.ask(cks.ScaleUp, cks.Args{Size: 3})
	b.must(b.st.SetLimits(b.ctx, b.view().Account.ID, store.Limits{VMs: new(1)}))
	b.run()
	if job = b.ended(job); job.Status != cks.JobSucceeded || len(b.workers()) != 3 {
		t.Errorf("status %d: %s; %d workers", job.Status, job.ErrorText, len(b.workers()))
	}
	b.consistent()
}
