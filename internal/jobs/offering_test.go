package jobs

import (
	"maps"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// Offerings and autoscaling (cks.md §5.1, §5.5, §5.6).

// cores are those of each VM in the cloud, which must be those that the record
// says.
func (b *bench) cores() map[string]int {
	b.Helper()
	real, recorded := map[string]int{}, map[string]int{}
	for _, m := range b.simulation().Machines {
		real[m.ID] = m.Cores
	}
	for _, v := range b.view().VMs {
		recorded[v.ID] = v.Cores
	}
	if !maps.Equal(real, recorded) {
		b.Errorf("cores are %v and recorded as %v", real, recorded)
	}
	return real
}

// TestOfferingsChangeTypeByType: control nodes, etcd nodes, workers, the oldest
// first. One that cannot be resized, in three tries, fails the job; those before
// it keep their new offering and are recorded with it, the cluster's own record
// stays, and the same request goes on from there. External nodes are never
// touched; upstream resizes them with the workers.
//
// Keeps: §5.1/6-order, §5.5/in-turn, §5.5/failure, §5.5/external, §5.9/offering.
// Keeps: §5.5/record.
func TestOfferingsChangeTypeByType(t *testing.T) {
	t.Parallel()
	for stuck, place := range []string{"control", "etcd", "worker 1", "worker 2"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Etcd: 1, Workers: 2, External: 1}, 100)
			big := b.big()
			vms := b.view().VMs // etcd, control, workers, external
			turn := []cks.VM{vms[1], vms[0], vms[2], vms[3]}
			b.fault(cks.Fault{Operation: "vm.resize", Value: "fail:no host is large enough", VMID: turn[stuck].ID})
			args := cks.Args{DefaultOffering: big.ID, Offerings: map[cks.Role]string{cks.Control: big.ID, cks.Etcd: big.ID, cks.Worker: big.ID}}
			job := b.alone(b.ask(cks.ChangeOffering, args))
			want := "Scaling Kubernetes cluster : test failed, unable to scale cluster VM : " + turn[stuck].Name + ": no host is large enough"
			if job.Status != cks.JobFailed || job.ErrorText != want || b.calls("vm.resize", turn[stuck].ID) != 3 {
				t.Errorf("status %d after %d tries: %s", job.Status, b.calls("vm.resize", turn[stuck].ID), job.ErrorText)
			}
			now := b.cores()
			for i, v := range turn {
				if got := now[v.ID] == big.Cores; got != (i < stuck) {
					t.Errorf("%s has %d cores", v.Name, now[v.ID])
				}
			}
			if c := b.view().Cluster; c.State != cks.Alert || c.DefaultOffering == big.ID || c.Offerings[cks.Worker] == big.ID {
				t.Errorf("%s, offerings %s and %v", c.State, c.DefaultOffering, c.Offerings)
			}
			b.fault(cks.Fault{Operation: "vm.resize", Value: "clear"})
			b.scan() // back to Running
			if job = b.alone(b.ask(cks.ChangeOffering, args)); job.Status != cks.JobSucceeded {
				t.Error(job.ErrorText)
			}
			now = b.cores()
			for _, v := range vms {
				if got := now[v.ID] == big.Cores; got == v.External {
					t.Errorf("%s has %d cores", v.Name, now[v.ID])
				}
			}
			if c := b.view().Cluster; c.DefaultOffering != big.ID || c.Offerings[cks.Control] != big.ID || c.Offerings[cks.Etcd] != big.ID || c.Offerings[cks.Worker] != big.ID {
				t.Errorf("recorded: %s and %v", c.DefaultOffering, c.Offerings)
			}
			if n := b.calls("vm.resize", vms[4].ID); n != 0 {
				t.Errorf("the external node was resized %d times", n)
			}
			b.consistent()
		})
	}
}

// TestStoppedClusterChangesItsOfferings in a state of its own, and is Stopped
// afterwards; when it fails it goes to Alert, and the scanner finds it Stopped.
//
// Keeps: §5.5/stopped.
func TestStoppedClusterChangesItsOfferings(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		t.Run(map[bool]string{false: "done", true: "failed"}[fails], func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Stopped, Control: 1, Workers: 1}, 100)
			for _, v := range b.view().VMs {
				b.set(v, cks.VMStopped)
			}
			end := cks.Stopped
			if fails {
				b.fault(cks.Fault{Operation: "vm.resize", Value: "fail"})
				end = cks.Alert
			}
			job := b.ask(cks.ChangeOffering, cks.Args{Offerings: map[cks.Role]string{cks.Worker: b.big().ID}})
			if s := b.view().Cluster.State; s != cks.ScalingStoppedCluster {
				t.Errorf("%s while it is changed", s)
			}
			if job = b.alone(job); (job.Status == cks.JobFailed) != fails {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			if s := b.view().Cluster.State; s != end {
				t.Errorf("%s at the end", s)
			}
			b.scan()
			if s := b.view().Cluster.State; s != cks.Stopped {
				t.Errorf("%s for the scanner", s)
			}
		})
	}
}

