package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// unknown: worker 2 is on a host that is disconnected. It is not down: alone it
// lets nothing be scaled, its node must be Ready for a scale-up to succeed, and
// it is drained when it is removed. Its neighbour that is down goes undrained.
func (t *trial) unknown(ctx context.Context) error {
	w := t.before.Workers()
	if err := t.Simulate(ctx, "vm.set", "Unknown", "vmid="+w[1].ID); err != nil {
		return err
	}
	if err := t.inState(ctx, "Alert"); err != nil {
		return err
	}
	if err := t.refused(ctx, noneDown, "size=3"); err != nil {
		return err
	}
	if err := t.stop(ctx, w[0].ID); err != nil {
		return err
	}
	if err := t.grow(ctx, newWatch(t.before), 3); err != nil {
		return err
	}
	begin := time.Now()
	c, err := t.scale(ctx, "nodeids="+w[1].ID)
	if err != nil {
		return err
	}
	t.measure("removed, with a drain", time.Since(begin))
	if c.Size != 2 || c.Has(w[1].ID) {
		return fmt.Errorf("the result has size %d", c.Size)
	}
	return t.shrink(ctx, w[:1], 1, "size=1")
}

// picture is what the cluster-autoscaler knows of a node group: its size, and
// its members by name. It replaces it by each job's result.
type picture struct {
	size   int
	byName map[string]string
}

func pictureOf(c cluster) picture {
	p := picture{c.Size, map[string]string{}}
	for _, v := range c.VMs {
		p.byName[v.Name] = v.ID
	}
	return p
}

// autoscaler asks as the cluster-autoscaler's cloudstack provider does. It does
// not look at the cluster's state; it needs the new size and every node's VM in
// each result.
func (t *trial) autoscaler(ctx context.Context) error {
	group := pictureOf(t.before)
	begin := time.Now()
	c, err := t.scale(ctx, fmt.Sprintf("size=%d", group.size+1))
	if err != nil {
		return err
	}
	t.measure("size by signed GET", time.Since(begin))
	if err := t.matches(ctx, c, group.size+1); err != nil {
		return err
	}
	group = pictureOf(c)
	if err := t.inState(ctx, "Alert"); err != nil { // it would not wait; the scenario is about Alert
		return err
	}
	begin = time.Now()
	unneeded := strings.ToLower(t.before.Workers()[0].Name)
	c, err = t.scale(ctx, "nodeids="+group.byName[unneeded])
	if err != nil {
		return err
	}
	t.measure("nodeids by signed GET", time.Since(begin))
	if _, still := pictureOf(c).byName[unneeded]; still {
		return fmt.Errorf("%s is still there", unneeded)
	}
	return t.matches(ctx, c, group.size-1)
}

// matches checks that the picture has that size, and a VM for every node.
func (t *trial) matches(ctx context.Context, c cluster, size int) error {
	if c.Size != size {
		return fmt.Errorf("the result has size %d, not %d", c.Size, size)
	}
	w, err := t.world(ctx)
	if err != nil {
		return err
	}
	names := pictureOf(c).byName
	for _, n := range w.Nodes {
		if names[n.Name] != n.VMID {
			return fmt.Errorf("node %s matches no VM of the result", n.Name)
		}
	}
	return nil
}
