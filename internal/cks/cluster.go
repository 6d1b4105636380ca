// Package cks holds the nouns and rules of CloudStack's Kubernetes Service:
// clusters, VMs, jobs, the lifecycle, the checks of a scale request and the
// order of removal. It is pure: no clock, database or logger, and it imports
// only the standard library.
package cks

import (
	"slices"
	"strings"
	"time"
)

// Account is who calls, and who owns clusters and jobs. Each account has one
// user. It never carries the secret key.
type Account struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Admin      bool   `json:"admin,omitempty"` // root admin: sees and may do everything
	UserID     string `json:"userid"`
	DomainID   string `json:"domainid"`
	Domain     string `json:"domain"`     // "ROOT"
	DomainPath string `json:"domainpath"` // "ROOT", no trailing slash

	// The project whose things belong to this account; empty for all others.
	ProjectID string `json:"projectid,omitempty"`
	Project   string `json:"project,omitempty"` // its name

	// The accounts of the projects that this one is a member of; only of an
	// account that asks for something.
	Projects Memberships `json:"-"`
}

// Owns reports whether what belongs to the account ownerID is this one's to use:
// it is its own, or that of a project that it is a member of, or it is a root
// admin.
func (a Account) Owns(ownerID string) bool {
	return a.Admin || a.ID == ownerID || slices.Contains(a.Projects.List(), ownerID)
}

// Memberships are ids, separated by spaces.
type Memberships string

// List returns the ids.
func (m Memberships) List() []string { return strings.Fields(string(m)) }

// Zone is where clusters are.
type Zone struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Offering is a service offering.
type Offering struct {
	ID          string    `json:"id"`
	Seq         int64     `json:"seq"` // the internal number, as in "Failed to find service offering ID: 7"
	Name        string    `json:"name"`
	DisplayText string    `json:"displaytext"`
	Cores       int       `json:"cores"` // vCPUs; 0 in a custom (dynamic) offering
	SpeedMHz    int       `json:"speed"`
	MemoryMB    int       `json:"memory"`
	Created     time.Time `json:"created"`
}

// Custom reports whether the offering leaves a size open (dynamic).
func (o Offering) Custom() bool { return o.Cores == 0 || o.SpeedMHz == 0 || o.MemoryMB == 0 }

