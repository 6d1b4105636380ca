package jobs

import (
	"strings"
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// TestOfferingChangeResizesOneType: the VMs of that type, their recorded
// offerings, and what new nodes get (cks.md §5.5).
//
// Keeps: §5.1/6-skip, §5.5/hypervisor, §5.5/record.
func TestOfferingChangeResizesOneType(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	big, err := b.st.AddOffering(b.ctx, cks.Offering{Name: "big", DisplayText: "big", Cores: 8, SpeedMHz: 2000, MemoryMB: 16384})
	b.must(err)
	b.run()
	b.do(cks.OfferingThenScaleUp, cks.Args{Size: 3, Offerings: map[cks.Role]string{cks.Worker: big.ID}})
	for _, m := range b.simulation().Machines {
		if strings.Contains(m.Name, "-control-") == (m.Cores == big.Cores) {
			t.Errorf("%s has %d cores", m.Name, m.Cores)
		}
	}
	for _, v := range b.workers() {
		if v.OfferingID != big.ID {
			t.Errorf("%s is recorded with another offering", v.Name)
		}
	}
	if got := b.view().Cluster.Offerings[cks.Worker]; got != big.ID {
		t.Errorf("worker offering %q", got)
	}
	b.consistent()
}

// TestAutoscalerThatFailsChangesNothing: the job fails and the cluster is
// Running as before, not stuck in Scaling (cks.md §7 E2, design.md §4.12).
//
// Keeps: §5.6/failure, §5.9/autoscaler, E2.
func TestAutoscalerThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "autoscaler.set", Value: "fail:no permission"})
	b.run()
	job := b.ended(b.ask(cks.Autoscale, cks.Args{Autoscaling: &cks.Autoscaling{Enabled: true, Min: 1, Max: 3}}))
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "Failed to autoscale Kubernetes cluster") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	if c := b.view().Cluster; c.State != cks.Running || c.Autoscaling.Enabled {
		t.Errorf("%s, autoscaling %v", c.State, c.Autoscaling)
	}
	b.fault(cks.Fault{Operation: "autoscaler.set", Value: "clear"})
	b.do(cks.Autoscale, cks.Args{Autoscaling: &cks.Autoscaling{Enabled: true, Min: 1, Max: 3}})
	if c := b.view().Cluster; c.Autoscaling != (cks.Autoscaling{Enabled: true, Min: 1, Max: 3}) {
		t.Errorf("autoscaling %v", c.Autoscaling)
	}
	if n := len(b.simulation().Autoscalers); n != 1 {
		t.Errorf("%d autoscalers", n)
	}
}

// TestCreateMakesEveryNode, and TestCreateThatFailsLeavesNoVM in Error, from
// which it can be deleted.
//
// Keeps: §4/fires-create, §4/fires-delete, §8.3/order.
func TestCreateMakesEveryNode(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.run()
	job := b.ended(b.create())
	if job.Status != cks.JobSucceeded {
		t.Fatal(job.ErrorText)
	}
	view := job.Result.Cluster
	if view.Cluster.State != cks.Running || len(view.VMs) != 4 || view.VMs[0].Role != cks.Etcd || view.VMs[1].Role != cks.Control {
		t.Errorf("%s with %v", view.Cluster.State, view.VMs)
	}
	b.id = view.Cluster.ID
	b.consistent()
	job = b.ended(b.ask(cks.DeleteCluster, cks.Args{}))
	if job.Status != cks.JobSucceeded || !job.Result.Success {
		t.Errorf("delete: %s", job.ErrorText)
	}
	if n := len(b.simulation().Machines); n != 0 {
		t.Errorf("%d VMs are left", n)
	}
}

