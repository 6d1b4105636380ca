package jobs

import (
	"context"
	"sync"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// scan looks once at b's cluster.
func (b *bench) scan() {
	b.Helper()
	b.must(NewScanner(b.st, b.world, b.world, ScanConfig{}).Scan(b.ctx, b.id))
}

// TestScannerVerdicts: what each state of the VMs makes of a cluster (cks.md
// §6, A40, A41).
//
// Keeps: §4/fires-scanner.
// Keeps: §6/1, §6/2, §6/3-reconcile, §6/3-stopped.
// Keeps: A41, seed/scanner-alert.
func TestScannerVerdicts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		from cks.State
		vms  cks.VMState // of all
		one  cks.VMState // of the first worker; "" = as the others
		want cks.State
	}{
		{"all run", cks.Running, cks.VMRunning, "", cks.Running},
		{"one stopped", cks.Running, cks.VMRunning, cks.VMStopped, cks.Alert},
		{"one unknown", cks.Running, cks.VMRunning, cks.VMUnknown, cks.Alert},
		{"one migrating", cks.Running, cks.VMRunning, cks.VMMigrating, cks.Alert},
		{"one expunged", cks.Running, cks.VMRunning, cks.VMExpunging, cks.Alert},
		{"recovered", cks.Alert, cks.VMRunning, "", cks.Running},
		{"not yet recovered", cks.Alert, cks.VMRunning, cks.VMStopped, cks.Alert},
		{"all stopped", cks.Alert, cks.VMStopped, "", cks.Stopped},
		{"stopped stays", cks.Stopped, cks.VMStopped, cks.VMRunning, cks.Stopped},
		{"error stays", cks.Error, cks.VMRunning, "", cks.Error},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: tc.from, Control: 1, Workers: 2}, 1)
			for _, v := range b.view().VMs {
				if tc.vms != cks.VMRunning {
					b.set(v, tc.vms)
				}
			}
			if tc.one != "" {
				b.set(b.workers()[0], tc.one)
			}
			b.scan()
			if got := b.view().Cluster.State; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if told := b.count(cks.EventClusterState); (told == 1) != (tc.want != tc.from) || told > 1 {
				t.Errorf("%d events tell of it", told)
			}
		})
	}
}

// TestAlertNeedsReadyNodes: all VMs run, a node is not Ready: still Alert.
//
// Keeps: §6/3-ready.
func TestAlertNeedsReadyNodes(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Alert, Control: 1, Workers: 2}, 1)
	b.fault(cks.Fault{Operation: "node.set", Value: "NotReady", VMID: b.workers()[0].ID})
	b.scan()
	if got := b.view().Cluster.State; got != cks.Alert {
		t.Errorf("%s", got)
	}
}

// TestScannerLeavesHeldCluster: a VM is stopped while a job has the cluster;
// the scanner records the VM's state and nothing else (A48).
//
// Keeps: §6/conditional.
// Keeps: A48.
func TestScannerLeavesHeldCluster(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.ask(cks.ScaleUp, cks.Args{Size: 3})
	b.set(b.workers()[0], cks.VMStopped)
	b.scan()
	if got := b.view().Cluster.State; got != cks.Scaling {
		t.Errorf("%s", got)
	}
	if got := b.workers()[0].State; got != cks.VMStopped {
		t.Errorf("VM is recorded as %s", got)
	}
}

// pausing lets a scanner read the VMs, and then wait.
type pausing struct {
	VMs
	read, goOn chan struct{}
}

func (p pausing) Machines(ctx context.Context, id string) ([]cks.Machine, error) {
	list, err := p.VMs.Machines(ctx, id)
	p.read <- struct{}{}
	<-p.goOn
	return list, err
}

// TestStaleScanNeverOverwrites: the scanner saw a stopped VM, paused, and a
// scale took the cluster meanwhile (A48).
//
// Keeps: §4/conditional.
// Keeps: §6/conditional, #14609.
// Keeps: A48.
func TestStaleScanNeverOverwrites(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.set(b.workers()[0], cks.VMStopped)
	p := pausing{b.world, make(chan struct{}), make(chan struct{})}
	done := make(chan error)
	go func() { done <- NewScanner(b.st, p, b.world, ScanConfig{}).Scan(b.ctx, b.id) }()
	<-p.read
	b.ask(cks.ScaleUp, cks.Args{Size: 3})
	close(p.goOn)
	b.must(<-done)
	if got := b.view().Cluster.State; got != cks.Scaling {
		t.Errorf("%s", got)
	}
}

// TestHangingClusterDelaysNobody: the world of one cluster hangs and that of
// another fails; a third is moved at once all the same (A42).
//
// Keeps: §6/hang, §6/errors.
// Keeps: A42.
func TestHangingClusterDelaysNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 1)
	b.unsettled = true // the other clusters have rows without VMs
	hanging := storetest.Fixture(t, b.st, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}).Cluster.ID
	failing := storetest.Fixture(t, b.st, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}).Cluster.ID
	b.fault(cks.Fault{Operation: "vm.list", Value: "hang", ClusterID: hanging})
	b.fault(cks.Fault{Operation: "vm.list", Value: "fail", ClusterID: failing})
	ctx, stop := context.WithCancel(b.ctx)
	done, l := make(chan error), &looks{VMs: b.world, at: map[string]int{}}
	go func() {
		done <- NewScanner(b.st, l, b.world, ScanConfig{Interval: 50 * time.Millisecond, CallTimeout: time.Minute, Log: testLog()}).Run(ctx)
	}()
	b.until("the hanging one is being looked at", func() bool { return l.count(hanging) > 0 && l.count(failing) > 1 })
	b.set(b.workers()[0], cks.VMStopped)
	b.inState(cks.Alert)
	stop()
	b.must(<-done)
	for _, id := range []string{hanging, failing} {
		view, err := b.st.View(b.ctx, id)
		b.must(err)
		if view.Cluster.State != cks.Running {
			t.Errorf("a cluster that could not be seen is %s", view.Cluster.State)
		}
	}
}

