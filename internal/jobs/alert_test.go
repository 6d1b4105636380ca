package jobs

import (
	"slices"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// What the change promises about the worker (seed), where no report does.

// waitsForNodes works b's job until it waits for its new nodes.
func (b *bench) waitsForNodes(job cks.Job) *Runner {
	b.Helper()
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	b.until("the job waits for its nodes", func() bool {
		b.once(r)
		j, err := b.st.Job(b.ctx, job.ID)
		b.must(err)
		return j.Step == "attach-iso" && j.Server == ""
	})
	return r
}

func (b *bench) once(r *Runner) {
	b.Helper()
	_, err := r.RunOnce(b.ctx)
	b.must(err)
}

func (b *bench) nodeIs(v cks.VM, want cks.Readiness) {
	b.Helper()
	b.until("the node of "+v.Name+" is "+string(want), func() bool {
		n, _ := b.node(v)
		return n.Ready == want
	})
}

// alone works b's jobs without a scanner until job has ended.
func (b *bench) alone(job cks.Job) cks.Job {
	b.Helper()
	return b.aloneOn(b.world, b.world, job)
}

// aloneOn is alone with a runner that sees another world.
func (b *bench) aloneOn(vms VMs, nodes Nodes, job cks.Job) cks.Job {
	b.Helper()
	r := NewRunner(b.st, vms, nodes, b.cfg)
	b.until("the job ended", func() bool {
		_, err := r.RunOnce(b.ctx)
		b.must(err)
		job, err = b.st.Job(b.ctx, job.ID)
		b.must(err)
		return job.Status != cks.JobPending
	})
	return job
}

// TestStartedMeanwhileIsWaitedFor: a stopped worker that somebody starts while
// a scale-up waits is expected to rejoin; until it has, the new node alone ends
// nothing.
//
// Keeps: seed/rejoin, seed/no-early-end, seed/wait-for-all-new.
func TestStartedMeanwhileIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Alert, Control: 1, Workers: 2}, 100)
	w := b.workers()[0]
	b.set(w, cks.VMStopped)
	b.nodeIs(w, cks.NodeUnknown)
	b.fault(cks.Fault{Operation: "node.join", Value: "fail"})
	job := b.ask(cks.ScaleUp, cks.Args{Size: 3})
	r := b.waitsForNodes(job)
	unfinished := func(when string) {
		t.Helper()
		_, err := b.st.WakeCluster(b.ctx, b.id)
		b.must(err)
		b.once(r)
		if j, err := b.st.Job(b.ctx, job.ID); err != nil || j.Step != "attach-iso" || j.Status != cks.JobPending {
			t.Errorf("%s, the job is past %q, status %d, %v", when, j.Step, j.Status, err)
		}
	}
	b.fault(cks.Fault{Operation: "node.set", Value: "NotReady", VMID: w.ID}) // it will come back, but not well
	b.set(w, cks.VMRunning)
	b.nodeIs(w, cks.NodeNotReady)
	unfinished("when a worker is started")
	b.fault(cks.Fault{Operation: "node.join", Value: "clear"})
	b.nodeIs(b.workers()[2], cks.NodeReady)
	unfinished("when the new node is Ready and the started one is not")
	b.fault(cks.Fault{Operation: "node.set", Value: "Ready", VMID: w.ID})
	if job = b.alone(job); job.Status != cks.JobSucceeded {
		t.Error(job.ErrorText)
	}
}

// TestOnlyDownWorkersGoUndrained: the node of a VM in any state that may still
// run it is drained before it goes; that of a down one is not.
//
// Keeps: seed/no-drain, seed/not-down-drained, seed/down, seed/node-object.
func TestOnlyDownWorkersGoUndrained(t *testing.T) {
	t.Parallel()
	down := []cks.VMState{cks.VMStopped, cks.VMShutdown, cks.VMError, cks.VMDestroyed, cks.VMExpunging}
	for _, state := range cks.VMStates {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Alert, Control: 1, Workers: 2}, 100)
			b.cfg.DrainTimeout = time.Second // where nobody confirms it
			w := b.workers()[1]
			b.set(w, state)
			job := b.alone(b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{w.ID}}))
			isDown := slices.Contains(down, state)
			if n := b.calls("node.drain", w.ID); (n == 0) != isDown {
				t.Errorf("%d drains", n)
			}
			if _, there := b.node(w); isDown && (there || job.Status != cks.JobSucceeded) {
				t.Errorf("the node is there: %t; %s", there, job.ErrorText)
			}
		})
	}
}

// TestPodsOfADownWorkerComeBackElsewhere once its node object is deleted.
//
// Keeps: seed/pods-elsewhere.
func TestPodsOfADownWorkerComeBackElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	pods := func() (n int) {
		nodes, err := b.world.Nodes(b.ctx, b.id)
		b.must(err)
		for _, node := range nodes {
			n += node.Pods
		}
		return n
	}
	before := pods()
	w := b.workers()
	b.set(w[0], cks.VMStopped)
	b.nodeIs(w[0], cks.NodeUnknown)
	if n, _ := b.node(w[0]); n.Pods == 0 || before == n.Pods {
		t.Fatalf("%d of %d pods are on the down worker", n.Pods, before)
	}
	if job := b.alone(b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{w[0].ID}})); job.Status != cks.JobSucceeded {
		t.Error(job.ErrorText)
	}
	b.until("all pods are back", func() bool { n, _ := b.node(w[1]); return n.Pods == before && pods() == before })
	if n := b.calls("node.drain", ""); n != 0 {
		t.Errorf("%d drains", n)
	}
}
