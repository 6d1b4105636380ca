package cks

import (
	"fmt"
	"slices"
	"testing"
)

// What starting and stopping comes to in each state: exactly where the state
// machine lets the job's event go, but for Starting, whose job would be robbed
// of the cluster; and nothing where it is so already (cks.md §4).
//
// Keeps: §4/start-stop-already, §4/start-refused, §4/stop-refused, §4/start-created.
func TestStartAndStopFollowTheStateMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check   func(Cluster) (Kind, error)
		request Event
		already State
		done    string
		kinds   map[State]Kind // as told by the states from which the event leads on
	}{
		{CheckStart, StartRequested, Running, "started", map[State]Kind{Created: CreateCluster, Stopped: StartCluster}},
		{CheckStop, StopRequested, Stopped, "stopped", map[State]Kind{Running: StopCluster, Alert: StopCluster}},
	} {
		for _, s := range States {
			kind, err := c.check(Cluster{ID: "c1", Name: "demo", State: s})
			_, legal := s.On(c.request)
			want, ok := c.kinds[s]
			if ok != (legal == nil && !s.Busy()) {
				t.Errorf("%s from %s: %v", c.request, s, legal)
			}
			if s == c.already {
				want, ok = Nothing, true
			}
			refusal := fmt.Sprintf("Kubernetes cluster : demo is in %s state and can not be %s", s, c.done)
			switch {
			case kind != want:
				t.Errorf("%s in %s is %q, want %q", c.request, s, kind, want)
			case !ok && (CodeOf(err) != Conflict || err.Error() != refusal):
				t.Errorf("%s in %s: %v", c.request, s, err)
			case ok && err != nil:
				t.Errorf("%s in %s: %v", c.request, s, err)
			}
			if holds := Requests[kind]; ok && kind != Nothing && holds != c.request {
				t.Errorf("%s takes hold by %s", kind, holds)
			}
		}
	}
}

// A cluster that is not there, and one whose VMs are not ours, can be neither
// started nor stopped nor upgraded.
//
// Keeps: §4/start-refused, §4/upgrade-refused.
func TestOnlyManagedClustersAreStartedStoppedAndUpgraded(t *testing.T) {
	t.Parallel()
	for what, check := range map[string]func(Cluster) error{
		"Start":   func(c Cluster) error { _, err := CheckStart(c); return err },
		"Stop":    func(c Cluster) error { _, err := CheckStop(c); return err },
		"Upgrade": func(c Cluster) error { _, err := CheckUpgrade(UpgradeFacts{View: ClusterView{Cluster: c}}); return err },
	} {
		for text, c := range map[string]Cluster{
			"Invalid Kubernetes cluster ID":                                                        {},
			"Kubernetes cluster : demo is already deleted":                                         {ID: "c1", Name: "demo", State: Destroyed, Removed: true},
			what + " kubernetes cluster is not supported for an externally managed cluster (demo)": {ID: "c1", Name: "demo", State: Running, ExternalManaged: true},
		} {
			if err := check(c); CodeOf(err) != Invalid || err.Error() != text {
				t.Errorf("%s: %v, want %q", what, err, text)
			}
		}
	}
}

// A cluster that a job holds can be neither started nor stopped, upgraded,
// deleted nor scaled: the job is the only one that may move it.
func TestHeldClustersAreLeftToTheirJob(t *testing.T) {
	t.Parallel()
	for _, s := range States {
		if !s.Busy() {
			continue
		}
		f := newFacts(inTheState(s))
		c := f.View.Cluster
		_, start := CheckStart(c)
		_, stop := CheckStop(c)
		_, upgrade := CheckUpgrade(UpgradeFacts{View: f.View, To: f.View.Version})
		_, scale := CheckScale(f, toSize(3))
		for i, err := range []error{start, stop, upgrade, scale, CheckDelete(c)} {
			if err == nil {
				t.Errorf("request %d is accepted in %s", i, s)
			}
		}
	}
}

// What an upgrade acts on, and in which order (cks.md §8.2).
//
// Keeps: §8.2/manual-upgrade, §8.2/upgrade-external, #14611/upgrade.
func TestUpgradeOrder(t *testing.T) {
	t.Parallel()
	f := newFacts(nodesOf(3, 2, 3, 2), onVM("ext2", func(v *VM) { v.Manual = true }), onVM("w3", func(v *VM) { v.Phase = Doomed }))
	order := func(edits ...edit) (ids []string) {
		with(edits...)(&f)
		before := slices.Clone(f.View.VMs)
		slices.Reverse(f.View.VMs)
		for _, v := range UpgradeOrder(f.View.VMs, "1.34.1") {
			ids = append(ids, v.ID)
		}
		f.View.VMs = before
		return ids
	}
	if got, want := order(), []string{"ctl1", "ctl2", "ctl3", "w1", "w2", "ext1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	at := func(version string) func(*VM) { return func(v *VM) { v.NodeVersion = version } }
	if got, want := order(onVM("ctl1", at("v1.34.1")), onVM("ctl2", at("1.34.1")), onVM("ctl3", at("v1.34.10"))), []string{"ctl3", "w1", "w2", "ext1"}; !slices.Equal(got, want) {
		t.Errorf("resumed: %q, want %q", got, want)
	}
}

// A node is back when it is Ready and has been heard of; its name has no case.
//
// Keeps: §4/start-back.
func TestNodeBackByName(t *testing.T) {
	t.Parallel()
	nodes := []Node{{Name: "a", Ready: NodeReady}, {Name: "b", Ready: NodeReady, Silent: true}, {Name: "c", Ready: NodeNotReady}, {Name: "d", Ready: NodeUnknown}}
	for name, want := range map[string]bool{"a": true, "A": true, "b": false, "c": false, "d": false, "e": false} {
		if NodeBackByName(nodes, name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}
