package jobs

import (
	"context"
	"fmt"
	"slices"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// observeVMs records the VM states that the cloud shows, so that a VM which
// went down before the scanner saw it is chosen first all the same.
func (r *run) observeVMs(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	if err := unstable(view); err != nil {
		return err
	}
	found, err := r.machines(ctx, r.job.ClusterID)
	if err != nil {
		return err
	}
	return observe(ctx, r.store, view.VMs, found)
}

// unstable refuses to change the size of a cluster that has lost VMs (cks.md
// §5.2 d).
func unstable(view cks.ClusterView) error {
	if len(view.VMs) >= view.Cluster.Nodes() {
		return nil
	}
	return cks.Errorf(cks.Failed, "Scaling failed for Kubernetes cluster : %s, it is in unstable state as not enough existing VM instances found", view.Cluster.Name)
}

// observe records what the cloud shows of vms. A row whose VM is only chosen
// may not exist yet.
func observe(ctx context.Context, st *store.Store, vms []cks.VM, found machines) error {
	for _, v := range vms {
		var err error
		m, exists := found.byID[v.ID]
		switch {
		case exists && (m.State != v.State || m.IPAddress != v.IPAddress || m.MACAddress != v.MACAddress):
			err = st.ObserveVM(ctx, v.ID, m, found.asked)
		case !exists && v.Phase != cks.Chosen && v.State != cks.VMExpunging:
			err = st.ObserveGone(ctx, v, found.asked)
		}
		if err != nil {
			return fmt.Errorf("observe %s: %w", v.Name, err)
		}
	}
	return nil
}

// chooseBySize chooses the workers that go: down ones first, then the newest.
func (r *run) chooseBySize(ctx context.Context, q *store.Queries) error {
	c, err := q.ClusterByRef(ctx, r.job.ClusterID)
	if err != nil {
		return err
	}
	vms, err := q.VMs(ctx, r.job.ClusterID)
	if err != nil {
		return err
	}
	var ids []string
	for _, v := range cks.Surplus(vms, c.Size, r.job.Args.Size) {
		ids = append(ids, v.ID)
	}
	return q.ChooseLeaving(ctx, r.job, ids)
}

// chooseByID chooses the workers that the request named.
func (r *run) chooseByID(ctx context.Context, q *store.Queries) error {
	return q.ChooseLeaving(ctx, r.job, r.job.Args.VMIDs)
}

// leaving are the workers that are still to go, the next one first.
func leaving(vms []cks.VM) []cks.VM {
	return cks.RemovalOrder(slices.DeleteFunc(slices.Clone(vms), func(v cks.VM) bool { return v.Phase != cks.Leaving }))
}

// nextNode settles which worker the following steps are about: states may
// change between them, the choice must not.
func (r *run) nextNode(ctx context.Context) error {
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil {
		return err
	}
	r.job.Notes.VMID = ""
	todo := leaving(vms)
	if len(todo) == 0 {
		return nil
	}
	if r.expired() { // looked at between nodes only (cks.md §5.4)
		view, err := r.cluster(ctx)
		if err != nil {
			return err
		}
		if r.job.Kind == cks.RemoveExternal {
			return cks.Errorf(cks.Failed, "Removal of node %s from Kubernetes cluster %s timed out", todo[0].NodeName(), view.Cluster.Name)
		}
		return cks.Errorf(cks.Failed, "Scaling Kubernetes cluster %s failed, scaling action timed out", view.Cluster.Name)
	}
	r.job.Notes.VMID = todo[0].ID
	r.sayRemoving(vms, todo[0])
	return nil
}

// current is the worker that is being removed. ok is false when there is none
// left.
func (r *run) current(ctx context.Context) (vm cks.VM, ok bool, err error) {
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil {
		return vm, false, err
	}
	i := slices.IndexFunc(vms, func(v cks.VM) bool { return v.ID == r.job.Notes.VMID && v.Phase == cks.Leaving })
	if i < 0 {
		return vm, false, nil
	}
	r.sayRemoving(vms, vms[i])
	return vms[i], true, nil
}

// removing begins the text of a failed removal.
func (r *run) removing(ctx context.Context, v cks.VM) string {
	name := r.job.ClusterID
	if view, err := r.cluster(ctx); err == nil {
		name = view.Cluster.Name
	}
	if r.job.Kind == cks.RemoveExternal {
		return fmt.Sprintf("Removing nodes failed for Kubernetes cluster %s, failed to remove Kubernetes node: %s running on VM : %s", name, v.NodeName(), v.Name)
	}
	return fmt.Sprintf("Scaling failed for Kubernetes cluster %s, failed to remove Kubernetes node: %s running on VM : %s", name, v.NodeName(), v.Name)
}

// drain moves the pods off the node. A node whose VM is down is never drained:
// it could not confirm that its pods ended. One that is not Ready, or is not
// there, is given the timeout once; one that is Ready must be drained
// (design.md §4.7).
func (r *run) drain(ctx context.Context) error {
	v, ok, err := r.current(ctx)
	if err != nil || !ok {
		return err
	}
	found, err := r.machines(ctx, v.ClusterID)
	if err != nil {
		return err
	}
	if m, exists := found.byID[v.ID]; !exists || m.State.Down() {
		return nil
	}
	nodes, err := r.nodeList(ctx)
	if err != nil {
		return err
	}
	timeout, err := r.drainTimeout(ctx)
	if err != nil {
		return err
	}
	limit := timeout + r.cfg.CallTimeout // a little more than the drain gives itself
	err = r.call(ctx, r.removing(ctx, v), limit, func(ctx context.Context) error {
		return gone(r.nodes.Drain(ctx, v.ClusterID, v.NodeName(), timeout))
	})
	if err == nil || cks.NodeReadyByName(nodes, v.NodeName()) {
		return err
	}
	return r.unlessStopped(ctx, err)
}

// deleteNode removes the node object, so that Kubernetes starts the pods of a
// dead node elsewhere.
func (r *run) deleteNode(ctx context.Context) error {
	v, ok, err := r.current(ctx)
	if err != nil || !ok {
		return err
	}
	return r.call(ctx, r.removing(ctx, v), r.cfg.CallTimeout, func(ctx context.Context) error {
		return gone(r.nodes.Delete(ctx, v.ClusterID, v.NodeName()))
	})
}

// destroyVM expunges the worker's VM. Somebody may have started it after its
// node was deleted, so that it registered again; now it cannot any more.
func (r *run) destroyVM(ctx context.Context) error {
	v, ok, err := r.current(ctx)
	if err != nil || !ok {
		return err
	}
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("Scaling Kubernetes cluster %s failed, unable to expunge VM '%s'", view.Cluster.Name, v.Name)
	err = r.call(ctx, what, r.cfg.CallTimeout, func(ctx context.Context) error {
		return gone(r.vms.Destroy(ctx, v.ClusterID, v.ID))
	})
	if err != nil {
		return err
	}
	if err = r.deleteNode(ctx); err != nil && r.canRetry(err) {
		return err
	}
	r.job.Notes.Left = err != nil
	return r.unlessStopped(ctx, err) // the VM is gone, whatever becomes of its node: so it is recorded (I3)
}

// recordRemoval counts the removed worker off at once (cks.md §7 E1).
func (r *run) recordRemoval(ctx context.Context, q *store.Queries) error {
	if r.job.Notes.VMID == "" {
		return nil
	}
	return r.removed(ctx, q, r.job.Notes.VMID, r.job.Notes.Left)
}

// removed counts a worker off, and leaves its node to the scanner if it could
// not be deleted: one without a VM in the list stops the cluster-autoscaler
// (clients.md §3).
func (r *run) removed(ctx context.Context, q *store.Queries, vmID string, left bool) error {
	err := q.NodeRemoved(ctx, r.job, vmID)
	if err == nil && left {
		err = q.LeaveNode(ctx, r.job, vmID)
	}
	return err
}

// moreToRemove reports whether workers are left to go.
func (r *run) moreToRemove(ctx context.Context, q *store.Queries) (bool, error) {
	vms, err := q.JobVMs(ctx, r.job.ID)
	return err == nil && len(leaving(vms)) > 0, err
}
