package sim

import (
	"cmp"
	"context"
	"time"

	"ckscale/internal/cks"
)

// act is a call that changes one machine.
func (w *World) act(ctx context.Context, op, clusterID, vmID string, do func(c *cluster, now time.Time) error) error {
	if err := w.call(ctx, op, clusterID, vmID); err != nil {
		return err
	}
	return w.change(ctx, clusterID, do)
}

// Create makes a stopped machine; it does nothing if it exists already. It
// fails with cks.Failed when the hosts are full.
func (w *World) Create(ctx context.Context, m cks.MachineSpec) error {
	if err := w.call(ctx, opCreate, m.ClusterID, m.ID); err != nil {
		return err
	}
	if err := w.place(ctx, false, m.ID); err != nil {
		return w.unlessMade(ctx, m, err)
	}
	return w.change(ctx, m.ClusterID, func(c *cluster, _ time.Time) error {
		c.create(m)
		return nil
	})
}

// unlessMade returns err unless the machine exists: then it asks for no room.
func (w *World) unlessMade(ctx context.Context, m cks.MachineSpec, err error) error {
	if cks.CodeOf(err) != cks.Failed {
		return err
	}
	c, readErr := w.look(ctx, m.ClusterID)
	switch {
	case readErr != nil:
		return readErr
	case c.machine(m.ID) != nil:
		return nil
	}
	return err
}

// Start powers a machine on. One in a state from which a machine cannot be
// started is an error that may be tried again.
func (w *World) Start(ctx context.Context, clusterID, vmID string) error {
	return w.act(ctx, opStart, clusterID, vmID, func(c *cluster, now time.Time) error { return c.start(vmID, now) })
}

// Stop powers a machine off. One that is Migrating, Restoring or Unknown can
// only be stopped by force.
func (w *World) Stop(ctx context.Context, clusterID, vmID string, forced bool) error {
	return w.act(ctx, opStop, clusterID, vmID, func(c *cluster, now time.Time) error { return c.stop(vmID, forced, now) })
}

// Destroy expunges a machine, whatever its state. Its node object stays. With
// its last machine the whole cluster is gone.
func (w *World) Destroy(ctx context.Context, clusterID, vmID string) error {
	err := w.act(ctx, opDestroy, clusterID, vmID, func(c *cluster, now time.Time) error { return c.destroy(vmID, now) })
	if err != nil && cks.CodeOf(err) != cks.NotFound {
		return err
	}
	// A call that removed the machine may have died before this.
	return cmp.Or(w.vacate(ctx, vmID), err)
}

// Resize gives a machine another size.
func (w *World) Resize(ctx context.Context, clusterID, vmID string, cores, memoryMB int) error {
	return w.act(ctx, opResize, clusterID, vmID, func(c *cluster, _ time.Time) error { return c.resize(vmID, cores, memoryMB) })
}

// AttachISO puts the binaries ISO in.
func (w *World) AttachISO(ctx context.Context, clusterID, vmID string) error {
	return w.act(ctx, opAttach, clusterID, vmID, func(c *cluster, now time.Time) error { return c.attach(vmID, now) })
}

// DetachISO takes the binaries ISO out. A node that has not joined by then
// never will, until the ISO is attached again.
func (w *World) DetachISO(ctx context.Context, clusterID, vmID string) error {
	return w.act(ctx, opDetach, clusterID, vmID, func(c *cluster, _ time.Time) error { return c.detach(vmID) })
}

// Machines lists what exists for a cluster, in the order of its creation.
func (w *World) Machines(ctx context.Context, clusterID string) ([]cks.Machine, error) {
	if err := w.meet(ctx, opMachines, clusterID, ""); err != nil {
		return nil, err
	}
	c, err := w.look(ctx, clusterID)
	if err != nil {
		return nil, err
	}
	return c.machines(), nil
}

// WatchVMs yields the ids of clusters that may have changed, "" for any, until
// ctx ends.
func (w *World) WatchVMs(ctx context.Context) <-chan string { return w.watch(ctx) }

// Adopt makes machines that run already, with their nodes Ready and three pods
// on every worker. It does nothing for those that exist, and asks no host for
// room.
func (w *World) Adopt(ctx context.Context, specs []cks.MachineSpec) error {
	byCluster := map[string][]cks.MachineSpec{}
	ids := make([]string, len(specs))
	for i, m := range specs {
		byCluster[m.ClusterID] = append(byCluster[m.ClusterID], m)
		ids[i] = m.ID
	}
	if err := w.place(ctx, true, ids...); err != nil {
		return err
	}
	for id, specs := range byCluster {
		err := w.change(ctx, id, func(c *cluster, _ time.Time) error {
			for _, m := range specs {
				c.adopt(m)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
