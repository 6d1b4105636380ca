package main

import (
	"fmt"

	"ckscale/cmd/internal/live"
)

type (
	cluster = live.Cluster
	vm      = live.VM
	world   = live.World
	node    = live.Node
)

// ready counts the nodes that are Ready.
func ready(w world) int {
	n := 0
	for _, node := range w.Nodes {
		if node.Ready == live.Ready {
			n++
		}
	}
	return n
}

// up is how many VMs are not down.
func up(w world) int {
	n := 0
	for _, v := range w.VMs {
		if !v.Down() {
			n++
		}
	}
	return n
}

// drains is how often the cloud was asked to drain a node.
func drains(w world) int {
	n := 0
	for _, c := range w.Calls {
		if c.Operation == "node.drain" {
			n += c.Count
		}
	}
	return n
}

// agree checks what holds whenever no job is live: size, list of VMs and cloud
// agree, and no ISO was left attached.
func agree(c cluster, w world) error {
	if c.State == "Scaling" {
		return fmt.Errorf("cluster is in Scaling though no job is live")
	}
	if n := len(c.Workers()); n != c.Size {
		return fmt.Errorf("size is %d and %d workers are listed", c.Size, n)
	}
	for _, v := range w.VMs {
		if !c.Has(v.ID) {
			return fmt.Errorf("VM %s exists and is not listed", v.Name)
		}
		if v.ISO {
			return fmt.Errorf("the ISO is still attached to %s", v.Name)
		}
	}
	for _, n := range w.Nodes {
		if !c.Has(n.VMID) {
			return fmt.Errorf("node %s has no VM", n.Name)
		}
	}
	if len(w.VMs) != len(c.VMs) || len(w.Nodes) != len(c.VMs) {
		return fmt.Errorf("%d VMs are listed; %d exist, with %d nodes", len(c.VMs), len(w.VMs), len(w.Nodes))
	}
	return nil
}
