package cks

import (
	"fmt"
	"strings"
	"time"
)

// EventType says what an entry of listEvents is about.
type EventType string

// The types of events. Those of commands are CloudStack's; it has no others for
// what they tell, so the rest are ours, named in its way.
const (
	EventClusterCreate EventType = "KUBERNETES.CLUSTER.CREATE"
	EventClusterScale  EventType = "KUBERNETES.CLUSTER.SCALE"
	EventClusterDelete EventType = "KUBERNETES.CLUSTER.DELETE"
	EventVMStart       EventType = "VM.START"
	EventVMStop        EventType = "VM.STOP"
	EventVMCreate      EventType = "VM.CREATE"
	EventVMDestroy     EventType = "VM.DESTROY"
	EventNodesAdd      EventType = "KUBERNETES.CLUSTER.NODES.ADD"
	EventNodesRemove   EventType = "KUBERNETES.CLUSTER.NODES.REMOVE"

	EventClusterStart   EventType = "KUBERNETES.CLUSTER.START"
	EventClusterStop    EventType = "KUBERNETES.CLUSTER.STOP"
	EventClusterUpgrade EventType = "KUBERNETES.CLUSTER.UPGRADE"
	EventVersionAdd     EventType = "KUBERNETES.VERSION.ADD"
	EventVersionUpdate  EventType = "KUBERNETES.VERSION.UPDATE"
	EventVersionDelete  EventType = "KUBERNETES.VERSION.DELETE"

	EventClusterState EventType = "KUBERNETES.CLUSTER.STATE"
	EventNodeAdd      EventType = "KUBERNETES.CLUSTER.NODE.ADD"
	EventNodeRemove   EventType = "KUBERNETES.CLUSTER.NODE.REMOVE"
	EventJobCancel    EventType = "JOB.CANCEL"

	EventUserLogin  EventType = "USER.LOGIN" // these three are CloudStack's, too
	EventUserLogout EventType = "USER.LOGOUT"
	EventSetting    EventType = "CONFIGURATION.VALUE.EDIT"
)

// EventTypes lists every EventType once.
var EventTypes = []EventType{
	EventClusterCreate, EventClusterScale, EventClusterDelete, EventVMStart, EventVMStop,
	EventClusterStart, EventClusterStop, EventClusterUpgrade,
	EventVersionAdd, EventVersionUpdate, EventVersionDelete,
	EventVMCreate, EventVMDestroy, EventNodesAdd, EventNodesRemove,
	EventClusterState, EventNodeAdd, EventNodeRemove, EventJobCancel,
	EventUserLogin, EventUserLogout, EventSetting,
}

// Level says how much an event matters.
type Level string

// The levels, as CloudStack has them.
const (
	LevelInfo  Level = "INFO"
	LevelWarn  Level = "WARN"
	LevelError Level = "ERROR"
)

// Levels lists every Level once; the schema's CHECK must agree.
var Levels = []Level{LevelInfo, LevelWarn, LevelError}

// Progress is an event's state: how far what it tells of has got. What happens
// in one moment is Completed.
type Progress string

// The states of events, under CloudStack's names.
const (
	EntityCreated Progress = "Created"
	Scheduled     Progress = "Scheduled"
	Started       Progress = "Started"
	Completed     Progress = "Completed"
)

// Progresses lists every Progress once; the schema's CHECK must agree.
var Progresses = []Progress{EntityCreated, Scheduled, Started, Completed}

// Action is how the events of a command read.
type Action struct {
	Type  EventType
	Doing string // "scaling Kubernetes cluster"
	On    string // follows when the thing's id does: " ID: "
}

