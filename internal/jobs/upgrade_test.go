package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store/storetest"
)

const newVersion = "1.34.1"

// newer adds the next Kubernetes version, and is what its upgrade is asked for.
func (b *bench) newer() cks.Args {
	b.Helper()
	v, err := b.st.AddVersion(b.ctx, cks.KubernetesVersion{Name: "v" + newVersion, Version: newVersion, ISOName: "iso", MinCores: 2, MinMemoryMB: 2048, Enabled: true})
	b.must(err)
	return cks.Args{VersionID: v.ID, Version: newVersion}
}

// at are the VMs whose node has the new version: in the records, and in the
// cloud. The two must not differ.
func (b *bench) at() (names []string) {
	b.Helper()
	for _, v := range b.view().VMs {
		n, _ := b.node(v)
		if recorded, is := v.NodeVersion == "v"+newVersion, n.Version == "v"+newVersion; recorded != is {
			b.Errorf("%s is recorded at %q and has %q", v.Name, v.NodeVersion, n.Version)
		} else if is {
			names = append(names, v.Name)
		}
	}
	return names
}

// upgraded checks that the cluster and all that an upgrade acts on have the new
// version, were upgraded once, are Ready, and take pods.
func (b *bench) upgraded() {
	b.Helper()
	view := b.view()
	if view.Cluster.State != cks.Running || view.Version.Version != newVersion {
		b.Errorf("%s at %s", view.Cluster.State, view.Version.Version)
	}
	at := b.at()
	for _, v := range view.VMs {
		n, _ := b.node(v)
		if v.Upgradable() != slices.Contains(at, v.Name) || v.Role != cks.Etcd && n.Ready != cks.NodeReady {
			b.Errorf("%s has version %q and is %q", v.Name, n.Version, n.Ready)
		}
	}
	pods := 0
	for _, n := range b.simulation().Nodes {
		pods += n.Pods
	}
	if workers := len(view.VMs) - view.Cluster.ControlNodes - view.Cluster.EtcdNodes; pods != 3*workers {
		b.Errorf("%d pods run on %d workers", pods, workers)
	}
}

// upgradeWatch is a world that notes in which order nodes are upgraded, and that
// no other is out of order meanwhile.
type upgradeWatch struct {
	*sim.World
	b     *bench
	names []string
}

func (w *upgradeWatch) Upgrade(ctx context.Context, clusterID, name, version string) error {
	nodes, err := w.World.Nodes(ctx, clusterID)
	w.b.must(err)
	for _, n := range nodes {
		if n.Ready != cks.NodeReady {
			w.b.Errorf("%s is upgraded while %s is %s", name, n.Name, n.Ready)
		}
		if n.Name == name && n.Pods > 0 {
			w.b.Errorf("%s is upgraded with %d pods", name, n.Pods)
		}
	}
	w.names = append(w.names, name)
	return w.World.Upgrade(ctx, clusterID, name, version)
}

