package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Cluster is what is read of a cluster's API object.
type Cluster struct {
	ID, Name, State string
	Size            int
	ControlNodes    int
	Version         string `json:"kubernetesversionname"`
	Offering        string `json:"serviceofferingid"`
	VMs             []VM   `json:"virtualmachines"`
}

// VM is a VM, of a cluster's list or of the simulated cloud.
type VM struct {
	ID, Name, State string
	ISO             bool   `json:"isoattached"`           // of the simulated cloud
	Version         string `json:"kubernetesnodeversion"` // of a cluster's list
}

// Worker reports whether the VM is a worker, by its name, as clients do.
func (v VM) Worker() bool { return strings.Contains(v.Name, "-node-") }

// downStates are those in which a VM certainly runs nothing.
var downStates = []string{"Stopped", "Shutdown", "Error", "Destroyed", "Expunging"}

// Down reports whether the VM certainly runs nothing.
func (v VM) Down() bool { return slices.Contains(downStates, v.State) }

// Workers are in the order of their creation.
func (c Cluster) Workers() []VM {
	return slices.DeleteFunc(slices.Clone(c.VMs), func(v VM) bool { return !v.Worker() })
}

// Controls are the control nodes' VMs, in the order of their creation.
func (c Cluster) Controls() []VM { return slices.DeleteFunc(slices.Clone(c.VMs), VM.Worker) }

// Has reports whether the VM is listed.
func (c Cluster) Has(id string) bool {
	return slices.ContainsFunc(c.VMs, func(v VM) bool { return v.ID == id })
}

// World is the simulated cloud, as querySimulator shows it.
type World struct {
	Calls []WorldCalls `json:"call"`
	Nodes []Node       `json:"node"`
	VMs   []VM         `json:"vm"`
}

// WorldCalls is how often the cloud was asked for an operation on a VM.
type WorldCalls struct {
	Operation string
	VMID      string
	Count     int
}

// Node is a node object.
type Node struct{ Name, VMID, Ready string }

// Ready is Kubernetes' word for a node that is.
const Ready = "True"

// NodeOf returns the node of a VM; its zero value if there is none.
func (w World) NodeOf(vmID string) Node {
	if i := slices.IndexFunc(w.Nodes, func(n Node) bool { return n.VMID == vmID }); i >= 0 {
		return w.Nodes[i]
	}
	return Node{}
}

// Cluster looks at a cluster.
func (c *Client) Cluster(ctx context.Context, id string) (Cluster, error) {
	list, err := Call[struct {
		Clusters []Cluster `json:"kubernetescluster"`
	}](ctx, c, "listKubernetesClusters", "id="+id)
	if err == nil && len(list.Clusters) != 1 {
		err = fmt.Errorf("%d clusters are listed by one id", len(list.Clusters))
	}
	if err != nil {
		return Cluster{}, err
	}
	return list.Clusters[0], nil
}

// World looks at a cluster's part of the simulated cloud.
func (c *Client) World(ctx context.Context, clusterID string) (World, error) {
	return Call[World](ctx, c, "querySimulator", "clusterid="+clusterID)
}

// Simulate gives an order to the simulated cloud.
func (c *Client) Simulate(ctx context.Context, name, value string, params ...string) error {
	_, err := Call[struct{}](ctx, c, "configureSimulator", append(slices.Clone(params), "name="+name, "value="+value)...)
	return err
}
