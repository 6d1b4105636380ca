package sim

import (
	"time"

	"ckscale/internal/cks"
)

// upgrade sets a node's machine out on the way to another version. Its kubelet
// is silent meanwhile, and Kubernetes is told so.
func (c *cluster) upgrade(name, version string, now time.Time) error {
	n := c.node(name)
	if n == nil {
		return noNode(name)
	}
	m := c.machine(n.VMID)
	switch {
	case m == nil || !on(m.State):
		return failf("node %s cannot be upgraded: its VM does not run", name)
	case m.Target == version, m.Target == "" && m.Version == version:
		return nil
	case !m.ISO:
		return failf("node %s cannot be upgraded: the binaries ISO is not attached", name)
	}
	m.Target, m.UpgradeAt = version, now.Add(c.times.Upgrade)
	n.Ready, n.DrainAt = cks.NodeNotReady, time.Time{}
	return nil
}

// upgraded starts a machine's kubelet at its new version.
func (c *cluster) upgraded(m *machine) {
	m.Version, m.Target, m.UpgradeAt = m.Target, "", time.Time{}
	c.ready(m)
}
