package cks

import (
	"slices"
	"strings"
	"testing"
)

// refusal is a request that one check refuses, and no check before it.
type refusal struct {
	check string
	code  Code
	text  string
	facts edit
	req   ScaleRequest
}

func nothing(*ScaleFacts) {}

// refusals has at least one case for every check of a scale request, in the
// order of cks.md §3.1.
var refusals = slices.Concat(requestRefusals, alertRefusals, autoscalingRefusals, nodeIDRefusals, offeringRefusals, sizeRefusals)

var requestRefusals = []refusal{
	{"service enabled", Failed, "Kubernetes Service plugin is disabled",
		func(f *ScaleFacts) { f.ServiceDisabled = true }, toSize(3)},

	{"node offerings", Invalid, "Incomplete Node Type to Service Offering ID mapping: 'null' -> 'large'",
		nothing, ScaleRequest{NodeOfferings: []NodeOffering{{Offering: ptr("large")}}}},
	{"node offerings", Invalid, "Incomplete Node Type to Service Offering ID mapping: 'worker' -> 'null'",
		nothing, ScaleRequest{NodeOfferings: []NodeOffering{{Node: ptr("worker")}}}},
	{"node offerings", Invalid, "Incomplete Node Type to Service Offering ID mapping: '' -> 'large'", nothing, nodeOfferings("", "large")},
	{"node offerings", Invalid, "Incomplete Node Type to Service Offering ID mapping: 'worker' -> ''", nothing, nodeOfferings("worker", "")},
	{"node offerings", Invalid, "The provided value 'master' for Node Type is invalid", nothing, nodeOfferings("master", "large")},
	{"node offerings", Invalid, "Cannot find a service offering with ID nowhere", nothing, nodeOfferings("worker", "nowhere")},
	{"node offerings", Invalid, "Cannot find a service offering with ID 4", nothing, nodeOfferings("worker", "4")},
	// Entry by entry: the first bad one speaks.
	{"node offerings", Invalid, "Cannot find a service offering with ID nowhere", nothing, nodeOfferings("worker", "nowhere", "master", "large")},
	{"node offerings", Invalid, "The provided value 'master' for Node Type is invalid", nothing, nodeOfferings("master", "nowhere")},

	{"cluster", Invalid, "Invalid Kubernetes cluster ID", func(f *ScaleFacts) { f.View = ClusterView{} }, toSize(3)},
	{"cluster", Invalid, "Invalid Kubernetes cluster ID", cluster(func(c *Cluster) { c.Removed = true }), toSize(3)},

	{"zone", Failed, "Unable to find zone for Kubernetes cluster : demo", func(f *ScaleFacts) { f.View.Zone = Zone{} }, toSize(3)},

	{"something asked", Invalid, "Kubernetes cluster demo cannot be scaled, either service offering or cluster size or " +
		"nodeids to be removed or autoscaling must be passed", nothing, ScaleRequest{}},
	{"something asked", Invalid, "Kubernetes cluster demo cannot be scaled, either service offering or cluster size or " +
		"nodeids to be removed or autoscaling must be passed", nothing, ScaleRequest{MinSize: ptr(int64(1)), MaxSize: ptr(int64(3))}},

	{"cloud managed", Invalid, "Scale kubernetes cluster is not supported for an externally managed cluster (demo)",
		cluster(func(c *Cluster) { c.ExternalManaged = true }), toSize(3)},

	{"version", Failed, "Invalid Kubernetes version associated with Kubernetes cluster : demo",
		func(f *ScaleFacts) { f.View.Version = nil }, toSize(3)},

	{"state", Conflict, "Kubernetes cluster demo is in Upgrading state and can not be scaled", inTheState(Upgrading), toSize(3)},
	{"state", Conflict, "Kubernetes cluster demo is in Scaling state and can not be scaled", inTheState(Scaling), toSize(2)},
	{"state", Conflict, "Kubernetes cluster demo is in Starting state and can not be scaled", inTheState(Starting), toSize(3)},
	{"state", Conflict, "Kubernetes cluster demo is in Error state and can not be scaled", inTheState(Error), toSize(3)},
}

