package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"ckscale/internal/cks"
)

// Configure takes an order of configureSimulator: a fault to meet from now on,
// until it has struck Count times (0: until cleared), or a change of the world
// behind the service's back. Of the faults that meet a call the one that was
// set last strikes, alone; a new one takes the place of one with the same
// ClusterID and VMID. It fails with cks.Invalid, and says what is allowed, for
// an unknown operation, value, count or VM.
//
// A node that node.join keeps out stays out until its ISO is attached anew, its
// VM is restarted, or the fault is cleared: then it joins at once. Clearing
// without ClusterID and VMID clears an operation's faults for all of them.
func (w *World) Configure(ctx context.Context, f cks.Fault) error {
	o, err := parse(f)
	if err != nil {
		return err
	}
	switch {
	case o.does == doNumber:
		return w.setRoom(ctx, o.room)
	case o.does == doClear && o.Operation == "capacity":
		return w.setRoom(ctx, -1)
	case o.does == doState, o.does == doReady, o.does == doForget:
		return w.interfere(ctx, o)
	case o.does == doClear:
		err = update(ctx, w.mem, keySettings, func(s *settings) error {
			s.clear(o.Fault)
			return nil
		})
		if err == nil && o.Operation == opJoin {
			err = w.releaseAll(ctx, o.Fault)
		}
		return err
	}
	return update(ctx, w.mem, keySettings, func(s *settings) error {
		s.set(o.Fault)
		return nil
	})
}

// releaseAll lets the machines join that f's clearing sets free.
func (w *World) releaseAll(ctx context.Context, f cks.Fault) error {
	ids, err := w.clusters(ctx, f.ClusterID)
	if err != nil {
		return err
	}
	for _, id := range ids {
		err := w.change(ctx, id, func(c *cluster, now time.Time) error {
			for _, m := range c.Machines {
				if narrows(f.VMID, m.ID) {
					c.release(m, now)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// interfere changes a machine or its node behind the service's back.
func (w *World) interfere(ctx context.Context, o order) error {
	ids, err := w.clusters(ctx, o.ClusterID)
	if err != nil {
		return err
	}
	for _, id := range ids {
		c, err := w.look(ctx, id)
		if err != nil {
			return err
		}
		if o.target(c) {
			return w.change(ctx, id, o.do)
		}
	}
	return o.missing()
}

// target reports whether the order's VM, or its node, is in c.
func (o order) target(c *cluster) bool {
	if o.VMID == "" {
		return false
	}
	if o.does == doState {
		return slices.ContainsFunc(c.Machines, func(m *machine) bool { return strings.EqualFold(m.ID, o.VMID) })
	}
	return o.node(c) != nil
}

func (o order) node(c *cluster) *node {
	i := slices.IndexFunc(c.Nodes, func(n *node) bool { return strings.EqualFold(n.VMID, o.VMID) })
	if i < 0 {
		return nil
	}
	return c.Nodes[i]
}

func (o order) missing() error {
	what := "the node of a VM"
	if o.does == doState {
		what = "a VM"
	}
	return cks.Errorf(cks.Invalid, "Invalid vmid %q for %s; allowed: the id of %s of the simulated cloud", o.VMID, o.Operation, what)
}

// do carries the order out in the cluster that has its VM.
func (o order) do(c *cluster, now time.Time) error {
	if o.does == doState {
		for _, m := range c.Machines {
			if strings.EqualFold(m.ID, o.VMID) {
				c.setState(m, o.state, now)
				return nil
			}
		}
		return o.missing()
	}
	n := o.node(c)
	switch {
	case n == nil:
		return o.missing()
	case o.does == doForget:
		return c.forget(n.Name, now)
	}
	c.setSick(n, !o.ready)
	return nil
}
