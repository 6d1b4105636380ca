package service

import (
	"context"
	"sync"
	"testing"

	"ckscale/internal/cks"
)

// A VM is stopped and started over and over while it is asked to be stopped.
// Where that is told to be so already, the VM of the answer is down: the request
// is judged by what is told.
func TestNothingToDoIsToldOfTheStateThatWasJudged(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	v := s.workers()[0]
	ctx, stop := context.WithCancel(t.Context())
	var flips sync.WaitGroup
	defer flips.Wait()
	defer stop()
	for range 2 {
		flips.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				m := cks.Machine{State: []cks.VMState{cks.VMStopped, cks.VMStarting}[i%2]}
				asked, err := s.st.Now(ctx)
				if err == nil {
					err = s.st.ObserveVM(ctx, v.ID, m, asked)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for told := 0; told < 100; {
		job := must(s.StopVM(t.Context(), s.owner, cks.VMRequest{VM: v.ID}))(t)
		if job.Status != cks.JobSucceeded {
			continue // it was Starting, and was refused
		}
		told++
		if is := job.Result.VM.VM.State; !is.Down() {
			t.Fatalf("told that a VM in %s needs no stopping", is)
		}
	}
}
