package http

import (
	"slices"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// etcdIPs are the public addresses that lead to etcd nodes, by their ids: the
// cluster's only one, if it has such nodes. Empty is not the same as absent.
func etcdIPs(v cks.ClusterView) *map[string]string {
	ips := map[string]string{}
	etcd := slices.ContainsFunc(v.VMs, func(vm cks.VM) bool { return vm.Role == cks.Etcd })
	if c := v.Cluster; etcd && c.IPAddress != "" {
		ips[c.IPAddressID] = c.IPAddress
	}
	return &ips
}

func encodeTemplate(t cks.Template) api.Template {
	status := "Not Ready"
	if t.Ready {
		status = "Download Complete"
	}
	return api.Template{
		Id:            t.ID,
		Name:          t.Name,
		Displaytext:   t.Name,
		Created:       date(t.Created),
		Isready:       t.Ready,
		Status:        status,
		Ispublic:      true,
		Isfeatured:    true,
		Sshkeyenabled: true,
		CrossZones:    true,
		Forcks:        true,
		Format:        "RAW",
		Hypervisor:    "Simulator",
		Templatetype:  "SYSTEM",
		Account:       "system",
		Domain:        "ROOT",
	}
}

// guestCIDR are the addresses of the simulated machines; every cluster has them
// in a network of its own.
const guestCIDR = "10.1.0.0/16"

func encodeNetwork(v cks.NetworkView) api.Network {
	n := v.Network
	state := "Allocated"
	if n.InUse {
		state = "Implemented"
	}
	out := api.Network{
		Id:                  n.ID,
		Name:                n.Name,
		Displaytext:         n.Name,
		Type:                "Isolated",
		Traffictype:         "Guest",
		Acltype:             "Account",
		State:               state,
		Broadcastdomaintype: "Vlan",
		Cidr:                guestCIDR,
		Zoneid:              v.Zone.ID,
		Zonename:            v.Zone.Name,
		Account:             ownName(v.Account),
		Projectid:           v.Account.ProjectID,
		Project:             v.Account.Project,
		Domainid:            v.Account.DomainID,
		Domain:              v.Account.Domain,
		Domainpath:          v.Account.DomainPath,
		Created:             date(n.Created),
		Canusefordeploy:     true,
		Displaynetwork:      true,
		Service:             []map[string]any{},
	}
	out.Netmask, out.Gateway = guestNetwork("10.1.0.1")
	return out
}
