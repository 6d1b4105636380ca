package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// The demo: what a new database is filled with. Ids follow from names, so that
// a start which was cut off finds its own machines when it is repeated, and
// servers that start at once speak of the same ones.

var demoOfferings = []cks.Offering{
	{Name: "tiny", DisplayText: "1 core, 1 GB: too small for a node", Cores: 1, SpeedMHz: 2000, MemoryMB: 1024},
	{Name: "small", DisplayText: "2 cores, 2 GB", Cores: 2, SpeedMHz: 2000, MemoryMB: 2048},
	{Name: "medium", DisplayText: "2 cores, 4 GB", Cores: 2, SpeedMHz: 2000, MemoryMB: 4096},
	{Name: "large", DisplayText: "4 cores, 8 GB", Cores: 4, SpeedMHz: 2000, MemoryMB: 8192},
	{Name: "custom", DisplayText: "Custom size: not for clusters"},
}

// demoVersions are minor versions in a row, and one that is too old for more
// than one control node.
var demoVersions = []string{"1.32.9", "1.33.1", "1.34.1", "1.15.12"}

// demoTemplates ends with the one that new clusters get.
var demoTemplates = []string{"Kubernetes etcd node", demoTemplate}

const (
	demoVersion  = "1.33.1"
	demoOffering = "small"
	demoZone     = "zone1"
	demoTemplate = "Kubernetes node"
	demoCluster  = "demo"
	demoNetwork  = "spare"       // no cluster is in it
	demoEpoch    = 0x19a3c5d8f00 // names of the demo's VMs count from here; see spec/cks.md §8.1
)

var demoNodes = []cks.Role{cks.Control, cks.Control, cks.Control, cks.Worker, cks.Worker}

func demoID(kind, name string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("ckscale:demo:"+kind+":"+name)).String()
}

// adopter is a world that can be given machines that already run.
type adopter interface {
	Adopt(ctx context.Context, specs []cks.MachineSpec) error
	Machines(ctx context.Context, clusterID string) ([]cks.Machine, error)
}

// fillDemo fills an empty database, and no other. The machines come first: a
// crash before the rows are committed leaves the database empty, and the next
// start finds the same machines again.
func fillDemo(ctx context.Context, st *store.Store, world adopter, owner cks.Account) error {
	empty, err := st.Empty(ctx)
	if err != nil || !empty {
		return err
	}
	vms, err := demoMachines(ctx, world)
	if err != nil {
		return fmt.Errorf("demo cluster: %w", err)
	}
	err = st.InTx(ctx, func(q *store.Queries) error {
		if err := q.Alone(ctx); err != nil {
			return err
		}
		if empty, err := q.Empty(ctx); err != nil || !empty {
			return err // another server was first
		}
		if err := addDemoCatalog(ctx, q); err != nil {
			return err
		}
		return addDemoCluster(ctx, q, owner, vms)
	})
	if err != nil {
		return fmt.Errorf("demo data: %w", err)
	}
	return nil
}

// demoMachines makes the demo's machines in the world and returns their rows.
func demoMachines(ctx context.Context, world adopter) ([]cks.VM, error) {
	cluster := demoID("cluster", demoCluster)
	specs := make([]cks.MachineSpec, len(demoNodes))
	vms := make([]cks.VM, len(demoNodes))
	index := make(map[string]int)
	for i, role := range demoNodes {
		word := "control"
		if role == cks.Worker {
			word = "node"
		}
		name := fmt.Sprintf("%s-%s-%x", demoCluster, word, demoEpoch+i)
		vms[i] = cks.VM{
			ID: demoID("vm", name), ClusterID: cluster, Name: name, Role: role,
			OfferingID: demoID("offering", demoOffering), NodeVersion: demoVersion,
		}
		index[vms[i].ID] = i
		o := offeringNamed(demoOffering)
		specs[i] = cks.MachineSpec{
			ID: vms[i].ID, ClusterID: cluster, Name: name, Role: role, Cores: o.Cores, MemoryMB: o.MemoryMB, Version: demoVersion,
		}
	}
	if err := world.Adopt(ctx, specs); err != nil {
		return nil, err
	}
	machines, err := world.Machines(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for _, m := range machines {
		if i, ok := index[m.ID]; ok {
			vms[i].State, vms[i].IPAddress, vms[i].MACAddress = m.State, m.IPAddress, m.MACAddress
		}
	}
	return vms, nil
}

func offeringNamed(name string) cks.Offering {
	for _, o := range demoOfferings {
		if o.Name == name {
			return o
		}
	}
	return cks.Offering{}
}

func addDemoCatalog(ctx context.Context, q *store.Queries) error {
	if _, err := q.AddZone(ctx, cks.Zone{ID: demoID("zone", demoZone), Name: demoZone}); err != nil {
		return err
	}
	for _, name := range demoTemplates {
		if _, err := q.AddTemplate(ctx, cks.Template{ID: demoID("template", name), Name: name, Ready: true}); err != nil {
			return err
		}
	}
	for _, o := range demoOfferings {
		o.ID = demoID("offering", o.Name)
		if _, err := q.AddOffering(ctx, o); err != nil {
			return err
		}
	}
	for _, number := range demoVersions {
		v := cks.KubernetesVersion{
			ID: demoID("version", number), Name: "v" + number, Version: number,
			ISOID: demoID("iso", number), ISOName: "v" + number + "-Kubernetes-Binaries-ISO",
			MinCores: 2, MinMemoryMB: 2048, Enabled: true,
		}
		if _, err := q.AddVersion(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func addDemoCluster(ctx context.Context, q *store.Queries, owner cks.Account, vms []cks.VM) error {
	c := cks.Cluster{
		ID: demoID("cluster", demoCluster), Name: demoCluster, Description: "A cluster to try things on",
		AccountID: owner.ID, ZoneID: demoID("zone", demoZone), VersionID: demoID("version", demoVersion),
		TemplateID: demoID("template", demoTemplate), NetworkID: demoID("network", demoCluster),
		NetworkName: demoCluster + "-network", DefaultOffering: demoID("offering", demoOffering),
		State: cks.Running, IPAddress: "192.0.2.10", IPAddressID: demoID("address", demoCluster),
	}
	for _, role := range demoNodes {
		if role == cks.Control {
			c.ControlNodes++
		} else {
			c.Size++
		}
	}
	if _, err := q.AddCluster(ctx, c); err != nil {
		return err
	}
	spare := cks.Network{ID: demoID("network", demoNetwork), Name: demoNetwork, AccountID: owner.ID, ZoneID: c.ZoneID}
	if _, err := q.AddNetwork(ctx, spare); err != nil {
		return err
	}
	for _, v := range vms {
		if _, err := q.AddVM(ctx, v); err != nil {
			return err
		}
	}
	return nil
}
