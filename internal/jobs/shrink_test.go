package jobs

import (
	"context"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store/storetest"
)

// TestDownWorkerGoesFirstUndrained: the oldest worker is down; a scale-down by
// size takes it, without a drain, and its node object with it (cks.md §11.4,
// A27).
//
// Keeps: §11/4, §5.3/down-first, §5.4/down.
// Keeps: A27, seed/down-first, seed/no-drain, seed/node-object.
func TestDownWorkerGoesFirstUndrained(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
	b.run()
	w := b.workers()
	b.set(w[0], cks.VMStopped)
	b.inState(cks.Alert)
	b.do(cks.ScaleDown, cks.Args{Size: 2})
	b.removed(w[0])
	b.inState(cks.Running)
	b.consistent()
}

// removed checks that v went without a drain and that nothing else went.
func (b *bench) removed(v cks.VM) {
	b.Helper()
	if n := b.calls("node.drain", ""); n != 0 {
		b.Errorf("%d drains", n)
	}
	if _, there := b.node(v); there {
		b.Errorf("the node object of %s is still there", v.Name)
	}
	for _, left := range b.view().VMs {
		if left.ID == v.ID {
			b.Errorf("%s is still listed", v.Name)
		}
	}
	if n := b.calls("vm.destroy", ""); n != 1 {
		b.Errorf("%d VMs destroyed", n)
	}
}

// TestDownWorkerGoesFirstBeforeScannerSawIt: the cluster is still Running
// (cks.md §11.12).
//
// Keeps: §11/12, §5.4/down.
// Keeps: seed/running-down-first.
func TestDownWorkerGoesFirstBeforeScannerSawIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	w := b.workers()
	b.set(w[0], cks.VMStopped)
	job := b.ask(cks.ScaleDown, cks.Args{Size: 1}) // nothing has looked yet
	b.run()
	if job = b.ended(job); job.Status != cks.JobSucceeded {
		t.Fatal(job.ErrorText)
	}
	b.removed(w[0])
	b.consistent()
}

// TestRemoveNamedDownWorker: nodeids=the down worker in Alert; a size+1
// afterwards works (cks.md §11.5, A25).
//
// Keeps: §11/5, §5.4/6, #14603.
func TestRemoveNamedDownWorker(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.run()
	w := b.workers()
	b.set(w[1], cks.VMStopped)
	b.inState(cks.Alert)
	job := b.do(cks.RemoveNodes, cks.Args{VMIDs: []string{w[1].ID}})
	if c := job.Result.Cluster.Cluster; c.State != cks.Running || c.Size != 1 {
		t.Errorf("result is %s, size %d", c.State, c.Size)
	}
	b.removed(w[1])
	b.do(cks.ScaleUp, cks.Args{Size: 2})
	b.consistent()
}

// TestNamedHealthyWorkerGoesAfterDrain though another one is down (A26).
//
// Keeps: §6/after-scale.
// Keeps: A26, seed/scanner-alert-again, seed/accept-nodeids.
func TestNamedHealthyWorkerGoesAfterDrain(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
	b.run()
	w := b.workers()
	b.set(w[0], cks.VMStopped)
	b.inState(cks.Alert)
	b.do(cks.RemoveNodes, cks.Args{VMIDs: []string{w[1].ID}})
	if b.calls("node.drain", w[1].ID) != 1 || b.calls("node.drain", "") != 1 {
		t.Error("w2 was not drained, or another was")
	}
	if left := b.workers(); len(left) != 2 || left[0].ID != w[0].ID || left[1].ID != w[2].ID {
		t.Errorf("left: %v", left)
	}
	b.inState(cks.Alert) // w1 is still down
	b.consistent()
}

// TestScaleDownRemovesSeveral: newest first, one after the other, each counted
// when it is gone.
//
// Keeps: §8.2/external-left, §8.5/external.
// Keeps: §5.3/newest-first, E6.
// Keeps: seed/newest-next.
func TestScaleDownRemovesSeveral(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 4, External: 1}, 100)
	b.run()
	w := b.workers()
	b.do(cks.ScaleDown, cks.Args{Size: 2}) // 1 external and 1 own are left
	if left := b.workers(); len(left) != 1 || left[0].ID != w[0].ID {
		t.Errorf("left: %v", left)
	}
	b.consistent()
}

// TestBlockedDrainKeepsWorker: a Ready node whose drain is forbidden is tried
// three times, then the job fails and the VM stays, uncordoned (design.md §4.7,
// A36).
//
// Keeps: §5.4/2, §5.4/3, §5.9/drain, D2, #14611.
// Keeps: A36.
func TestBlockedDrainKeepsWorker(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.cfg.DrainTimeout = time.Second
	b.fault(cks.Fault{Operation: "node.drain", Value: "budget"})
	b.run()
	w := b.workers()
	job := b.ended(b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{w[1].ID}}))
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, w[1].NodeName()) || !strings.Contains(job.ErrorText, "budget") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	if n := b.calls("node.drain", w[1].ID); n != 3 {
		t.Errorf("%d drains", n)
	}
	if n := b.calls("node.uncordon", w[1].ID); n != 1 {
		t.Errorf("%d uncordons", n)
	}
	if n := b.calls("node.delete", "") + b.calls("vm.destroy", ""); n != 0 {
		t.Errorf("%d node objects and VMs went", n)
	}
	b.inState(cks.Running)
	b.consistent()
}

