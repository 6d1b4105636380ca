package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// Starting and stopping clusters (cks.md §4). Upgrading is in upgrade_test.go.

// stopped powers off all machines of the cluster, which is recorded as Stopped.
func (b *bench) stopped() cks.Args {
	b.Helper()
	for _, v := range b.view().VMs {
		b.set(v, cks.VMStopped)
	}
	b.scan()
	return cks.Args{}
}

// vmStates are the states of the cluster's VMs, in the cloud, in their order.
func (b *bench) vmStates() (states []cks.VMState) {
	b.Helper()
	for _, m := range b.simulation().Machines {
		states = append(states, m.State)
	}
	return states
}

// all reports whether every VM of the cluster is recorded in that state, and is.
func (b *bench) all(s cks.VMState) bool {
	b.Helper()
	other := func(v cks.VM) bool { return v.State != s }
	return !slices.ContainsFunc(b.view().VMs, other) && !slices.ContainsFunc(b.vmStates(), func(x cks.VMState) bool { return x != s })
}

// livedOn checks what a job of the kind has left, when it succeeded.
func (b *bench) livedOn(kind cks.Kind) {
	b.Helper()
	switch kind {
	case cks.StopCluster:
		if b.view().Cluster.State != cks.Stopped || !b.all(cks.VMStopped) {
			b.Errorf("%s, VMs %v", b.view().Cluster.State, b.vmStates())
		}
	case cks.StartCluster:
		if b.view().Cluster.State != cks.Running || !b.all(cks.VMRunning) {
			b.Errorf("%s, VMs %v", b.view().Cluster.State, b.vmStates())
		}
		for _, v := range b.view().VMs {
			if n, there := b.node(v); !there || n.Ready != cks.NodeReady {
				b.Errorf("node %s is %q", v.NodeName(), n.Ready)
			}
		}
	case cks.UpgradeCluster:
		b.upgraded()
	}
}

// TestStopCountsOnWhatIsDown: of a cluster in Alert, VMs in whatever state that
// is down are left as they are, the others are stopped, control and etcd ones
// too, and the cluster is Stopped.
//
// Keeps: §4/start-stop.
func TestStopCountsOnWhatIsDown(t *testing.T) {
	t.Parallel()
	for _, s := range []cks.VMState{cks.VMStopped, cks.VMShutdown, cks.VMError, cks.VMDestroyed, cks.VMExpunging} {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Alert, Control: 3, Etcd: 1, Workers: 2}, 100)
			down := b.workers()[0]
			b.set(down, s)
			if job := b.alone(b.ask(cks.StopCluster, cks.Args{})); job.Status != cks.JobSucceeded || !job.Result.Success {
				t.Fatalf("status %d: %s", job.Status, job.ErrorText)
			}
			if c := b.view().Cluster; c.State != cks.Stopped || c.Size != 2 {
				t.Errorf("%s of size %d", c.State, c.Size)
			}
			for _, v := range b.view().VMs {
				want, calls := cks.VMStopped, 1
				if v.ID == down.ID {
					want, calls = s, 0
				}
				if v.State != want || b.calls("vm.stop", v.ID) != calls {
					t.Errorf("%s is %s after %d stops", v.Name, v.State, b.calls("vm.stop", v.ID))
				}
			}
			if n := b.calls("node.drain", ""); n != 0 {
				t.Errorf("%d drains", n)
			}
		})
	}
}

// TestStopStopsWhatIsStartedMeanwhile: a VM that somebody starts while others are
// still being stopped is stopped as well.
func TestStopStopsWhatIsStartedMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	w := b.workers()
	b.set(w[1], cks.VMStopping) // and stays so: no time is set for its end
	job := b.ask(cks.StopCluster, cks.Args{})
	b.run()
	b.until("the first is down", func() bool { return b.vmStates()[1] == cks.VMStopped })
	b.must(b.world.Start(b.ctx, b.id, w[0].ID))
	b.until("it is stopped again", func() bool { return b.calls("vm.stop", w[0].ID) == 2 })
	b.set(w[1], cks.VMStopped)
	if job = b.ended(job); job.Status != cks.JobSucceeded {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	if n := b.calls("vm.stop", w[1].ID); n != 0 {
		t.Errorf("what was Stopping is stopped %d times", n)
	}
	b.livedOn(cks.StopCluster)
}

