package http

import (
	"strconv"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// date is CloudStack's form of a time.
func date(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05-0700") }

// ownName is the name of an owner that is an account: what belongs to a project
// shows that instead (cks.md §2.6).
func ownName(owner cks.Account) string {
	if owner.ProjectID != "" {
		return ""
	}
	return owner.Name
}

// encodeCluster returns a cluster's API object (cks.md §2.6).
func encodeCluster(v cks.ClusterView) api.KubernetesCluster {
	c := v.Cluster
	out := api.KubernetesCluster{
		Id:                    c.ID,
		Name:                  c.Name,
		Description:           c.Description,
		Zoneid:                v.Zone.ID,
		Zonename:              v.Zone.Name,
		Networkid:             c.NetworkID,
		Associatednetworkname: c.NetworkName,
		Account:               ownName(v.Account),
		Projectid:             v.Account.ProjectID,
		Project:               v.Account.Project,
		Domainid:              v.Account.DomainID,
		Domain:                v.Account.Domain,
		Domainpath:            v.Account.DomainPath,
		Keypair:               c.Keypair,
		Masternodes:           c.ControlNodes,
		Controlnodes:          c.ControlNodes,
		Etcdnodes:             c.EtcdNodes,
		Size:                  c.Size,
		State:                 string(c.State),
		Endpoint:              c.Endpoint,
		Virtualmachines:       []api.VirtualMachine{},
		Autoscalingenabled:    c.Autoscaling.Enabled,
		Csienabled:            c.CSI,
		Clustertype:           clusterType(c),
		Created:               date(c.Created),
	}
	out.Serviceofferingid, out.Serviceofferingname = offeringOf(v, c.DefaultOffering)
	out.Workerofferingid, out.Workerofferingname = offeringOf(v, c.Offerings[cks.Worker])
	out.Controlofferingid, out.Controlofferingname = offeringOf(v, c.Offerings[cks.Control])
	out.Etcdofferingid, out.Etcdofferingname = offeringOf(v, c.Offerings[cks.Etcd])
	if v.Template != nil {
		out.Templateid, out.Templatename = v.Template.ID, v.Template.Name
	}
	if v.Version != nil {
		out.Kubernetesversionid, out.Kubernetesversionname = v.Version.ID, v.Version.Name
	}
	if c.IPAddress != "" {
		out.Ipaddress, out.Ipaddressid = c.IPAddress, c.IPAddressID
	}
	if c.Autoscaling.Enabled {
		out.Minsize, out.Maxsize = c.Autoscaling.Min, c.Autoscaling.Max
	}
	cores, memory := 0, 0
	for _, vm := range v.VMs {
		cores, memory = cores+vm.Cores, memory+vm.MemoryMB
		out.Virtualmachines = append(out.Virtualmachines, encodeNode(v, vm))
	}
	if len(v.VMs) > 0 {
		out.Etcdips = etcdIPs(v)
	}
	// Strings here, numbers in a VM: clients decode no other way (A04).
	out.Cpunumber, out.Memory = strconv.Itoa(cores), strconv.Itoa(memory)
	return out
}

// The types of clusters.
const (
	cloudManaged    = "CloudManaged"
	externalManaged = "ExternalManaged"
)

func clusterType(c cks.Cluster) string {
	if c.ExternalManaged {
		return externalManaged
	}
	return cloudManaged
}

// offeringOf returns an offering's id and name, or nothing for no id.
func offeringOf(v cks.ClusterView, id string) (string, string) {
	if id == "" {
		return "", ""
	}
	return id, v.Offerings[id].Name
}
