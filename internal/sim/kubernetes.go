package sim

import (
	"context"
	"time"

	"ckscale/internal/cks"
)

// Nodes lists a cluster's node objects, in the order of their registration.
func (w *World) Nodes(ctx context.Context, clusterID string) ([]cks.Node, error) {
	if err := w.meet(ctx, opNodes, clusterID, ""); err != nil {
		return nil, err
	}
	c, err := w.look(ctx, clusterID)
	if err != nil {
		return nil, err
	}
	return c.nodes(), nil
}

// WatchNodes yields the ids of clusters that may have changed, "" for any,
// until ctx ends.
func (w *World) WatchNodes(ctx context.Context) <-chan string { return w.watch(ctx) }

// vmOf returns the VM of a node; "" if there is no such node.
func (w *World) vmOf(ctx context.Context, clusterID, name string) (string, error) {
	c, err := w.look(ctx, clusterID)
	if err != nil {
		return "", err
	}
	if n := c.node(name); n != nil {
		return n.VMID, nil
	}
	return "", nil
}

// actOn is a call that changes one node.
func (w *World) actOn(ctx context.Context, op, clusterID, name string, do func(c *cluster, now time.Time) error) error {
	vmID, err := w.vmOf(ctx, clusterID, name)
	if err != nil {
		return err
	}
	return w.act(ctx, op, clusterID, vmID, do)
}

// Drain cordons a node and moves its pods away. Where nobody confirms that
// they have ended, because the VM is down or the node is not Ready, and where a
// disruption budget is ordered, it hangs until timeout, in real time, is over,
// and fails; the node stays cordoned.
func (w *World) Drain(ctx context.Context, clusterID, name string, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	why := "its pods have not moved"
	err := w.drain(limited, clusterID, name, &why)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		return failf("drain of node %s timed out after %s: %s", name, timeout, why)
	}
	return err
}

// drain drains until ctx ends, and says in why what it is waiting for.
func (w *World) drain(ctx context.Context, clusterID, name string, why *string) error {
	vmID, err := w.vmOf(ctx, clusterID, name)
	if err != nil {
		return err
	}
	if err := w.count(ctx, opDrain, clusterID, vmID); err != nil {
		return err
	}
	f, err := w.strike(ctx, opDrain, clusterID, vmID)
	switch {
	case err != nil:
		return err
	case f == nil:
	case f.Value == doBudget:
		*why = "Cannot evict pod as it would violate the pod's disruption budget"
		return w.blocked(ctx, clusterID, name)
	default:
		if err := f.hit(ctx); err != nil {
			return err
		}
	}
	return w.empty(ctx, clusterID, name)
}

// blocked is a drain that a disruption budget keeps from moving anything.
func (w *World) blocked(ctx context.Context, clusterID, name string) error {
	err := w.change(ctx, clusterID, func(c *cluster, _ time.Time) error { return c.cordon(name) })
	if err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// empty waits until a drain has left no pods.
func (w *World) empty(ctx context.Context, clusterID, name string) error {
	changes := w.changes(ctx)
	for {
		var left int
		var next time.Duration
		err := w.change(ctx, clusterID, func(c *cluster, now time.Time) (err error) {
			left, err = c.drain(name, now)
			next = w.idle()
			if at := c.soonest().at; !at.IsZero() {
				next = min(next, at.Sub(now))
			}
			return err
		})
		if err != nil || left == 0 {
			return err
		}
		wait(ctx, changes, next)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// Uncordon makes a node schedulable again.
func (w *World) Uncordon(ctx context.Context, clusterID, name string) error {
	return w.actOn(ctx, opUncordon, clusterID, name, func(c *cluster, _ time.Time) error { return c.uncordon(name) })
}

// Upgrade sets out to give a node another Kubernetes version, for which its VM
// needs the binaries ISO. It returns while the node is NotReady; in time that is
// Ready at the new version. Asked again for the same one it does nothing.
func (w *World) Upgrade(ctx context.Context, clusterID, name, version string) error {
	return w.actOn(ctx, opUpgrade, clusterID, name, func(c *cluster, now time.Time) error { return c.upgrade(name, version, now) })
}

// Delete removes a node object. Its pods come back on other nodes.
func (w *World) Delete(ctx context.Context, clusterID, name string) error {
	return w.actOn(ctx, opDelete, clusterID, name, func(c *cluster, now time.Time) error { return c.forget(name, now) })
}

// SetAutoscaler deploys the cluster-autoscaler with a's bounds, or removes it.
func (w *World) SetAutoscaler(ctx context.Context, clusterID string, a cks.Autoscaling) error {
	return w.act(ctx, opAutoscale, clusterID, "", func(c *cluster, _ time.Time) error { return c.setAutoscaler(a) })
}
