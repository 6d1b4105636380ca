package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// TestPanicInUndoLeavesNoHalfWay: when what undoes a failed job panics every
// time, no VM stays chosen or leaving for a job that has ended: the scanner
// ends what is left (design.md §4.11).
//
// Keeps: §5.9/exception.
func TestPanicInUndoLeavesNoHalfWay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fails, panics string
		kind          cks.Kind
		args          func(b *bench) cks.Args
	}{
		{"iso.attach", "vm.destroy", cks.ScaleUp, func(*bench) cks.Args { return cks.Args{Size: 3} }},
		{"node.drain", "node.uncordon", cks.RemoveNodes, func(b *bench) cks.Args { return cks.Args{VMIDs: []string{b.workers()[1].ID}} }},
	} {
		t.Run(string(tc.kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
			b.fault(cks.Fault{Operation: tc.fails, Value: "fail:broken"})
			b.fault(cks.Fault{Operation: tc.panics, Value: "panic"})
			b.run()
			job := b.ended(b.ask(tc.kind, tc.args(b)))
			if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "broken") {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			for _, op := range []string{tc.fails, tc.panics} {
				b.fault(cks.Fault{Operation: op, Value: "clear"})
			}
			b.inState(cks.Running)
			b.consistent()
			b.do(tc.kind, tc.args(b))
		})
	}
}

// grumpy is a world that answers some calls with an error of its own.
type grumpy struct {
	VMs
	Nodes
	nodes  atomic.Pointer[error] // of Nodes.Nodes
	attach func(vmID string) error
	detach error
	hidden atomic.Int32 // how many lists of machines lack the newest one
}

func (g *grumpy) list(ctx context.Context, id string) ([]cks.Node, error) {
	if err := g.nodes.Load(); err != nil {
		return nil, *err
	}
	return g.Nodes.Nodes(ctx, id)
}

type grumpyNodes struct{ *grumpy }

func (g grumpyNodes) Nodes(ctx context.Context, id string) ([]cks.Node, error) {
	return g.list(ctx, id)
}

type grumpyVMs struct{ *grumpy }

func (g grumpyVMs) DetachISO(ctx context.Context, clusterID, vmID string) error {
	if g.detach != nil {
		return g.detach
	}
	return g.VMs.DetachISO(ctx, clusterID, vmID)
}

func (g grumpyVMs) AttachISO(ctx context.Context, clusterID, vmID string) error {
	if g.attach != nil {
		if err := g.attach(vmID); err != nil {
			return err
		}
	}
	return g.VMs.AttachISO(ctx, clusterID, vmID)
}

func (g grumpyVMs) Machines(ctx context.Context, id string) ([]cks.Machine, error) {
	list, err := g.VMs.Machines(ctx, id)
	if err == nil && len(list) > 2 && g.hidden.Add(-1) >= 0 {
		list = list[:2]
	}
	return list, err
}

// TestFinalRefusalInUndoLeavesNoHalfWay: the same when the API refuses for good
// to list the nodes.
func TestFinalRefusalInUndoLeavesNoHalfWay(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "iso.attach", Value: "delay:300ms"})
	g := &grumpy{VMs: b.world, Nodes: b.world}
	b.runOn(grumpyVMs{g}, grumpyNodes{g})
	job := b.ask(cks.ScaleUp, cks.Args{Size: 2})
	b.until("the ISO is being attached", func() bool { return b.calls("iso.attach", "") > 0 })
	refused := error(cks.Errorf(cks.Failed, "certificate has expired"))
	g.nodes.Store(&refused)
	if job = b.ended(job); job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "certificate has expired") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.inState(cks.Running)
	b.consistent()
}

// TestSilentAPIDoesNotEndTheWait: while a scale-up waits for its nodes, an API
// that does not answer is asked again until the deadline (cks.md §5.2.6).
//
// Keeps: §5.2/6-retry.
func TestSilentAPIDoesNotEndTheWait(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "iso.attach", Value: "delay:300ms"})
	b.run()
	job := b.ask(cks.ScaleUp, cks.Args{Size: 2})
	b.until("the ISO is being attached", func() bool { return b.calls("iso.attach", "") > 0 })
	b.fault(cks.Fault{Operation: "node.list", Value: "fail:connection refused", Count: 8})
	if job = b.ended(job); job.Status != cks.JobSucceeded {
		t.Error(job.ErrorText)
	}
	b.consistent()
}

// TestFinalRefusalOfOptionalStep: a scale-up whose nodes are there succeeds
// though the ISO will never come out.
func TestFinalRefusalOfOptionalStep(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	g := &grumpy{VMs: b.world, Nodes: b.world, detach: cks.Errorf(cks.Failed, "not supported")}
	b.runOn(grumpyVMs{g}, grumpyNodes{g})
	b.do(cks.ScaleUp, cks.Args{Size: 2})
}

