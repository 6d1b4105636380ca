package cks

// Machine is a VM as the cloud shows it, whatever our own rows say.
type Machine struct {
	ID          string  `json:"id"`
	ClusterID   string  `json:"clusterid"`
	Name        string  `json:"name"`
	State       VMState `json:"state"`
	Cores       int     `json:"cores"`
	MemoryMB    int     `json:"memory"`
	ISOAttached bool    `json:"isoattached"`
	IPAddress   string  `json:"ip"`
	MACAddress  string  `json:"mac"`
}

// MachineSpec is a machine to be made. ID and Name are chosen by the caller
// and stored before the call, so that a repeat finds its own machine.
type MachineSpec struct {
	ID        string
	ClusterID string
	Name      string
	Role      Role
	Cores     int
	MemoryMB  int
	Version   string // of the Kubernetes that its node joins with: "1.34.1"; empty for etcd
}

// Readiness is the status of a node's Ready condition.
type Readiness string

// The readings of a Ready condition. NodeUnknown: its kubelet has been silent
// for the grace period.
const (
	NodeReady    Readiness = "True"
	NodeNotReady Readiness = "False"
	NodeUnknown  Readiness = "Unknown"
)

// Node is a node object of a cluster's Kubernetes API.
type Node struct {
	Name  string    `json:"name"` // lower case
	VMID  string    `json:"vmid"`
	Ready Readiness `json:"ready"`
	Pods  int       `json:"pods"`

	// Version is that of its kubelet, as it writes it: "v1.34.1". Empty when it
	// is not known.
	Version string `json:"version,omitempty"`
	// Silent: nothing has been heard of its kubelet since its VM last started or
	// stopped (its Lease tells), though Ready may be True for a while yet.
	Silent bool `json:"silent,omitempty"`
}

// Fault is one order to the simulator (configureSimulator).
type Fault struct {
	Operation string // vm.create, node.drain, capacity, vm.set, node.forget, …
	Value     string // fail[:text], hang, delay:<duration>, panic, clear, a number, a VM state
	Count     int    // how many times; 0 = until cleared
	ClusterID string // "" = any
	VMID      string // "" = any
}

// Calls is how often an operation was asked of the simulator.
type Calls struct {
	Operation string
	ClusterID string
	VMID      string // "" where the operation has no VM
	Count     int
}

// Simulation is what querySimulator shows.
type Simulation struct {
	Calls       []Calls
	Nodes       []SimulatedNode
	Machines    []Machine
	Autoscalers []SimulatedAutoscaler
}

// SimulatedNode is a node with its cluster.
type SimulatedNode struct {
	Node
	ClusterID string
}

// SimulatedAutoscaler is a cluster-autoscaler deployment in a simulated cluster.
type SimulatedAutoscaler struct {
	ClusterID string
	Autoscaling
}