var autoscalingRefusals = []refusal{
	{"autoscaling: alone", Invalid, "Autoscaling can not be passed along with nodeids or clustersize",
		nothing, both(autoscale(true, 1, 3), toSize(2))},
	{"autoscaling: alone", Invalid, "Autoscaling can not be passed along with nodeids or clustersize",
		nothing, both(autoscale(true, 1, 3), without("w1"))},
	{"autoscaling: version", Invalid, "Autoscaling requires Kubernetes Version 1.15.0 or above",
		version(func(v *KubernetesVersion) { v.Version = "1.9.0" }), autoscale(true, 1, 3)},
	{"autoscaling: version", Invalid, "Autoscaling requires Kubernetes Version 1.15.0 or above",
		version(func(v *KubernetesVersion) { v.Version = "1.14.99" }), autoscale(true, 1, 3)},
	{"autoscaling: endpoint", Invalid, "Global setting endpoint.url has to be set to the Management Server's API end point",
		func(f *ScaleFacts) { f.EndpointURL = "http://localhost:8080/client/api" }, autoscale(true, 1, 3)},
	{"autoscaling: endpoint", Invalid, "Global setting endpoint.url has to be set to the Management Server's API end point",
		func(f *ScaleFacts) { f.EndpointURL = "" }, autoscale(true, 1, 3)},
	{"autoscaling: bounds given", Invalid, "Autoscaling requires minsize and maxsize to be passed", nothing, autoscale(true)},
	{"autoscaling: bounds given", Invalid, "Autoscaling requires minsize and maxsize to be passed", nothing, autoscale(true, 1)},
	{"autoscaling: bounds given", Invalid, "Autoscaling requires minsize and maxsize to be passed",
		nothing, ScaleRequest{Autoscaling: ptr(true), MaxSize: ptr(int64(3))}},
	{"autoscaling: minsize", Invalid, "Minsize must be at least than 1", nothing, autoscale(true, 0, 3)},
	{"autoscaling: maxsize above minsize", Invalid, "Maxsize must be greater than minsize", nothing, autoscale(true, 3, 3)},
	{"autoscaling: maxsize above minsize", Invalid, "Maxsize must be greater than minsize", nothing, autoscale(true, 4, 3)},
	{"autoscaling: maximum", Invalid, "Maximum cluster size can not exceed 10. Please contact your administrator",
		nothing, autoscale(true, 1, 8)},
	{"autoscaling: maximum", Invalid, "Maximum cluster size can not exceed 10. Please contact your administrator",
		nothing, autoscale(true, 1, 1<<63-1)},
	{"autoscaling: state", Conflict, "Kubernetes cluster : demo is in Stopped state", inTheState(Stopped), autoscale(true, 1, 3)},
	{"autoscaling: state", Conflict, "Kubernetes cluster : demo is in Created state", inTheState(Created), autoscale(true, 1, 3)},
	{"autoscaling: state", Conflict, "Kubernetes cluster : demo is in Stopped state", with(inTheState(Stopped), autoscales(1, 3)), autoscale(false)},
}

const (
	controlText = "Kubernetes cluster : demo cannot be scaled by removing demo-ctl1, which is a control node: scaling removes only " +
		"worker nodes, and a cluster keeps its control nodes. Name worker nodes in nodeids, or pass size"
	etcdText = "Kubernetes cluster : demo cannot be scaled by removing demo-etcd1, which is an etcd node: scaling removes only " +
		"worker nodes, and a cluster keeps its etcd nodes. Name worker nodes in nodeids, or pass size"
	externalText = "Kubernetes cluster : demo cannot be scaled by removing demo-ext1, which is an external node: scaling never acts " +
		"on external nodes. Remove it with removeNodesFromKubernetesCluster"
	aloneText = "nodeids can not be passed along with clustersize or service offering"
)

