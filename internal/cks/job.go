package cks

import (
	"strings"
	"time"
)

// JobStatus is CloudStack's jobstatus.
type JobStatus int

// The statuses. A finished job never changes again.
const (
	JobPending   JobStatus = 0
	JobSucceeded JobStatus = 1
	JobFailed    JobStatus = 2
)

// Kind names what a job does: the key of its plan.
type Kind string

// The kinds of jobs.
const (
	Nothing                 Kind = "nothing"     // already so: the job is recorded as finished
	RecordSize              Kind = "record-size" // a cluster in Created: only the record changes, in the request's transaction
	ScaleUp                 Kind = "scale-up"
	ScaleDown               Kind = "scale-down"
	RemoveNodes             Kind = "remove-nodes"
	ChangeOffering          Kind = "change-offering"
	OfferingThenScaleUp     Kind = "change-offering-then-scale-up"
	ScaleDownThenOffering   Kind = "scale-down-then-change-offering"
	OfferingThenRemoveNodes Kind = "change-offering-then-remove-nodes"
	Autoscale               Kind = "autoscale"
	AutoscaleThenOffering   Kind = "autoscale-then-change-offering"
	CreateCluster           Kind = "create-cluster"
	StartCluster            Kind = "start-cluster"
	StopCluster             Kind = "stop-cluster"
	UpgradeCluster          Kind = "upgrade-cluster"
	DeleteCluster           Kind = "delete-cluster"
	StartVM                 Kind = "start-vm"
	StopVM                  Kind = "stop-vm"
	DeployVM                Kind = "deploy-vm"
	DestroyVM               Kind = "destroy-vm"
	AddNodes                Kind = "add-nodes"             // external ones
	RemoveExternal          Kind = "remove-external-nodes" // and keep their VMs
)

// Requests says which event takes hold of the cluster for a job of each kind.
// A kind that is absent holds no cluster.
var Requests = map[Kind]Event{
	ScaleUp:                 ScaleUpRequested,
	ScaleDown:               ScaleDownRequested,
	RemoveNodes:             ScaleDownRequested,
	ChangeOffering:          ScaleUpRequested,
	OfferingThenScaleUp:     ScaleUpRequested,
	ScaleDownThenOffering:   ScaleDownRequested,
	OfferingThenRemoveNodes: ScaleUpRequested,
	Autoscale:               AutoscaleRequested,
	AutoscaleThenOffering:   AutoscaleRequested,
	CreateCluster:           StartRequested,
	StartCluster:            StartRequested,
	StopCluster:             StopRequested,
	UpgradeCluster:          UpgradeRequested,
	DeleteCluster:           DestroyRequested,
	AddNodes:                AddNodeRequested,
	RemoveExternal:          RemoveNodeRequest,
}

// Args is what a job was asked to do. Fields that its kind does not need are
// zero.
type Args struct {
	Size            int             `json:"size,omitempty"`            // wanted workers, external ones included
	VMIDs           []string        `json:"vmids,omitempty"`           // canonical ids of the workers to remove
	Offerings       map[Role]string `json:"offerings,omitempty"`       // offering id by node type, only those that change
	DefaultOffering string          `json:"defaultoffering,omitempty"` // new default of the cluster
	Autoscaling     *Autoscaling    `json:"autoscaling,omitempty"`
	Forced          bool            `json:"forced,omitempty"`      // stop a VM by power off
	VersionID       string          `json:"versionid,omitempty"`   // the Kubernetes version to upgrade to
	Version         string          `json:"version,omitempty"`     // the same as a number: "1.34.1"
	KeepStopped     bool            `json:"keepstopped,omitempty"` // deploy a VM and do not start it
}

// Notes is what a job's steps have found out and must not forget. It is stored
// with the checkpoint.
type Notes struct {
	Seen   State    `json:"seen,omitempty"`   // the cluster's state when the request was validated
	Absent []string `json:"absent,omitempty"` // nodes that were not Ready at the start though their VM was up
	Before int      `json:"before,omitempty"` // size at the start
	Wanted int      `json:"wanted,omitempty"` // new nodes wanted
	VMID   string   `json:"vmid,omitempty"`   // the worker that is being removed, the node that is being upgraded
	Gone   bool     `json:"gone,omitempty"`   // its VM does not exist any more
	Left   bool     `json:"left,omitempty"`   // its node could not be deleted after its VM
}

