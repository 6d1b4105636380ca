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

// What a scale-up waits for, and for how long (cks.md §5.2).

// waiting asks for a scale-up whose new node does not join until the fault is
// cleared, and returns it when it waits for the nodes.
func (b *bench) waiting(size int) cks.Job {
	b.Helper()
	b.fault(cks.Fault{Operation: "node.join", Value: "fail"})
	job := b.ask(cks.ScaleUp, cks.Args{Size: size})
	b.until("the job waits", func() bool {
		j, err := b.st.Job(b.ctx, job.ID)
		b.must(err)
		return j.Step == "attach-iso" && j.Server == ""
	})
	return job
}

// TestExpectedCountIsReadAgain: how many nodes must be Ready is counted anew on
// every look, so a worker that is stopped while the scale-up waits is not
// waited for, and one that is started is.
//
// Keeps: §5.2/read-again.
// Keeps: seed/count-again, seed/wait-without-down.
func TestExpectedCountIsReadAgain(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		from      cks.State
		change    func(b *bench, v cks.VM)
		readiness cks.Readiness // of its node then
	}{
		{"stopped meanwhile", cks.Running, func(b *bench, v cks.VM) { b.set(v, cks.VMStopped) }, cks.NodeUnknown},
		{"started meanwhile", cks.Alert, func(b *bench, v cks.VM) { b.must(b.world.Start(b.ctx, b.id, v.ID)) }, cks.NodeReady},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: tc.from, Control: 1, Workers: 2}, 100)
			w := b.workers()[0]
			is := func(s cks.Readiness) func() bool {
				return func() bool { n, _ := b.node(w); return n.Ready == s }
			}
			if tc.from == cks.Alert {
				b.set(w, cks.VMStopped)
				b.until("its node is Unknown", is(cks.NodeUnknown))
			}
			b.run()
			job := b.waiting(3)
			tc.change(b, w)
			b.until("its node follows", is(tc.readiness))
			b.fault(cks.Fault{Operation: "node.join", Value: "clear"})
			if job = b.ended(job); job.Status != cks.JobSucceeded || job.Result.Cluster.Cluster.Size != 3 {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			b.consistent()
		})
	}
}

// TestReadyCountMustBeExact: Ready nodes that nobody expects are no match
// either. The text says so, and the new node, which is there, stays and is
// counted.
//
// Keeps: §5.2/6-exact, §5.2/8.
func TestReadyCountMustBeExact(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	// Two, since one would make up the count until the new node is Ready.
	strangers := []cks.MachineSpec{
		{ID: "00000000-0000-4000-8000-000000000001", ClusterID: b.id, Name: "stranger-1", Role: cks.Worker, Cores: 2, MemoryMB: 2048},
		{ID: "00000000-0000-4000-8000-000000000002", ClusterID: b.id, Name: "stranger-2", Role: cks.Worker, Cores: 2, MemoryMB: 2048},
	}
	b.must(b.world.Adopt(b.ctx, strangers))
	job := b.alone(b.askWithin(3*time.Second, cks.ScaleUp, cks.Args{Size: 2}))
	want := "Scaling unsuccessful for Kubernetes cluster : test as it does not have desired number of nodes in ready state: 5 are ready and 3 are expected"
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, want) || !strings.Contains(job.ErrorText, "1 of 1 new nodes joined") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	if c := b.view().Cluster; c.Size != 2 || c.State != cks.Alert {
		t.Errorf("size %d, %s", c.Size, c.State)
	}
	for _, m := range strangers {
		b.must(b.world.Destroy(b.ctx, b.id, m.ID))
		b.must(b.world.Delete(b.ctx, b.id, m.Name))
	}
}

// TestCordonedNodeCounts: a node that takes no new pods is Ready all the same.
//
// Keeps: §5.2/6-cordoned.
func TestCordonedNodeCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.must(b.world.Drain(b.ctx, b.id, b.workers()[0].NodeName(), 20*time.Second))
	if job := b.alone(b.askWithin(20*time.Second, cks.ScaleUp, cks.Args{Size: 3})); job.Status != cks.JobSucceeded {
		t.Error(job.ErrorText)
	}
	b.consistent()
}

// stale is a cluster whose API never notices that a node's VM has stopped.
type stale struct {
	*sim.World
	name string // of the node
}