// TestNotReadyNodeIsRemovedAllTheSame: its drain is tried for the timeout and
// then it goes (cks.md §7 D5); a node that is not there at all counts as
// drained and deleted (A37).
//
// Keeps: §5.4/3-delete, D5.
// Keeps: A37.
func TestNotReadyNodeIsRemovedAllTheSame(t *testing.T) {
	t.Parallel()
	for _, fault := range []cks.Fault{{Operation: "node.set", Value: "NotReady"}, {Operation: "node.forget"}} {
		t.Run(fault.Operation, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
			w := b.workers()
			fault.VMID = w[2].ID
			b.cfg.DrainTimeout = time.Second
			b.fault(fault)
			b.run()
			b.do(cks.RemoveNodes, cks.Args{VMIDs: []string{w[2].ID}})
			if n := b.calls("node.drain", ""); n != 1 {
				t.Errorf("%d drains", n)
			}
			if left := b.workers(); len(left) != 2 || left[0].ID != w[0].ID || left[1].ID != w[1].ID || b.view().Cluster.Size != 2 || b.calls("vm.destroy", w[2].ID) != 1 {
				t.Errorf("size %d, left %v", b.view().Cluster.Size, left)
			}
			b.inState(cks.Running)
			b.consistent()
		})
	}
}

// TestDestroyThatFailsKeepsVMListed: the node is gone, the VM cannot be
// destroyed: it stays listed and, once the cloud works again, the same request
// removes it (A38).
//
// Keeps: §5.9/destroy.
// Keeps: A38.
func TestDestroyThatFailsKeepsVMListed(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
	b.fault(cks.Fault{Operation: "vm.destroy", Value: "fail:storage is busy"})
	b.run()
	w := b.workers()
	job := b.ended(b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{w[2].ID}}))
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "storage is busy") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.consistent()
	b.until("the VM is seen down", func() bool { return b.workers()[2].State.Down() })
	b.fault(cks.Fault{Operation: "vm.destroy", Value: "clear"})
	b.inState(cks.Alert)
	b.do(cks.RemoveNodes, cks.Args{VMIDs: []string{w[2].ID}})
	b.inState(cks.Running)
	b.consistent()
}

// TestPartialScaleDownCountsWhatWent: the second of three removals fails; size
// is that of the list, and the same request finishes the job later (A39).
//
// Keeps: §5.8/at-once, §5.9/drain, E1.
// Keeps: A39.
func TestPartialScaleDownCountsWhatWent(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 5}, 100)
	w := b.workers()
	b.cfg.DrainTimeout = 3 * time.Second // w5 is drained for real
	b.fault(cks.Fault{Operation: "node.drain", Value: "budget", VMID: w[3].ID})
	b.run()
	job := b.ended(b.ask(cks.ScaleDown, cks.Args{Size: 2}))
	if job.Status != cks.JobFailed {
		t.Error("the job succeeded")
	}
	if got := b.view().Cluster.Size; got != 4 {
		t.Errorf("size %d", got)
	}
	b.inState(cks.Running)
	b.consistent()
	b.fault(cks.Fault{Operation: "node.drain", Value: "clear"})
	b.do(cks.ScaleDown, cks.Args{Size: 2})
	b.consistent()
}

// restarting is a world in which a worker is started by somebody right after
// its node object was deleted.
type restarting struct {
	*sim.World
	b     *bench
	once  bool
	after func() // nil = nothing
}

func (w *restarting) Delete(ctx context.Context, clusterID, name string) error {
	err := w.World.Delete(ctx, clusterID, name)
	if w.once {
		return err
	}
	w.once = true
	for _, v := range w.b.view().VMs {
		if v.NodeName() == name {
			w.b.must(w.World.Start(ctx, clusterID, v.ID))
			w.b.until("it registered again", func() bool { n, ok := w.b.node(v); return ok && n.Ready == cks.NodeReady })
		}
	}
	if w.after != nil {
		w.after()
	}
	return err
}

// TestNodeThatCameBackIsDeleted: a worker that is started while it is being
// removed leaves no node object behind (design.md §4.7).
func TestNodeThatCameBackIsDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.cfg.CallTimeout = 20 * time.Second
	w := b.workers()[1]
	b.set(w, cks.VMStopped)
	again := &restarting{World: b.world, b: b}
	b.runOn(again, again)
	b.do(cks.RemoveNodes, cks.Args{VMIDs: []string{w.ID}})
	if _, ok := b.node(w); ok {
		t.Error("the node is still there")
	}
	b.consistent()
}
