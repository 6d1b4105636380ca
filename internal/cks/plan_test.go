package cks

import (
	"reflect"
	"testing"
)

func checkChange(t *testing.T, f ScaleFacts, req ScaleRequest, want Change) {
	t.Helper()
	got, err := CheckScale(f, req)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("means\n  %+v\nwant\n  %+v", got, want)
	}
}

// What an accepted request means (cks.md §3.3-3.5, §5.1.6, §7 D3, E8, E9; A31,
// A33, A34, A46; design.md §4.2-4.5).
//
// Keeps: §3.1/1-duplicate, §3.1/9-on, §3.1/9b-numbers, §3.1/10a-others, §3.1/12-same, §3.1/12c-etcd, §3.1/12d-growing.
// Keeps: §3.2/size, §3.2/nodeids, §3.3/off-with-size, §3.3/on-as-it-is, §3.3/bounds, §3.3/size-created, §3.3/default-alone.
// Keeps: §3.3/autoscaling-dropped, §3.3/nodeids-with-offering, §3.4/success, §3.4/stopped, §3.5/size-only, §3.5/default.
// Keeps: §3.5/types, §3.5/default-entry.
// Keeps: §3.1/13-growing, §8.5/external.
// Keeps: §1.10/nodeofferings-override, §1.10/size, §1.10/nodeids, §1.10/autoscalingenabled, §1.10/bounds.
// Keeps: §1.10/node-types, §1.10/default-type.
// Keeps: §5.1/6-existing, §5.1/6-wanted, §5.1/6-autoscaling, §5.1/6-combined, §5.1/6-single, §5.2/b, §5.6/changed, D3, E9.
// Keeps: seed/running-as-before, seed/created-as-before, seed/stopped-as-before, seed/running-offering, A33, A34, A46.
func TestScaleChange(t *testing.T) {
	t.Parallel()
	withEtcd := nodesOf(1, 3, 2, 0)
	own := func(c *Cluster) { c.Offerings = map[Role]string{Control: "large", Worker: "small"} }
	perRole := with(cluster(func(c *Cluster) { own(c); c.DefaultOffering = "" }), nodesOf(3, 0, 2, 0))
	ownRoles := with(cluster(own), nodesOf(3, 0, 2, 0))
	on := func(lo, hi int) *Autoscaling { return &Autoscaling{Enabled: true, Min: lo, Max: hi} }
	off := &Autoscaling{}
	all := func(id string, roles ...Role) map[Role]string {
		m := map[Role]string{}
		for _, r := range roles {
			m[r] = id
		}
		return m
	}
	for _, c := range []struct {
		name  string
		facts edit
		req   ScaleRequest
		want  Change
	}{
		{"same size", nothing, toSize(2), Change{Kind: Nothing}},
		{"same size, stopped", inTheState(Stopped), toSize(2), Change{Kind: Nothing}},
		{"same size, created", inTheState(Created), toSize(2), Change{Kind: Nothing}},
		{"same size and offering", nothing, both(toSize(2), offering("medium")), Change{Kind: Nothing}},
		{"up", nothing, toSize(3), Change{ScaleUp, Args{Size: 3}}},
		{"up, the types on other offerings than the default", ownRoles, toSize(3), Change{ScaleUp, Args{Size: 3}}}, // D3
		{"up to the maximum", nothing, toSize(7), Change{ScaleUp, Args{Size: 7}}},                                  // A15
		{"etcd nodes do not count towards it", withEtcd, toSize(9), Change{ScaleUp, Args{Size: 9}}},
		{"down", nothing, toSize(1), Change{ScaleDown, Args{Size: 1}}},
		{"down needs no template", func(f *ScaleFacts) { f.View.Template = nil }, toSize(1), Change{ScaleDown, Args{Size: 1}}},
		{"down while the template is not ready", func(f *ScaleFacts) { f.View.Template.Ready = false }, toSize(1), Change{ScaleDown, Args{Size: 1}}},
		{"down without any offering", cluster(func(c *Cluster) { c.DefaultOffering = "" }), toSize(1), Change{ScaleDown, Args{Size: 1}}},
		{"bounds with autoscaling off as before", nothing, both(toSize(3), ScaleRequest{Autoscaling: ptr(false), MinSize: ptr(int64(1)), MaxSize: ptr(int64(5))}),
			Change{ScaleUp, Args{Size: 3}}},
		{"down within limits already exceeded", func(f *ScaleFacts) { f.Limits.VMs, f.Used.VMs = ptr(1), 5 }, toSize(1), Change{ScaleDown, Args{Size: 1}}},
		{"up just within limits", func(f *ScaleFacts) { f.Limits.VMs, f.Used.VMs = ptr(6), 5 }, toSize(3), Change{ScaleUp, Args{Size: 3}}},
		{"up with an external node", nodesOf(1, 0, 1, 1), toSize(4), Change{ScaleUp, Args{Size: 4}}},
		{"down to the external nodes", nodesOf(1, 0, 2, 1), toSize(1), Change{ScaleDown, Args{Size: 1}}},
		{"created", inTheState(Created), toSize(4), Change{RecordSize, Args{Size: 4}}},
		{"created, with an offering", inTheState(Created), both(toSize(4), offering("large")),
			Change{RecordSize, Args{Size: 4, DefaultOffering: "large", Offerings: all("large", Control, Worker)}}},
		{"created, an offering", inTheState(Created), nodeOfferings("worker", "large"),
			Change{RecordSize, Args{Size: 2, Offerings: all("large", Worker)}}},
		{"created, the default alone", with(inTheState(Created), cluster(func(c *Cluster) { c.Offerings = all("large", Control, Worker) }), nodesOf(3, 0, 2, 0)),
			offering("large"), Change{RecordSize, Args{Size: 2, DefaultOffering: "large"}}},
		{"autoscaling off with nodeids and a control offering", autoscales(1, 3),
			both(without("w2"), nodeOfferings("control", "medium"), ScaleRequest{Autoscaling: ptr(false)}), Change{Autoscale, Args{Autoscaling: off}}},
		{"per-role offerings only", perRole, toSize(3), Change{ScaleUp, Args{Size: 3}}}, // A33

		{"up from no workers", nodesOf(1, 0, 0, 0), toSize(1), Change{ScaleUp, Args{Size: 1}}},
		{"up without control nodes", nodesOf(0, 0, 2, 0), toSize(3), Change{ScaleUp, Args{Size: 3}}},

		{"nodeids", nothing, without(" W2 "), Change{RemoveNodes, Args{VMIDs: []string{"w2"}}}},
		{"nodeids as sent", nodesOf(1, 0, 4, 0), without("w3", "w1"), Change{RemoveNodes, Args{VMIDs: []string{"w3", "w1"}}}},
		{"nodeids: all own workers beside an external one", nodesOf(1, 0, 2, 1), without("w1", "w2"),
			Change{RemoveNodes, Args{VMIDs: []string{"w1", "w2"}}}},
		{"nodeids with a control offering", nothing, both(without("w2"), nodeOfferings("control", "large")),
			Change{OfferingThenRemoveNodes, Args{VMIDs: []string{"w2"}, Offerings: all("large", Control)}}},
		{"nodeids with an etcd offering", withEtcd, both(without("w2"), nodeOfferings("etcd", "large")),
			Change{OfferingThenRemoveNodes, Args{VMIDs: []string{"w2"}, Offerings: all("large", Etcd)}}},
		{"nodeids with the same control offering", nothing, both(without("w2"), nodeOfferings("control", "medium")),
			Change{RemoveNodes, Args{VMIDs: []string{"w2"}}}},
		{"nodeids of an autoscaling cluster", autoscales(1, 3), without("w2"), Change{RemoveNodes, Args{VMIDs: []string{"w2"}}}},
		{"nodeids of an autoscaling cluster at its minsize", autoscales(2, 3), without("w2"), Change{RemoveNodes, Args{VMIDs: []string{"w2"}}}},
		{"size of an autoscaling cluster", autoscales(1, 3), toSize(3), Change{ScaleUp, Args{Size: 3}}},
		{"size above an autoscaling cluster's maxsize", autoscales(1, 3), toSize(5), Change{ScaleUp, Args{Size: 5}}},
		{"size below an autoscaling cluster's minsize", autoscales(2, 3), toSize(1), Change{ScaleDown, Args{Size: 1}}},

		{"size and offering as they are", nothing, both(toSize(2), offering("medium")), Change{Kind: Nothing}},
		{"size and offering as they are, stopped", inTheState(Stopped), both(toSize(2), offering("medium")), Change{Kind: Nothing}},
		{"offering for all", nothing, offering("large"),
			Change{ChangeOffering, Args{DefaultOffering: "large", Offerings: all("large", Control, Worker)}}},
		{"offering for all, with etcd", withEtcd, offering("5"),
			Change{ChangeOffering, Args{DefaultOffering: "large", Offerings: all("large", Control, Worker, Etcd)}}},
		{"offering for all, stopped", inTheState(Stopped), offering("LARGE"),
			Change{ChangeOffering, Args{DefaultOffering: "large", Offerings: all("large", Control, Worker)}}},
		{"offering for all that control nodes have already", ownRoles, offering("large"),
			Change{ChangeOffering, Args{DefaultOffering: "large", Offerings: all("large", Worker)}}},
		{"offering that all types have already", with(cluster(func(c *Cluster) { c.Offerings = all("large", Control, Worker) }), nodesOf(3, 0, 2, 0)),
			offering("large"), Change{ChangeOffering, Args{DefaultOffering: "large"}}}, // E9
		{"the default, other offerings in use", ownRoles, offering("medium"), Change{Kind: Nothing}}, // D3
		{"the default, other VMs", onVM("w1", func(v *VM) { v.OfferingID = "large" }), offering("medium"), Change{Kind: Nothing}},
		{"offering of a type", nothing, nodeOfferings("Worker", "large"), Change{ChangeOffering, Args{Offerings: all("large", Worker)}}},
		{"offerings of types in any case", withEtcd, nodeOfferings("CONTROL", "large", "eTcD", "large", "woRKer", "large", "Default", "small"),
			Change{ChangeOffering, Args{Offerings: all("large", Control, Worker, Etcd)}}},
		{"offering that a type has", ownRoles, nodeOfferings("worker", "small"), Change{Kind: Nothing}},
		{"the later entry wins", nothing, nodeOfferings("worker", "large", "worker", "medium"), Change{Kind: Nothing}},
		{"a change that stopped half-way", onVM("w1", func(v *VM) { v.OfferingID = "small" }), nodeOfferings("worker", "medium"),
			Change{ChangeOffering, Args{Offerings: all("medium", Worker)}}},
		{"larger control and external nodes do not stand in the way", with(ownRoles, nodesOf(3, 0, 2, 1),
			onVM("ext1", func(v *VM) { v.OfferingID = "large" })), nodeOfferings("worker", "medium"),
			Change{ChangeOffering, Args{Offerings: all("medium", Worker)}}},
		{"an external VM's own offering", with(nodesOf(3, 0, 2, 1), onVM("ext1", func(v *VM) { v.OfferingID = "large" })),
			nodeOfferings("worker", "medium"), Change{Kind: Nothing}},
		{"a doomed VM's offering", with(leftBehind, onVM("left", func(v *VM) { v.OfferingID = "large" })),
			nodeOfferings("worker", "medium"), Change{Kind: Nothing}},
		{"etcd offering without etcd nodes", nothing, nodeOfferings("etcd", "large"), Change{Kind: Nothing}},
		{"default entry", nothing, nodeOfferings("default", "large"), Change{Kind: Nothing}},
		{"default entry beside an offering", nothing, both(nodeOfferings("default", "large"), offering("large")), Change{Kind: Nothing}},
		{"offering beside nodeofferings", nothing, both(nodeOfferings("control", "large"), offering("large")),
			Change{ChangeOffering, Args{Offerings: all("large", Control)}}},
		{"up with an offering", nothing, both(toSize(3), offering("large")),
			Change{OfferingThenScaleUp, Args{Size: 3, DefaultOffering: "large", Offerings: all("large", Control, Worker)}}},
		{"down with an offering", nothing, both(toSize(1), nodeOfferings("worker", "large")),
			Change{ScaleDownThenOffering, Args{Size: 1, Offerings: all("large", Worker)}}},
		{"size with the same offering", nothing, both(toSize(3), offering("medium"), nodeOfferings("worker", "medium")),
			Change{ScaleUp, Args{Size: 3}}},

		{"autoscaling on", nothing, autoscale(true, 1, 3), Change{Autoscale, Args{Autoscaling: on(1, 3)}}},
		{"autoscaling up to the maximum", nothing, autoscale(true, 1, 7), Change{Autoscale, Args{Autoscaling: on(1, 7)}}},
		{"autoscaling as it is", autoscales(1, 3), autoscale(true, 1, 3), Change{Kind: Nothing}},
		{"other bounds", autoscales(1, 3), autoscale(true, 1, 4), Change{Autoscale, Args{Autoscaling: on(1, 4)}}},
		{"autoscaling off", autoscales(1, 3), autoscale(false), Change{Autoscale, Args{Autoscaling: off}}},
		{"autoscaling off as it is", nothing, autoscale(false, 0, 0), Change{Kind: Nothing}},
		{"autoscaling off as it is, stopped", inTheState(Stopped), autoscale(false), Change{Kind: Nothing}},
		{"off, and size is dropped", autoscales(1, 3), both(autoscale(false), toSize(3)), Change{Autoscale, Args{Autoscaling: off}}},
		{"off, and nodeids are dropped", autoscales(1, 3), both(autoscale(false), without("w1")), Change{Autoscale, Args{Autoscaling: off}}},
		{"off already, so size is done", nothing, both(autoscale(false), toSize(3)), Change{ScaleUp, Args{Size: 3}}},
		{"off already, so nodeids are done", nothing, both(autoscale(false), without("w1")), Change{RemoveNodes, Args{VMIDs: []string{"w1"}}}},
		{"bounds alone are ignored", nothing, both(ScaleRequest{MinSize: ptr(int64(0))}, toSize(3)), Change{ScaleUp, Args{Size: 3}}},
		{"autoscaling with an offering", nothing, both(autoscale(true, 1, 3), offering("large")),
			Change{AutoscaleThenOffering, Args{Autoscaling: on(1, 3), DefaultOffering: "large", Offerings: all("large", Control, Worker)}}},
		{"autoscaling with a worker offering", nothing, both(autoscale(true, 1, 3), nodeOfferings("worker", "large")),
			Change{AutoscaleThenOffering, Args{Autoscaling: on(1, 3), Offerings: all("large", Worker)}}},
		{"autoscaling with a control offering is dropped", nothing, both(autoscale(true, 1, 3), nodeOfferings("control", "large")),
			Change{ChangeOffering, Args{Offerings: all("large", Control)}}},
		{"autoscaling with a default entry is dropped", nothing, both(autoscale(true, 1, 3), nodeOfferings("default", "large")),
			Change{Kind: Nothing}},
		{"off with a control offering and size", autoscales(1, 3), both(autoscale(false), toSize(3), nodeOfferings("control", "medium")),
			Change{Autoscale, Args{Autoscaling: off}}},
		{"autoscaling on 1.100", version(func(v *KubernetesVersion) { v.Version = "1.100.0" }), autoscale(true, 1, 3),
			Change{Autoscale, Args{Autoscaling: on(1, 3)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFacts(c.facts)
			resolve(&f, c.req)
			checkChange(t, f, c.req, c.want)
		})
	}
}

// A32: whatever other kinds of nodes there are, and in whatever order, size 2
// of 3 workers is a scale-down to that size.
func TestScaleDownWithOtherNodes(t *testing.T) {
	t.Parallel()
	for _, control := range []int{1, 3} {
		for _, etcd := range []int{0, 3} {
			for _, external := range []int{0, 1} {
				f := newFacts(nodesOf(control, etcd, 3, external))
				for i, j := 0, len(f.View.VMs)-1; i < j; i, j = i+2, j-1 {
					f.View.VMs[i], f.View.VMs[j] = f.View.VMs[j], f.View.VMs[i]
				}
				checkChange(t, f, toSize(int64(2+external)), Change{ScaleDown, Args{Size: 2 + external}})
			}
		}
	}
}

// Every accepted request has a kind, and every kind that holds the cluster can
// take hold of it in the state in which it was accepted.
func TestAcceptedRequestsCanTakeHold(t *testing.T) {
	t.Parallel()
	accepted := 0
	for _, state := range scalable {
		for _, a := range refusals {
			for _, b := range refusals {
				f := newFacts(inTheState(state), vm("w1", VMStopped))
				req := both(a.req, b.req)
				resolve(&f, req)
				change, err := CheckScale(f, req)
				if err != nil {
					continue
				}
				accepted++
				if e, holds := Requests[change.Kind]; holds {
					if _, err := state.On(e); err != nil {
						t.Errorf("%s accepted in %s: %v", change.Kind, state, err)
					}
				} else if change.Kind != Nothing && change.Kind != RecordSize {
					t.Errorf("%q holds nothing", change.Kind)
				}
			}
		}
	}
	if accepted < 100 {
		t.Errorf("only %d requests were accepted", accepted)
	}
}

// cks.md §2.5: the keyword is a part of the class name, in any case.
func TestCommandsLike(t *testing.T) {
	t.Parallel()
	for keyword, want := range map[string]int{"StopVMCmd": 1, "kubernetes.CLUSTER": 8, "org.apache": len(Classes), "stopVirtualMachine": 0} {
		if got := CommandsLike(keyword); len(got) != want {
			t.Errorf("%s: %q", keyword, got)
		}
	}
}
