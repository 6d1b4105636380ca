package jobs

import (
	"context"
	"slices"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// TestFailureTellsWhetherAnythingChanged: a job that fails before it has
// changed anything gives a Running cluster back; one that fails later, be it in
// the same step, leaves it in Alert (cks.md §5.2, §5.9).
//
// Keeps: §4/fires-end, §4/fires-unchanged.
// Keeps: §5.2/unchanged, §5.9/unchanged.
func TestFailureTellsWhetherAnythingChanged(t *testing.T) {
	t.Parallel()
	full := cks.Fault{Operation: "capacity", Value: "0"}
	for _, tc := range []struct {
		name  string
		kind  cks.Kind
		size  int
		big   bool // workers get another offering
		fault cks.Fault
		want  cks.State
	}{
		{"no room", cks.ScaleUp, 2, false, full, cks.Running},
		{"no list of VMs", cks.ScaleDown, 1, false, cks.Fault{Operation: "vm.list", Value: "fail"}, cks.Running},
		{"no room after new offerings", cks.OfferingThenScaleUp, 2, true, full, cks.Alert},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
			args := cks.Args{Size: tc.size}
			if tc.big {
				big, err := b.st.AddOffering(b.ctx, cks.Offering{Name: "big", DisplayText: "big", Cores: 8, SpeedMHz: 2000, MemoryMB: 16384})
				b.must(err)
				args.Offerings = map[cks.Role]string{cks.Worker: big.ID}
			}
			b.fault(tc.fault)
			if job := b.alone(b.ask(tc.kind, args)); job.Status != cks.JobFailed {
				t.Error("the job succeeded")
			}
			if got := b.view().Cluster.State; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// TestUndoStopsOnlyTheVMWhoseNodeWasDeleted: a worker whose turn had not come keeps
// running when the removal is given up, though it has no node.
func TestUndoStopsOnlyTheVMWhoseNodeWasDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
	b.cfg.DrainTimeout = time.Second
	w := b.workers()
	b.fault(cks.Fault{Operation: "node.forget", VMID: w[1].ID})
	b.fault(cks.Fault{Operation: "node.drain", Value: "budget", VMID: w[2].ID})
	job := b.alone(b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{w[1].ID, w[2].ID}}))
	if job.Status != cks.JobFailed || b.calls("node.drain", w[2].ID) == 0 {
		t.Errorf("status %d, and w3 was not tried", job.Status)
	}
	if n := b.calls("vm.stop", ""); n != 0 {
		t.Errorf("%d VMs were stopped", n)
	}
	b.consistent()
}

// TestScaleDownPassesOverDoomed: a VM that the scanner is about to destroy is
// neither counted nor chosen, be it the newest.
func TestScaleDownPassesOverDoomed(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.ask(cks.ScaleUp, cks.Args{Size: 3})
	job := b.claimed()
	w := b.workers()
	chosen, err := b.st.ChooseNew(b.ctx, job, []store.NewVM{{Role: cks.Worker, OfferingID: w[0].OfferingID, Prefix: "x"}})
	b.must(err)
	b.must(b.st.InTx(b.ctx, func(q *store.Queries) error {
		if err := q.FreeCluster(b.ctx, job, cks.OperationSucceeded); err != nil { // the VM is doomed by it
			return err
		}
		return q.FailJob(b.ctx, job, "over")
	}))
	if job := b.alone(b.ask(cks.ScaleDown, cks.Args{Size: 1})); job.Status != cks.JobSucceeded {
		t.Errorf("it failed: %s", job.ErrorText)
	}
	left := b.workers()
	if len(left) != 2 || left[0].ID != w[0].ID || left[1].ID != chosen[0].ID {
		t.Errorf("left: %v", left)
	}
}

// TestScannerLeavesForeignCluster: a cluster that is managed outside has no VMs
// to judge it by (cks.md §6).
//
// Keeps: §6/managed.
func TestScannerLeavesForeignCluster(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.unsettled = true // the other cluster has no VMs
	c := b.view().Cluster
	c.ID, c.Name, c.ExternalManaged = "", "outside", true
	c, err := b.st.AddCluster(b.ctx, c)
	b.must(err)
	b.id = c.ID
	b.scan()
	if got := b.view().Cluster.State; got != cks.Running {
		t.Errorf("%s", got)
	}
}

// TestWaitEndsAtTheDeadline, and not only when it would have looked again.
//
// Keeps: §5.1/2.
func TestWaitEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.ReadyPoll = time.Hour
	b.fault(cks.Fault{Operation: "node.join", Value: "fail"})
	if job := b.alone(b.askWithin(time.Second, cks.ScaleUp, cks.Args{Size: 2})); job.Status != cks.JobFailed {
		t.Error("the job succeeded")
	}
}

// unready is a world in which no node of a new VM gets Ready.
type unready struct {
	*sim.World
	old []string
}

func (w unready) Nodes(ctx context.Context, clusterID string) ([]cks.Node, error) {
	nodes, err := w.World.Nodes(ctx, clusterID)
	for i := range nodes {
		if !slices.Contains(w.old, nodes[i].Name) {
			nodes[i].Ready = cks.NodeNotReady
		}
	}
	return nodes, err
}

// TestUndoDeletesHalfJoinedNode: a new VM that is destroyed leaves no node
// object behind (cks.md §7 E11).
//
// Keeps: E11, §5.9/not-ready.
func TestUndoDeletesHalfJoinedNode(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	world := unready{b.world, names(b.view().VMs)}
	joined := func() bool {
		nodes, err := b.world.Nodes(b.ctx, b.id)
		b.must(err)
		return len(nodes) > 2
	}
	b.runOn(world, world)
	job := b.askWithin(5*time.Second, cks.ScaleUp, cks.Args{Size: 2})
	b.until("it registered", joined)
	if job = b.ended(job); job.Status != cks.JobFailed {
		t.Error("the job succeeded")
	}
	if joined() {
		t.Error("its node is still there")
	}
	b.consistent()
}

// confused is a cloud that lists the VMs of another cluster as well.
type confused struct {
	*sim.World
	other string
}

func (w confused) Machines(ctx context.Context, clusterID string) ([]cks.Machine, error) {
	found, err := w.World.Machines(ctx, clusterID)
	if err != nil {
		return nil, err
	}
	more, err := w.World.Machines(ctx, w.other)
	return append(found, more...), err
}

// TestSweepTakesOnlyWhatWasRemoved: a machine that has a row, wherever, stays.
//
// Keeps: §6/sweep-only.
func TestSweepTakesOnlyWhatWasRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.unsettled = true // the other cluster has no VMs
	c := b.view().Cluster
	c.ID, c.Name, c.State = "", "empty", cks.Stopped
	c, err := b.st.AddCluster(b.ctx, c)
	b.must(err)
	world := confused{b.world, b.id}
	b.must(NewScanner(b.st, world, world, ScanConfig{}).Scan(b.ctx, c.ID))
	b.must(NewScanner(b.st, b.world, b.world, ScanConfig{}).Scan(b.ctx, b.id))
	for _, op := range []string{"vm.destroy", "node.delete"} {
		for _, id := range []string{b.id, c.ID} {
			s, err := b.world.Query(b.ctx, id)
			b.must(err)
			if slices.ContainsFunc(s.Calls, func(c cks.Calls) bool { return c.Operation == op }) {
				t.Errorf("%s was called", op)
			}
		}
	}
}