// looks counts how often each cluster's VMs were asked for.
type looks struct {
	VMs
	mu sync.Mutex
	at map[string]int
}

func (l *looks) Machines(ctx context.Context, id string) ([]cks.Machine, error) {
	l.mu.Lock()
	l.at[id]++
	l.mu.Unlock()
	return l.VMs.Machines(ctx, id)
}

func (l *looks) count(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at[id]
}

// TestScannerSweeps: a VM that a failed job could not destroy stays listed,
// is destroyed later, and the cluster recovers (design.md §4.6).
//
// Keeps: §5.9/doomed, §6/sweep.
func TestScannerSweeps(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "iso.attach", Value: "fail"})
	b.fault(cks.Fault{Operation: "vm.destroy", Value: "fail"})
	b.run()
	if job := b.ended(b.ask(cks.ScaleUp, cks.Args{Size: 2})); job.Status != cks.JobFailed {
		t.Fatal("it succeeded")
	}
	if view := b.view(); len(view.VMs) != 3 || view.Cluster.Size != 1 || view.VMs[2].Phase != cks.Doomed {
		t.Errorf("size %d with %v", view.Cluster.Size, view.VMs)
	}
	b.fault(cks.Fault{Operation: "vm.destroy", Value: "clear"})
	b.inState(cks.Running)
	b.consistent()
}

// TestLateMachineIsSwept: a call to make a VM that lands after its job gave it
// up leaves no orphan.
//
// Keeps: §6/sweep.
func TestLateMachineIsSwept(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "iso.attach", Value: "fail"})
	b.run()
	job := b.ask(cks.ScaleUp, cks.Args{Size: 2})
	var late cks.VM
	b.until("the VM is chosen", func() bool {
		vms, err := b.st.JobVMs(b.ctx, job.ID)
		b.must(err)
		if len(vms) > 0 {
			late = vms[0]
		}
		return len(vms) > 0
	})
	b.ended(job)
	b.inState(cks.Running)
	b.must(b.world.Create(b.ctx, cks.MachineSpec{ID: late.ID, ClusterID: b.id, Name: late.Name, Role: cks.Worker, Cores: 2, MemoryMB: 2048}))
	b.until("it is gone", func() bool { return len(b.simulation().Machines) == 2 })
	b.consistent()
}

// TestAlertIsSeenAtOnce: by the change itself, not by the timer.
//
// Keeps: §6/at-once.
func TestAlertIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 1)
	go b.st.RunBus(b.ctx, func(error) {})
	go NewScanner(b.st, b.world, b.world, ScanConfig{Interval: time.Hour}).Run(b.ctx)
	b.must(b.st.InTx(b.ctx, func(q *store.Queries) error { return nil }))
	b.set(b.workers()[0], cks.VMStopped)
	b.inState(cks.Alert)
}

// TestCountsMustMatch: a cluster is well only with exactly the VMs and the
// Ready nodes that it should have, and Running only with as many VMs (cks.md
// §6).
//
// Keeps: §8.5/total.
// Keeps: §6/rows, §6/3-exact.
func TestCountsMustMatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		from  cks.State
		spoil func(b *bench)
	}{
		"more VMs than nodes":        {cks.Alert, func(b *bench) { b.must(b.st.RecordSize(b.ctx, b.view().Cluster, 1)) }},
		"fewer VMs than nodes":       {cks.Running, func(b *bench) { b.must(b.st.RecordSize(b.ctx, b.view().Cluster, 3)) }},
		"a Ready node of nobody's":   {cks.Alert, func(b *bench) { b.adopt("00000000-0000-4000-8000-000000000001") }},
		"a Ready node of another VM": {cks.Alert, func(b *bench) { b.adopt(storetest.Fixture(b, b.st, storetest.Spec{Workers: 1}).VMs[1].ID) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: tc.from, Control: 1, Workers: 2}, 1)
			b.unsettled = true // it begins with counts that do not match
			tc.spoil(b)
			before := len(b.simulation().Machines)
			b.scan()
			if got := b.view().Cluster.State; got != cks.Alert {
				t.Errorf("%s", got)
			}
			if after := len(b.simulation().Machines); after != before {
				t.Errorf("%d VMs of %d are left: one that is not a removed one of ours was destroyed", after, before)
			}
		})
	}
}

// adopt makes a machine that runs, its node Ready, without a row of b's cluster.
func (b *bench) adopt(id string) {
	b.Helper()
	b.must(b.world.Adopt(b.ctx, []cks.MachineSpec{{ID: id, ClusterID: b.id, Name: "stranger", Role: cks.Worker, Cores: 2, MemoryMB: 2048}}))
}

// TestChosenVMIsNotGone: one that has a name and has not been made yet is not
// recorded as expunged.
func TestChosenVMIsNotGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.ask(cks.ScaleUp, cks.Args{Size: 2})
	_, err := b.st.ChooseNew(b.ctx, b.claimed(), []store.NewVM{{Role: cks.Worker, OfferingID: b.workers()[0].OfferingID, Prefix: "x"}})
	b.must(err)
	b.scan()
	if got := b.workers()[1].State; got != cks.VMStopped {
		t.Errorf("%s", got)
	}
}