// KubernetesVersion is a supported Kubernetes version with its binaries ISO.
type KubernetesVersion struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`            // "v1.33.1"
	Version     string    `json:"semanticversion"` // "1.33.1"
	ISOID       string    `json:"isoid"`
	ISOName     string    `json:"isoname"`
	MinCores    int       `json:"mincpunumber"`
	MinMemoryMB int       `json:"minmemory"`
	Enabled     bool      `json:"enabled"`
	Created     time.Time `json:"created"`
}

// Template is what node VMs boot from.
type Template struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Ready   bool      `json:"ready"`
	Created time.Time `json:"created"`
}

// Autoscaling is the cluster-autoscaler's setting. Min and Max are 0 when it is
// off.
type Autoscaling struct {
	Enabled bool `json:"enabled"`
	Min     int  `json:"min,omitempty"`
	Max     int  `json:"max,omitempty"`
}

// Cluster is a Kubernetes cluster as it is recorded.
type Cluster struct {
	ID              string          `json:"id"`
	Seq             int64           `json:"seq"`
	Name            string          `json:"name"`
	Description     string          `json:"description"`
	AccountID       string          `json:"accountid"`
	ZoneID          string          `json:"zoneid"`
	VersionID       string          `json:"versionid,omitempty"`  // empty: an externally managed cluster
	TemplateID      string          `json:"templateid,omitempty"` // empty: none recorded
	Templates       map[Role]string `json:"templates,omitempty"`  // template id by node type; a type that is absent has TemplateID
	NetworkID       string          `json:"networkid"`
	NetworkName     string          `json:"networkname"`
	DefaultOffering string          `json:"defaultoffering,omitempty"` // offering id; may be empty when every type has its own
	Offerings       map[Role]string `json:"offerings,omitempty"`       // offering id by node type; a type may be absent
	ControlNodes    int             `json:"controlnodes"`
	EtcdNodes       int             `json:"etcdnodes"`
	Size            int             `json:"size"` // workers, external ones included (spec/cks.md §8.5)
	State           State           `json:"state"`
	HeldBy          string          `json:"heldby,omitempty"` // the live job that holds it; set if and only if State.Busy()
	Version         int64           `json:"version"`          // goes up with every change of the row
	Autoscaling     Autoscaling     `json:"autoscaling"`
	ExternalManaged bool            `json:"externalmanaged,omitempty"`
	CSI             bool            `json:"csi,omitempty"`
	Keypair         string          `json:"keypair,omitempty"`
	Endpoint        string          `json:"endpoint"`
	IPAddress       string          `json:"ipaddress"`
	IPAddressID     string          `json:"ipaddressid"`
	Created         time.Time       `json:"created"`
	Removed         bool            `json:"removed,omitempty"`
}

// OfferingFor returns the offering id that a new node of role r gets: the
// type's own, else the cluster's default; empty when there is neither.
func (c Cluster) OfferingFor(r Role) string {
	if id := c.Offerings[r]; id != "" {
		return id
	}
	return c.DefaultOffering
}

// Nodes is the number of nodes that the cluster should have VMs for.
func (c Cluster) Nodes() int { return c.ControlNodes + c.EtcdNodes + c.Size }

// Role is a node type.
type Role string

// The node types. Everything that is neither control nor etcd is a worker.
const (
	Control Role = "control"
	Etcd    Role = "etcd"
	Worker  Role = "worker"
)

// Roles lists the node types in the order in which VMs are created
// (spec/cks.md §8.3).
var Roles = []Role{Etcd, Control, Worker}

// Phase says how far a VM belongs to its cluster.
type Phase string

// The phases of a VM's row.
const (
	Chosen  Phase = "chosen"  // named by a live job; not counted yet
	Member  Phase = "member"  // counted in the cluster's size
	Leaving Phase = "leaving" // a member that a live job is about to remove; still counted
	Doomed  Phase = "doomed"  // not counted; its VM could not be destroyed yet and the scanner will
)

// VM is one machine: one row. A plain VM belongs to an account and to no
// cluster; the others belong to a cluster.
type VM struct {
	ID          string    `json:"id"`
	Seq         int64     `json:"seq"`       // unique, grows with creation
	ClusterID   string    `json:"clusterid"` // empty: a plain VM
	Name        string    `json:"name"`      // host name
	Role        Role      `json:"role"`
	External    bool      `json:"external,omitempty"` // added by addNodesToKubernetesCluster; always a worker
	OfferingID  string    `json:"offeringid"`
	Cores       int       `json:"cores"`   // of its offering
	MemoryMB    int       `json:"memory"`  // of its offering
	State       VMState   `json:"state"`   // as last observed
	Phase       Phase     `json:"phase"`   //
	NodeVersion string    `json:"version"` // Kubernetes version, "v1.34.1" after an upgrade; empty for etcd
	IPAddress   string    `json:"ip"`      //
	MACAddress  string    `json:"mac"`     //
	Created     time.Time `json:"created"` //
	Updated     time.Time `json:"updated"` // when the state last changed
	Removed     bool      `json:"removed"` // the VM is gone; the row stays so that its id still resolves

	Manual bool `json:"manualupgrade,omitempty"` // its owner upgrades it

	// Of a VM that was deployed by its owner; it keeps them as a node.
	AccountID   string `json:"accountid,omitempty"`   // empty: the cluster's owner
	DisplayName string `json:"displayname,omitempty"` //
	Keypair     string `json:"keypair,omitempty"`     //
	Linked      bool   `json:"linked,omitempty"`      // its cluster is externally managed: no more than a record
	Place       string `json:"place"`                 // under which id the cloud knows it: its cluster's, or its own
}

// NodeName is the VM's node in Kubernetes: always lower case (spec/cks.md §8.1).
func (v VM) NodeName() string { return strings.ToLower(v.Name) }

// Changing reports whether a VM of its owner's own is being taken into a cluster
// or out of it, made or destroyed: until that is over nothing else can be done
// with it.
func (v VM) Changing() bool { return (v.AccountID != "" || v.External) && v.Phase != Member }

// OwnWorker reports whether scaling may add or remove this VM.
func (v VM) OwnWorker() bool { return v.Role == Worker && !v.External }

// Upgradable reports whether an upgrade of the cluster acts on this VM: the
// binaries ISO has nothing for etcd nodes, and some external nodes are upgraded
// by their owner (cks.md §8.2).
func (v VM) Upgradable() bool { return v.Role != Etcd && !v.Manual }

// HasVersion reports whether the VM's node is recorded at this Kubernetes
// version.
func (v VM) HasVersion(version string) bool { return SameVersion(v.NodeVersion, version) }

// SameVersion reports whether two texts name one Kubernetes version: a kubelet
// writes v1.34.1 for 1.34.1.
func SameVersion(a, b string) bool { return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v") }

// VMState is a CloudStack virtual machine state.
type VMState string

// The VM states of spec/cks.md §8.7.
const (
	VMStarting  VMState = "Starting"
	VMRunning   VMState = "Running"
	VMStopping  VMState = "Stopping"
	VMStopped   VMState = "Stopped"
	VMDestroyed VMState = "Destroyed"
	VMExpunging VMState = "Expunging"
	VMMigrating VMState = "Migrating"
	VMError     VMState = "Error"
	VMUnknown   VMState = "Unknown"
	VMShutdown  VMState = "Shutdown"
	VMRestoring VMState = "Restoring"
)

// VMStates lists every VMState once; the schema's CHECK must agree.
var VMStates = []VMState{
	VMStarting, VMRunning, VMStopping, VMStopped, VMDestroyed, VMExpunging,
	VMMigrating, VMError, VMUnknown, VMShutdown, VMRestoring,
}

// down are the states in which a machine surely runs nothing. Migrating and
// Unknown may still run it (spec/seed.txt), so they are not among them.
var down = []VMState{VMStopped, VMShutdown, VMError, VMDestroyed, VMExpunging}

// Down reports whether the machine surely runs nothing.
func (s VMState) Down() bool { return slices.Contains(down, s) }

// ClusterView is a cluster with all that its API object shows.
type ClusterView struct {
	Cluster   Cluster             `json:"cluster"`
	VMs       []VM                `json:"vms"` // not removed, by Seq
	Account   Account             `json:"account"`
	Zone      Zone                `json:"zone"`
	Version   *KubernetesVersion  `json:"version,omitempty"`
	Template  *Template           `json:"template,omitempty"`
	Offerings map[string]Offering `json:"offerings"` // by id: all that the cluster and its VMs use
}

// VMView is a VM with all that its API object shows.
type VMView struct {
	VM          VM        `json:"vm"`
	ClusterName string    `json:"clustername"`
	NetworkID   string    `json:"networkid"`
	NetworkName string    `json:"networkname"`
	Account     Account   `json:"account"`
	Zone        Zone      `json:"zone"`
	Offering    Offering  `json:"offering"`
	Template    *Template `json:"template,omitempty"`
}
