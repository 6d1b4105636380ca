package cks

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// linking is a request to link VMs to a cluster that others manage, beside the
// facts.
type linking struct {
	c   Cluster
	vms []VM
}

// CheckLink refuses to link vms to c, which has to be externally managed. VMs
// that are linked to it already are no fault.
func CheckLink(c Cluster, vms []VM) error {
	_, err := firstBroken(linkChecks, linking{c, vms})
	return err
}

var linkChecks = []check[linking]{
	{"cluster", "upstream", func(l linking) error { return linkable(l.c, "added to a CloudStack managed") }},
	{"VMs exist", "upstream", func(l linking) error {
		if slices.ContainsFunc(l.vms, func(v VM) bool { return v.Removed }) {
			return Errorf(Invalid, "Invalid VM ID specified")
		}
		return nil
	}},
	{"of no other cluster", "ours", func(l linking) error {
		for _, v := range l.vms {
			if v.ClusterID != "" && v.ClusterID != l.c.ID {
				return Errorf(Invalid, "Instance %s is part of another Kubernetes cluster", v.Name)
			}
		}
		return nil
	}},
	{"settled", "ours", func(l linking) error {
		for _, v := range l.vms {
			if err := settled(v, "added to a Kubernetes cluster"); err != nil {
				return err
			}
		}
		return nil
	}},
}

// CheckUnlink refuses to unlink VMs from a cluster that is not externally
// managed.
func CheckUnlink(c Cluster) error { return linkable(c, "removed from a CloudStack Managed") }

func linkable(c Cluster, what string) error {
	switch {
	case c.ID == "", c.Removed:
		return Errorf(Invalid, "Invalid Kubernetes cluster ID specified")
	case !c.ExternalManaged:
		return Errorf(Invalid, "VM cannot be %s Kubernetes cluster", what)
	case c.State.Busy():
		return Errorf(Conflict, "Kubernetes cluster : %s is in %s state and its VMs can not be changed", c.Name, c.State)
	}
	return nil
}

// WhyNotUnlinked is what is told of a VM that could not be unlinked.
func WhyNotUnlinked(v VM) string {
	if v.Removed {
		return "VM is already removed"
	}
	return "VM is not part of the cluster"
}

// CheckCreateLinked decides what a request to record an externally managed
// cluster means, or why it is refused: like CheckCreate, but the cluster is
// Running at once, and nothing has to be made.
func CheckCreateLinked(f CreateFacts, req CreateRequest) (Cluster, error) {
	c := creation{CreateFacts: f, req: req, workers: orDefault(req.Size, 0),
		control: orDefault(req.ControlNodes, 1), etcd: orDefault(req.EtcdNodes, 0)}
	if _, err := firstBroken(createLinkedChecks, c); err != nil {
		return Cluster{}, err
	}
	cluster := Cluster{
		Name: req.Name, Description: req.Description, State: Running, ExternalManaged: true,
		ZoneID: f.Zone.ID, IPAddress: req.Endpoint,
		Size: int(c.workers), ControlNodes: int(c.control), EtcdNodes: int(c.etcd), Keypair: req.Keypair,
	}
	if f.Network != nil {
		cluster.NetworkID, cluster.NetworkName = f.Network.ID, f.Network.Name
	}
	if f.Version != nil {
		cluster.VersionID = f.Version.ID
	}
	if req.OfferingID != nil {
		cluster.DefaultOffering = c.newcomer("", *req.OfferingID).o.ID
	}
	return cluster, nil
}

// createLinkedChecks are those of createChecks that a mere record needs.
var createLinkedChecks = append(pickChecks(createChecks, "service enabled", "name", "zone", "version enabled"), []check[creation]{
	{"numbers", "ours", func(c creation) error {
		for _, n := range []struct {
			what  string
			nodes int64
		}{{"size", c.workers}, {"control nodes count", c.control}, {"etcd nodes count", c.etcd}} {
			if n.nodes < 0 || n.nodes > int64(c.MaxSize) {
				return Errorf(Invalid, "Invalid cluster %s: %d", n.what, n.nodes)
			}
		}
		return nil
	}},
	{"load balancer", "upstream", func(c creation) error {
		// A zone is of one machine, and could be any text.
		if addr, err := netip.ParseAddr(c.req.Endpoint); c.req.Endpoint != "" && (err != nil || addr.Zone() != "") {
			return Errorf(Invalid, "Invalid external load balancer IP address: %s", strings.ToValidUTF8(c.req.Endpoint, "\uFFFD"))
		}
		return nil
	}},
	{"offering", "upstream", func(c creation) error {
		if c.req.OfferingID != nil && !c.newcomer("", *c.req.OfferingID).found {
			return Errorf(Invalid, "No service offering with ID: %s", *c.req.OfferingID)
		}
		return nil
	}},
}...)

// pickChecks returns the checks of these names, in the order of the list.
func pickChecks[F any](list []check[F], names ...string) []check[F] {
	picked := slices.DeleteFunc(slices.Clone(list), func(c check[F]) bool { return !slices.Contains(names, c.name) })
	if len(picked) != len(names) {
		panic(fmt.Sprintf("not all of %s are checks", strings.Join(names, ", ")))
	}
	return picked
}