var nodeIDRefusals = []refusal{
	{"nodeids: alone", Invalid, aloneText, nothing, both(without("w2"), toSize(1))},
	{"nodeids: alone", Invalid, aloneText, nothing, both(without("w2"), offering("medium"))},
	{"nodeids: alone", Invalid, aloneText, nothing, both(without("w2"), nodeOfferings("Worker", "medium"))},

	{"nodeids: of this cluster", Invalid, "Invalid node ids", nothing, without()},
	{"nodeids: of this cluster", Invalid, "Invalid node ids", nothing, without("w2", "x1")},
	{"nodeids: of this cluster", Invalid, "Invalid node ids", nothing, without("x2")},
	{"nodeids: of this cluster", Invalid, "Invalid node ids", nothing, without("gone")},
	{"nodeids: of this cluster", Invalid, "Invalid node ids", nodesOf(1, 0, 3, 0), without("w2", "w2")},
	{"nodeids: of this cluster", Invalid, "Invalid node ids", nodesOf(1, 0, 3, 0), without("w2", " W2 ")},
	{"nodeids: of this cluster", Invalid, "Invalid node ids", onVM("w2", func(v *VM) { v.Phase = Doomed }), without("w2")},

	{"nodeids: all control nodes", Invalid, "Can not remove all control nodes from a cluster", nothing, without("ctl1", "ctl2", "ctl3")},
	{"nodeids: all control nodes", Invalid, "Can not remove all control nodes from a cluster", nodesOf(1, 0, 2, 0), without("ctl1", "w1")},

	{"nodeids: all nodes", Invalid, "Can not remove all nodes from a cluster", nothing, without("w1", "w2")},
	{"nodeids: all nodes", Invalid, "Can not remove all nodes from a cluster", nodesOf(1, 3, 1, 0), without("w1", "etcd1")},

	{"nodeids: no control node", Invalid, controlText, nothing, without("w1", "ctl1")},
	{"nodeids: no etcd node", Invalid, etcdText, nodesOf(1, 3, 2, 0), without("etcd1", "w1")},
	{"nodeids: no etcd node", Invalid, etcdText, nodesOf(1, 3, 2, 0), without("etcd1", "etcd2", "etcd3")},
	{"nodeids: no external node", Invalid, externalText, nodesOf(1, 0, 1, 1), without("ext1")},
	{"nodeids: no external node", Invalid, externalText, nodesOf(1, 0, 1, 1), without("w1", "ext1")},

	{"nodeids: state", Conflict, "Kubernetes cluster : demo is in Stopped state", inTheState(Stopped), without("w1")},
	{"nodeids: state", Conflict, "Kubernetes cluster : demo is in Created state", inTheState(Created), without("w1")},
	{"nodeids: state", Conflict, "Kubernetes cluster : demo is in Stopped state",
		inTheState(Stopped), both(without("w1"), nodeOfferings("control", "large"))},
}

