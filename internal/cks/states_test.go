package cks

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// A scale request is looked at in four states; in every other one it is refused
// with the state, whatever it asks for (cks.md §3.1 8, §3.6).
//
// Keeps: §3.1/8, §3.6/other-states.
func TestOtherStatesAreNotScaled(t *testing.T) {
	t.Parallel()
	looked := []State{Created, Running, Stopped, Alert}
	for _, s := range States {
		for name, req := range map[string]ScaleRequest{
			"a size": toSize(3), "a removal": without("w2"), "an offering": offering("large"), "autoscaling": autoscale(true, 1, 3), "its size": toSize(2),
		} {
			f := newFacts(inTheState(s), vm("w1", VMStopped))
			resolve(&f, req)
			_, err := CheckScale(f, req)
			text := fmt.Sprintf("Kubernetes cluster demo is in %s state and can not be scaled", s)
			if refused := err != nil && err.Error() == text; refused == slices.Contains(looked, s) {
				t.Errorf("%s in %s: %v", name, s, err)
			}
		}
	}
}

// What each state of a control or etcd VM means for a cluster in Alert: down is
// A6; the first control node that only does not run is A4; other nodes may be
// in any state that is not down (cks.md §3.6).
//
// Keeps: §3.6/A4, §3.6/A6, §3.6/A6-first, §3.6/down.
func TestControlPlaneInAlert(t *testing.T) {
	t.Parallel()
	for _, s := range VMStates {
		for id, notRunning := range map[string]string{"ctl1": textA4, "ctl2": "", "etcd1": "", "etcd3": ""} {
			want := ""
			switch s {
			case VMRunning:
			case VMStopped, VMShutdown, VMError, VMDestroyed, VMExpunging:
				want = textA6
			default:
				want = notRunning
			}
			for _, req := range []ScaleRequest{toSize(3), toSize(1), without("w1"), without("w2")} {
				f := newFacts(nodesOf(3, 3, 2, 0), inAlertWith(vm(id, s)))
				resolve(&f, req)
				text := ""
				if _, err := CheckScale(f, req); err != nil {
					text = err.Error()
				}
				if text != want {
					t.Errorf("%s is %s: %q, want %q", id, s, text, want)
				}
			}
		}
	}
}

// Which event each kind of job takes hold by (cks.md §4, "fired by").
//
// Keeps: §4/fires-scale-up, §4/fires-scale-down, §4/fires-offering, §4/fires-autoscaling, §4/fires-create, §4/fires-delete, §4/start-stop, §4/upgrade.
func TestKindsFireTheirEvents(t *testing.T) {
	t.Parallel()
	want := map[Kind]Event{}
	for event, kinds := range map[Event][]Kind{
		ScaleUpRequested:   {ScaleUp, ChangeOffering, OfferingThenScaleUp, OfferingThenRemoveNodes},
		ScaleDownRequested: {ScaleDown, RemoveNodes, ScaleDownThenOffering},
		AutoscaleRequested: {Autoscale, AutoscaleThenOffering},
		StartRequested:     {CreateCluster, StartCluster},
		StopRequested:      {StopCluster},
		UpgradeRequested:   {UpgradeCluster},
		DestroyRequested:   {DeleteCluster},
		AddNodeRequested:   {AddNodes},
		RemoveNodeRequest:  {RemoveExternal},
	} {
		for _, k := range kinds {
			want[k] = event
		}
	}
	if !maps.Equal(Requests, want) {
		t.Errorf("%v\nwant\n%v", Requests, want)
	}
}

// The pairs that cks.md §4 names as invalid.
//
// Keeps: §4/no-faults, §4/no-scale-created, §4/no-scale-down-stopped, §4/no-create-failed, §4/no-autoscale-alert.
func TestNotablyInvalidPairs(t *testing.T) {
	t.Parallel()
	for _, pair := range []struct {
		from State
		on   []Event
	}{
		{Stopped, []Event{FaultsDetected, ScaleDownRequested, AutoscaleRequested}},
		{Starting, []Event{FaultsDetected}},
		{Created, []Event{ScaleUpRequested, ScaleDownRequested, AutoscaleRequested}},
		{Scaling, []Event{CreateFailed}},
		{Alert, []Event{AutoscaleRequested}},
	} {
		for _, e := range pair.on {
			if to, err := pair.from.On(e); CodeOf(err) != Conflict || to != "" {
				t.Errorf("%s takes %s and becomes %q: %v", pair.from, e, to, err)
			}
		}
	}
}

// The states of a VM are CloudStack's, under its names (cks.md §8.7).
//
// Keeps: §8.7/states.
func TestVMStatesAreCloudStacks(t *testing.T) {
	t.Parallel()
	want := []VMState{"Starting", "Running", "Stopping", "Stopped", "Destroyed", "Expunging", "Migrating", "Error", "Unknown", "Shutdown", "Restoring"}
	if !slices.Equal(slices.Sorted(slices.Values(VMStates)), slices.Sorted(slices.Values(want))) {
		t.Errorf("%v, want %v", VMStates, want)
	}
}

// Kubernetes knows a VM's node by the VM's name in lower case (cks.md §8.1).
//
// Keeps: §8.1/node-name.
func TestNodeNameIsLowerCase(t *testing.T) {
	t.Parallel()
	if got := (VM{Name: "Prod-A-Node-197EB5E9290"}).NodeName(); got != "prod-a-node-197eb5e9290" {
		t.Errorf("%q", got)
	}
}