// TestFailedStop: a VM that cannot be stopped, or is not down in time, ends the
// job with its name, and the cluster in Alert; all others were asked to stop.
// Stopped again, once the cause is gone, it is Stopped.
//
// Keeps: §4/start-stop, §4/Stopping.
func TestFailedStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value string
		limit time.Duration
		want  string
	}{
		"fails":  {"fail:no route to host", time.Minute, "no route to host"},
		"hangs":  {"hang", time.Minute, "no answer within"},
		"panics": {"panic", time.Minute, "the call panicked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
			b.cfg.CallTimeout = 20 * time.Second // on a busy machine a call takes its time
			if c.value == "hang" {
				b.cfg.CallTimeout = 1500 * time.Millisecond
			}
			w := b.workers()
			b.fault(cks.Fault{Operation: "vm.stop", Value: c.value, VMID: w[0].ID})
			job := b.alone(b.askWithin(c.limit, cks.StopCluster, cks.Args{}))
			if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "Failed to stop all VMs in Kubernetes cluster : test, VM "+w[0].Name) || !strings.Contains(job.ErrorText, c.want) {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			if got := b.view().Cluster.State; got != cks.Alert {
				t.Errorf("%s", got)
			}
			if b.calls("vm.stop", w[0].ID) != 3 || b.calls("vm.stop", w[1].ID) == 0 {
				t.Errorf("%d and %d stops", b.calls("vm.stop", w[0].ID), b.calls("vm.stop", w[1].ID))
			}
			b.fault(cks.Fault{Operation: "vm.stop", Value: "clear"})
			if job = b.alone(b.ask(cks.StopCluster, cks.Args{})); job.Status != cks.JobSucceeded {
				t.Errorf("again: %s", job.ErrorText)
			}
			b.livedOn(cks.StopCluster)
		})
	}
}

// TestStopThatTakesTooLong: a VM that stays Stopping ends the job at its
// deadline.
func TestStopThatTakesTooLong(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	w := b.workers()
	b.set(w[1], cks.VMStopping)
	job := b.alone(b.askWithin(4*time.Second, cks.StopCluster, cks.Args{}))
	if want := "these are not down in time: " + w[1].Name; job.Status != cks.JobFailed || !strings.HasSuffix(job.ErrorText, want) {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	if got := b.view().Cluster.State; got != cks.Alert {
		t.Errorf("%s", got)
	}
	b.set(w[1], cks.VMStopped)
	b.scan()
	if got := b.view().Cluster.State; got != cks.Stopped {
		t.Errorf("all are down, and it is %s", got)
	}
}

// TestVMStartedByHandLeavesTheClusterStopped: the scanner moves no Stopped
// cluster; a start of the cluster starts the rest only.
//
// Keeps: §6/2.
func TestVMStartedByHandLeavesTheClusterStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Stopped, Control: 1, Workers: 2}, 100)
	b.stopped()
	for i, w := range b.workers() {
		b.must(b.world.Start(b.ctx, b.id, w.ID))
		b.until("it runs", func() bool { return b.vmStates()[1+i] == cks.VMRunning })
		b.scan()
		if got := b.view().Cluster.State; got != cks.Stopped {
			t.Errorf("%s", got)
		}
	}
	if job := b.alone(b.ask(cks.StartCluster, cks.Args{})); job.Status != cks.JobSucceeded || job.Result.Cluster.Cluster.State != cks.Running {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	for _, w := range b.workers() {
		if n := b.calls("vm.start", w.ID); n != 1 {
			t.Errorf("%s was started %d times", w.Name, n)
		}
	}
	b.livedOn(cks.StartCluster)
	b.consistent()
}

