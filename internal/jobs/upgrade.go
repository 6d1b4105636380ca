package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// planUpgrade refuses to touch a cluster in which a VM does not run or a node
// is not Ready: the pods of the nodes that are drained need somewhere to go, and
// a control plane that is short of a member cannot spare another.
func (r *run) planUpgrade(ctx context.Context) error {
	view, found, err := r.look(ctx)
	if err != nil {
		return err
	}
	vms := members(view.VMs)
	off := slices.DeleteFunc(asObserved(vms, found), func(v cks.VM) bool { return v.State == cks.VMRunning })
	if len(off) > 0 {
		return cks.Errorf(cks.Failed, "Upgrade failed for Kubernetes cluster : %s, it has VMs that are not running: %s",
			view.Cluster.Name, strings.Join(hosts(off), ", "))
	}
	nodes, err := r.nodeList(ctx)
	if err != nil {
		return err
	}
	if missing := notReady(vms, nodes); len(missing) > 0 {
		return cks.Errorf(cks.Failed, "Upgrade failed for Kubernetes cluster : %s, it has nodes that are not ready: %s",
			view.Cluster.Name, strings.Join(missing, ", "))
	}
	return nil
}

// attachUpgradeISO gives the nodes that are to be upgraded the new binaries.
func (r *run) attachUpgradeISO(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	return each(cks.UpgradeOrder(view.VMs, r.job.Args.Version), func(v cks.VM) error {
		what := fmt.Sprintf("Failed to attach binaries ISO for VM : %s in the Kubernetes cluster name: %s", v.Name, view.Cluster.Name)
		return r.call(ctx, what, r.cfg.CallTimeout, func(ctx context.Context) error {
			return r.vms.AttachISO(ctx, v.ClusterID, v.ID)
		})
	})
}

// nextUpgrade settles which node the following steps are about.
func (r *run) nextUpgrade(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	r.job.Notes.VMID = ""
	todo := cks.UpgradeOrder(view.VMs, r.job.Args.Version)
	if len(todo) == 0 {
		return nil
	}
	if r.expired() {
		return cks.Errorf(cks.Failed, "Failed to upgrade Kubernetes cluster : %s, upgrade action timed out; next would be node %s",
			view.Cluster.Name, todo[0].NodeName())
	}
	r.job.Notes.VMID = todo[0].ID
	r.sayUpgrading(view.VMs) // while the node is drained
	return nil
}

// aNode is the node that is being upgraded, as it is now.
type aNode struct {
	vm    cks.VM
	name  string // of the cluster
	ready bool
	done  bool // its kubelet has the new version
}

// fails begins the text of what cannot be done to the node.
func (n aNode) fails(what string) string {
	return fmt.Sprintf("Failed to upgrade Kubernetes cluster : %s, unable to %s Kubernetes node on VM : %s", n.name, what, n.vm.Name)
}

// upgradingNode looks at the node that is being upgraded; ok is false when there
// is none. A VM that does not run any more ends the upgrade.
func (r *run) upgradingNode(ctx context.Context) (n aNode, ok bool, err error) {
	if r.job.Notes.VMID == "" {
		return n, false, nil
	}
	view, found, err := r.look(ctx)
	if err != nil {
		return n, false, err
	}
	n.name = view.Cluster.Name
	r.sayUpgrading(view.VMs)
	i := slices.IndexFunc(view.VMs, func(v cks.VM) bool { return v.ID == r.job.Notes.VMID })
	if i < 0 {
		return n, false, cks.Errorf(cks.Failed, "Failed to upgrade Kubernetes cluster : %s, VM %s is gone", n.name, r.job.Notes.VMID)
	}
	if n.vm = asObserved(view.VMs[i:i+1], found)[0]; n.vm.State.Down() {
		return n, false, cks.Errorf(cks.Failed, "%s: it is in %s state", n.fails("upgrade"), n.vm.State)
	}
	nodes, err := r.nodeList(ctx)
	if err != nil {
		return n, false, err
	}
	n.ready = cks.NodeReadyByName(nodes, n.vm.NodeName())
	n.done = r.hasNewVersion(nodes, n.vm)
	return n, true, nil
}

// drainForUpgrade moves the pods off the node. One that has the version already,
// as an upgrade that failed or died may have left it, keeps them. All nodes were
// Ready when the upgrade began, so a drain that fails ends it (design.md §4.7).
func (r *run) drainForUpgrade(ctx context.Context) error {
	n, ok, err := r.upgradingNode(ctx)
	if err != nil || !ok || n.done {
		return err
	}
	timeout, err := r.drainTimeout(ctx)
	if err != nil {
		return err
	}
	limit := timeout + r.cfg.CallTimeout // a little more than the drain gives itself
	return r.call(ctx, n.fails("drain"), limit, func(ctx context.Context) error {
		return r.nodes.Drain(ctx, n.vm.ClusterID, n.vm.NodeName(), timeout)
	})
}