// TestControlNodesAreUpgradedFirst: then the workers, each the oldest first, and
// one at a time, external ones too; etcd nodes and those that their owner
// upgrades keep their versions, and are neither drained nor given an ISO.
//
// Keeps: §4/upgrade, §8.2/manual-upgrade, §8.2/upgrade-external, §2.7/after-upgrade.
func TestControlNodesAreUpgradedFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 3, Etcd: 1, Workers: 2, External: 1}, 100)
	view := b.view()
	manual, err := b.st.AddVM(b.ctx, cks.VM{ClusterID: b.id, Name: "manual", Role: cks.Worker, External: true, Manual: true,
		OfferingID: view.Cluster.DefaultOffering, State: cks.VMRunning, NodeVersion: view.Version.Version})
	b.must(err)
	b.must(b.st.RecordSize(b.ctx, view.Cluster, 4))
	b.adopted(manual)
	args := b.newer()
	world := &upgradeWatch{World: b.world, b: b}
	if job := b.aloneOn(world, world, b.ask(cks.UpgradeCluster, args)); job.Status != cks.JobSucceeded || job.Result.Cluster.Version.Version != newVersion {
		t.Fatalf("status %d: %s", job.Status, job.ErrorText)
	}
	var want []string
	for _, v := range b.view().VMs {
		if v.Upgradable() {
			want = append(want, v.NodeName())
		} else if b.calls("node.drain", v.ID)+b.calls("node.upgrade", v.ID)+b.calls("iso.attach", v.ID) > 0 {
			t.Errorf("%s was touched", v.Name)
		}
	}
	if !slices.Equal(world.names, want) || len(want) != 6 {
		t.Errorf("upgraded %q, want %q", world.names, want)
	}
	b.upgraded()
	b.consistent()
	if job := b.alone(b.ask(cks.ScaleUp, cks.Args{Size: 5})); job.Status != cks.JobSucceeded {
		t.Fatal(job.ErrorText)
	}
	latest := b.workers()[len(b.workers())-1]
	if n, _ := b.node(latest); latest.NodeVersion != newVersion || n.Version != "v"+newVersion {
		t.Errorf("the new node is recorded at %q and has %q", latest.NodeVersion, n.Version)
	}
}

// TestFailedUpgrade: whatever goes wrong with a node ends the upgrade with the
// node's VM in the text and the cluster in Alert, at its old version. The nodes
// before it keep the new one, the node takes pods again, no ISO stays, and the
// upgrade, asked for again when the cause is gone, leaves alone what is done.
//
// Keeps: §4/upgrade, #14611/upgrade, #14611/upgrade-drain.
func TestFailedUpgrade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  cks.Fault
		want   string
		tries  int  // of the operation, on this node
		itself bool // the node itself
	}{
		"drain fails":      {cks.Fault{Operation: "node.drain", Value: "fail:connection refused"}, "unable to drain Kubernetes node on VM : %s: connection refused", 3, false},
		"budget":           {cks.Fault{Operation: "node.drain", Value: "budget"}, "unable to drain Kubernetes node on VM : %s: drain of node", 3, false},
		"drain hangs":      {cks.Fault{Operation: "node.drain", Value: "hang"}, "unable to drain Kubernetes node on VM : %s: ", 3, false},
		"upgrade fails":    {cks.Fault{Operation: "node.upgrade", Value: "fail:no space"}, "unable to upgrade Kubernetes node on VM : %s: no space", 3, false},
		"upgrade hangs":    {cks.Fault{Operation: "node.upgrade", Value: "hang"}, "unable to upgrade Kubernetes node on VM : %s: no answer within", 3, false},
		"upgrade panics":   {cks.Fault{Operation: "node.upgrade", Value: "panic"}, "unable to upgrade Kubernetes node on VM : %s: the call panicked", 3, false},
		"uncordon fails":   {cks.Fault{Operation: "node.uncordon", Value: "fail:timeout", Count: 3}, "unable to uncordon Kubernetes node on VM : %s: timeout", 4, true},
		"ISO not attached": {cks.Fault{Operation: "iso.attach", Value: "fail:no such ISO"}, "Failed to attach binaries ISO for VM : %s in the Kubernetes cluster name: test: no such ISO", 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
			b.cfg.DrainTimeout, b.cfg.CallTimeout = 1500*time.Millisecond, 1500*time.Millisecond
			w, args := b.workers(), b.newer()
			c.fault.VMID = w[1].ID
			b.fault(c.fault)
			job := b.alone(b.ask(cks.UpgradeCluster, args))
			if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, fmt.Sprintf(c.want, w[1].Name)) {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			if v := b.view(); v.Cluster.State != cks.Alert || v.Version.Version == newVersion {
				t.Errorf("%s at %s", v.Cluster.State, v.Version.Version)
			}
			if n := b.calls(c.fault.Operation, w[1].ID); n != c.tries {
				t.Errorf("%s was asked %d times", c.fault.Operation, n)
			}
			done := b.at()
			if want := map[bool]int{false: 2, true: 3}[c.itself]; c.fault.Operation == "iso.attach" && len(done) != 0 || c.fault.Operation != "iso.attach" && len(done) != want {
				t.Errorf("upgraded: %q", done)
			}
			b.consistent() // no ISO is attached
			if n, _ := b.node(w[2]); n.Ready != cks.NodeReady {
				t.Errorf("%s is %s", n.Name, n.Ready)
			}
			before := map[string]int{}
			for _, v := range b.view().VMs {
				before[v.Name] = b.calls("node.upgrade", v.ID)
			}
			b.fault(cks.Fault{Operation: c.fault.Operation, Value: "clear"})
			b.scan()
			if job = b.alone(b.ask(cks.UpgradeCluster, args)); job.Status != cks.JobSucceeded {
				t.Fatalf("again: %s", job.ErrorText)
			}
			for _, v := range b.view().VMs {
				if n := b.calls("node.upgrade", v.ID) - before[v.Name]; slices.Contains(done, v.Name) != (n == 0) {
					t.Errorf("%s was upgraded %d times again", v.Name, n)
				}
			}
			b.upgraded()
			b.consistent()
		})
	}
}