// TestMachineThatIsNotListedYet: a VM that the cloud does not list right after
// making it is waited for, not an error.
func TestMachineThatIsNotListedYet(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	g := &grumpy{VMs: b.world, Nodes: b.world}
	g.hidden.Store(5)
	b.runOn(grumpyVMs{g}, grumpyNodes{g})
	job := b.do(cks.ScaleUp, cks.Args{Size: 2})
	if job.Tries != 0 {
		t.Errorf("%d failed tries", job.Tries)
	}
	b.consistent()
}

// TestUncordonIsTriedAgain: a worker that is kept takes pods again even if the
// API does not answer at first (design.md §4.7).
//
// Keeps: §5.9/drain, #14611.
func TestUncordonIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.cfg.DrainTimeout = time.Second
	b.fault(cks.Fault{Operation: "node.drain", Value: "budget"})
	b.fault(cks.Fault{Operation: "node.uncordon", Value: "fail", Count: 2})
	b.run()
	w := b.workers()[1]
	if job := b.ended(b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{w.ID}})); job.Status != cks.JobFailed {
		t.Error("removed")
	}
	if n := b.calls("node.uncordon", w.ID); n != 3 {
		t.Errorf("%d tries to uncordon", n)
	}
}

// TestStuckVMHidesNothing: one doomed VM that cannot be destroyed keeps the
// scanner neither from the next one nor from what the cluster is.
//
// Keeps: §6/sweep.
func TestStuckVMHidesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	job := b.ask(cks.ScaleUp, cks.Args{Size: 4})
	job = b.claimed()
	var doomed []cks.VM
	b.must(b.st.InTx(b.ctx, func(q *store.Queries) (err error) {
		w := b.workers()[0]
		doomed, err = q.ChooseNew(b.ctx, job, []store.NewVM{
			{Role: cks.Worker, OfferingID: w.OfferingID, Prefix: "x"}, {Role: cks.Worker, OfferingID: w.OfferingID, Prefix: "x"}})
		return err
	}))
	for _, v := range doomed {
		b.must(b.world.Create(b.ctx, cks.MachineSpec{ID: v.ID, ClusterID: b.id, Name: v.Name, Role: v.Role, Cores: 2, MemoryMB: 2048}))
		b.must(b.st.NodeDoomed(b.ctx, job, v.ID))
	}
	b.must(b.st.FreeCluster(b.ctx, job, cks.OperationSucceeded))
	b.must(b.st.FailJob(b.ctx, job, "two VMs stay"))
	b.fault(cks.Fault{Operation: "vm.destroy", Value: "fail:storage is busy", VMID: doomed[0].ID})
	err := NewScanner(b.st, b.world, b.world, ScanConfig{}).Scan(b.ctx, b.id)
	if err == nil || !strings.Contains(err.Error(), "storage is busy") {
		t.Errorf("the scan says %v", err)
	}
	if n := len(b.view().VMs); n != 4 {
		t.Errorf("%d VMs are listed: the second was not destroyed", n)
	}
	if s := b.view().Cluster.State; s != cks.Alert {
		t.Errorf("cluster is %s", s)
	}
}

// claimed claims the only job.
func (b *bench) claimed() cks.Job {
	b.Helper()
	jobs, err := b.st.ClaimJobs(b.ctx, "me", 1, time.Minute)
	b.must(err)
	if len(jobs) != 1 {
		b.Fatalf("%d jobs", len(jobs))
	}
	return jobs[0]
}

// TestLateMachineOfDeletedClusterIsSwept: a call to make a VM that lands after
// its cluster is gone leaves no orphan.
//
// Keeps: §6/sweep.
func TestLateMachineOfDeletedClusterIsSwept(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.run()
	late := b.workers()[0]
	b.do(cks.DeleteCluster, cks.Args{})
	b.must(b.world.Create(b.ctx, cks.MachineSpec{ID: late.ID, ClusterID: b.id, Name: late.Name, Role: cks.Worker, Cores: 2, MemoryMB: 2048}))
	b.until("it is gone", func() bool { return len(b.simulation().Machines) == 0 })
}

// TestReclaimEndsOldRun: when a runner takes up again a job whose lease it has
// let run out, its first run of that job acts no more.
func TestReclaimEndsOldRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.ask(cks.ScaleUp, cks.Args{Size: 2})
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	first, err := r.claimJobs(b.ctx, 1)
	b.must(err)
	ctx, cancel := context.WithCancelCause(b.ctx)
	defer cancel(nil)
	first[0].lease.onLost(cancel)
	b.must(b.st.ReleaseLeases(b.ctx)) // as the passing of time would
	second, err := r.claimJobs(b.ctx, 1)
	b.must(err)
	if len(second) != 1 || !errors.Is(context.Cause(ctx), store.ErrLeaseLost) {
		t.Errorf("%d jobs; the first run goes on: %v", len(second), context.Cause(ctx))
	}
}

// TestEveryFailureNamesItsCluster, also one that was met before anything
// changed.
func TestEveryFailureNamesItsCluster(t *testing.T) {
	t.Parallel()
	for kind, fault := range map[cks.Kind]string{cks.ScaleUp: "node.list", cks.ScaleDown: "vm.list"} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
			b.fault(cks.Fault{Operation: fault, Value: "fail:connection refused"})
			b.run()
			job := b.ended(b.ask(kind, cks.Args{Size: map[cks.Kind]int{cks.ScaleUp: 3, cks.ScaleDown: 1}[kind]}))
			if name := b.view().Cluster.Name; !strings.Contains(job.ErrorText, name) || !strings.Contains(job.ErrorText, "connection refused") {
				t.Errorf("cluster %s: %s", name, job.ErrorText)
			}
		})
	}
}

