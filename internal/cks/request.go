package cks

import "time"

// ScaleRequest is scaleKubernetesCluster as sent: ids are not resolved yet and
// an absent parameter is nil.
type ScaleRequest struct {
	Cluster       string         // uuid, or the internal number in decimal
	OfferingID    *string        // serviceofferingid
	NodeOfferings []NodeOffering // by index; nil when the parameter is absent
	Size          *int64
	NodeIDs       []string // as sent; nil = absent, empty but not nil = an empty list was sent
	Autoscaling   *bool
	MinSize       *int64
	MaxSize       *int64
	JobID         string // customjobid; "" = make one
}

// NodeOffering is one entry of nodeofferings; a missing field is nil.
type NodeOffering struct {
	Node     *string `json:"node"`
	Offering *string `json:"offering"`
}

// CreateRequest is createKubernetesCluster as sent.
type CreateRequest struct {
	Name          string
	Description   string
	ZoneID        string
	VersionID     string
	OfferingID    *string
	NodeOfferings []NodeOffering
	NodeTemplates []NodeTemplate
	Size          *int64 // nil = 1
	ControlNodes  *int64 // nil = 1; masternodes is its older name
	EtcdNodes     *int64 // nil = 0
	Keypair       string
	NetworkID     string
	CSI           bool
	Linked        bool   // ExternalManaged: no more than a record
	Endpoint      string // its externalloadbalanceripaddress
	Account       string // name of the owner; "" = the caller
	ProjectID     string // owner
	JobID         string
}

// UpgradeRequest is upgradeKubernetesCluster.
type UpgradeRequest struct {
	Cluster string // uuid, or the internal number in decimal; so Version
	Version string
	JobID   string
}

// VMRequest is startVirtualMachine, stopVirtualMachine.
type VMRequest struct {
	VM     string
	Forced bool
	JobID  string
}

// DeployRequest is deployVirtualMachine as sent.
type DeployRequest struct {
	Name        string // host name; "" = VM- and the id
	DisplayName string
	ZoneID      string
	OfferingID  string
	TemplateID  string
	NetworkIDs  []string // the first is the default network's; empty = the account's own network
	Keypair     string
	KeepStopped bool   // startvm=false
	Account     string // name of the owner; "" = the caller
	ProjectID   string // owner
	JobID       string
}

// NodesRequest is addNodesToKubernetesCluster, removeNodesFromKubernetesCluster.
type NodesRequest struct {
	Cluster       string
	NodeIDs       []string
	ManualUpgrade bool
	JobID         string
}

// LinkRequest is addVirtualMachinesToKubernetesCluster,
// removeVirtualMachinesFromKubernetesCluster.
type LinkRequest struct {
	Cluster string
	VMIDs   []string
	Control bool // iscontrolnode
}

// Unlinked is what became of one VM that was to be unlinked; Why is empty when
// it was.
type Unlinked struct {
	VMID string
	Why  string
}

// Page is a page of a list. The zero value is the first page of the default
// size.
type Page struct {
	Number int // from 1; 0 acts as 1
	Size   int // 0 = DefaultPageSize, -1 = unlimited
}

// PageOf returns the rows of the page out of all.
func PageOf[T any](p Page, all []T) []T {
	size := p.Size
	if size < 0 {
		return all
	}
	if size == 0 {
		size = DefaultPageSize
	}
	before := max(p.Number, 1) - 1
	if before > len(all)/size {
		return nil
	}
	from := before * size
	return all[from:min(from+size, len(all))]
}

// DefaultPageSize is CloudStack's default.page.size, which is the largest page
// too.
const DefaultPageSize = 500

// ClusterFilter is listKubernetesClusters; empty fields do not filter.
type ClusterFilter struct {
	ID      string
	Name    string // exact
	Keyword string // part of the name, any case
	State   string // exact
	Type    string // CloudManaged or ExternalManaged
	Account string // account name, for admins
	Project string // projectid: what belongs to it, AllProjects; "" = not what belongs to projects
	Reach   Reach  // what these two and ListAll mean for the caller
	ListAll bool
	Page    Page
}

// VMFilter is listVirtualMachines.
type VMFilter struct {
	ID        string
	IDs       []string
	Name      string // part of the name, any case
	Keyword   string
	State     string // a VM state, or Present
	ZoneID    string
	NetworkID string
	Cluster   string // our extension: kubernetesclusterid
	Account   string
	Project   string // as in ClusterFilter
	Reach     Reach
	ListAll   bool
	Page      Page
}

// JobFilter is listAsyncJobs: only unfinished jobs, oldest first.
type JobFilter struct {
	Since   time.Time // startdate: created at or after; zero = all
	Keyword string    // part of the cmd
	Server  string    // managementserverid
	Account string
	ListAll bool
	Page    Page
}

// CatalogFilter is listZones, listServiceOfferings,
// listKubernetesSupportedVersions.
type CatalogFilter struct {
	ID         string
	Name       string // exact
	Keyword    string // part of the name, any case
	ZoneID     string // versions: of this zone
	MinVersion string // versions: minimumsemanticversion
	Page       Page
}