// TestDeadlineEndsAnOfferingChangeBetweenVMs: those that are done stay so.
//
// Keeps: §5.5/deadline.
// Keeps: §5.1/2.
func TestDeadlineEndsAnOfferingChangeBetweenVMs(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.cfg.CallTimeout = 20 * time.Second
	big := b.big()
	b.fault(cks.Fault{Operation: "vm.resize", Value: "delay:3s"})
	job := b.alone(b.askWithin(2*time.Second, cks.ChangeOffering, cks.Args{Offerings: map[cks.Role]string{cks.Worker: big.ID}}))
	if job.Status != cks.JobFailed || job.ErrorText != "Scaling Kubernetes cluster test failed, scaling action timed out" {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	now, w := b.cores(), b.workers()
	if now[w[0].ID] != big.Cores || now[w[1].ID] == big.Cores || b.view().Cluster.State != cks.Alert {
		t.Errorf("cores %v, %s", now, b.view().Cluster.State)
	}
}

// TestOfferingAndSizeKeepTheirOrder: growing, the offering comes first, and
// when it fails no VM is made; shrinking, the size comes first, and when that
// fails no VM is resized.
//
// Keeps: §5.1/6-combined, A34.
// Keeps: §5.6/retry.
func TestOfferingAndSizeKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for kind, tc := range map[cks.Kind]struct {
		size        int
		fails, none string
	}{
		cks.OfferingThenScaleUp:     {3, "vm.resize", "vm.create"},
		cks.ScaleDownThenOffering:   {1, "node.drain", "vm.resize"},
		cks.OfferingThenRemoveNodes: {0, "vm.resize", "node.drain"},
		cks.AutoscaleThenOffering:   {0, "autoscaler.set", "vm.resize"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
			big := b.big()
			args := cks.Args{Size: tc.size, Offerings: map[cks.Role]string{cks.Control: big.ID, cks.Worker: big.ID}}
			switch kind {
			case cks.OfferingThenRemoveNodes:
				args.VMIDs = []string{b.workers()[1].ID}
			case cks.AutoscaleThenOffering:
				args.Autoscaling = &cks.Autoscaling{Enabled: true, Min: 1, Max: 3}
			}
			b.fault(cks.Fault{Operation: tc.fails, Value: "fail:broken"})
			if job := b.alone(b.ask(kind, args)); job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "broken") {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			if b.calls(tc.fails, "") != 3 || b.calls(tc.none, "") != 0 {
				t.Errorf("%d times %s, %d times %s", b.calls(tc.fails, ""), tc.fails, b.calls(tc.none, ""), tc.none)
			}
			b.fault(cks.Fault{Operation: tc.fails, Value: "clear"})
			b.scan()
			if job := b.alone(b.ask(kind, args)); job.Status != cks.JobSucceeded {
				t.Error(job.ErrorText)
			}
			now := b.cores()
			for _, v := range b.view().VMs {
				if now[v.ID] != big.Cores {
					t.Errorf("%s has %d cores", v.Name, now[v.ID])
				}
			}
			b.consistent()
		})
	}
}

// TestAutoscalingIsRecordedWithItsOffering: the flag and the bounds of a request
// that also changes an offering are those that were asked for; turned off, they
// are gone, and so is the autoscaler.
//
// Keeps: §5.6/recorded, §5.6/offering, §5.6/off, §5.8/autoscaling, E4.
func TestAutoscalingIsRecordedWithItsOffering(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	big := b.big()
	on := cks.Autoscaling{Enabled: true, Min: 1, Max: 3}
	for _, asked := range []cks.Autoscaling{on, {Enabled: true, Min: 2, Max: 5}, {}} {
		args := cks.Args{Autoscaling: &asked}
		kind := cks.Autoscale
		if asked == on {
			kind, args.Offerings = cks.AutoscaleThenOffering, map[cks.Role]string{cks.Worker: big.ID}
		}
		if job := b.alone(b.ask(kind, args)); job.Status != cks.JobSucceeded || job.Result.Cluster.Cluster.Autoscaling != asked {
			t.Fatalf("status %d: %s", job.Status, job.ErrorText)
		}
		if c := b.view().Cluster; c.Autoscaling != asked || c.Offerings[cks.Worker] != big.ID || c.State != cks.Running {
			t.Errorf("asked for %v: %s, %v, offerings %v", asked, c.State, c.Autoscaling, c.Offerings)
		}
		deployed := cks.Autoscaling{}
		for _, a := range b.simulation().Autoscalers {
			deployed = a.Autoscaling
		}
		if deployed != asked {
			t.Errorf("deployed is %v, asked for %v", deployed, asked)
		}
		if size := b.view().Cluster.Size; asked.Enabled { // a size leaves it alone
			if job := b.alone(b.ask(cks.ScaleUp, cks.Args{Size: size + 1})); job.Status != cks.JobSucceeded {
				t.Error(job.ErrorText)
			}
		}
		if got := b.view().Cluster.Autoscaling; got != asked {
			t.Errorf("after a scale-up %v, asked for %v", got, asked)
		}
	}
}
