package cks

import (
	"cmp"
	"slices"
	"strings"
)

// RemovalOrder returns workers with the first to go first: down machines, then
// the newest. Seq is unique, so every repeat picks the same machines. Which
// workers may go at all is the caller's choice: only own ones.
func RemovalOrder(workers []VM) []VM {
	return slices.SortedStableFunc(slices.Values(workers), func(a, b VM) int {
		return cmp.Or(cmp.Compare(downFirst(a), downFirst(b)), compareSeq(b, a))
	})
}

func downFirst(v VM) int {
	if v.State.Down() {
		return 0
	}
	return 1
}

func compareSeq(a, b VM) int { return cmp.Compare(a.Seq, b.Seq) }

// ExpectedReady is the number of Ready nodes that a scale-up waits for, to be
// asked again at every look (spec/seed.txt, "Scale-up"): the cluster's Kubernetes
// nodes without those whose VM is down, and without those in absent, which ran
// without being Ready when the job began, as long as they are not (cks.md §7
// D5). New nodes always count. vms are all rows of the cluster; newNames and
// absent are node names.
//
// It is a count, and a node that has just stopped stays Ready for a while, so
// the number can match too early: each new node has to be asked for by name as
// well.
func ExpectedReady(vms []VM, newNames, absent []string, nodes []Node) int {
	expected := len(newNames)
	for _, v := range vms {
		name := v.NodeName()
		switch {
		case v.Role == Etcd, v.Removed, v.Phase == Doomed: // no node of the cluster's
		case hasName(newNames, name): // counted already
		case v.State.Down():
		case hasName(absent, name) && !NodeReadyByName(nodes, name):
		default:
			expected++
		}
	}
	return expected
}

// ReadyCount is the number of Ready nodes.
func ReadyCount(nodes []Node) int {
	n := 0
	for _, node := range nodes {
		if node.Ready == NodeReady {
			n++
		}
	}
	return n
}

// NodeReadyByName reports whether the node of this name, in any case, is Ready.
func NodeReadyByName(nodes []Node, name string) bool {
	return slices.ContainsFunc(nodes, func(n Node) bool { return strings.EqualFold(n.Name, name) && n.Ready == NodeReady })
}

// NodeBackByName reports whether the node of this name, in any case, is Ready,
// and has said so since its VM was started: one that was stopped and started
// within the grace period is Ready all the while.
func NodeBackByName(nodes []Node, name string) bool {
	return slices.ContainsFunc(nodes, func(n Node) bool {
		return strings.EqualFold(n.Name, name) && n.Ready == NodeReady && !n.Silent
	})
}

func hasName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
