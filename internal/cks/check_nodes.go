package cks

import (
	"slices"
	"strings"
)

// nodeIDChecks are check 10, and what is refused beyond upstream: it would
// remove control nodes and record the wrong count (spec/cks.md §7 D1).
var nodeIDChecks = []check[scaling]{
	{"nodeids: alone", "cks.md §3.1 10a", func(s scaling) error {
		_, worker := entryFor(s.req.NodeOfferings, Worker)
		if s.req.NodeIDs != nil && (s.req.Size != nil || s.req.OfferingID != nil || worker) {
			return Errorf(Invalid, "nodeids can not be passed along with clustersize or service offering")
		}
		return nil
	}},
	{"nodeids: of this cluster", "cks.md §3.1 10b", func(s scaling) error {
		if s.req.NodeIDs != nil && !s.nodeIDsValid() {
			return Errorf(Invalid, "Invalid node ids")
		}
		return nil
	}},
	{"nodeids: all control nodes", "cks.md §3.1 10c", func(s scaling) error {
		if n := len(s.named(isControl)); n > 0 && n >= s.c.ControlNodes {
			return Errorf(Invalid, "Can not remove all control nodes from a cluster")
		}
		return nil
	}},
	{"nodeids: all nodes", "cks.md §3.1 10d", func(s scaling) error {
		// Only own workers count, and only rows: an external node keeps the
		// cluster alive, an etcd node does not.
		n := len(s.named(VM.OwnWorker))
		if n > 0 && n >= len(s.members(VM.OwnWorker)) && len(s.members(VM.externalWorker)) == 0 {
			return Errorf(Invalid, "Can not remove all nodes from a cluster")
		}
		return nil
	}},
	notRemovable("control", isControl, "scaling removes only worker nodes, and a cluster keeps its control nodes. "+
		"Name worker nodes in nodeids, or pass size"),
	notRemovable("etcd", func(v VM) bool { return v.Role == Etcd }, "scaling removes only worker nodes, and a cluster keeps its etcd nodes. "+
		"Name worker nodes in nodeids, or pass size"),
	notRemovable("external", VM.externalWorker, "scaling never acts on external nodes. "+
		"Remove it with removeNodesFromKubernetesCluster"),
	{"nodeids: state", "cks.md §4, ours", func(s scaling) error {
		// Upstream accepts nodeids for a stopped cluster and fails in the drain.
		if _, err := s.c.State.On(ScaleDownRequested); err != nil && s.req.NodeIDs != nil {
			return s.inState()
		}
		return nil
	}},
}

// notRemovable makes a check that refuses nodeids of a kind and says why.
func notRemovable(kind string, is func(VM) bool, why string) check[scaling] {
	return check[scaling]{"nodeids: no " + kind + " node", "design.md §4.3", func(s scaling) error {
		if vms := s.named(is); len(vms) > 0 {
			return Errorf(Invalid, "Kubernetes cluster : %s cannot be scaled by removing %s, which is %s node: %s",
				s.c.Name, vms[0].Name, withArticle(kind), why)
		}
		return nil
	}}
}

func withArticle(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

func isControl(v VM) bool { return v.Role == Control }

// named returns the nodes of this cluster that nodeids names and that are as
// wanted.
func (s scaling) named(wanted func(VM) bool) []VM {
	var vms []VM
	for _, v := range s.NodeVMs {
		if v.ClusterID == s.c.ID && v.counted() && wanted(v) {
			vms = append(vms, v)
		}
	}
	return vms
}

// nodeIDsValid reports whether nodeids names at least one node, only nodes of
// this cluster, and none twice, however its ids are written.
func (s scaling) nodeIDsValid() bool {
	ids := vmIDs(s.named(func(VM) bool { return true }))
	return len(ids) > 0 && len(ids) == len(s.req.NodeIDs) &&
		len(slices.Compact(slices.Sorted(slices.Values(ids)))) == len(ids)
}

func vmIDs(vms []VM) []string {
	ids := make([]string, len(vms))
	for i, v := range vms {
		ids[i] = v.ID
	}
	return ids
}
