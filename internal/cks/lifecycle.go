package cks

import "slices"

// State is where a cluster stands in its lifecycle (spec/cks.md §4).
type State string

// The states of a cluster, under CloudStack's names.
const (
	Created               State = "Created"
	Starting              State = "Starting"
	Running               State = "Running"
	Stopping              State = "Stopping"
	Stopped               State = "Stopped"
	Scaling               State = "Scaling"
	ScalingStoppedCluster State = "ScalingStoppedCluster"
	Upgrading             State = "Upgrading"
	Importing             State = "Importing"
	RemovingNodes         State = "RemovingNodes"
	Alert                 State = "Alert"
	Recovering            State = "Recovering"
	Destroyed             State = "Destroyed"
	Destroying            State = "Destroying"
	Error                 State = "Error"
)

// States lists every State once; the schema's CHECK must agree.
var States = []State{
	Created, Starting, Running, Stopping, Stopped, Scaling, ScalingStoppedCluster,
	Upgrading, Importing, RemovingNodes, Alert, Recovering, Destroyed, Destroying, Error,
}

// Event is something that moves a cluster from one State to another.
type Event string

// The events of a cluster's lifecycle, under CloudStack's names.
const (
	StartRequested     Event = "StartRequested"
	StopRequested      Event = "StopRequested"
	DestroyRequested   Event = "DestroyRequested"
	RecoveryRequested  Event = "RecoveryRequested"
	AutoscaleRequested Event = "AutoscaleRequested"
	ScaleUpRequested   Event = "ScaleUpRequested"
	ScaleDownRequested Event = "ScaleDownRequested"
	AddNodeRequested   Event = "AddNodeRequested"
	RemoveNodeRequest  Event = "RemoveNodeRequested"
	UpgradeRequested   Event = "UpgradeRequested"
	OperationSucceeded Event = "OperationSucceeded"
	OperationFailed    Event = "OperationFailed"
	CreateFailed       Event = "CreateFailed"
	FaultsDetected     Event = "FaultsDetected"
)

// Events lists every Event once.
var Events = []Event{
	StartRequested, StopRequested, DestroyRequested, RecoveryRequested, AutoscaleRequested,
	ScaleUpRequested, ScaleDownRequested, AddNodeRequested, RemoveNodeRequest, UpgradeRequested,
	OperationSucceeded, OperationFailed, CreateFailed, FaultsDetected,
}

// Transition is one row of the state machine.
type Transition struct {
	From State
	On   Event
	To   State
}

// Transitions is the whole state machine. A pair that is absent is refused.
// It is spec/cks.md §4, plus the last row, which is ours: a delete that cannot
// be carried out must not stay in Destroying for ever, and from Error it can
// be asked for again.
var Transitions = []Transition{
	{Created, StartRequested, Starting},
	{Starting, OperationSucceeded, Running},
	{Starting, OperationFailed, Alert},
	{Starting, CreateFailed, Error},
	{Starting, StopRequested, Stopping},
	{Running, StopRequested, Stopping},
	{Alert, StopRequested, Stopping},
	{Stopping, OperationSucceeded, Stopped},
	{Stopping, OperationFailed, Alert},
	{Stopped, StartRequested, Starting},
	{Stopped, OperationSucceeded, Stopped},
	{Running, OperationSucceeded, Running},
	{Running, FaultsDetected, Alert},
	{Running, AutoscaleRequested, Scaling},
	{Running, ScaleUpRequested, Scaling},
	{Running, ScaleDownRequested, Scaling},
	{Stopped, ScaleUpRequested, ScalingStoppedCluster},
	{Scaling, OperationSucceeded, Running},
	{Scaling, OperationFailed, Alert},
	{ScalingStoppedCluster, OperationSucceeded, Stopped},
	{ScalingStoppedCluster, OperationFailed, Alert},
	{Running, UpgradeRequested, Upgrading},
	{Upgrading, OperationSucceeded, Running},
	{Upgrading, OperationFailed, Alert},
	{Running, AddNodeRequested, Importing},
	{Alert, AddNodeRequested, Importing},
	{Importing, OperationSucceeded, Running},
	{Importing, OperationFailed, Running},
	{Alert, OperationSucceeded, Running},
	{Running, RemoveNodeRequest, RemovingNodes},
	{Alert, RemoveNodeRequest, RemovingNodes},
	{RemovingNodes, OperationSucceeded, Running},
	{RemovingNodes, OperationFailed, Running},
	{Alert, RecoveryRequested, Recovering},
	{Recovering, OperationSucceeded, Running},
	{Recovering, OperationFailed, Alert},
	{Running, DestroyRequested, Destroying},
	{Stopped, DestroyRequested, Destroying},
	{Alert, DestroyRequested, Destroying},
	{Error, DestroyRequested, Destroying},
	{Destroying, OperationSucceeded, Destroyed},
	{Alert, ScaleUpRequested, Scaling},
	{Alert, ScaleDownRequested, Scaling},
	{Destroying, OperationFailed, Error},
}

// On returns the state that the events lead to from s, one after the other. It
// fails with Conflict when the state machine has no such move.
func (s State) On(events ...Event) (State, error) {
	at := s
	for _, e := range events {
		i := slices.IndexFunc(Transitions, func(t Transition) bool { return t.From == at && t.On == e })
		if i < 0 {
			return "", Errorf(Conflict, "cluster is in %s state and cannot take %s", at, e)
		}
		at = Transitions[i].To
	}
	return at, nil
}

// busy are the states in which a job holds the cluster, and no others: the
// schema states the same with a CHECK.
var busy = []State{
	Starting, Stopping, Scaling, ScalingStoppedCluster, Upgrading, Importing, RemovingNodes, Recovering, Destroying,
}

// Busy reports whether a cluster in this state is held by a live job.
func (s State) Busy() bool { return slices.Contains(busy, s) }
