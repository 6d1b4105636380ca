package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ckscale/internal/cks"
)

// podsPerWorker is how many pods a founding worker brings.
const podsPerWorker = 3

// cluster is one simulated cluster: its machines and its Kubernetes API. It is
// pure: all that happens by itself is a stored time, and advance makes it
// happen. Its pods are never lost: their number changes only when a founding
// worker brings its own.
type cluster struct {
	ID          string           `json:"id"`
	Machines    []*machine       `json:"machines"`
	Nodes       []*node          `json:"nodes,omitempty"`
	Pending     int              `json:"pending,omitempty"`   // pods that no node can take now
	Returning   []returning      `json:"returning,omitempty"` // pods of deleted nodes
	Autoscaling *cks.Autoscaling `json:"autoscaling,omitempty"`
	Made        int              `json:"made"`              // machines made so far; addresses follow from it
	Founded     bool             `json:"founded,omitempty"` // a worker has been Ready: later ones bring no pods

	times     Timings
	verdict   func(*machine) verdict // what a fault has to say about a join that is due; nil: nothing
	undecided []string               // machines whose join waits for a counted fault to strike or not
}

// machine is a VM.
type machine struct {
	ID       string      `json:"id"`
	Name     string      `json:"name"`
	Role     cks.Role    `json:"role"`
	Cores    int         `json:"cores"`
	MemoryMB int         `json:"memory"`
	State    cks.VMState `json:"state"`
	ISO      bool        `json:"iso,omitempty"`
	IP       string      `json:"ip"`
	MAC      string      `json:"mac"`
	Brings   int         `json:"brings,omitempty"`   // pods that come with its node's first Ready
	Joined   bool        `json:"joined,omitempty"`   // its node was registered once
	Attempts int         `json:"attempts,omitempty"` // how often it set out to join
	Held     bool        `json:"held,omitempty"`     // a fault keeps this attempt from joining
	Delayed  bool        `json:"delayed,omitempty"`  // a fault has delayed this attempt

	SettleAt time.Time `json:"settleat,omitzero"` // Starting, Stopping end
	JoinAt   time.Time `json:"joinat,omitzero"`   // its node registers
	ReadyAt  time.Time `json:"readyat,omitzero"`  // its node is Ready

	Version   string    `json:"version,omitempty"`  // of its Kubernetes; "" where nobody has told
	Target    string    `json:"target,omitempty"`   // version that it is being upgraded to
	UpgradeAt time.Time `json:"upgradeat,omitzero"` // it is upgraded
}

// node is a node object.
type node struct {
	Name     string        `json:"name"`
	VMID     string        `json:"vmid"`
	Worker   bool          `json:"worker,omitempty"` // may have pods
	Ready    cks.Readiness `json:"ready"`
	Pods     int           `json:"pods,omitempty"`
	Cordoned bool          `json:"cordoned,omitempty"`
	Sick     bool          `json:"sick,omitempty"`    // NotReady by order, though its VM runs
	Version  string        `json:"version,omitempty"` // as its kubelet has reported it

	SilentAt time.Time `json:"silentat,omitzero"` // it is Unknown
	DrainAt  time.Time `json:"drainat,omitzero"`  // its pods have moved
}

// returning is a deleted node's pods on their way to another node.
type returning struct {
	Pods int       `json:"pods"`
	At   time.Time `json:"at"`
}

// verdict is what the faults say about a join that is due.
type verdict struct {
	hold      bool          // it does not happen
	delay     time.Duration // it happens later, once
	undecided bool          // a counted fault has not been asked yet
}

// decode reads a cluster; no document is a cluster without machines.
func decode(id string, doc []byte, times Timings, verdict func(*machine) verdict) (*cluster, error) {
	c := &cluster{ID: id, times: times, verdict: verdict}
	if doc == nil {
		return c, nil
	}
	if err := json.Unmarshal(doc, c); err != nil {
		return nil, fmt.Errorf("read simulated cluster %s: %w", id, err)
	}
	return c, nil
}

// encode writes a cluster. One without machines has no API either: it is gone.
func (c *cluster) encode() ([]byte, error) {
	if len(c.Machines) == 0 {
		return nil, nil
	}
	return json.Marshal(c)
}

// timer is something that happens by itself.
type timer struct {
	at   time.Time
	fire func(at time.Time)
}

// advance lets everything happen that is due by now, in the order of its
// times, and returns when the next thing is due; zero: never.
func (c *cluster) advance(now time.Time) time.Time {
	for {
		t := c.soonest()
		if t.at.IsZero() || t.at.After(now) {
			return t.at
		}
		t.fire(t.at)
	}
}

// soonest returns the first timer; its time is zero if there is none.
func (c *cluster) soonest() timer {
	var first timer
	for _, t := range c.timers() {
		if !t.at.IsZero() && (first.at.IsZero() || t.at.Before(first.at)) {
			first = t
		}
	}
	return first
}

// timers lists all that happens by itself. A time of zero is not set.
func (c *cluster) timers() []timer {
	var all []timer
	for _, m := range c.Machines {
		all = append(all,
			timer{m.SettleAt, func(at time.Time) { c.settle(m, at) }},
			timer{m.ReadyAt, func(time.Time) { c.ready(m) }},
			timer{m.UpgradeAt, func(time.Time) { c.upgraded(m) }})
		if !slices.Contains(c.undecided, m.ID) {
			all = append(all, timer{m.JoinAt, func(at time.Time) { c.join(m, at) }})
		}
	}
	for _, n := range c.Nodes {
		all = append(all,
			timer{n.SilentAt, func(time.Time) { n.SilentAt, n.Ready = time.Time{}, cks.NodeUnknown }},
			timer{n.DrainAt, func(time.Time) { c.evict(n) }})
	}
	for i, r := range c.Returning {
		all = append(all, timer{r.At, func(time.Time) {
			c.Returning = slices.Delete(c.Returning, i, i+1)
			c.schedule(r.Pods)
		}})
	}
	return all
}

func (c *cluster) machine(id string) *machine {
	i := slices.IndexFunc(c.Machines, func(m *machine) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return c.Machines[i]
}

func (c *cluster) node(name string) *node {
	i := slices.IndexFunc(c.Nodes, func(n *node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return c.Nodes[i]
}

func (c *cluster) nodeOf(vmID string) *node {
	i := slices.IndexFunc(c.Nodes, func(n *node) bool { return n.VMID == vmID })
	if i < 0 {
		return nil
	}
	return c.Nodes[i]
}

// machines shows the machines as the cloud does.
func (c *cluster) machines() []cks.Machine {
	all := make([]cks.Machine, len(c.Machines))
	for i, m := range c.Machines {
		all[i] = cks.Machine{
			ID: m.ID, ClusterID: clusterOf(c.ID, m.ID), Name: m.Name, State: m.State, Cores: m.Cores, MemoryMB: m.MemoryMB,
			ISOAttached: m.ISO, IPAddress: m.IP, MACAddress: m.MAC,
		}
	}
	return all
}

// nodes shows the node objects as the Kubernetes API does.
func (c *cluster) nodes() []cks.Node {
	all := make([]cks.Node, len(c.Nodes))
	for i, n := range c.Nodes {
		all[i] = cks.Node{Name: n.Name, VMID: n.VMID, Ready: n.Ready, Pods: n.Pods, Version: n.Version, Silent: !n.SilentAt.IsZero()}
	}
	return all
}
