package cks

import (
	"slices"
	"strings"
)

// NodesFacts is all that CheckAddNodes and CheckRemoveNodes have to know.
type NodesFacts struct {
	View    ClusterView // the zero value: no such cluster
	NodeVMs []VM        // rows that nodeids name, one per id in the order sent; one that names nothing has none
	MaxSize int         // as in ScaleFacts
}

// external is a request to add or to remove external nodes, beside the facts.
type external struct {
	NodesFacts
	c   Cluster
	req NodesRequest
}

// CheckAddNodes refuses to make nodes of VMs that cannot be, or of a cluster
// that cannot take them. The whole request is refused for one VM of it.
func CheckAddNodes(f NodesFacts, req NodesRequest) error {
	_, err := firstBroken(addNodesChecks, external{f, f.View.Cluster, req})
	return err
}

// CheckRemoveNodes refuses to take nodes out of a cluster that are none of its
// external ones.
func CheckRemoveNodes(f NodesFacts, req NodesRequest) error {
	_, err := firstBroken(removeNodesChecks, external{f, f.View.Cluster, req})
	return err
}

// externalChecks are what both have in common, up to the state that on allows.
func externalChecks(doing, done string, on Event) []check[external] {
	return []check[external]{
		{"cluster", "upstream", func(e external) error {
			if e.c.ID == "" || e.c.Removed {
				return Errorf(Invalid, "Invalid Kubernetes cluster ID specified")
			}
			return nil
		}},
		{"cloud managed", "ours", func(e external) error {
			if e.c.ExternalManaged {
				return Errorf(Invalid, "%s nodes is not supported for an externally managed cluster (%s)", doing, e.c.Name)
			}
			return nil
		}},
		{"state", "cks.md §4", func(e external) error {
			if _, err := e.c.State.On(on); err != nil {
				return Errorf(Conflict, "Kubernetes cluster : %s is in %s state and nodes can not be %s", e.c.Name, e.c.State, done)
			}
			return nil
		}},
		{"nodes", "design.md §4.3", func(e external) error {
			ids := vmIDs(e.NodeVMs)
			if len(ids) == 0 || len(ids) != len(e.req.NodeIDs) || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(ids) {
				return Errorf(Invalid, "Invalid node ids")
			}
			return nil
		}},
	}
}

var addNodesChecks = slices.Concat(externalChecks("Adding", "added to it", AddNodeRequested), []check[external]{
	{"version", "cks.md §3.1 7", func(e external) error {
		if e.View.Version == nil {
			return Errorf(Failed, "Invalid Kubernetes version associated with Kubernetes cluster : %s", e.c.Name)
		}
		return nil
	}},
	unfit("exists", func(_ external, v VM) string {
		if v.Removed {
			return "does not exist any more"
		}
		return ""
	}),
	unfit("no member", func(e external, v VM) string {
		switch v.ClusterID {
		case "":
			return ""
		case e.c.ID:
			return "is already part of the cluster"
		}
		return "is part of another Kubernetes cluster"
	}),
	unfit("owner", func(e external, v VM) string {
		if v.AccountID != e.c.AccountID {
			return "belongs to another account"
		}
		return ""
	}),
	unfit("settled", func(_ external, v VM) string {
		if v.Phase != Member {
			return "is being created or destroyed"
		}
		return ""
	}),
	unfit("running", func(_ external, v VM) string {
		if v.State != VMRunning {
			return "is in " + string(v.State) + " state and has to be Running"
		}
		return ""
	}),
	unfit("name", func(e external, v VM) string {
		if slices.ContainsFunc(e.View.VMs, func(m VM) bool { return strings.EqualFold(m.Name, v.Name) }) {
			return "has the name of a node of the cluster"
		}
		return ""
	}),
	{"maximum", "cks.md §8.6", func(e external) error {
		if e.c.Size+len(e.NodeVMs)+e.c.ControlNodes > e.MaxSize {
			return tooLarge(e.MaxSize)
		}
		return nil
	}},
})

// unfit makes a check that refuses VMs, one after the other, that cannot become
// nodes. why says what is wrong with one; empty: nothing.
func unfit(name string, why func(external, VM) string) check[external] {
	return check[external]{"node: " + name, "ours", func(e external) error {
		for _, v := range e.NodeVMs {
			if w := why(e, v); w != "" {
				return Errorf(Invalid, "Instance %s can not be added to Kubernetes cluster : %s as a node: it %s", v.Name, e.c.Name, w)
			}
		}
		return nil
	}}
}

var removeNodesChecks = slices.Concat(externalChecks("Removing", "removed from it", RemoveNodeRequest), []check[external]{
	{"members", "design.md §4.3", func(e external) error {
		if slices.ContainsFunc(e.NodeVMs, func(v VM) bool { return v.ClusterID != e.c.ID || !v.counted() }) {
			return Errorf(Invalid, "Invalid node ids")
		}
		return nil
	}},
	{"external", "ours", func(e external) error {
		for _, v := range e.NodeVMs {
			if !v.External {
				return Errorf(Invalid, "%s can not be removed from Kubernetes cluster : %s as an external node, as it is the cluster's own. "+
					"Remove worker nodes with scaleKubernetesCluster and nodeids, or pass it a size", v.Name, e.c.Name)
			}
		}
		return nil
	}},
	{"not all", "design.md §4.4", func(e external) error {
		if e.c.Size <= len(e.NodeVMs) {
			return Errorf(Invalid, "Can not remove all nodes from a cluster")
		}
		return nil
	}},
})
