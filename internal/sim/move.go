package sim

import (
	"context"
	"slices"
	"time"
)

// Move takes a machine from one place to another: a place is a cluster's id, or
// the machine's own while it is in none. It is the same machine after that, in
// the state that it was in, but it has joined no cluster and has no ISO. One that
// is there already stays. A node object that it leaves behind falls silent.
func (w *World) Move(ctx context.Context, vmID, from, to string) error {
	site := to
	if site == vmID {
		site = from
	}
	if err := w.call(ctx, opMove, site, vmID); err != nil {
		return err
	}
	c, err := w.look(ctx, from)
	if err != nil {
		return err
	}
	m := c.machine(vmID)
	if m == nil {
		return w.arrived(ctx, vmID, to)
	}
	// It arrives before it leaves: who dies between finds both, and ends it.
	if err := w.change(ctx, to, func(c *cluster, _ time.Time) error { c.take(m); return nil }); err != nil {
		return err
	}
	return w.change(ctx, from, func(c *cluster, now time.Time) error { c.lose(vmID, now); return nil })
}

// arrived fails unless the machine is there.
func (w *World) arrived(ctx context.Context, vmID, place string) error {
	c, err := w.look(ctx, place)
	if err == nil && c.machine(vmID) == nil {
		return noVM(vmID)
	}
	return err
}

// take puts a machine of another place in, unless it is there.
func (c *cluster) take(m *machine) {
	if c.machine(m.ID) != nil {
		return
	}
	moved := *m
	moved.ISO, moved.Joined, moved.Held, moved.Delayed, moved.Brings = false, false, false, false, 0
	moved.JoinAt, moved.ReadyAt = time.Time{}, time.Time{}
	moved.Version, moved.Target, moved.UpgradeAt = "", "", time.Time{} // of the cluster that it leaves
	c.Machines = append(c.Machines, &moved)
}

// lose takes a machine out.
func (c *cluster) lose(id string, now time.Time) {
	m := c.machine(id)
	if m == nil {
		return
	}
	c.fallSilent(m, now)
	c.Machines = slices.DeleteFunc(c.Machines, func(x *machine) bool { return x == m })
}

// clusterOf is what is shown as the cluster of a machine in a place.
func clusterOf(place, vmID string) string {
	if place == vmID {
		return ""
	}
	return place
}
