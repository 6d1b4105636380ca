package jobs

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// TestScaleUpEndsWithReadyNodes: size, VM list and result are the final ones
// and the ISO is out (cks.md §5.2, A05).
//
// Keeps: §4/fires-end.
// Keeps: §5.1/7, §5.2/2-offering, §5.2/2-row, §5.2/9.
// Keeps: seed/wait-for-all-new.
func TestScaleUpEndsWithReadyNodes(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 3, Workers: 1}, 100)
	b.run()
	job := b.do(cks.ScaleUp, cks.Args{Size: 3})
	result := job.Result.Cluster
	if result.Cluster.State != cks.Running || result.Cluster.Size != 3 || len(result.VMs) != 6 {
		t.Errorf("result is %s, size %d, %d VMs", result.Cluster.State, result.Cluster.Size, len(result.VMs))
	}
	for _, v := range b.workers() {
		if n, ok := b.node(v); !ok || n.Ready != cks.NodeReady {
			t.Errorf("node of %s is %+v", v.Name, n)
		}
		if v.State != cks.VMRunning {
			t.Errorf("%s is recorded as %s", v.Name, v.State)
		}
		if v.Role != cks.Worker || v.External || v.NodeVersion != result.Version.Version || v.OfferingID != result.Cluster.OfferingFor(cks.Worker) {
			t.Errorf("%s is recorded as %+v", v.Name, v)
		}
	}
	b.consistent()
}

// TestStaleReadyDoesNotEndScaleUp is the seed's deterministic variant (cks.md
// §11.3): worker 2 is stopped just before the scale-up, so the 3 control nodes
// and its stale Ready make the expected 4 before the new node exists.
//
// Keeps: §11/3, §5.2/by-name.
// Keeps: seed/by-name.
func TestStaleReadyDoesNotEndScaleUp(t *testing.T) {
	t.Parallel()
	b := staleReady(t)
	b.run()
	job := b.do(cks.ScaleUp, cks.Args{Size: 3})
	if got := job.Result.Cluster.Cluster.Size; got != 3 {
		t.Errorf("size %d", got)
	}
	fresh := b.workers()[2]
	if n, ok := b.node(fresh); !ok || n.Ready != cks.NodeReady {
		t.Errorf("the scale-up succeeded and the new node is %+v", n)
	}
	b.consistent()
}

// TestWithoutByNameWaitNewNodeIsStranded: the window is real. A plan without
// the wait by name takes the ISO out early, and the new node never joins.
//
// Keeps: §5.2/by-name.
// Keeps: seed/early-match, seed/early-detach.
func TestWithoutByNameWaitNewNodeIsStranded(t *testing.T) {
	t.Parallel()
	b := staleReady(t)
	p := plans[cks.ScaleUp]
	p.steps = slices.DeleteFunc(slices.Clone(p.steps), func(s step) bool { return s.name == "wait-new-nodes" })
	b.ask(cks.ScaleUp, cks.Args{Size: 3})
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	b.until("the plan without the wait ended", func() bool {
		jobs, err := r.claimJobs(b.ctx, 1)
		b.must(err)
		for _, c := range jobs {
			b.must((&run{Runner: r, job: c.job, plan: p, claimed: c.at, lease: c.lease, log: testLog()}).work(b.ctx))
		}
		return !b.view().Cluster.State.Busy()
	})
	fresh := b.workers()[2]
	if n, ok := b.node(fresh); ok {
		t.Errorf("the new node is there (%s): the stale Ready did not make up the count", n.Ready)
	}
	for _, m := range b.simulation().Machines {
		if m.ID == fresh.ID && m.ISOAttached {
			t.Error("the ISO is still attached")
		}
	}
}

// staleReady is a cluster in Alert with worker 1 long down and worker 2 down
// just now.
func staleReady(t *testing.T) *bench {
	b := newBench(t, storetest.Spec{State: cks.Alert, Control: 3, Workers: 2}, 10)
	w := b.workers()
	b.set(w[0], cks.VMStopped)
	b.until("worker 1 is Unknown", func() bool {
		n, ok := b.node(w[0])
		return ok && n.Ready == cks.NodeUnknown
	})
	b.set(w[1], cks.VMStopped)
	if n, _ := b.node(w[1]); n.Ready != cks.NodeReady {
		t.Fatalf("worker 2 is %s already", n.Ready)
	}
	return b
}

// TestNodeThatNeverJoinsFailsAtDeadline: the job fails at the deadline with the
// node's name, the VM and its node are gone, the ISO is out, and the cluster
// comes back (cks.md §11.11, A30).
//
// Keeps: §11/11, §5.9/not-ready.
func TestNodeThatNeverJoinsFailsAtDeadline(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.fault(cks.Fault{Operation: "node.join", Value: "fail"})
	b.run()
	begin := time.Now()
	job := b.ended(b.askWithin(2*time.Second, cks.ScaleUp, cks.Args{Size: 3}))
	if took := time.Since(begin); took < 2*time.Second {
		t.Errorf("given up after %s, before the deadline", took)
	}
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "0 of 1 new nodes joined") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.inState(cks.Running)
	if n := len(b.workers()); n != 2 {
		t.Errorf("%d workers", n)
	}
	b.consistent()
}

