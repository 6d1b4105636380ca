package model

import (
	"slices"

	"ckscale/internal/cks"
)

// sight is what can be seen of one cluster at one moment.
type sight struct {
	view       cks.ClusterView
	machines   map[string]cks.Machine // what exists, by id
	ready      map[string]bool        // VMs whose node is Ready
	readyNodes int                    // also those of VMs that are no more
	calls      map[string]int         // of the world, by operation and VM: "node.drain <id>"
	autoscaler cks.Autoscaling        // as it is deployed
}

// members are the VMs that count.
func (s sight) members() []cks.VM {
	return slices.DeleteFunc(slices.Clone(s.view.VMs), func(v cks.VM) bool { return v.Phase != cks.Member && v.Phase != cks.Leaving })
}

func (s sight) member(id string) bool { return has(s.members(), id) }

func has(vms []cks.VM, id string) bool {
	return slices.ContainsFunc(vms, func(v cks.VM) bool { return v.ID == id })
}

// without are the VMs of a that b does not have.
func without(a, b []cks.VM) []cks.VM {
	return slices.DeleteFunc(slices.Clone(a), func(v cks.VM) bool { return has(b, v.ID) })
}

// counted reports whether a VM is one of the cluster's nodes.
func counted(v cks.ClusterView, vm cks.VM) bool {
	return vm.ClusterID == v.Cluster.ID && !vm.Removed && (vm.Phase == cks.Member || vm.Phase == cks.Leaving)
}

func count(vms []cks.VM, wanted func(cks.VM) bool) int {
	n := 0
	for _, v := range vms {
		if wanted(v) {
			n++
		}
	}
	return n
}

func isRole(r cks.Role) func(cks.VM) bool { return func(v cks.VM) bool { return v.Role == r } }
func isExternal(v cks.VM) bool            { return v.Role == cks.Worker && v.External }

// scanned is the state that a scan leaves a cluster in that nobody holds
// (design.md §4.10).
func scanned(s sight) cks.State {
	state, nodes := s.view.Cluster.State, 0
	all := func(want cks.VMState) bool {
		return !slices.ContainsFunc(s.view.VMs, func(v cks.VM) bool { return s.machines[v.ID].State != want })
	}
	wellNodes := true
	for _, v := range s.view.VMs {
		if v.Role != cks.Etcd {
			nodes++
			wellNodes = wellNodes && s.ready[v.ID]
		}
	}
	switch {
	case state == cks.Running && !all(cks.VMRunning):
		return cks.Alert
	case state == cks.Alert && all(cks.VMStopped):
		return cks.Stopped
	case state == cks.Alert && all(cks.VMRunning) && wellNodes && s.readyNodes == nodes && len(s.view.VMs) == s.view.Cluster.Nodes():
		return cks.Running
	}
	return state
}
