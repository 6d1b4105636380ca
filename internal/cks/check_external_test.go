package cks

import (
	"slices"
	"testing"
)

// newNodes are the facts of a request about nodes p1 and p2, plain VMs of the
// cluster's owner, and of ext1 and ext2, its external nodes.
func newNodes(ids []string, edits ...edit) (NodesFacts, NodesRequest) {
	f := newFacts(append([]edit{nodesOf(3, 0, 2, 2)}, edits...)...)
	nodes := NodesFacts{View: f.View, MaxSize: f.MaxSize}
	all := append(slices.Clone(f.View.VMs),
		VM{ID: "p1", Name: "box1", AccountID: "a1", Role: Worker, State: VMRunning, Phase: Member},
		VM{ID: "p2", Name: "box2", AccountID: "a1", Role: Worker, State: VMRunning, Phase: Member},
		VM{ID: "w9", ClusterID: "c9", Name: "other-w9", Role: Worker, State: VMRunning, Phase: Member})
	for _, id := range ids {
		if i := slices.IndexFunc(all, func(v VM) bool { return v.ID == id }); i >= 0 {
			nodes.NodeVMs = append(nodes.NodeVMs, all[i])
		}
	}
	return nodes, NodesRequest{Cluster: "c1", NodeIDs: ids}
}

type nodesCase struct {
	check string
	code  Code
	text  string
	ids   []string
	edit  edit
	node  func(*VM) // the first one that is named
}

// Both commands refuse what the cluster does not allow, the same way.
func clusterCases(doing, done string, ids []string) []nodesCase {
	return []nodesCase{
		{"cluster", Invalid, "Invalid Kubernetes cluster ID specified", ids, cluster(func(c *Cluster) { *c = Cluster{} }), nil},
		{"cluster", Invalid, "Invalid Kubernetes cluster ID specified", ids, cluster(func(c *Cluster) { c.Removed = true }), nil},
		{"cloud managed", Invalid, doing + " nodes is not supported for an externally managed cluster (demo)", ids,
			cluster(func(c *Cluster) { c.ExternalManaged = true }), nil},
		{"nodes", Invalid, "Invalid node ids", nil, nil, nil},
		{"nodes", Invalid, "Invalid node ids", []string{ids[0], ids[0]}, nil, nil},
		{"nodes", Invalid, "Invalid node ids", []string{ids[0], "4711"}, nil, nil},
		{"", "", "", ids, nil, nil},
		{"", "", "", ids[:1], inTheState(Alert), nil},
		{"state", Conflict, "Kubernetes cluster : demo is in Scaling state and nodes can not be " + done, ids, inTheState(Scaling), nil},
	}
}

func checkNodes(t *testing.T, list []check[external], cases []nodesCase) {
	t.Helper()
	for _, c := range cases {
		if c.edit == nil {
			c.edit = func(*ScaleFacts) {}
		}
		f, req := newNodes(c.ids, c.edit)
		if c.node != nil {
			c.node(&f.NodeVMs[0])
		}
		name, err := firstBroken(list, external{f, f.View.Cluster, req})
		if name != c.check {
			t.Errorf("%q, %v is refused by %q: %v", c.check, c.ids, name, err)
		} else if name != "" {
			checkText(t, err, c.code, c.text)
		}
	}
	for _, s := range States {
		f, req := newNodes(cases[0].ids, inTheState(s))
		_, err := firstBroken(list, external{f, f.View.Cluster, req})
		if allowed := s == Running || s == Alert; allowed != (err == nil) {
			t.Errorf("in %s: %v", s, err)
		}
	}
}

// What addNodesToKubernetesCluster refuses; it is accepted in Running and Alert
// only.
//
// Keeps: §4/external-nodes, §8.2/external, ours/nodes-own, ours/nodes-whole.
func TestCheckAddNodes(t *testing.T) {
	t.Parallel()
	both := []string{"p1", "p2"}
	refused := func(name, it string) string {
		return "Instance " + name + " can not be added to Kubernetes cluster : demo as a node: it " + it
	}
	checkNodes(t, addNodesChecks, append(clusterCases("Adding", "added to it", both), []nodesCase{
		{"version", Failed, "Invalid Kubernetes version associated with Kubernetes cluster : demo", both, func(f *ScaleFacts) { f.View.Version = nil }, nil},
		{"node: exists", Invalid, refused("box1", "does not exist any more"), both, nil, func(v *VM) { v.Removed = true }},
		{"node: no member", Invalid, refused("demo-w1", "is already part of the cluster"), []string{"p1", "w1"}, nil, nil},
		{"node: no member", Invalid, refused("demo-ext1", "is already part of the cluster"), []string{"ext1"}, nil, nil},
		{"node: no member", Invalid, refused("other-w9", "is part of another Kubernetes cluster"), []string{"w9"}, nil, nil},
		{"node: owner", Invalid, refused("box1", "belongs to another account"), both, nil, func(v *VM) { v.AccountID = "a2" }},
		{"node: settled", Invalid, refused("box1", "is being created or destroyed"), both, nil, func(v *VM) { v.Phase = Leaving }},
		{"node: running", Invalid, refused("box1", "is in Stopped state and has to be Running"), both, nil, func(v *VM) { v.State = VMStopped }},
		{"node: name", Invalid, refused("DEMO-w1", "has the name of a node of the cluster"), both, nil, func(v *VM) { v.Name = "DEMO-w1" }},
		{"maximum", Invalid, "Maximum cluster size can not exceed 10. Please contact your administrator", both, cluster(func(c *Cluster) { c.Size = 6 }), nil},
		{"", "", "", both, cluster(func(c *Cluster) { c.Size = 5 }), nil},
	}...))
	f, req := newNodes(both)
	if err := CheckAddNodes(f, req); err != nil {
		t.Error(err)
	}
}

// What removeNodesFromKubernetesCluster refuses. It removes external nodes, in
// whatever state their VMs are, and leaves the cluster a worker.
//
// Keeps: §4/external-nodes, seed/external-removal, ours/nodes-one-left.
func TestCheckRemoveNodes(t *testing.T) {
	t.Parallel()
	both := []string{"ext1", "ext2"}
	own := func(name string) string {
		return name + " can not be removed from Kubernetes cluster : demo as an external node, as it is the cluster's own. " +
			"Remove worker nodes with scaleKubernetesCluster and nodeids, or pass it a size"
	}
	checkNodes(t, removeNodesChecks, append(clusterCases("Removing", "removed from it", both), []nodesCase{
		{"members", Invalid, "Invalid node ids", []string{"w9"}, nil, nil},
		{"members", Invalid, "Invalid node ids", []string{"p1"}, nil, nil},
		{"members", Invalid, "Invalid node ids", both, nil, func(v *VM) { v.Removed = true }},
		{"members", Invalid, "Invalid node ids", both, nil, func(v *VM) { v.Phase = Leaving }},
		{"external", Invalid, own("demo-w1"), []string{"ext1", "w1"}, nil, nil},
		{"external", Invalid, own("demo-ctl1"), []string{"ctl1"}, nil, nil},
		{"not all", Invalid, "Can not remove all nodes from a cluster", both, nodesOf(1, 0, 0, 2), nil},
		{"", "", "", both[:1], nodesOf(1, 0, 0, 2), nil},
		{"", "", "", both, nil, func(v *VM) { v.State = VMStopped }},
	}...))
	f, req := newNodes(both)
	if err := CheckRemoveNodes(f, req); err != nil {
		t.Error(err)
	}
}