// TestUpgradeLeavesAnUnwellClusterAlone: a VM that does not run, or a node that
// is not Ready, ends the upgrade before it has touched anything; the cluster
// stays Running, as it was, until the scanner says otherwise.
//
// Keeps: §4/upgrade-down.
func TestUpgradeLeavesAnUnwellClusterAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault cks.Fault
		of    func(b *bench) cks.VM
		want  string
	}{
		"worker down": {cks.Fault{Operation: "vm.set", Value: "Stopped"}, func(b *bench) cks.VM { return b.workers()[1] }, "it has VMs that are not running: "},
		"etcd down":   {cks.Fault{Operation: "vm.set", Value: "Stopped"}, func(b *bench) cks.VM { return b.view().VMs[0] }, "it has VMs that are not running: "},
		"migrating":   {cks.Fault{Operation: "vm.set", Value: "Migrating"}, func(b *bench) cks.VM { return b.workers()[1] }, "it has VMs that are not running: "},
		"not ready":   {cks.Fault{Operation: "node.set", Value: "NotReady"}, func(b *bench) cks.VM { return b.workers()[0] }, "it has nodes that are not ready: "},
		"no node":     {cks.Fault{Operation: "node.forget"}, func(b *bench) cks.VM { return b.workers()[0] }, "it has nodes that are not ready: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Etcd: 1, Workers: 2}, 100)
			v := c.of(b)
			c.fault.VMID = v.ID
			b.fault(c.fault)
			job := b.alone(b.ask(cks.UpgradeCluster, b.newer()))
			if job.Status != cks.JobFailed || job.ErrorText != "Upgrade failed for Kubernetes cluster : test, "+c.want+v.Name {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			if got := b.view().Cluster.State; got != cks.Running {
				t.Errorf("%s", got)
			}
			for _, call := range b.simulation().Calls {
				if !strings.HasSuffix(call.Operation, ".list") {
					t.Errorf("%s was asked of the world", call.Operation)
				}
			}
		})
	}
}

// TestVMThatStopsEndsItsUpgrade: the VM of the node that is being upgraded is
// stopped: the job ends at once, with its name, and not at the deadline. Started
// again, it is upgraded.
func TestVMThatStopsEndsItsUpgrade(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 20)
	w, args := b.workers()[0], b.newer()
	b.run()
	job := b.askWithin(time.Hour, cks.UpgradeCluster, args)
	b.until("it is being upgraded", func() bool { return b.calls("node.upgrade", w.ID) == 1 })
	b.set(w, cks.VMStopped)
	if job = b.ended(job); job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "unable to upgrade Kubernetes node on VM : "+w.Name+": it is in Stopped state") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.must(b.world.Start(b.ctx, b.id, w.ID))
	b.inState(cks.Running)
	b.do(cks.UpgradeCluster, args)
	b.upgraded()
	b.consistent()
}

