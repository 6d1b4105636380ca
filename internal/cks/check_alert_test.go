package cks

import "testing"

const (
	textA1 = "Kubernetes cluster demo is in Alert state; only its size can be changed or nodes removed. " +
		"Recover the cluster before changing its service offering or autoscaling"
	textA2 = "Kubernetes cluster demo is in Alert state; only its size can be changed or nodes removed, and the request does neither"
	textA3 = "Kubernetes cluster demo is in Alert state; only worker nodes can be removed from it"
	textA4 = "Kubernetes cluster demo is in Alert state and its first control node VM is not running; start it before scaling the cluster"
	textA6 = "Kubernetes cluster demo is in Alert state and a control or etcd node VM is down; recover the control plane before scaling the cluster"
	textA7 = "Kubernetes cluster demo is in Alert state but none of its worker node VMs is down; scaling will not recover it"
)

func textA5(vms, nodes string) string {
	return "Kubernetes cluster demo is in Alert state and has " + vms + " VMs for " + nodes +
		" nodes; remove or recover them before scaling the cluster"
}

// leftBehind is a VM that a failed scale-up could not destroy yet.
func leftBehind(f *ScaleFacts) {
	f.View.VMs = append(f.View.VMs, VM{ID: "left", Seq: 99, ClusterID: "c1", Name: "demo-left", Role: Worker,
		OfferingID: "medium", State: VMStopped, Phase: Doomed})
}

var alertRefusals = []refusal{
	{"A1", Conflict, textA1, inAlertWith(), both(offering("large"), toSize(3))},
	{"A1", Conflict, textA1, inAlertWith(), offering("large")},
	{"A1", Conflict, textA1, inAlertWith(), offering("99")},
	{"A1", Conflict, textA1, inAlertWith(), nodeOfferings("control", "large")},
	{"A1", Conflict, textA1, inAlertWith(), both(nodeOfferings("worker", "large"), toSize(3))},
	{"A1", Conflict, textA1, inAlertWith(), autoscale(true, 1, 3)},
	{"A1", Conflict, textA1, inAlertWith(autoscales(1, 3)), both(autoscale(false), toSize(3))},
	{"A1", Conflict, textA1, inAlertWith(autoscales(1, 3)), autoscale(true, 1, 4)},
	{"A1", Conflict, textA1, inAlertWith(autoscales(1, 3)), autoscale(true, 2, 3)},
	{"A1", Conflict, textA1, inAlertWith(autoscales(1, 3)), both(autoscale(true, 2), toSize(3))},
	// The cluster's own offering, too, when all of its nodes use it already.
	{"A1", Conflict, textA1, inAlertWith(cluster(func(c *Cluster) {
		c.Offerings = map[Role]string{Control: "large", Worker: "large"}
	})), both(offering("large"), toSize(3))},

	{"A2", Conflict, textA2, inAlertWith(), toSize(2)},
	{"A2", Conflict, textA2, inAlertWith(), offering("medium")},
	{"A2", Conflict, textA2, inAlertWith(), nodeOfferings("worker", "medium", "default", "large")},
	{"A2", Conflict, textA2, inAlertWith(), autoscale(false)},
	{"A2", Conflict, textA2, inAlertWith(), autoscale(false, 0, 0)},
	{"A2", Conflict, textA2, inAlertWith(autoscales(1, 3)), autoscale(true, 1, 3)},

	{"A3", Conflict, textA3, inAlertWith(), without("ctl1")},
	{"A3", Conflict, textA3, inAlertWith(), without("w1", "ctl2")},
	{"A3", Conflict, textA3, inAlertWith(nodesOf(1, 3, 2, 0), vm("w1", VMStopped)), without("etcd1")},
	{"A3", Conflict, textA3, inAlertWith(nodesOf(1, 0, 2, 1), vm("w1", VMStopped)), without("ext1")},

	{"A6", Conflict, textA6, inAlertWith(vm("ctl2", VMStopped)), toSize(3)},
	{"A6", Conflict, textA6, inAlertWith(vm("ctl1", VMStopped)), toSize(3)}, // the first one: before A4
	{"A6", Conflict, textA6, inAlertWith(vm("ctl3", VMExpunging)), without("w1")},
	{"A6", Conflict, textA6, inAlertWith(nodesOf(1, 3, 2, 0), vm("w1", VMStopped), vm("etcd2", VMShutdown)), toSize(1)},

	{"A4", Conflict, textA4, inAlertWith(vm("ctl1", VMUnknown)), toSize(3)},
	{"A4", Conflict, textA4, inAlertWith(vm("ctl1", VMStarting)), without("w1")},
	{"A4", Conflict, textA4, inAlertWith(nodesOf(0, 0, 2, 0), vm("w1", VMStopped)), toSize(3)},

	{"A5", Conflict, textA5("6", "5"), inAlertWith(leftBehind), toSize(3)},
	{"A5", Conflict, textA5("5", "6"), inAlertWith(cluster(func(c *Cluster) { c.Size++ })), toSize(4)},
	{"A5", Conflict, textA5("5", "6"), inAlertWith(cluster(func(c *Cluster) { c.EtcdNodes++ })), without("w1")},

	{"A7", Conflict, textA7, inTheState(Alert), toSize(3)},
	{"A7", Conflict, textA7, with(inTheState(Alert), vm("w1", VMUnknown)), without("w1")},
	{"A7", Conflict, textA7, with(inTheState(Alert), vm("w1", VMMigrating)), toSize(1)},
	{"A7", Conflict, textA7, with(inTheState(Alert), vm("w1", VMStarting), vm("w2", VMStopping)), toSize(1)},
	{"A7", Conflict, textA7, with(inTheState(Alert), vm("w1", VMRestoring)), toSize(1)},
	{"A7", Conflict, textA7, with(inTheState(Alert), nodesOf(1, 0, 2, 1), vm("ext1", VMStopped)), toSize(4)},
}