// Actions are the commands that events tell of: all that make jobs.
var Actions = map[string]Action{
	"scaleKubernetesCluster":  {EventClusterScale, "scaling Kubernetes cluster", " ID: "},
	"createKubernetesCluster": {EventClusterCreate, "creating Kubernetes cluster", " ID: "},
	"deleteKubernetesCluster": {EventClusterDelete, "deleting Kubernetes cluster", " ID: "},
	"startVirtualMachine":     {EventVMStart, "starting Instance", ": "},
	"stopVirtualMachine":      {EventVMStop, "stopping Instance", ": "},

	"startKubernetesCluster":           {EventClusterStart, "starting Kubernetes cluster", " ID: "},
	"stopKubernetesCluster":            {EventClusterStop, "stopping Kubernetes cluster", " ID: "},
	"upgradeKubernetesCluster":         {EventClusterUpgrade, "upgrading Kubernetes cluster", " ID: "},
	"addKubernetesSupportedVersion":    {EventVersionAdd, "adding Kubernetes supported version", " ID: "},
	"updateKubernetesSupportedVersion": {EventVersionUpdate, "updating Kubernetes supported version", " ID: "},
	"deleteKubernetesSupportedVersion": {EventVersionDelete, "deleting Kubernetes supported version", " ID: "},
	"deployVirtualMachine":             {EventVMCreate, "creating Instance", ": "},
	"destroyVirtualMachine":            {EventVMDestroy, "destroying Instance", ": "},
	"addNodesToKubernetesCluster":      {EventNodesAdd, "adding nodes to Kubernetes cluster", " ID: "},
	"removeNodesFromKubernetesCluster": {EventNodesRemove, "removing nodes from Kubernetes cluster", " ID: "},
	// At once, by no job.
	"addVirtualMachinesToKubernetesCluster":      {EventNodesAdd, "linking Instances to Kubernetes cluster", " ID: "},
	"removeVirtualMachinesFromKubernetesCluster": {EventNodesRemove, "unlinking Instances from Kubernetes cluster", " ID: "},
	"cancelAsyncJob": {EventJobCancel, "cancelling job", " ID: "},
}

// Scheduled is the text for a job that was accepted; id is what it acts on,
// "" when that is nothing (spec/cks.md §1.10).
func (a Action) Scheduled(id string) string {
	if id == "" {
		return a.Started()
	}
	return a.Started() + a.On + id
}

// Started is the text for a job that begins.
func (a Action) Started() string { return strings.ToUpper(a.Doing[:1]) + a.Doing[1:] }

// Created is the text for a thing that was recorded, to be made by a job.
func (a Action) Created() string { return "Successfully created entity for " + a.Doing }

// Succeeded is the level and the text for what has ended well.
func (a Action) Succeeded() (Level, string) { return LevelInfo, "Successfully completed " + a.Doing }

// Failed is the level and the text for what was refused or has failed.
func (a Action) Failed(why string) (Level, string) {
	return LevelError, strings.TrimSuffix("Error while "+a.Doing+". "+why, ". ")
}

// worries are the levels of moves to states in which something is wrong; of all
// others it is LevelInfo.
var worries = map[State]Level{Alert: LevelWarn, Error: LevelError}

// Moved is the level and the text for a cluster that the events moved to
// another state.
func Moved(name string, from, to State, events ...Event) (Level, string) {
	level, worry := worries[to]
	if !worry {
		level = LevelInfo
	}
	causes := make([]string, len(events))
	for i, e := range events {
		causes[i] = string(e)
	}
	return level, fmt.Sprintf("Kubernetes cluster %s moved from %s to %s: %s", name, from, to, strings.Join(causes, ", "))
}

// NodeAdded is the text for a node that joined a cluster.
func NodeAdded(node, cluster string) string {
	return fmt.Sprintf("Node %s was added to Kubernetes cluster %s", node, cluster)
}

// NodeRemoved is the text for a node that is gone.
func NodeRemoved(node, cluster string) string {
	return fmt.Sprintf("Node %s was removed from Kubernetes cluster %s", node, cluster)
}

// LoggedIn is the text for a user who logged in.
func LoggedIn(from string) string { return "user has logged in from IP Address " + from }

// LoggedOut is the text for one who logged out.
const LoggedOut = "user has logged out"

// SettingChanged is the text for a setting that has another value.
func SettingChanged(name, value string) string {
	return fmt.Sprintf("Successfully completed updating configuration. Name: %s, value: %s", name, value)
}

// System is who did what nobody asked for, such as the scanner's moves.
const System = "system"

// AuditEvent is one entry of listEvents. (An Event is what moves a cluster.)
type AuditEvent struct {
	ID           string
	Seq          int64 // grows
	Type         EventType
	Level        Level
	State        Progress
	Description  string
	Username     string  // who did it; System when nobody asked for it
	Account      Account // whose it is that it was done to
	ParentID     string  // the Scheduled event of the job that did it; "" when there is none
	ResourceType string  // KubernetesCluster, VirtualMachine or ""
	ResourceID   string
	ResourceName string
	Created      time.Time
}

// EventFilter is listEvents: the newest first; empty fields do not filter.
type EventFilter struct {
	ID           string
	StartID      string // this event and those that have it as parent
	Type         string // exact, in any case; so the next and ResourceType
	Level        string
	Keyword      string // part of the description, type or level, in any case
	Since, Until time.Time
	ResourceID   string
	ResourceType string
	Account      string // account name, for admins
	Project      string // as in ClusterFilter
	Reach        Reach
	ListAll      bool
	Page         Page
}