// TestFailedStart: what keeps a cluster from starting ends its job with the
// reason, and the cluster in Alert. Stopped, it can be started again.
//
// Keeps: §4/start-stop.
func TestFailedStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(b *bench, w cks.VM)
		mend  func(b *bench, w cks.VM)
		want  func(w cks.VM) string
	}{
		"a VM fails to start": {
			func(b *bench, w cks.VM) {
				b.fault(cks.Fault{Operation: "vm.start", Value: "fail:no memory", VMID: w.ID})
			},
			func(b *bench, w cks.VM) { b.fault(cks.Fault{Operation: "vm.start", Value: "clear"}) },
			func(w cks.VM) string {
				return "Failed to start VM " + w.Name + " in the Kubernetes cluster : test: no memory"
			},
		},
		"a VM is in Error": {
			func(b *bench, w cks.VM) { b.set(w, cks.VMError) },
			func(b *bench, w cks.VM) { b.set(w, cks.VMStopped) },
			func(w cks.VM) string {
				return "Failed to start VM " + w.Name + " in the Kubernetes cluster : test: it is in Error state"
			},
		},
		"a VM never runs": {
			func(b *bench, w cks.VM) { b.set(w, cks.VMStarting) },
			func(b *bench, w cks.VM) { b.set(w, cks.VMStopped) },
			func(w cks.VM) string {
				return "Failed to start VM " + w.Name + " in the Kubernetes cluster : test: not running in time"
			},
		},
		"a node is never Ready": {
			func(b *bench, w cks.VM) { b.fault(cks.Fault{Operation: "node.set", Value: "NotReady", VMID: w.ID}) },
			func(b *bench, w cks.VM) { b.fault(cks.Fault{Operation: "node.set", Value: "Ready", VMID: w.ID}) },
			func(w cks.VM) string {
				return "Failed to start Kubernetes cluster : test, nodes never became ready: " + w.NodeName()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Stopped, Control: 1, Workers: 2}, 100)
			b.stopped()
			w := b.workers()[1]
			c.spoil(b, w)
			job := b.alone(b.askWithin(4*time.Second, cks.StartCluster, cks.Args{}))
			if job.Status != cks.JobFailed || job.ErrorText != c.want(w) {
				t.Errorf("status %d: %s\nwant %s", job.Status, job.ErrorText, c.want(w))
			}
			if got := b.view().Cluster.State; got != cks.Alert {
				t.Errorf("%s", got)
			}
			c.mend(b, w)
			for _, kind := range []cks.Kind{cks.StopCluster, cks.StartCluster} {
				if b.view().Cluster.State == cks.Stopped && kind == cks.StopCluster {
					continue
				}
				if job := b.alone(b.ask(kind, cks.Args{})); job.Status != cks.JobSucceeded {
					t.Fatalf("%s: %s", kind, job.ErrorText)
				}
			}
			b.livedOn(cks.StartCluster)
			b.consistent()
		})
	}
}

// TestStartDoesNotWaitForAVMThatIsStopped: while nodes are waited for, somebody
// stops a VM: the job ends at once, with its name, and not at the deadline.
func TestStartDoesNotWaitForAVMThatIsStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Stopped, Control: 1, Workers: 2}, 100)
	b.stopped()
	w := b.workers()
	b.fault(cks.Fault{Operation: "node.set", Value: "NotReady", VMID: w[0].ID})
	b.run()
	job := b.askWithin(time.Hour, cks.StartCluster, cks.Args{})
	b.until("nodes are waited for", func() bool {
		j, err := b.st.Job(b.ctx, job.ID)
		b.must(err)
		return j.Step == "start-vms"
	})
	b.set(w[1], cks.VMStopped)
	if job = b.ended(job); job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "VM "+w[1].Name+" is in Stopped state") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
}