// A cluster in Alert with a worker down changes its size and loses nodes
// (spec/seed.txt; cks.md §11 2, 4, 5, 7).
//
// Keeps: §3.6/A1-same, §3.6/accepted, §3.6/no-offerings.
// Keeps: seed/alert-scales, seed/accept-size, seed/accept-nodeids, seed/accept-current, seed/size-only, seed/autoscaler-in-alert.
func TestScaleInAlert(t *testing.T) {
	t.Parallel()
	ownOfferings := cluster(func(c *Cluster) {
		c.Offerings = map[Role]string{Control: "large", Worker: "small"}
	})
	for _, c := range []struct {
		name  string
		facts edit
		req   ScaleRequest
		want  Change
	}{
		{"up", inAlertWith(), toSize(3), Change{ScaleUp, Args{Size: 3}}},
		{"down", inAlertWith(), toSize(1), Change{ScaleDown, Args{Size: 1}}},
		{"the down worker", inAlertWith(), without("w1"), Change{RemoveNodes, Args{VMIDs: []string{"w1"}}}},
		{"another worker", inAlertWith(), without("w2"), Change{RemoveNodes, Args{VMIDs: []string{"w2"}}}},
		{"with the current offering", inAlertWith(), both(toSize(3), offering("medium")), Change{ScaleUp, Args{Size: 3}}},
		{"with the current offering's number", inAlertWith(), both(toSize(3), offering("4")), Change{ScaleUp, Args{Size: 3}}},
		{"with current node offerings", inAlertWith(ownOfferings),
			both(toSize(3), offering("medium"), nodeOfferings("worker", "SMALL", "control", "large")), Change{ScaleUp, Args{Size: 3}}},
		{"with the current default and other node offerings", inAlertWith(ownOfferings), both(toSize(3), offering("medium")),
			Change{ScaleUp, Args{Size: 3}}},
		{"with an etcd offering and no etcd nodes", inAlertWith(), both(toSize(3), nodeOfferings("etcd", "large")), Change{ScaleUp, Args{Size: 3}}},
		{"with autoscaling off", inAlertWith(), both(toSize(3), autoscale(false, 0, 0)), Change{ScaleUp, Args{Size: 3}}},
		{"of an autoscaling cluster", inAlertWith(autoscales(1, 5)), without("w1"), Change{RemoveNodes, Args{VMIDs: []string{"w1"}}}},
		{"a VM that differs from the record", inAlertWith(onVM("w2", func(v *VM) { v.OfferingID = "large" })),
			both(toSize(3), nodeOfferings("worker", "medium")), Change{ScaleUp, Args{Size: 3}}},
		{"another control node not running nor down", inAlertWith(vm("ctl2", VMUnknown)), toSize(3), Change{ScaleUp, Args{Size: 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFacts(c.facts)
			resolve(&f, c.req)
			checkChange(t, f, c.req, c.want)
		})
	}
}

// Every state that counts as down lets a cluster in Alert be scaled, and no
// other one (spec/seed.txt "Down"; A7).
//
// Keeps: §3.6/A7, §3.6/down, §8.7/states.
// Keeps: seed/down, seed/refuse-disconnected, A40.
func TestDownWorkerAllowsScalingInAlert(t *testing.T) {
	t.Parallel()
	down := map[VMState]bool{VMStopped: true, VMShutdown: true, VMError: true, VMDestroyed: true, VMExpunging: true}
	for _, s := range VMStates {
		_, err := CheckScale(newFacts(inTheState(Alert), vm("w2", s)), toSize(3))
		if down[s] != (err == nil) || s.Down() != down[s] {
			t.Errorf("%s: %v, down %t", s, err, s.Down())
		}
	}
}

// The first control node is the oldest one, wherever it stands in the list.
//
// Keeps: §3.6/A4-first, §8.3/first-control.
// Keeps: seed/refuse-first-control.
func TestFirstControlNode(t *testing.T) {
	t.Parallel()
	f := newFacts(inAlertWith(onVM("ctl3", func(v *VM) { v.Seq, v.State = 0, VMUnknown })))
	_, err := CheckScale(f, toSize(3))
	checkText(t, err, Conflict, textA4)
}

// In Alert all the other checks apply as well (design.md §4.1).
//
// Keeps: §3.6/others.
func TestOtherChecksInAlert(t *testing.T) {
	t.Parallel()
	for _, r := range []refusal{
		{"", Invalid, "Invalid node ids", inAlertWith(), without("w1", "x1")},
		{"", Invalid, "Invalid node ids", inAlertWith(), without()},
		{"", Invalid, aloneText, inAlertWith(), both(without("w1"), toSize(1))},
		{"", Invalid, "Can not remove all nodes from a cluster", inAlertWith(), without("w1", "w2")},
		{"", Invalid, "Kubernetes cluster : demo cannot be scaled for size, 0", inAlertWith(), toSize(0)},
		{"", Invalid, "Maximum cluster size can not exceed 10. Please contact your administrator", inAlertWith(), toSize(8)},
		{"", Invalid, "Autoscaling can not be passed along with nodeids or clustersize",
			inAlertWith(autoscales(1, 3)), both(autoscale(true, 1, 3), toSize(3))},
		{"", Invalid, "Invalid template associated with Kubernetes cluster : demo",
			inAlertWith(func(f *ScaleFacts) { f.View.Template = nil }), toSize(3)},
	} {
		s := r.scaling()
		_, err := CheckScale(s.ScaleFacts, r.req)
		checkText(t, err, r.code, r.text)
	}
}