// TestCutOffCallIsNoStop: a world that says "cancelled" though nobody stops is
// tried three times like any other, not over and over.
func TestCutOffCallIsNoStop(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	g := &grumpy{VMs: b.world, Nodes: b.world}
	cut := fmt.Errorf("rpc: %w", context.Canceled)
	g.nodes.Store(&cut)
	b.runOn(grumpyVMs{g}, grumpyNodes{g})
	if job := b.ended(b.ask(cks.ScaleUp, cks.Args{Size: 2})); job.Status != cks.JobFailed {
		t.Error("it succeeded")
	}
}

// TestFailureInAlertIsNoRecovery: a job that has changed nothing leaves a
// cluster in Alert in Alert.
//
// Keeps: §4/fires-unchanged.
// Keeps: §5.2/unchanged, §5.9/unchanged.
func TestFailureInAlertIsNoRecovery(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Alert, Control: 1, Workers: 2}, 100)
	b.fault(cks.Fault{Operation: "capacity", Value: "0"})
	if job := b.alone(b.ask(cks.ScaleUp, cks.Args{Size: 3})); job.Status != cks.JobFailed {
		t.Error("it succeeded")
	}
	if got := b.view().Cluster.State; got != cks.Alert {
		t.Errorf("%s", got)
	}
}

// TestWaitCountsWhatTheCloudShows: a worker that went down and that no scanner
// has recorded is not waited for (cks.md §11.12).
//
// Keeps: §5.2/down, §11/12.
// Keeps: seed/running-down-unexpected, seed/wait-without-down.
func TestWaitCountsWhatTheCloudShows(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	w := b.workers()[0]
	b.set(w, cks.VMStopped)
	b.until("its node is Unknown", func() bool {
		n, _ := b.node(w)
		return n.Ready == cks.NodeUnknown
	})
	if job := b.alone(b.askWithin(10*time.Second, cks.ScaleUp, cks.Args{Size: 3})); job.Status != cks.JobSucceeded {
		t.Error(job.ErrorText)
	}
}

// TestUndoKeepsNodeThatJoinedUnseen: one of two new nodes joins while the other
// cannot even be given the ISO. The job never got to look, the API and the
// detaching fail at first, and the node that joined is kept and counted all the
// same, without its ISO (design.md §4.6).
//
// Keeps: §5.9/ready-stay.
func TestUndoKeepsNodeThatJoinedUnseen(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.RetryWait = 500 * time.Millisecond
	b.fault(cks.Fault{Operation: "iso.detach", Value: "fail", Count: 1})
	g := &grumpy{VMs: b.world, Nodes: b.world}
	tries := 0
	g.attach = func(vmID string) error {
		if w := b.workers(); vmID != w[2].ID {
			return nil
		}
		if tries++; tries == 3 { // from here on it is undone
			b.fault(cks.Fault{Operation: "node.list", Value: "fail", Count: 1})
		}
		return errors.New("no such ISO")
	}
	b.runOn(grumpyVMs{g}, grumpyNodes{g})
	job := b.ended(b.ask(cks.ScaleUp, cks.Args{Size: 3}))
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "1 of 2 new nodes joined") || !strings.Contains(job.ErrorText, "no such ISO") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.inState(cks.Running)
	b.consistent()
}

// TestDeadlineEndsARemovalBetweenNodes: what is left stays (cks.md §5.4.7).
//
// Keeps: §5.1/2, §5.4/7.
func TestDeadlineEndsARemovalBetweenNodes(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 4}, 100)
	b.fault(cks.Fault{Operation: "node.drain", Value: "delay:4s"})
	b.run()
	job := b.ended(b.askWithin(3*time.Second, cks.ScaleDown, cks.Args{Size: 1}))
	if job.Status != cks.JobFailed || !strings.HasSuffix(job.ErrorText, "scaling action timed out") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	if n := len(b.workers()); n != 3 {
		t.Errorf("%d workers are left", n)
	}
	b.inState(cks.Running)
	b.consistent()
}

// TestChangeWakesTheWait: a job that waits looks when its world changes, not
// only when its time has come.
//
// Keeps: §5.2/6-poll.
func TestChangeWakesTheWait(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.ReadyPoll = time.Hour
	b.run()
	b.do(cks.ScaleUp, cks.Args{Size: 2})
}

// TestChangeWakesTheWaitAfterAFailedTry: a step that failed once and then waits
// is woken like any other.
func TestChangeWakesTheWaitAfterAFailedTry(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.ReadyPoll = time.Hour
	b.fault(cks.Fault{Operation: "vm.create", Value: "fail", Count: 1})
	b.run()
	b.do(cks.ScaleUp, cks.Args{Size: 2})
}