var sizeRefusals = []refusal{
	{"size: not stopped", Conflict, "Kubernetes cluster : demo is in Stopped state", inTheState(Stopped), toSize(3)},
	{"size: at least one", Invalid, "Kubernetes cluster : demo cannot be scaled for size, 0", nothing, toSize(0)},
	{"size: at least one", Invalid, "Kubernetes cluster : demo cannot be scaled for size, -1", nothing, toSize(-1)},
	{"size: at least one", Invalid, "Kubernetes cluster : demo cannot be scaled for size, -9223372036854775808", nothing, toSize(-1 << 63)},
	{"size: maximum", Invalid, "Maximum cluster size can not exceed 10. Please contact your administrator", nothing, toSize(8)},
	{"size: maximum", Invalid, "Maximum cluster size can not exceed 10. Please contact your administrator", nothing, toSize(1<<63 - 1)},
	{"size: maximum", Invalid, "Maximum cluster size can not exceed 10. Please contact your administrator", nothing, toSize(1<<32 + 3)},
	{"size: template", Invalid, "Invalid template associated with Kubernetes cluster : demo",
		func(f *ScaleFacts) { f.View.Template = nil }, toSize(3)},
	{"size: template", Invalid, "Template : node-image associated with Kubernetes cluster : demo is not in Ready state for datacenter : zone1",
		func(f *ScaleFacts) { f.View.Template.Ready = false }, toSize(3)},
	{"size: external nodes", Invalid, "Kubernetes cluster : demo cannot be scaled for size, 1: 2 of its nodes are external. " +
		"Remove external nodes with removeNodesFromKubernetesCluster", nodesOf(1, 0, 2, 2), toSize(1)},
	{"size: worker offering", Failed, "The Kubernetes cluster demo does not have a service offering set for node type WORKER",
		cluster(func(c *Cluster) { c.DefaultOffering, c.Offerings = "", map[Role]string{Control: "large"} }), toSize(3)},
	{"size: resource limits", Failed, "Resource limits prevent scaling the cluster: the account may use 6 VMs, uses 5 and needs 2 more",
		func(f *ScaleFacts) { f.Limits.VMs, f.Used.VMs = ptr(6), 5 }, toSize(4)},
	{"size: resource limits", Failed, "Resource limits prevent scaling the cluster: the account may use 20 vCPUs, uses 20 and needs 4 more",
		func(f *ScaleFacts) { f.Limits.Cores, f.Used.Cores = ptr(20), 20 }, toSize(3)},
	{"size: resource limits", Failed, "Resource limits prevent scaling the cluster: the account may use 24575 MB of memory, uses 20480 and needs 4096 more",
		func(f *ScaleFacts) { f.Limits.MemoryMB, f.Used.MemoryMB = ptr(int64(24575)), 20480 }, toSize(3)},
	// Fewer workers are there than are recorded.
	{"size: resource limits", Failed, "Resource limits prevent scaling the cluster: the account may use 5 VMs, uses 4 and needs 2 more",
		with(nodesOf(3, 0, 1, 0), cluster(func(c *Cluster) { c.Size = 2 }), func(f *ScaleFacts) { f.Limits.VMs, f.Used.VMs = ptr(5), 4 }), toSize(3)},
	// New nodes get the cluster's worker offering, or the one that the request names for workers.
	{"size: resource limits", Failed, "Resource limits prevent scaling the cluster: the account may use 24 vCPUs, uses 20 and needs 8 more",
		with(cluster(func(c *Cluster) { c.Offerings = map[Role]string{Worker: "large"} }), func(f *ScaleFacts) { f.Limits.Cores, f.Used.Cores = ptr(24), 20 }), toSize(3)},
	{"size: resource limits", Failed, "Resource limits prevent scaling the cluster: the account may use 24 vCPUs, uses 20 and needs 8 more",
		func(f *ScaleFacts) { f.Limits.Cores, f.Used.Cores = ptr(24), 20 }, both(toSize(3), nodeOfferings("worker", "large"))},
}

func (r refusal) scaling() scaling {
	f := newFacts(r.facts)
	resolve(&f, r.req)
	return scaling{ScaleFacts: f, req: r.req, c: f.View.Cluster}
}