// Job is an async job.
type Job struct {
	ID        string
	Seq       int64
	Command   string // CloudStack command name, e.g. "scaleKubernetesCluster"
	Kind      Kind
	Account   Account
	ClusterID string // "" when it concerns no cluster (VM jobs)
	VMID      string // "" unless it is a VM job
	Args      Args
	Notes     Notes
	Status    JobStatus
	Step      string        // the last step done; "" before the first
	Attempt   int64         // goes up with every claim: the fence
	Tries     int           // failed tries of the current step
	Failure   string        // why it is being given up; its undo steps follow. "" while it goes well
	Unchanged bool          // at Failure: nothing had been changed, so the cluster goes back to Notes.Seen
	Remaining time.Duration // from its claim to its deadline; not positive when that had passed
	Server    string        // id of the process that is executing it; "" while it waits
	ErrorText string        // of a failed job
	Result    *JobResult
	Created   time.Time
	Completed time.Time // zero while pending

	StepTimes map[string]StepTime // of the steps done, and of the one that failed
	StepSince time.Time           // when the step under way began; zero = not known
	Message   string              // what it says of itself; "" = nothing
	Steps     []JobStep           // how far it has come, where that is to be shown; not stored
}

// JobResult is what a successful job gives back: exactly one of its fields is
// set. Success stands for CloudStack's {"success":true}.
type JobResult struct {
	Cluster *ClusterView `json:"cluster,omitempty"`
	VM      *VMView      `json:"vm,omitempty"`
	Success bool         `json:"success,omitempty"`
}

// Classes are CloudStack's class names for the commands that make jobs: what
// clients are shown as a job's cmd (cks.md §2.3).
var Classes = map[string]string{
	"scaleKubernetesCluster":  "org.apache.cloudstack.api.command.user.kubernetes.cluster.ScaleKubernetesClusterCmd",
	"createKubernetesCluster": "org.apache.cloudstack.api.command.user.kubernetes.cluster.CreateKubernetesClusterCmd",
	"deleteKubernetesCluster": "org.apache.cloudstack.api.command.user.kubernetes.cluster.DeleteKubernetesClusterCmd",
	"startVirtualMachine":     "org.apache.cloudstack.api.command.user.vm.StartVMCmd",
	"stopVirtualMachine":      "org.apache.cloudstack.api.command.user.vm.StopVMCmd",

	"startKubernetesCluster":           "org.apache.cloudstack.api.command.user.kubernetes.cluster.StartKubernetesClusterCmd",
	"stopKubernetesCluster":            "org.apache.cloudstack.api.command.user.kubernetes.cluster.StopKubernetesClusterCmd",
	"upgradeKubernetesCluster":         "org.apache.cloudstack.api.command.user.kubernetes.cluster.UpgradeKubernetesClusterCmd",
	"deleteKubernetesSupportedVersion": "org.apache.cloudstack.api.command.admin.kubernetes.version.DeleteKubernetesSupportedVersionCmd",
	"deployVirtualMachine":             "org.apache.cloudstack.api.command.user.vm.DeployVMCmd",
	"destroyVirtualMachine":            "org.apache.cloudstack.api.command.user.vm.DestroyVMCmd",
	"addNodesToKubernetesCluster":      "org.apache.cloudstack.api.command.user.kubernetes.cluster.AddNodesToKubernetesClusterCmd",
	"removeNodesFromKubernetesCluster": "org.apache.cloudstack.api.command.user.kubernetes.cluster.RemoveNodesFromKubernetesClusterCmd",
}

// CommandsLike returns the commands that make jobs and whose class name holds
// keyword, in any case: what listAsyncJobs filters by (cks.md §2.5).
func CommandsLike(keyword string) []string {
	like := []string{}
	for command, class := range Classes {
		if strings.Contains(strings.ToLower(class), strings.ToLower(keyword)) {
			like = append(like, command)
		}
	}
	return like
}
