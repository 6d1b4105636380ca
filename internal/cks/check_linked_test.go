package cks

import (
	"reflect"
	"testing"
)

// What links VMs to a cluster that others manage, and unlinks them, is for such
// clusters only.
//
// Keeps: ours/linked-vms.
func TestCheckLink(t *testing.T) {
	t.Parallel()
	outside := Cluster{ID: "c1", Name: "outside", AccountID: "a1", State: Running, ExternalManaged: true}
	managed := Cluster{ID: "c1", Name: "demo", State: Running}
	removed := outside
	removed.Removed = true
	plain := VM{ID: "p1", Name: "box", AccountID: "a1", Phase: Member}
	for _, c := range []struct {
		cluster Cluster
		edit    func(*VM)
		code    Code
		text    string
	}{
		{managed, nil, Invalid, "VM cannot be added to a CloudStack managed Kubernetes cluster"},
		{removed, nil, Invalid, "Invalid Kubernetes cluster ID specified"},
		{Cluster{}, nil, Invalid, "Invalid Kubernetes cluster ID specified"},
		{outside, func(v *VM) { v.Removed = true }, Invalid, "Invalid VM ID specified"},
		{outside, func(v *VM) { v.ClusterID = "c2" }, Invalid, "Instance box is part of another Kubernetes cluster"},
		{outside, func(v *VM) { v.Phase = Leaving }, Conflict, "Instance box is being destroyed and can not be added to a Kubernetes cluster"},
		{outside, nil, "", ""},
		{outside, func(v *VM) { v.ClusterID, v.Linked = "c1", true }, "", ""},
		{outside, func(v *VM) { v.State = VMStopped }, "", ""},
	} {
		v := plain
		if c.edit != nil {
			c.edit(&v)
		}
		if err := CheckLink(c.cluster, []VM{plain, v}); c.code == "" {
			if err != nil {
				t.Error(err)
			}
		} else {
			checkText(t, err, c.code, c.text)
		}
	}
	checkText(t, CheckUnlink(managed), Invalid, "VM cannot be removed from a CloudStack Managed Kubernetes cluster")
	checkText(t, CheckUnlink(Cluster{}), Invalid, "Invalid Kubernetes cluster ID specified")
	if err := CheckUnlink(outside); err != nil {
		t.Error(err)
	}
}

// An externally managed cluster needs a name and a zone, and is a record of what
// was asked for.
//
// Keeps: ours/linked-create.
func TestCheckCreateLinked(t *testing.T) {
	t.Parallel()
	base := Cluster{Name: "demo", State: Running, ExternalManaged: true, ZoneID: "z1", ControlNodes: 1}
	for _, c := range []struct {
		text string // refused with it
		edit createEdit
		want func(*Cluster)
	}{
		{"", func(*CreateFacts, *CreateRequest) {}, func(*Cluster) {}},
		{"", func(_ *CreateFacts, r *CreateRequest) {
			r.Size, r.ControlNodes, r.Endpoint, r.Description, r.Keypair = ptr(int64(0)), ptr(int64(3)), "192.0.2.7", "d", "k"
		}, func(c *Cluster) { c.ControlNodes, c.IPAddress, c.Description, c.Keypair = 3, "192.0.2.7", "d", "k" }},
		{"", func(f *CreateFacts, r *CreateRequest) {
			f.Version, r.OfferingID = &KubernetesVersion{ID: "v1", Enabled: true}, ptr("medium")
		}, func(c *Cluster) { c.VersionID, c.DefaultOffering = "v1", "medium" }},
		{"", func(_ *CreateFacts, r *CreateRequest) { r.Endpoint = "2001:db8::1" }, func(c *Cluster) { c.IPAddress = "2001:db8::1" }},
		{createName + " (it needs 1 to 63 printable characters)", func(_ *CreateFacts, r *CreateRequest) { r.Name = "" }, nil},
		{"Unable to find zone by ID: z1", func(f *CreateFacts, _ *CreateRequest) { f.Zone = Zone{} }, nil},
		{"Kubernetes version ID: v1 is in Disabled state", func(f *CreateFacts, _ *CreateRequest) { f.Version = &KubernetesVersion{ID: "v1"} }, nil},
		{"Invalid cluster size: -1", func(_ *CreateFacts, r *CreateRequest) { r.Size = ptr(int64(-1)) }, nil},
		{"Invalid cluster control nodes count: 11", func(_ *CreateFacts, r *CreateRequest) { r.ControlNodes = ptr(int64(11)) }, nil},
		{"Invalid cluster etcd nodes count: -2", func(_ *CreateFacts, r *CreateRequest) { r.EtcdNodes = ptr(int64(-2)) }, nil},
		{"Invalid external load balancer IP address: here", func(_ *CreateFacts, r *CreateRequest) { r.Endpoint = "here" }, nil},
		{"Invalid external load balancer IP address: fe80::1%x/y", func(_ *CreateFacts, r *CreateRequest) { r.Endpoint = "fe80::1%x/y" }, nil},
		{"No service offering with ID: 99", func(_ *CreateFacts, r *CreateRequest) { r.OfferingID = ptr("99") }, nil},
	} {
		f := CreateFacts{Zone: Zone{ID: "z1", Name: "zone1"}, Offerings: testOfferings(), MaxSize: 10}
		req := CreateRequest{Name: "demo", ZoneID: "z1"}
		c.edit(&f, &req)
		got, err := CheckCreateLinked(f, req)
		if c.text != "" {
			checkText(t, err, Invalid, c.text)
			continue
		}
		want := base
		c.want(&want)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v\n%+v\nwant\n%+v", err, got, want)
		}
	}
}
