package main

import (
	"fmt"
	"slices"
	"strings"
)

// cluster is what the lab reads of a cluster's API object.
type cluster struct {
	ID, Name, State string
	Size            int
	ControlNodes    int
	Version         string `json:"kubernetesversionname"`
	Offering        string `json:"serviceofferingid"`
	VMs             []vm   `json:"virtualmachines"`
}

// vm is a VM, of a cluster's list or of the simulated cloud.
type vm struct {
	ID, Name, State string
	ISO             bool   `json:"isoattached"`           // of the simulated cloud
	Version         string `json:"kubernetesnodeversion"` // of a cluster's list
}

func (v vm) worker() bool { return strings.Contains(v.Name, "-node-") }

// downStates are those in which a VM certainly runs nothing.
var downStates = []string{"Stopped", "Shutdown", "Error", "Destroyed", "Expunging"}

func (v vm) down() bool { return slices.Contains(downStates, v.State) }

// workers are in the order of their creation.
func (c cluster) workers() []vm {
	return slices.DeleteFunc(slices.Clone(c.VMs), func(v vm) bool { return !v.worker() })
}

func (c cluster) controls() []vm { return slices.DeleteFunc(slices.Clone(c.VMs), vm.worker) }

func (c cluster) has(id string) bool {
	return slices.ContainsFunc(c.VMs, func(v vm) bool { return v.ID == id })
}

// world is the simulated cloud, as querySimulator shows it.
type world struct {
	Calls []struct {
		Operation string
		Count     int
	} `json:"call"`
	Nodes []node `json:"node"`
	VMs   []vm   `json:"vm"`
}

type node struct{ Name, VMID, Ready string }

const isReady = "True" // Kubernetes' word for it

// nodeOf returns the node of a VM; its zero value if there is none.
func (w world) nodeOf(vmID string) node {
	if i := slices.IndexFunc(w.Nodes, func(n node) bool { return n.VMID == vmID }); i >= 0 {
		return w.Nodes[i]
	}
	return node{}
}

func (w world) ready() int {
	n := 0
	for _, node := range w.Nodes {
		if node.Ready == isReady {
			n++
		}
	}
	return n
}

// up is how many VMs are not down.
func (w world) up() int {
	return len(w.VMs) - len(slices.DeleteFunc(slices.Clone(w.VMs), func(v vm) bool { return !v.down() }))
}

// drains is how often the cloud was asked to drain a node.
func (w world) drains() int {
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
	if n := len(c.workers()); n != c.Size {
		return fmt.Errorf("size is %d and %d workers are listed", c.Size, n)
	}
	for _, v := range w.VMs {
		if !c.has(v.ID) {
			return fmt.Errorf("VM %s exists and is not listed", v.Name)
		}
		if v.ISO {
			return fmt.Errorf("the ISO is still attached to %s", v.Name)
		}
	}
	for _, n := range w.Nodes {
		if !c.has(n.VMID) {
			return fmt.Errorf("node %s has no VM", n.Name)
		}
	}
	if len(w.VMs) != len(c.VMs) || len(w.Nodes) != len(c.VMs) {
		return fmt.Errorf("%d VMs are listed; %d exist, with %d nodes", len(c.VMs), len(w.VMs), len(w.Nodes))
	}
	return nil
}