func (w stale) Nodes(ctx context.Context, clusterID string) ([]cks.Node, error) {
	nodes, err := w.World.Nodes(ctx, clusterID)
	for i := range nodes {
		if nodes[i].Name == w.name {
			nodes[i].Ready = cks.NodeReady
		}
	}
	return nodes, err
}

// TestWaitByNameEndsAtTheDeadline: the count is made up by a stale Ready and
// the new node never joins. The job fails at its deadline with the node's name;
// the VM is gone and the cluster in Alert: the path that the seed's lab report
// did not reach.
//
// Keeps: §5.2/by-name, §5.2/by-name-deadline.
// Keeps: seed/by-name-timeout, seed/same-deadline, seed/timeout-alert.
func TestWaitByNameEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Alert, Control: 1, Workers: 2}, 100)
	w := b.workers()[0]
	b.set(w, cks.VMStopped)
	b.fault(cks.Fault{Operation: "node.join", Value: "fail"})
	world := stale{b.world, w.NodeName()}
	b.runOn(world, world)
	// Control node, worker 2 and the stale worker 1 make the expected 3.
	begin := time.Now()
	job := b.askWithin(2*time.Second, cks.ScaleUp, cks.Args{Size: 3})
	var fresh string
	b.until("it waits by name", func() bool {
		j, err := b.st.Job(b.ctx, job.ID)
		b.must(err)
		if vms := b.workers(); len(vms) == 3 {
			fresh = vms[2].NodeName()
		}
		return j.Step == "wait-ready-count"
	})
	if job = b.ended(job); job.Status != cks.JobFailed || !strings.HasSuffix(job.ErrorText, "nodes never became ready: "+fresh) {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	if took := time.Since(begin); took < 2*time.Second {
		t.Errorf("given up after %s, before the deadline", took)
	}
	if n := b.calls("iso.detach", ""); n != 0 {
		t.Errorf("the ISO was detached %d times", n)
	}
	b.inState(cks.Alert)
	if n := len(b.workers()); n != 2 {
		t.Errorf("%d workers", n)
	}
	b.consistent()
}

// TestWaitLooksFirst: what is so already is not waited for: every look comes
// before the pause of 15 s, not after it.
//
// Keeps: §5.2/6-first.
func TestWaitLooksFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 1e6)
	b.cfg.ReadyPoll = time.Hour
	if job := b.alone(b.ask(cks.ScaleUp, cks.Args{Size: 2})); job.Status != cks.JobSucceeded {
		t.Error(job.ErrorText)
	}
	b.consistent()
}

// TestDefaultsOfJobs: what CloudStack has built in, or the lab used.
//
// Keeps: §5.2/6-poll, §6/interval, D2.
// Keeps: §5.4/3, §5.4/1-timeout.
func TestDefaultsOfJobs(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	if c.ReadyPoll != 15*time.Second || c.MaxTries != 3 || c.RetryWait != 30*time.Second || c.DrainTimeout != time.Minute || c.Lease != 10*time.Second {
		t.Errorf("%+v", c)
	}
	if s := NewScanner(nil, nil, nil, ScanConfig{}); s.cfg.Interval != 30*time.Second {
		t.Errorf("%+v", s.cfg)
	}
}

// TestFailedTryIsNotHurried: a step that failed is tried again when its time
// has come, 30 s later, whatever happens in the world meanwhile.
//
// Keeps: D2.
// Keeps: §5.4/3.
func TestFailedTryIsNotHurried(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.cfg.RetryWait = time.Hour
	b.fault(cks.Fault{Operation: "node.drain", Value: "fail:exit status 1"})
	w := b.workers()[1]
	b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{w.ID}})
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	again := func() bool {
		worked, err := r.RunOnce(b.ctx)
		b.must(err)
		return worked
	}
	if !again() || b.calls("node.drain", w.ID) != 1 {
		t.Fatal("it was not tried")
	}
	woken, err := b.st.WakeCluster(b.ctx, b.id)
	b.must(err)
	if woken || again() {
		t.Error("it was tried again at once")
	}
	if in, ok, err := b.st.NextDue(b.ctx); err != nil || !ok || in < 50*time.Minute {
		t.Errorf("it is tried again in %s, %v", in, err)
	}
}