// Every check of cks.md §3.1 and §3.6 refuses with CloudStack's text.
//
// Keeps: §3.1/0, §3.1/1-incomplete, §3.1/1-type, §3.1/1-offering, §3.1/1-each, §3.1/2-number, §3.1/2-removed, §3.1/3.
// Keeps: §3.1/4-nothing, §3.1/4-bounds, §3.1/6, §3.1/7, §3.1/8, §3.1/9a, §3.1/9b, §3.1/9b-numbers, §3.1/9c, §3.1/9d.
// Keeps: §3.1/9e, §3.1/9f, §3.1/9g, §3.1/9-state, §3.1/10a, §3.1/10b, §3.1/10b-repeated, §3.1/10b-empty, §3.1/10c.
// Keeps: §3.1/10d, §3.1/10-kinds, §3.1/10-state, §3.1/11-which, §3.1/11a, §3.1/11b, §3.1/11c, §3.1/11d, §3.1/11e.
// Keeps: §3.1/11f, §3.1/11f-existing, §3.1/12a, §3.1/12b, §3.1/12c, §3.1/12d-template, §3.1/12d-ready.
// Keeps: §3.1/12-external, §3.1/12-offering, §3.1/13, §3.1/13-extra, §3.1/13-offering, §3.3/nodeids-stopped.
// Keeps: §3.4/alert, §3.6/A1, §3.6/A2, §3.6/A3, §3.6/A4, §3.6/A5, §3.6/A6, §3.6/A7, §3.6/texts, §8.6/autoscaling.
// Keeps: §8.5/total.
// Keeps: §5.1/1, §5.1/4, §5.3/none, §5.4/kinds, §5.6/running, D1, E6.
// Keeps: seed/refuse-offering, seed/refuse-node-offering, seed/refuse-autoscaling, seed/refuse-bounds, seed/refuse-neither.
// Keeps: seed/refuse-control, seed/refuse-etcd, seed/refuse-external, seed/refuse-first-control, seed/refuse-more-vms.
// Keeps: seed/refuse-fewer-vms, seed/refuse-leftovers, seed/refuse-control-down, seed/refuse-etcd-down, seed/refuse-no-worker-down.
// Keeps: seed/refuse-external-down, seed/refuse-disconnected, seed/upgrading, seed/running-as-before, seed/stopped-as-before, A31.
func TestScaleRefusals(t *testing.T) {
	t.Parallel()
	for _, r := range refusals {
		t.Run(r.check+"/"+r.text, func(t *testing.T) {
			t.Parallel()
			s := r.scaling()
			change, err := CheckScale(s.ScaleFacts, r.req)
			checkText(t, err, r.code, r.text)
			if change.Kind != "" {
				t.Errorf("a refused request means %s", change.Kind)
			}
			if name, _ := outcome(scaleChecks, "", s); name != r.check {
				t.Errorf("refused by %q, want %q", name, r.check)
			}
		})
	}
}

// The checks are in the order of the specification, each has a case above, and
// without any one of them a case of it ends otherwise.
//
// Keeps: §3.1/order, §3.1/11-order, §3.6/order.
func TestScaleChecksAreAllNeeded(t *testing.T) {
	t.Parallel()
	var names []string
	needed := map[string]bool{}
	for _, r := range refusals {
		names = append(names, r.check)
		if _, text := outcome(scaleChecks, r.check, r.scaling()); text != r.text {
			needed[r.check] = true
		}
	}
	checkList(t, scaleChecks, names)
	for _, c := range scaleChecks {
		if !needed[c.name] {
			t.Errorf("without the check %q all of its cases are still refused with the same text", c.name)
		}
	}
}

// apart are neighbouring checks that no request can break together, and why.
var apart = map[string]string{
	"state → A1": "the first refuses every state but Alert",
	"A2 → A3":    "the first needs no nodeids, the second some",
	"offering of etcd: not smaller while running → size: not stopped": "Running and Stopped",
	"size: template → size: template ready":                           "no template, and one that is not ready",
}