// upgradeNode sets the node out for the new version, unless it has that.
func (r *run) upgradeNode(ctx context.Context) error {
	n, ok, err := r.upgradingNode(ctx)
	if err != nil || !ok || n.done {
		return err
	}
	return r.call(ctx, n.fails("upgrade"), r.cfg.CallTimeout, func(ctx context.Context) error {
		return r.nodes.Upgrade(ctx, n.vm.ClusterID, n.vm.NodeName(), r.job.Args.Version)
	})
}

// waitUpgraded waits until the node is Ready, by its name, at the new version.
func (r *run) waitUpgraded(ctx context.Context) error {
	n, ok, err := r.upgradingNode(ctx)
	switch {
	case err != nil:
		return r.lookAgain(ctx, err)
	case !ok || n.done && n.ready:
		return nil
	case !n.done:
		return r.waitOr(r.cfg.ReadyPoll, cks.Errorf(cks.Failed, "Failed to upgrade Kubernetes cluster : %s, unable to get Kubernetes node on VM : %s upgraded to version %s",
			n.name, n.vm.Name, r.job.Args.Version))
	}
	return r.waitOr(r.cfg.ReadyPoll, cks.Errorf(cks.Failed, "Failed to upgrade Kubernetes cluster : %s, unable to get Kubernetes node on VM : %s in ready state",
		n.name, n.vm.Name))
}

// uncordonUpgraded lets the node take pods again.
func (r *run) uncordonUpgraded(ctx context.Context) error {
	n, ok, err := r.upgradingNode(ctx)
	if err != nil || !ok {
		return err
	}
	return r.call(ctx, n.fails("uncordon"), r.cfg.CallTimeout, func(ctx context.Context) error {
		return r.nodes.Uncordon(ctx, n.vm.ClusterID, n.vm.NodeName())
	})
}

// recordUpgrade records the node's version as its kubelet writes it (cks.md
// §2.7), at once: an upgrade that fails later goes on behind it.
func (r *run) recordUpgrade(ctx context.Context, q *store.Queries) error {
	if r.job.Notes.VMID == "" {
		return nil
	}
	return q.NodeUpgraded(ctx, r.job, r.job.Notes.VMID, "v"+r.job.Args.Version)
}

// moreToUpgrade reports whether nodes are left.
func (r *run) moreToUpgrade(ctx context.Context, q *store.Queries) (bool, error) {
	vms, err := q.VMs(ctx, r.job.ClusterID)
	return err == nil && len(cks.UpgradeOrder(vms, r.job.Args.Version)) > 0, err
}

// detachUpgradeISO takes the binaries out of all nodes that may have them.
func (r *run) detachUpgradeISO(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	found, err := r.machines(ctx, r.job.ClusterID)
	if err != nil {
		return err
	}
	return each(view.VMs, func(v cks.VM) error {
		if !v.Upgradable() || !found.byID[v.ID].ISOAttached {
			return nil
		}
		return r.call(ctx, "cannot detach the ISO from "+v.Name, r.cfg.CallTimeout, func(ctx context.Context) error {
			return gone(r.vms.DetachISO(ctx, v.ClusterID, v.ID))
		})
	})
}

// recordVersion makes the new version the cluster's, when all its nodes have it.
func (r *run) recordVersion(ctx context.Context, q *store.Queries) error {
	return q.RecordVersion(ctx, r.job, r.job.Args.VersionID)
}

// letNodesGo ends an upgrade that failed: the node that it was about takes pods
// again, and is recorded if it has the new version; the ISOs are taken out.
func (r *run) letNodesGo(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(view.VMs, func(v cks.VM) bool { return v.ID == r.job.Notes.VMID }); i >= 0 {
		if err := r.letGo(ctx, view.VMs[i]); err != nil {
			return err
		}
	}
	if err = r.detachUpgradeISO(ctx); err != nil && r.canRetry(err) {
		return err
	}
	return r.unlessStopped(ctx, err)
}

func (r *run) letGo(ctx context.Context, v cks.VM) error {
	err := r.call(ctx, "cannot uncordon "+v.NodeName(), r.cfg.CallTimeout, func(ctx context.Context) error {
		return gone(r.nodes.Uncordon(ctx, v.ClusterID, v.NodeName()))
	})
	if err != nil && r.canRetry(err) {
		return err
	}
	if err := r.unlessStopped(ctx, err); err != nil {
		return err
	}
	nodes, err := r.nodeList(ctx)
	if err != nil && r.canRetry(err) {
		return err
	}
	if r.hasNewVersion(nodes, v) {
		return r.store.InTx(ctx, func(q *store.Queries) error { return r.recordUpgrade(ctx, q) })
	}
	return r.unlessStopped(ctx, err)
}

// hasNewVersion reports whether the VM's kubelet has the version that the job is
// to bring.
func (r *run) hasNewVersion(nodes []cks.Node, v cks.VM) bool {
	return slices.ContainsFunc(nodes, func(n cks.Node) bool {
		return n.Name == v.NodeName() && cks.SameVersion(n.Version, r.job.Args.Version)
	})
}