// TestPartialScaleUpKeepsReadyNodes: one of two new nodes joins; it stays and
// is counted, the other is destroyed (design.md §4.6).
//
// Keeps: §5.9/ready-stay.
// Keeps: A29.
func TestPartialScaleUpKeepsReadyNodes(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "node.join", Value: "fail", Count: 1})
	b.run()
	job := b.ended(b.askWithin(3*time.Second, cks.ScaleUp, cks.Args{Size: 3}))
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "1 of 2 new nodes joined") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.inState(cks.Running)
	if got := b.view().Cluster.Size; got != 2 {
		t.Errorf("size %d", got)
	}
	b.consistent()
}

// TestFaultsOfGrowth: whatever fails while VMs are made, the job says so, no
// VM is left over, and the cluster can be scaled again (A28, A29, cks.md §7
// E10, E11).
//
// Keeps: §5.2/5-failure, §5.9/create, §5.9/iso, E10.
// Keeps: A28.
func TestFaultsOfGrowth(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fault cks.Fault
		text  string
		calls int
	}{
		{cks.Fault{Operation: "vm.create", Value: "fail:out of addresses"}, "out of addresses", 3},
		{cks.Fault{Operation: "vm.create", Value: "panic"}, "panicked", 3},
		{cks.Fault{Operation: "vm.create", Value: "hang"}, "no answer within", 3},
		{cks.Fault{Operation: "vm.start", Value: "fail:no host"}, "Failed to start VM", 3},
		{cks.Fault{Operation: "iso.attach", Value: "fail:no such ISO"}, "Failed to attach binaries ISO for VM", 3},
		{cks.Fault{Operation: "node.list", Value: "fail:connection refused"}, "connection refused", 0},
	} {
		t.Run(tc.fault.Operation+" "+tc.fault.Value, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
			b.cfg.CallTimeout = 20 * time.Second // on a busy machine a call takes its time
			if tc.fault.Value == "hang" {
				b.cfg.CallTimeout = 1500 * time.Millisecond
			}
			b.fault(tc.fault)
			b.run()
			job := b.ended(b.ask(cks.ScaleUp, cks.Args{Size: 2}))
			if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, tc.text) {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			if n := b.calls(tc.fault.Operation, ""); tc.calls > 0 && n != tc.calls {
				t.Errorf("%d tries, want %d", n, tc.calls)
			}
			b.fault(cks.Fault{Operation: tc.fault.Operation, Value: "clear"})
			b.inState(cks.Running)
			b.consistent()
			b.do(cks.ScaleUp, cks.Args{Size: 2})
			b.consistent()
		})
	}
}

// TestNoRoomChangesNothing: a scale-up that does not fit makes no VM and gives
// the cluster back as it was (A29).
//
// Keeps: §5.2/unchanged, §5.9/unchanged.
// Keeps: A29.
func TestNoRoomChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "capacity", Value: "1"})
	b.run()
	job := b.ended(b.ask(cks.ScaleUp, cks.Args{Size: 3}))
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "insufficient capacity") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	if s := b.view().Cluster.State; s != cks.Running {
		t.Errorf("cluster is %s", s)
	}
	if n := b.calls("vm.create", ""); n != 0 {
		t.Errorf("%d VMs were made", n)
	}
	b.consistent()
}

// TestNodeThatWasNotReadyDoesNotBlockScaleUp: a running VM whose node is not
// Ready is not waited for (cks.md §7 D5).
//
// Keeps: D5.
func TestNodeThatWasNotReadyDoesNotBlockScaleUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.fault(cks.Fault{Operation: "node.forget", VMID: b.workers()[0].ID})
	b.run()
	b.do(cks.ScaleUp, cks.Args{Size: 3})
	b.consistent()
}

// TestISOThatStaysDoesNotUndoScaleUp: a failing detach is logged only (cks.md
// §5.2.7).
//
// Keeps: §5.2/7.
func TestISOThatStaysDoesNotUndoScaleUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "iso.detach", Value: "fail"})
	b.run()
	b.do(cks.ScaleUp, cks.Args{Size: 2})
	if n := b.calls("iso.detach", ""); n != 3 {
		t.Errorf("%d tries to detach", n)
	}
}

// TestWaitingJobHoldsNothing: while nodes boot, no worker, goroutine or lease
// is taken by the job that waits for them.
func TestWaitingJobHoldsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "node.join", Value: "fail"})
	r := b.run()
	job := b.ask(cks.ScaleUp, cks.Args{Size: 2})
	b.until("the job waits", func() bool {
		j, err := b.st.Job(b.ctx, job.ID)
		b.must(err)
		return j.Step == "attach-iso" && j.Server == "" && r.inFlight() == 0
	})
	b.fault(cks.Fault{Operation: "node.join", Value: "clear"})
	if job = b.ended(job); job.Status != cks.JobSucceeded {
		t.Errorf("%s", job.ErrorText)
	}
}
