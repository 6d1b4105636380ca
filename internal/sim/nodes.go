package sim

import (
	"slices"
	"strings"
	"time"

	"ckscale/internal/cks"
)

func noNode(name string) error { return cks.Errorf(cks.NotFound, "node %s does not exist", name) }

// join registers a machine's node, NotReady at first, unless a fault has
// something to say about it.
func (c *cluster) join(m *machine, at time.Time) {
	var v verdict
	if c.verdict != nil {
		v = c.verdict(m)
	}
	switch {
	case v.undecided:
		c.undecided = append(c.undecided, m.ID)
		return
	case v.hold:
		m.JoinAt, m.Held = time.Time{}, true
		return
	case v.delay > 0 && !m.Delayed:
		m.JoinAt, m.Delayed = at.Add(v.delay), true
		return
	}
	m.JoinAt, m.Joined = time.Time{}, true
	n := c.register(m)
	n.SilentAt, n.Ready = time.Time{}, cks.NodeNotReady
	m.ReadyAt = at.Add(c.times.FirstReady)
}

// register makes sure that a machine has a node object. One that is left of a
// machine of the same name becomes its own.
func (c *cluster) register(m *machine) *node {
	name := strings.ToLower(m.Name)
	n := c.node(name)
	if n == nil {
		n = &node{Name: name, Worker: m.Role == cks.Worker}
		c.Nodes = append(c.Nodes, n)
	}
	n.VMID = m.ID
	return n
}

// ready lets a machine's kubelet report that it is well.
func (c *cluster) ready(m *machine) {
	m.ReadyAt = time.Time{}
	n := c.register(m)
	n.SilentAt, n.Ready = time.Time{}, cks.NodeReady
	if m.Version != "" {
		n.Version = "v" + m.Version
	}
	if n.Sick {
		n.Ready = cks.NodeNotReady
	}
	n.Pods += m.Brings
	m.Brings = 0
	c.Founded = c.Founded || n.Worker
	c.schedule(0)
}

// schedule puts pods, and those that wait already, on the Ready and schedulable
// workers with the fewest. What Kubernetes believes counts: a node whose VM has
// just been stopped is still Ready.
func (c *cluster) schedule(pods int) {
	c.Pending += pods
	for ; c.Pending > 0; c.Pending-- {
		var to *node
		for _, n := range c.Nodes {
			if n.Worker && n.Ready == cks.NodeReady && !n.Cordoned && (to == nil || n.Pods < to.Pods) {
				to = n
			}
		}
		if to == nil {
			return
		}
		to.Pods++
	}
}

// confirms reports whether a node's kubelet can confirm that a pod has ended.
func (c *cluster) confirms(n *node) bool {
	m := c.machine(n.VMID)
	return m != nil && on(m.State) && n.Ready == cks.NodeReady
}

// drain cordons a node and, if its kubelet can confirm it, sets its pods
// moving. It returns how many are left.
func (c *cluster) drain(name string, now time.Time) (left int, err error) {
	n := c.node(name)
	if n == nil {
		return 0, noNode(name)
	}
	n.Cordoned = true
	if n.Pods > 0 && n.DrainAt.IsZero() && c.confirms(n) {
		n.DrainAt = now.Add(c.times.Drain)
	}
	return n.Pods, nil
}

// cordon makes a node unschedulable.
func (c *cluster) cordon(name string) error {
	n := c.node(name)
	if n == nil {
		return noNode(name)
	}
	n.Cordoned = true
	return nil
}

func (c *cluster) uncordon(name string) error {
	n := c.node(name)
	if n == nil {
		return noNode(name)
	}
	n.Cordoned, n.DrainAt = false, time.Time{}
	c.schedule(0)
	return nil
}

// evict ends a drain. Whatever makes a node unable to confirm calls it off
// before: fallSilent, setSick.
func (c *cluster) evict(n *node) {
	pods := n.Pods
	n.DrainAt, n.Pods = time.Time{}, 0
	c.schedule(pods)
}

// forget deletes a node object. Its pods come back elsewhere; the node does
// not while its VM runs on, for a kubelet registers only when it starts.
func (c *cluster) forget(name string, now time.Time) error {
	n := c.node(name)
	if n == nil {
		return noNode(name)
	}
	c.Nodes = slices.DeleteFunc(c.Nodes, func(x *node) bool { return x == n })
	if m := c.machine(n.VMID); m != nil {
		m.ReadyAt = time.Time{}
	}
	if n.Pods > 0 {
		c.Returning = append(c.Returning, returning{n.Pods, now.Add(c.times.Recreate)})
	}
	return nil
}

// setSick makes the node of a machine that runs NotReady, or Ready again.
func (c *cluster) setSick(n *node, sick bool) {
	n.Sick = sick
	m := c.machine(n.VMID)
	if m == nil || !on(m.State) || !m.ReadyAt.IsZero() || !m.UpgradeAt.IsZero() {
		return // it is silent, or its kubelet is about to report by itself
	}
	n.Ready = cks.NodeReady
	if sick {
		n.Ready, n.DrainAt = cks.NodeNotReady, time.Time{}
	}
	c.schedule(0)
}

// setAutoscaler deploys the cluster-autoscaler, or removes it.
func (c *cluster) setAutoscaler(a cks.Autoscaling) error {
	switch {
	case !a.Enabled:
		c.Autoscaling = nil
	case len(c.Machines) == 0:
		return cks.Errorf(cks.NotFound, "cluster %s does not exist", c.ID)
	default:
		c.Autoscaling = &a
	}
	return nil
}