// TestStartIsNotFooledByAStaleReady: stopped and started again within the grace
// period, a node is Ready all the while for Kubernetes; the start waits until
// its kubelet has said so itself, and fails when it says otherwise.
//
// Keeps: §4/start-back.
func TestStartIsNotFooledByAStaleReady(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Stopped, Control: 1, Workers: 2}, 1) // the grace period is 40 s
	b.stopped()
	w := b.workers()
	b.fault(cks.Fault{Operation: "node.set", Value: "NotReady", VMID: w[0].ID}) // when it will be heard of
	for _, v := range b.view().VMs {
		b.set(v, cks.VMRunning) // it takes 2 s more until the kubelets are back
	}
	for _, v := range b.view().VMs {
		if n, _ := b.node(v); n.Ready != cks.NodeReady {
			t.Fatalf("%s is %s: nothing is proved", n.Name, n.Ready)
		}
	}
	job := b.alone(b.askWithin(4*time.Second, cks.StartCluster, cks.Args{}))
	if job.Status != cks.JobFailed || !strings.HasSuffix(job.ErrorText, "nodes never became ready: "+w[0].NodeName()) {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.fault(cks.Fault{Operation: "node.set", Value: "Ready", VMID: w[0].ID})
}

// TestStartWaitsForVMsOnTheirWay: a VM that is Stopping or Migrating cannot be
// started; the job looks again, and starts it when it is down.
func TestStartWaitsForVMsOnTheirWay(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Stopped, Control: 1, Workers: 2}, 100)
	b.stopped()
	w := b.workers()
	b.set(w[0], cks.VMStopping) // and stays so: no time is set for its end
	b.set(w[1], cks.VMMigrating)
	b.run()
	job := b.ask(cks.StartCluster, cks.Args{})
	b.until("the control node runs", func() bool { return b.vmStates()[0] == cks.VMRunning })
	b.set(w[0], cks.VMStopped)
	b.set(w[1], cks.VMRunning)
	if job = b.ended(job); job.Status != cks.JobSucceeded || b.calls("vm.start", w[0].ID) != 1 || b.calls("vm.start", w[1].ID) != 0 {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.livedOn(cks.StartCluster)
}

// TestDoomedVMIsNotStarted: what a failed scale-up could not destroy is no part
// of the cluster.
func TestDoomedVMIsNotStarted(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Stopped, Control: 1, Workers: 1}, 100)
	b.stopped()
	b.fault(cks.Fault{Operation: "vm.destroy", Value: "fail"})
	doomed, err := b.st.AddVM(b.ctx, cks.VM{ClusterID: b.id, Name: "test-node-doomed", Role: cks.Worker,
		OfferingID: b.view().Cluster.DefaultOffering, State: cks.VMStopped, Phase: cks.Doomed})
	b.must(err)
	b.must(b.world.Create(b.ctx, cks.MachineSpec{ID: doomed.ID, ClusterID: b.id, Name: doomed.Name, Role: cks.Worker, Cores: 2, MemoryMB: 2048}))
	if job := b.alone(b.ask(cks.StartCluster, cks.Args{})); job.Status != cks.JobSucceeded || b.calls("vm.start", doomed.ID) != 0 {
		t.Errorf("status %d, %d starts: %s", job.Status, b.calls("vm.start", doomed.ID), job.ErrorText)
	}
}

// TestHarmlessStepsLeadBack: a failure that has changed nothing ends with
// OperationSucceeded, so a plan with harmless steps must lead from the state it
// was accepted in back to that.
//
// Keeps: §4/fires-unchanged.
func TestHarmlessStepsLeadBack(t *testing.T) {
	t.Parallel()
	for kind, p := range plans {
		if !slices.ContainsFunc(p.steps, func(s step) bool { return s.harmless }) || p.failed != "" {
			continue
		}
		for _, from := range []cks.State{cks.Created, cks.Running, cks.Stopped} {
			if busy, err := from.On(cks.Requests[kind]); err == nil {
				if back, err := busy.On(cks.OperationSucceeded); err != nil || back != from {
					t.Errorf("%s from %s leads to %q: %v", kind, from, back, err)
				}
			}
		}
	}
}

