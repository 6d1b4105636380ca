package sim

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"ckscale/internal/cks"
)

// failure is an error that may be tried again; its text is all there is to it.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

func failf(format string, args ...any) error { return &failure{fmt.Sprintf(format, args...)} }

func noVM(id string) error { return cks.Errorf(cks.NotFound, "VM %s does not exist", id) }

// on reports whether a machine in this state runs its kubelet. One that is
// Migrating runs on; one whose state is Unknown may, and does here; one that is
// Stopping does until it is Stopped.
func on(s cks.VMState) bool {
	switch s {
	case cks.VMRunning, cks.VMMigrating, cks.VMUnknown, cks.VMStopping:
		return true
	}
	return false
}

// create makes a stopped machine, unless it exists.
func (c *cluster) create(spec cks.MachineSpec) *machine {
	if m := c.machine(spec.ID); m != nil {
		return m
	}
	m := &machine{
		ID: spec.ID, Name: spec.Name, Role: spec.Role, Cores: spec.Cores, MemoryMB: spec.MemoryMB,
		State: cks.VMStopped, Version: spec.Version,
	}
	m.IP, m.MAC = c.address(m.ID)
	if m.Role == cks.Worker && !c.Founded {
		m.Brings = podsPerWorker
	}
	c.Machines = append(c.Machines, m)
	return m
}

// addresses is how many addresses 10.1.0.0/16 gives, 254 in each third octet.
const addresses = 256 * 254

// address gives out the cluster's next free addresses. A machine in no cluster
// has one of the upper half, which may be another's, too.
func (c *cluster) address(vmID string) (ip, mac string) {
	h := fnv.New32a()
	h.Write([]byte(c.ID))
	site := h.Sum32()
	if c.ID == vmID {
		c.Made = int(site)&0x3fff + addresses/2
	}
	for {
		n := c.Made % addresses
		c.Made++
		ip = fmt.Sprintf("10.1.%d.%d", n/254, n%254+1)
		if !slices.ContainsFunc(c.Machines, func(m *machine) bool { return m.IP == ip }) {
			return ip, fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", byte(site>>16), byte(site>>8), byte(site), byte(n>>8), byte(n))
		}
	}
}

// adopt makes a machine that runs, with its node Ready and a worker's pods,
// unless it exists.
func (c *cluster) adopt(spec cks.MachineSpec) {
	if c.machine(spec.ID) != nil {
		return
	}
	m := c.create(spec)
	m.State, m.Joined = cks.VMRunning, m.Role != cks.Etcd
	if m.Role == cks.Worker {
		m.Brings = podsPerWorker
	}
	if m.Joined {
		c.ready(m)
	}
}

func (c *cluster) start(id string, now time.Time) error {
	m := c.machine(id)
	if m == nil {
		return noVM(id)
	}
	switch m.State {
	case cks.VMStarting, cks.VMRunning:
	case cks.VMStopped, cks.VMShutdown:
		c.setState(m, cks.VMStarting, now)
		m.SettleAt = now.Add(c.times.Boot)
	default:
		return failf("VM %s is in %s state and cannot be started", m.Name, m.State)
	}
	return nil
}

func (c *cluster) stop(id string, forced bool, now time.Time) error {
	m := c.machine(id)
	if m == nil {
		return noVM(id)
	}
	switch {
	case m.State.Down():
	case forced:
		c.setState(m, cks.VMStopped, now)
	case m.State == cks.VMStopping:
	case m.State == cks.VMRunning, m.State == cks.VMStarting:
		c.setState(m, cks.VMStopping, now)
		m.SettleAt = now.Add(c.times.Stop)
	default:
		return failf("VM %s is in %s state and can only be stopped by force", m.Name, m.State)
	}
	return nil
}

// destroy removes the machine. Its node object stays, and is silent from now
// on: nobody tells Kubernetes.
func (c *cluster) destroy(id string, now time.Time) error {
	m := c.machine(id)
	if m == nil {
		return noVM(id)
	}
	c.setState(m, cks.VMExpunging, now)
	c.Machines = slices.DeleteFunc(c.Machines, func(x *machine) bool { return x == m })
	return nil
}

func (c *cluster) resize(id string, cores, memoryMB int) error {
	m := c.machine(id)
	if m == nil {
		return noVM(id)
	}
	m.Cores, m.MemoryMB = cores, memoryMB
	return nil
}

func (c *cluster) attach(id string, now time.Time) error {
	m := c.machine(id)
	if m == nil {
		return noVM(id)
	}
	if !m.ISO {
		m.ISO = true
		c.setOut(m, now)
	}
	return nil
}

func (c *cluster) detach(id string) error {
	m := c.machine(id)
	if m == nil {
		return noVM(id)
	}
	m.ISO = false
	m.JoinAt, m.Held = time.Time{}, false // without it a node that has not joined never will
	return nil
}

// settle ends Starting and Stopping.
func (c *cluster) settle(m *machine, at time.Time) {
	if m.State == cks.VMStarting {
		c.setState(m, cks.VMRunning, at)
	} else {
		c.setState(m, cks.VMStopped, at)
	}
}

// setState puts a machine into a state, whatever the one before, in which it
// stays until something else is done with it.
func (c *cluster) setState(m *machine, s cks.VMState, at time.Time) {
	was := on(m.State)
	m.State, m.SettleAt = s, time.Time{}
	switch is := on(s); {
	case was && !is:
		c.fallSilent(m, at)
	case !was && is && m.Joined:
		m.ReadyAt = at.Add(c.times.Return)
	case !was && is:
		c.setOut(m, at)
	}
}

// setOut starts a machine's way into the cluster, if it has not joined and all
// it takes is there.
func (c *cluster) setOut(m *machine, at time.Time) {
	if m.Joined || !m.ISO || !on(m.State) || m.Role == cks.Etcd {
		return
	}
	m.JoinAt = at.Add(c.times.Join)
	m.Attempts++
	m.Held, m.Delayed = false, false
}

// fallSilent is what a machine's end does to its node: nothing is seen of it
// until the grace period is over.
func (c *cluster) fallSilent(m *machine, at time.Time) {
	m.JoinAt, m.ReadyAt, m.Held = time.Time{}, time.Time{}, false
	m.UpgradeAt, m.Target = time.Time{}, "" // cut off, its old version is what it boots with
	n := c.nodeOf(m.ID)
	if n == nil {
		return
	}
	n.DrainAt = time.Time{}
	if n.Ready != cks.NodeUnknown && n.SilentAt.IsZero() {
		n.SilentAt = at.Add(c.times.Grace)
	}
}

// release lets a machine that a fault keeps from joining join at once.
func (c *cluster) release(m *machine, now time.Time) {
	if m.Held {
		c.setOut(m, now)
		m.JoinAt = now
	}
}