// A request that breaks two rules gets the text of the earlier one: for every
// two checks that can be broken together, neighbours above all.
//
// Keeps: §3.1/order, §3.6/order.
func TestScaleChecksAreInOrder(t *testing.T) {
	t.Parallel()
	combined := map[string]bool{}
	pool := slices.Concat(refusals, pairs)
	for _, a := range pool {
		for _, b := range pool {
			s, ok := combine(a, b)
			if !ok {
				continue
			}
			broken := brokenChecks(s)
			if len(broken) < 2 {
				continue
			}
			if _, err := CheckScale(s.ScaleFacts, s.req); err == nil || err.Error() != broken[0].text {
				t.Errorf("a request that breaks %q and %q gets %v", broken[0].name, broken[1].name, err)
			}
			for i := range broken[1:] {
				combined[broken[i].name+" → "+broken[i+1].name] = true
			}
		}
	}
	for i := range scaleChecks[1:] {
		pair := scaleChecks[i].name + " → " + scaleChecks[i+1].name
		if why := apart[pair]; combined[pair] == (why != "") {
			t.Errorf("%s: combined %t, said to be apart because %q", pair, combined[pair], why)
		}
	}
}

// pairs break two neighbours by themselves, where no two of the refusals fit
// together.
var pairs = []refusal{
	{check: "zone", facts: func(f *ScaleFacts) { f.View.Zone = Zone{} }},
	{check: "something asked", facts: cluster(func(c *Cluster) { c.ExternalManaged = true })},
	{check: "autoscaling: endpoint", facts: func(f *ScaleFacts) { f.EndpointURL = "" }, req: autoscale(true)},
	{check: "autoscaling: bounds given", facts: nothing, req: autoscale(true, 0)},
	{check: "autoscaling: maxsize above minsize", facts: nothing, req: autoscale(true, 20, 15)},
	{check: "nodeids: no control node", facts: nodesOf(3, 3, 2, 0), req: without("etcd1", "ctl1")},
	{check: "nodeids: no etcd node", facts: nodesOf(1, 3, 2, 1), req: without("ext1", "etcd1")},
	{check: "size: at least one", facts: func(f *ScaleFacts) { f.MaxSize = 2 }, req: toSize(0)},
	// More external nodes than the record has workers.
	{check: "size: template ready", facts: with(nodesOf(1, 0, 1, 3), cluster(func(c *Cluster) { c.Size = 1 }),
		func(f *ScaleFacts) { f.View.Template.Ready = false }), req: toSize(2)},
	{check: "size: external nodes", facts: with(nodesOf(1, 0, 1, 3), cluster(func(c *Cluster) { c.Size, c.DefaultOffering = 1, "" })), req: toSize(2)},
}

type broken struct{ name, text string }

// brokenChecks returns the checks that s breaks. One that cannot be asked, as an
// earlier one is broken, is not among them.
func brokenChecks(s scaling) (all []broken) {
	for _, c := range scaleChecks {
		if name, text := outcome([]check[scaling]{c}, "", s); name == c.name {
			all = append(all, broken{name, text})
		}
	}
	return all
}

// combine puts two refused requests together.
func combine(a, b refusal) (s scaling, ok bool) {
	defer func() { ok = recover() == nil && ok }() // edits that do not fit together
	r := refusal{facts: with(a.facts, b.facts), req: both(a.req, b.req)}
	return r.scaling(), true
}

// Numbers are compared as numbers: 1.9 is older than 1.15 (cks.md §3.1 9b).
//
// Keeps: §3.1/9b-numbers.
func TestVersionAtLeast(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"1.15.0": true, "1.15.1": true, "1.100.0": true, "2.0.0": true, "1.33.1": true, "1.015.0": true, "1.15": true,
		"1.99999999999999999999.0": true, "1.9.0": false, "1.14.9": false, "0.99.0": false, "1": false, "": false,
	} {
		if got := versionAtLeast(version, "1.15.0"); got != want {
			t.Errorf("%q at least 1.15.0: %t", version, got)
		}
	}
}

// A refused request's text never has a placeholder that was not filled.
func TestRefusalTextsAreComplete(t *testing.T) {
	t.Parallel()
	for _, r := range refusals {
		if _, text := outcome(scaleChecks, "", r.scaling()); strings.Contains(text, "%!") {
			t.Errorf("%s: %q", r.check, text)
		}
	}
}