// TestCancelOfALife: a start, a stop and an upgrade that are cancelled in any of
// their steps that act end as failed, and in Alert, or as they would if nothing
// was left to do; no ISO and no cordon is left behind, and when the scanner has
// looked, the same request can be made again.
//
// Keeps: ours/cancel, ours/cancel-boundary, ours/cancel-last.
func TestCancelOfALife(t *testing.T) {
	t.Parallel()
	for kind, last := range map[cks.Kind]string{cks.StartCluster: "wait-nodes", cks.StopCluster: "stop-vms", cks.UpgradeCluster: "detach-iso"} {
		for i, s := range plans[kind].steps {
			if s.do == nil {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", kind, s.name), func(t *testing.T) {
				t.Parallel()
				from := cks.Running
				if kind == cks.StartCluster {
					from = cks.Stopped
				}
				b := newBench(t, storetest.Spec{State: from, Control: 1, Workers: 2}, 100)
				args := cks.Args{}
				switch kind {
				case cks.StartCluster:
					args = b.stopped()
				case cks.UpgradeCluster:
					args = b.newer()
				}
				job := b.ask(kind, args)
				p := plans[kind]
				p.steps = slices.Clone(p.steps)
				p.steps[i].do = func(r *run, ctx context.Context) error {
					err := s.do(r, ctx)
					if err == nil {
						b.cancel(job)
					}
					return err
				}
				job = b.worked(job, p)
				succeeds := s.name == last
				if succeeds != (job.Status == cks.JobSucceeded) || !succeeds && (!strings.Contains(job.ErrorText, cancelText) || b.view().Cluster.State != cks.Alert) {
					t.Errorf("%s, status %d: %s", b.view().Cluster.State, job.Status, job.ErrorText)
				}
				b.consistent()
				if succeeds {
					b.livedOn(kind)
					return
				}
				b.until("it can be asked for again", func() bool {
					b.scan()
					s := b.view().Cluster.State
					_, err := s.On(cks.Requests[kind])
					return err == nil || s == cks.Running && kind == cks.StartCluster
				})
				b.at() // what is recorded is so
				if b.view().Cluster.State != cks.Running || kind != cks.StartCluster {
					if job = b.alone(b.ask(kind, args)); job.Status != cks.JobSucceeded {
						t.Errorf("asked again: %s", job.ErrorText)
					}
				}
				b.livedOn(kind)
				b.consistent()
			})
		}
	}
}

// Starts, stops and upgrades tell what they wait for.
//
// Keeps: ours/progress-message.
func TestLivesTellTheirProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Etcd: 1, Workers: 2}, 100)
	w := b.workers()
	says := func(job cks.Job, want string) {
		t.Helper()
		b.until(want, func() bool { _, message := b.progress(job); return message == want })
	}
	b.run()
	b.fault(cks.Fault{Operation: "node.upgrade", Value: "delay:1s", VMID: w[0].ID})
	b.cfg.CallTimeout = 20 * time.Second
	upgrade := b.ask(cks.UpgradeCluster, b.newer())
	says(upgrade, "1 of 3 nodes are upgraded; upgrading "+w[0].NodeName())
	b.ended(upgrade)

	b.set(w[1], cks.VMStopping) // and stays so: no time is set for its end
	b.inState(cks.Alert)
	stop := b.ask(cks.StopCluster, cks.Args{})
	says(stop, "3 of 4 VMs are down; waiting for "+w[1].Name)
	b.set(w[1], cks.VMStopped)
	b.ended(stop)

	b.set(w[1], cks.VMStarting)
	b.fault(cks.Fault{Operation: "node.set", Value: "NotReady", VMID: w[0].ID})
	start := b.ask(cks.StartCluster, cks.Args{})
	says(start, "3 of 4 VMs are running; waiting for "+w[1].Name)
	b.set(w[1], cks.VMRunning)
	says(start, "2 of 3 nodes are Ready; waiting for "+w[0].NodeName())
	b.fault(cks.Fault{Operation: "node.set", Value: "Ready", VMID: w[0].ID})
	if start = b.ended(start); start.Status != cks.JobSucceeded {
		t.Error(start.ErrorText)
	}
}
