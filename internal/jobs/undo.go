package jobs

import (
	"context"
	"errors"
	"fmt"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// keepReadyDropOthers ends a scale-up that failed part-way: new nodes that are
// Ready stay and are counted, the others are destroyed with their node objects
// (design.md §4.6). What cannot be destroyed now stays listed for the scanner.
func (r *run) keepReadyDropOthers(ctx context.Context) error {
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil || len(vms) == 0 {
		return err
	}
	nodes, err := r.nodeList(ctx)
	if err != nil && r.canRetry(err) {
		return err
	} else if err != nil {
		r.log.WarnContext(ctx, "cannot tell which new nodes joined; those not recorded are dropped", "err", err)
	}
	if err := r.recordJoined(ctx, vms, nodes); err != nil {
		return err
	}
	if vms, err = r.store.JobVMs(ctx, r.job.ID); err != nil {
		return err
	}
	for _, v := range vms {
		if v.Phase == cks.Chosen {
			err = r.drop(ctx, v)
		} else {
			err = r.call(ctx, "cannot detach the ISO from "+v.Name, r.cfg.CallTimeout, func(ctx context.Context) error {
				return gone(r.vms.DetachISO(ctx, v.ClusterID, v.ID))
			})
			if err != nil && r.canRetry(err) {
				return err
			}
			err = r.unlessStopped(ctx, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drop destroys a new VM and its node object, or leaves it to the scanner.
func (r *run) drop(ctx context.Context, v cks.VM) error {
	err := r.call(ctx, "cannot destroy "+v.Name, r.cfg.CallTimeout, func(ctx context.Context) error {
		return gone(r.vms.Destroy(ctx, v.ClusterID, v.ID))
	})
	if err == nil && v.Role != cks.Etcd { // after its VM, so that it cannot register again
		err = r.call(ctx, "cannot delete node "+v.NodeName(), r.cfg.CallTimeout, func(ctx context.Context) error {
			return gone(r.nodes.Delete(ctx, v.ClusterID, v.NodeName()))
		})
	}
	destroyed := err == nil
	if err := r.unlessStopped(ctx, err); err != nil {
		return err
	}
	return r.store.InTx(ctx, func(q *store.Queries) error {
		if destroyed {
			return q.NodeRemoved(ctx, r.job, v.ID)
		}
		return q.NodeDoomed(ctx, r.job, v.ID)
	})
}

// canRetry reports whether a step that failed by err is to be tried again
// before it goes on without.
func (r *run) canRetry(err error) bool {
	return !errors.As(err, new(*worldError)) || !final(err) && r.job.Tries+1 < r.cfg.MaxTries
}

// unlessStopped logs a failure of the world and goes on; a lost lease or a
// stopping process is returned.
func (r *run) unlessStopped(ctx context.Context, err error) error {
	if errors.As(err, new(*worldError)) {
		r.log.WarnContext(ctx, "undo goes on without", "err", err)
		return nil
	}
	return err
}

// explainGrowth adds to the failure how many of the new nodes are there.
func explainGrowth(r *run, ctx context.Context, q *store.Queries) (string, error) {
	if r.job.Notes.Wanted == 0 { // it failed before there was anything to join
		return r.job.Failure, nil
	}
	vms, err := q.JobVMs(ctx, r.job.ID)
	if err != nil {
		return "", err
	}
	c, err := q.ClusterByRef(ctx, r.job.ClusterID)
	if err != nil {
		return "", err
	}
	joined := 0
	for _, v := range vms {
		if v.Phase == cks.Member {
			joined++
		}
	}
	return fmt.Sprintf("Scaling failed for Kubernetes cluster : %s, %d of %d new nodes joined: %s", c.Name, joined, r.job.Notes.Wanted, r.job.Failure), nil
}

// keepTheRest ends a removal that failed part-way: the workers that were
// chosen and are still there stay members and take pods again. A VM whose node
// is gone already can do nothing any more; it is powered off, so that the
// cluster's state shows a down worker, which can be removed again (A38). One
// that does not exist any more has been removed, though the answer was lost.
func (r *run) keepTheRest(ctx context.Context) error {
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
	for _, v := range vms {
		if v.Phase != cks.Leaving {
			continue
		}
		if _, exists := found.byID[v.ID]; seen && !exists {
			if err := r.recordGone(ctx, v); err != nil {
				return err
			}
			continue
		}
		err := r.call(ctx, "cannot uncordon "+v.NodeName(), r.cfg.CallTimeout, func(ctx context.Context) error {
			return r.nodes.Uncordon(ctx, v.ClusterID, v.NodeName())
		})
		if err != nil && cks.CodeOf(err) != cks.NotFound && r.canRetry(err) {
			return err
		}
		if v.ID == r.job.Notes.VMID && cks.CodeOf(err) == cks.NotFound {
			err = r.call(ctx, "cannot power off "+v.Name, r.cfg.CallTimeout, func(ctx context.Context) error {
				return gone(r.vms.Stop(ctx, v.ClusterID, v.ID, true))
			})
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

// recordGone counts a worker off whose VM does not exist any more.
func (r *run) recordGone(ctx context.Context, v cks.VM) error {
	err := r.call(ctx, "cannot delete node "+v.NodeName(), r.cfg.CallTimeout, func(ctx context.Context) error {
		return gone(r.nodes.Delete(ctx, v.ClusterID, v.NodeName()))
	})
	left := err != nil
	if err := r.unlessStopped(ctx, err); err != nil {
		return err
	}
	return r.store.InTx(ctx, func(q *store.Queries) error { return r.removed(ctx, q, v.ID, left) })
}

// dropAll destroys what a failed create made.
func (r *run) dropAll(ctx context.Context) error {
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil {
		return err
	}
	for _, v := range vms {
		if err := r.drop(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// recordNone says that a cluster whose create failed has no workers.
func (r *run) recordNone(ctx context.Context, q *store.Queries) error {
	c, err := q.ClusterByRef(ctx, r.job.ClusterID)
	if err != nil {
		return err
	}
	return q.RecordSize(ctx, c, 0)
}