// TestUpgradeThatTakesTooLong: a node that does not come back by the deadline
// ends the upgrade with its name; so does a deadline that passes between nodes.
// The node comes back later, and is recorded by the scanner.
func TestUpgradeThatTakesTooLong(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 1)
	args := b.newer()
	control, w := b.view().VMs[0], b.workers()[0]
	job := b.alone(b.askWithin(3*time.Second, cks.UpgradeCluster, args))
	want := "Failed to upgrade Kubernetes cluster : test, unable to get Kubernetes node on VM : " + control.Name + " upgraded to version " + newVersion
	if job.Status != cks.JobFailed || job.ErrorText != want {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.consistent()
	b.until("it is well again", func() bool { b.scan(); return b.view().Cluster.State == cks.Running })
	job = b.alone(b.askWithin(-time.Second, cks.UpgradeCluster, args))
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "upgrade action timed out; next would be node "+w.NodeName()) {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.consistent()
}

// TestNodeUpgradedByHandIsLeftAlone: a node that somebody has upgraded already
// is neither drained nor upgraded again, and is recorded.
//
// Keeps: #14611/upgrade.
func TestNodeUpgradedByHandIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	w := b.workers()[0]
	b.must(b.world.AttachISO(b.ctx, b.id, w.ID))
	b.must(b.world.Upgrade(b.ctx, b.id, w.NodeName(), newVersion))
	b.nodeIs(w, cks.NodeReady)
	b.must(b.world.DetachISO(b.ctx, b.id, w.ID))
	if job := b.alone(b.ask(cks.UpgradeCluster, b.newer())); job.Status != cks.JobSucceeded {
		t.Fatal(job.ErrorText)
	}
	if b.calls("node.drain", w.ID) != 0 || b.calls("node.upgrade", w.ID) != 1 {
		t.Errorf("%d drains, %d upgrades", b.calls("node.drain", w.ID), b.calls("node.upgrade", w.ID))
	}
	b.upgraded()
	b.consistent()
}

// idleUpgrades is a world that says that it upgrades, and does not.
type idleUpgrades struct{ *sim.World }

func (idleUpgrades) Upgrade(context.Context, string, string, string) error { return nil }

// TestUpgradedMeansReadyAtTheVersion: a node that is Ready at its old version has
// not been upgraded, and one at the new version that is not Ready is not done.
// Both end the upgrade at its deadline, each with its text.
//
// Keeps: §4/upgrade.
func TestUpgradedMeansReadyAtTheVersion(t *testing.T) {
	t.Parallel()
	t.Run("ready at the old version", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
		w := idleUpgrades{b.world}
		job := b.aloneOn(w, w, b.askWithin(2*time.Second, cks.UpgradeCluster, b.newer()))
		if want := "VM : " + b.view().VMs[0].Name + " upgraded to version " + newVersion; job.Status != cks.JobFailed || !strings.HasSuffix(job.ErrorText, want) {
			t.Errorf("status %d: %s", job.Status, job.ErrorText)
		}
		b.at()
	})
	t.Run("not ready at the new version", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 20)
		v := b.view().VMs[0]
		b.run()
		job := b.askWithin(4*time.Second, cks.UpgradeCluster, b.newer())
		b.until("it is being upgraded", func() bool { return b.calls("node.upgrade", v.ID) == 1 })
		b.fault(cks.Fault{Operation: "node.set", Value: "NotReady", VMID: v.ID})
		if job = b.ended(job); job.Status != cks.JobFailed || !strings.HasSuffix(job.ErrorText, "VM : "+v.Name+" in ready state") {
			t.Errorf("status %d: %s", job.Status, job.ErrorText)
		}
		if at := b.at(); !slices.Equal(at, []string{v.Name}) {
			t.Errorf("upgraded: %q", at)
		}
		b.fault(cks.Fault{Operation: "node.set", Value: "Ready", VMID: v.ID})
	})
}