// create records a new cluster of 1 etcd, 1 control and 2 worker nodes.
func (b *bench) create() cks.Job {
	b.Helper()
	var job cks.Job
	b.must(b.st.InTx(b.ctx, func(q *store.Queries) error {
		like, err := q.View(b.ctx, b.id)
		if err != nil {
			return err
		}
		c := like.Cluster
		c.ID, c.Name, c.State, c.EtcdNodes, c.Size, c.HeldBy = "", "fresh", cks.Created, 1, 2, ""
		if c, err = q.AddCluster(b.ctx, c); err != nil {
			return err
		}
		job, err = q.AddJob(b.ctx, store.NewJob{
			Command: "createKubernetesCluster", Kind: cks.CreateCluster, AccountID: like.Account.ID, ClusterID: c.ID,
			Notes: cks.Notes{Seen: cks.Created}, Timeout: 20e9,
		})
		if err != nil {
			return err
		}
		return q.HoldCluster(b.ctx, c, job.ID, cks.StartRequested)
	}))
	return job
}

// A create that fails leaves no VM; the cluster is in Error, from which it can be
// deleted (cks.md §4).
//
// Keeps: §4/fires-create.
func TestCreateThatFailsLeavesNoVM(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "iso.attach", Value: "fail"})
	b.run()
	job := b.ended(b.create())
	if job.Status != cks.JobFailed {
		t.Fatal("created")
	}
	b.id = job.ClusterID
	if s := b.view().Cluster.State; s != cks.Error {
		t.Errorf("cluster is %s", s)
	}
	b.consistent()
	b.do(cks.DeleteCluster, cks.Args{})
}

// TestDeleteThatFailsCanBeAskedAgain: not stuck in Destroying.
//
// Keeps: §4/Destroying-failed.
// Keeps: §6/gc.
func TestDeleteThatFailsCanBeAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.fault(cks.Fault{Operation: "vm.destroy", Value: "fail", VMID: b.workers()[0].ID})
	b.run()
	if job := b.ended(b.ask(cks.DeleteCluster, cks.Args{})); job.Status != cks.JobFailed {
		t.Error("deleted")
	}
	if s := b.view().Cluster.State; s != cks.Error {
		t.Errorf("cluster is %s", s)
	}
	b.consistent()
	b.fault(cks.Fault{Operation: "vm.destroy", Value: "clear"})
	b.do(cks.DeleteCluster, cks.Args{})
}

// TestVMStopsAndStarts, with the cluster following into Alert and back.
//
// Keeps: §8.6/stop.
func TestVMStopsAndStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.run()
	v := b.workers()[0]
	for _, tc := range []struct {
		kind    cks.Kind
		vm      cks.VMState
		cluster cks.State
	}{{cks.StopVM, cks.VMStopped, cks.Alert}, {cks.StartVM, cks.VMRunning, cks.Running}} {
		job, err := b.st.AddJob(b.ctx, store.NewJob{
			Command: "x", Kind: tc.kind, AccountID: b.view().Account.ID, VMID: v.ID, Timeout: 20e9})
		b.must(err)
		if job = b.ended(job); job.Status != cks.JobSucceeded || job.Result.VM.VM.State != tc.vm {
			t.Fatalf("%s: %+v %s", tc.kind, job.Result, job.ErrorText)
		}
		b.inState(tc.cluster)
	}
}

// TestEtcdNodesComeFirst: while an etcd VM of a new cluster cannot be made, no
// other VM is asked for (cks.md §8.3).
//
// Keeps: §8.3/order.
func TestEtcdNodesComeFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.MaxTries = 1000
	b.fault(cks.Fault{Operation: "vm.create", Value: "fail"})
	b.run()
	job := b.create()
	b.id = job.ClusterID
	b.until("an etcd VM was asked for again and again", func() bool { return b.calls("vm.create", "") >= 5 })
	etcd := ofRole(b.view().VMs, cks.Etcd)
	for _, call := range b.simulation().Calls {
		if len(etcd) != 1 || call.Operation == "vm.create" && call.VMID != etcd[0].ID {
			t.Errorf("etcd VMs %v, call %+v", etcd, call)
		}
	}
	b.fault(cks.Fault{Operation: "vm.create", Value: "clear"})
	if job = b.ended(job); job.Status != cks.JobSucceeded {
		t.Fatal(job.ErrorText)
	}
	b.consistent()
}
