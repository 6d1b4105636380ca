package jobs

import (
	"context"
	"fmt"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// External nodes are VMs of the owner's own: they move into a cluster and out
// of it, and run on whatever becomes of it. Who dies between a move and its
// record moves again, which then does nothing.

// moveIn takes the job's VMs into the cluster.
func (r *run) moveIn(ctx context.Context) error {
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil {
		return err
	}
	return each(chosen(vms), func(v cks.VM) error {
		return r.call(ctx, "Failed to add node "+v.Name, r.cfg.CallTimeout, func(ctx context.Context) error {
			return r.vms.Move(ctx, v.ID, v.ID, r.job.ClusterID)
		})
	})
}

// keepReadyReturnOthers ends an addition that failed part-way: new nodes that are
// Ready stay and are counted, the other VMs go back to where they were. One that
// cannot go back now stays a node, which can be removed (see FreeCluster).
func (r *run) keepReadyReturnOthers(ctx context.Context) error {
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil || len(vms) == 0 {
		return err
	}
	nodes, err := r.nodeList(ctx)
	if err != nil && r.canRetry(err) {
		return err
	}
	if err := r.unlessStopped(ctx, err); err != nil {
		return err
	}
	if err := r.recordJoined(ctx, vms, nodes); err != nil {
		return err
	}
	if vms, err = r.store.JobVMs(ctx, r.job.ID); err != nil {
		return err
	}
	return each(vms, func(v cks.VM) error {
		err := r.call(ctx, "cannot detach the ISO from "+v.Name, r.cfg.CallTimeout, func(ctx context.Context) error {
			return gone(r.vms.DetachISO(ctx, v.ClusterID, v.ID)) // it may not have moved yet
		})
		if err == nil && v.Phase == cks.Chosen {
			err = r.giveBack(ctx, v)
		}
		if err != nil && r.canRetry(err) {
			return err
		}
		return r.unlessStopped(ctx, err)
	})
}

// giveBack takes an external node's VM out of the cluster, its node object with
// it, and records that. One that does not exist any more is recorded as gone.
func (r *run) giveBack(ctx context.Context, v cks.VM) error {
	moved, err := r.takeOut(ctx, v)
	if err != nil {
		return err
	}
	err = r.call(ctx, "cannot delete node "+v.NodeName(), r.cfg.CallTimeout, func(ctx context.Context) error {
		return gone(r.nodes.Delete(ctx, v.ClusterID, v.NodeName())) // after the move, so that it cannot register again
	})
	if err != nil {
		return err
	}
	return r.store.InTx(ctx, func(q *store.Queries) error { return r.recordBack(ctx, q, v.ID, moved) })
}

// takeOut moves the VM to its own place. moved is false when it does not exist
// any more.
func (r *run) takeOut(ctx context.Context, v cks.VM) (moved bool, err error) {
	err = r.call(ctx, "cannot take "+v.Name+" out of the cluster", r.cfg.CallTimeout, func(ctx context.Context) error {
		return r.vms.Move(ctx, v.ID, v.ClusterID, v.ID)
	})
	return err == nil, gone(err)
}

func (r *run) recordBack(ctx context.Context, q *store.Queries, vmID string, exists bool) error {
	if !exists {
		return q.NodeRemoved(ctx, r.job, vmID)
	}
	return q.NodeReturned(ctx, r.job, vmID)
}

// explainAdding adds to the failure how many of the nodes are there.
func explainAdding(r *run, ctx context.Context, q *store.Queries) (string, error) {
	vms, err := q.JobVMs(ctx, r.job.ID)
	if err != nil {
		return "", err
	}
	c, err := q.ClusterByRef(ctx, r.job.ClusterID)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Not every node was added to the Kubernetes cluster : %s, %d of %d nodes joined: %s",
		c.Name, len(vms)-len(chosen(vms)), r.job.Notes.Wanted, r.job.Failure), nil
}

// observeExternal records the VM states that the cloud shows.
func (r *run) observeExternal(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	found, err := r.machines(ctx, r.job.ClusterID)
	if err != nil {
		return err
	}
	return observe(ctx, r.store, view.VMs, found)
}

// moveOut takes the VM whose node was deleted out of the cluster. Somebody may
// have started it meanwhile, so that it registered again; now it cannot any more.
func (r *run) moveOut(ctx context.Context) error {
	v, ok, err := r.current(ctx)
	if err != nil || !ok {
		return err
	}
	moved, err := r.takeOut(ctx, v)
	if r.job.Notes.Gone = err == nil && !moved; err != nil {
		return err
	}
	if err = r.deleteNode(ctx); err != nil && r.canRetry(err) {
		return err
	}
	return r.unlessStopped(ctx, err) // the VM is out, whatever becomes of its node: so it is recorded
}

// recordReturn counts the removed node off at once.
func (r *run) recordReturn(ctx context.Context, q *store.Queries) error {
	if r.job.Notes.VMID == "" {
		return nil
	}
	return r.recordBack(ctx, q, r.job.Notes.VMID, !r.job.Notes.Gone)
}

// keepExternal ends a removal that failed part-way: the nodes that are still
// there stay members and take pods again. The one whose node object is gone, or
// whose VM is out already, can not be a node any more, so that its removal is
// ended if that is possible.
func (r *run) keepExternal(ctx context.Context) error {
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil {
		return err
	}
	found, err := r.machines(ctx, r.job.ClusterID)
	if err != nil && r.canRetry(err) {
		return err
	}
	seen := err == nil
	if err := r.unlessStopped(ctx, err); err != nil {
		return err
	}
	for _, v := range leaving(vms) {
		_, exists := found.byID[v.ID]
		err := r.call(ctx, "cannot uncordon "+v.NodeName(), r.cfg.CallTimeout, func(ctx context.Context) error {
			return r.nodes.Uncordon(ctx, v.ClusterID, v.NodeName())
		})
		if v.ID == r.job.Notes.VMID && (cks.CodeOf(err) == cks.NotFound || seen && !exists) {
			if err = r.giveBack(ctx, v); err == nil {
				continue
			}
		}
		if err != nil && cks.CodeOf(err) != cks.NotFound && r.canRetry(err) {
			return err
		}
		if err := r.unlessStopped(ctx, err); err != nil {
			return err
		}
		if err := r.store.InTx(ctx, func(q *store.Queries) error { return q.KeepNode(ctx, r.job, v.ID) }); err != nil {
			return err
		}
	}
	return nil
}
