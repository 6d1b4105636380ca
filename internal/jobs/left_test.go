package jobs

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store/storetest"
)

// stubbornNode is a world in which nodes register again after they were deleted,
// and then cannot be deleted any more. deaf: no answer comes to who destroys VMs.
type stubbornNode struct {
	*sim.World
	deletions int
	deaf      bool
}

func (w *stubbornNode) Destroy(ctx context.Context, clusterID, vmID string) error {
	err := w.World.Destroy(ctx, clusterID, vmID)
	if w.deaf {
		err = errors.New("connection reset by peer")
	}
	return err
}

func (w *stubbornNode) Delete(context.Context, string, string) error {
	if w.deletions++; w.deletions == 1 {
		return nil
	}
	return errors.New("connection refused")
}

// A node that could not be deleted after its VM is deleted by the scanner, as
// often as it takes: the cluster-autoscaler stands still as long as there is a
// node without a VM in the list (clients.md §3). So it is when the removal is
// given up after the VM is gone.
//
// Keeps: ca/left-node.
func TestNodeThatWasLeftIsDeletedByTheScanner(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]cks.JobStatus{"removed": cks.JobSucceeded, "given up": cks.JobFailed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
			w := b.workers()[0]
			world := &stubbornNode{World: b.world, deaf: want == cks.JobFailed}
			job := b.aloneOn(world, world, b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{w.ID}}))
			if job.Status != want || slices.ContainsFunc(b.view().VMs, func(v cks.VM) bool { return v.ID == w.ID }) {
				t.Fatalf("status %d: %s; the VMs are %v", job.Status, job.ErrorText, ids(b.view().VMs))
			}
			if _, there := b.node(w); !there {
				t.Fatal("the node is gone: nothing is proved")
			}
			b.fault(cks.Fault{Operation: "node.delete", Value: "fail", Count: 1})
			if err := NewScanner(b.st, b.world, b.world, ScanConfig{CallTimeout: 20 * time.Second}).Scan(b.ctx, b.id); err == nil {
				t.Error("the scan tells nothing of a node that it could not delete")
			}
			b.scan()
			if _, there := b.node(w); there {
				t.Error("the node is still there")
			}
			calls := b.calls("node.delete", "")
			b.scan()
			if b.calls("node.delete", "") != calls {
				t.Error("it is deleted again and again")
			}
		})
	}
}
