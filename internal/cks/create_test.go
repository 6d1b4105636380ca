package cks

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

type createEdit = func(*CreateFacts, *CreateRequest)

// newCreation is a request that is accepted, for a cluster "demo" on offering
// medium, and what the edit makes of it.
func newCreation(edit createEdit) (CreateFacts, CreateRequest) {
	f := CreateFacts{
		Zone:      Zone{ID: "z1", Name: "zone1"},
		Version:   &KubernetesVersion{ID: "v1", Name: "v1.33.1", Version: "1.33.1", MinCores: 2, MinMemoryMB: 2048, Enabled: true},
		Template:  &Template{ID: "t1", Name: "node-image", Ready: true},
		Templates: map[string]Template{"t2": {ID: "t2", Name: "etcd-image", Ready: true}, "t3": {ID: "t3", Name: "new-image"}},
		Offerings: testOfferings(), MaxSize: 10,
	}
	req := CreateRequest{Name: "demo", ZoneID: "z1", VersionID: "v1", OfferingID: ptr("medium")}
	edit(&f, &req)
	return f, req
}

// with these offerings by type, as pairs.
func creating(offeringID *string, pairs ...string) createEdit {
	return func(_ *CreateFacts, r *CreateRequest) {
		r.OfferingID, r.NodeOfferings = offeringID, nodeOfferings(pairs...).NodeOfferings
		r.EtcdNodes = ptr(int64(3))
	}
}

func needing(cores, memory int, e createEdit) createEdit {
	return func(f *CreateFacts, r *CreateRequest) {
		f.Version.MinCores, f.Version.MinMemoryMB = cores, memory
		e(f, r)
	}
}

// booting names templates by type, as pairs; of a half pair the template is
// missing.
func booting(pairs ...string) createEdit {
	return func(_ *CreateFacts, r *CreateRequest) {
		for pair := range slices.Chunk(pairs, 2) {
			e := NodeTemplate{Node: &pair[0]}
			if len(pair) == 2 {
				e.Template = &pair[1]
			}
			r.NodeTemplates = append(r.NodeTemplates, e)
		}
	}
}

type createRefusal struct {
	check string
	code  Code
	text  string
	edit  createEdit
}

const (
	createCustom = "Custom service offerings are not supported for creating clusters, service offering ID: custom"
	createTiny   = "Kubernetes cluster cannot be created with service offering ID: tiny, Kubernetes cluster template(CoreOS) needs minimum 2 vCPUs and 2048 MB RAM"
	createThin   = "Kubernetes cluster cannot be created with service offering ID: thin, Kubernetes cluster template(CoreOS) needs minimum 2 vCPUs and 2048 MB RAM"
	createCores  = "Kubernetes cluster cannot be created with service offering ID: medium, Kubernetes version ID: v1 needs minimum 5 vCPUs"
	createMemory = "Kubernetes cluster cannot be created with service offering ID: medium, associated Kubernetes version ID: v1 needs minimum 4097 MB RAM"
	createMax    = "Maximum cluster size can not exceed 10. Please contact your administrator"
	createName   = "Invalid name for the Kubernetes cluster name: "
)

var createRefusals = []createRefusal{
	{"service enabled", Failed, "Kubernetes Service plugin is disabled", func(f *CreateFacts, _ *CreateRequest) { f.ServiceDisabled = true }},
	{"node offerings", Invalid, "Incomplete Node Type to Service Offering ID mapping: 'worker' -> ''", creating(nil, "worker", "")},
	{"node offerings", Invalid, "The provided value 'master' for Node Type is invalid", creating(nil, "master", "medium")},
	{"node offerings", Invalid, "Cannot find a service offering with ID nowhere", creating(nil, "worker", "nowhere")},
	{"name", Invalid, createName + " (it needs 1 to 63 printable characters)", func(_ *CreateFacts, r *CreateRequest) { r.Name = "" }},
	{"name", Invalid, createName + "   (it needs 1 to 63 printable characters)", func(_ *CreateFacts, r *CreateRequest) { r.Name = "  " }},
	{"name", Invalid, createName + "a\nb (it needs 1 to 63 printable characters)", func(_ *CreateFacts, r *CreateRequest) { r.Name = "a\nb" }},
	{"name", Invalid, createName + "a\uFFFD (it needs 1 to 63 printable characters)", func(_ *CreateFacts, r *CreateRequest) { r.Name = "a\xff" }},
	{"name", Invalid, createName + strings.Repeat("é", 64) + " (it needs 1 to 63 printable characters)",
		func(_ *CreateFacts, r *CreateRequest) { r.Name = strings.Repeat("é", 64) }},
	{"control nodes", Invalid, "Invalid cluster control nodes count: 0", func(_ *CreateFacts, r *CreateRequest) { r.ControlNodes = ptr(int64(0)) }},
	{"size", Invalid, "Invalid cluster size: 0", func(_ *CreateFacts, r *CreateRequest) { r.Size = ptr(int64(0)) }},
	{"size", Invalid, "Invalid cluster size: -9223372036854775808", func(_ *CreateFacts, r *CreateRequest) { r.Size = ptr(int64(-1 << 63)) }},
	{"etcd nodes", Invalid, "Invalid cluster etcd nodes count: -1", func(_ *CreateFacts, r *CreateRequest) { r.EtcdNodes = ptr(int64(-1)) }},
	{"maximum", Invalid, createMax, func(_ *CreateFacts, r *CreateRequest) { r.Size = ptr(int64(10)) }},
	{"maximum", Invalid, createMax, func(_ *CreateFacts, r *CreateRequest) { r.Size = ptr(int64(1<<63 - 1)) }},
	{"maximum", Invalid, createMax, func(_ *CreateFacts, r *CreateRequest) { r.ControlNodes = ptr(int64(10)) }},
	{"maximum", Invalid, createMax, func(_ *CreateFacts, r *CreateRequest) {
		r.Size, r.ControlNodes = ptr(int64(1<<63-1)), ptr(int64(1<<63-1))
	}},
	{"maximum", Invalid, createMax, func(_ *CreateFacts, r *CreateRequest) { r.EtcdNodes = ptr(int64(11)) }},
	{"zone", Invalid, "Unable to find zone by ID: z9", func(f *CreateFacts, r *CreateRequest) { f.Zone, r.ZoneID = Zone{}, "z9" }},
	{"version", Invalid, "Unable to find given Kubernetes version in supported versions", func(f *CreateFacts, _ *CreateRequest) { f.Version = nil }},
	{"version enabled", Invalid, "Kubernetes version ID: v1 is in Disabled state", func(f *CreateFacts, _ *CreateRequest) { f.Version.Enabled = false }},
	{"version for several control nodes", Invalid, "HA support is available only for Kubernetes version 1.16.0 and above. Given version ID: v1 is 1.9.0",
		func(f *CreateFacts, r *CreateRequest) { f.Version.Version, r.ControlNodes = "1.9.0", ptr(int64(2)) }},
	{"template", Invalid, "Invalid template associated with Kubernetes cluster : demo", func(f *CreateFacts, _ *CreateRequest) { f.Template = nil }},
	{"template", Invalid, "Template : node-image associated with Kubernetes cluster : demo is not in Ready state for datacenter : zone1",
		func(f *CreateFacts, _ *CreateRequest) { f.Template.Ready = false }},
	{"node templates", Invalid, "Incomplete Node Type to template ID mapping: 'worker' -> 'null'", booting("worker")},
	{"node templates", Invalid, "Incomplete Node Type to template ID mapping: '' -> 't2'", booting("", "t2")},
	{"node templates", Invalid, "The provided value 'master' for Node Type is invalid", booting("master", "t2")},
	{"node templates", Invalid, "Cannot find a template with ID t9", booting("default", "t9")},
	{"node templates ready", Invalid, "Template : new-image associated with Kubernetes cluster : demo is not in Ready state for datacenter : zone1",
		booting("control", "t2", "worker", "t3")},
	{"network's zone", Invalid, "Network ID: n1 is not in zone zone1", func(f *CreateFacts, _ *CreateRequest) { f.Network = &Network{ID: "n1", ZoneID: "z2"} }},
	{"network free", Invalid, "Network ID: n1 is already under use by another Kubernetes cluster",
		func(f *CreateFacts, _ *CreateRequest) { f.Network = &Network{ID: "n1", ZoneID: "z1", InUse: true} }},

	{"offering of worker: named", Failed, "The Kubernetes cluster demo does not have a service offering set for node type WORKER",
		creating(nil, "control", "medium", "etcd", "medium", "default", "medium")},
	{"offering of worker: found", Invalid, "No service offering with ID: 99", creating(ptr("99"), "control", "medium", "etcd", "medium")},
	{"offering of worker: not custom", Invalid, createCustom, creating(nil, "worker", "custom", "control", "medium", "etcd", "medium")},
	{"offering of worker: large enough", Invalid, createTiny, creating(nil, "worker", "tiny", "control", "medium", "etcd", "medium")},
	{"offering of worker: large enough", Invalid, createThin, creating(nil, "worker", "thin", "control", "medium", "etcd", "medium")},
	{"offering of worker: vCPUs for the version", Invalid, createCores, needing(5, 2048, creating(nil, "worker", "medium", "control", "large", "etcd", "large"))},
	{"offering of worker: memory for the version", Invalid, createMemory, needing(2, 4097, creating(nil, "worker", "medium", "control", "large", "etcd", "large"))},
	{"offering of worker: large enough", Invalid, createTiny, func(_ *CreateFacts, r *CreateRequest) { // no etcd nodes
		r.NodeOfferings = nodeOfferings("worker", "tiny").NodeOfferings
	}},
	{"offering of control: named", Failed, "The Kubernetes cluster demo does not have a service offering set for node type CONTROL",
		creating(nil, "worker", "medium", "etcd", "medium")},
	{"offering of control: found", Invalid, "No service offering with ID: 99", creating(ptr("99"), "worker", "medium", "etcd", "medium")},
	{"offering of control: not custom", Invalid, createCustom, creating(nil, "worker", "medium", "control", "custom", "etcd", "medium")},
	{"offering of control: large enough", Invalid, createTiny, creating(nil, "worker", "medium", "control", "tiny", "etcd", "medium")},
	{"offering of control: vCPUs for the version", Invalid, createCores, needing(5, 2048, creating(nil, "worker", "large", "control", "medium", "etcd", "large"))},
	{"offering of control: memory for the version", Invalid, createMemory, needing(2, 4097, creating(nil, "worker", "large", "control", "medium", "etcd", "large"))},
	{"offering of etcd: named", Failed, "The Kubernetes cluster demo does not have a service offering set for node type ETCD",
		creating(nil, "worker", "medium", "control", "medium")},
	{"offering of etcd: found", Invalid, "No service offering with ID: 99", creating(ptr("99"), "worker", "medium", "control", "medium")},
	{"offering of etcd: not custom", Invalid, createCustom, creating(nil, "worker", "medium", "control", "medium", "etcd", "custom")},
	{"offering of etcd: large enough", Invalid, createTiny, creating(nil, "worker", "medium", "control", "medium", "etcd", "tiny")},
	{"offering of etcd: vCPUs for the version", Invalid, createCores, needing(5, 2048, creating(nil, "worker", "large", "control", "large", "etcd", "medium"))},
	{"offering of etcd: memory for the version", Invalid, createMemory, needing(2, 4097, creating(nil, "worker", "large", "control", "large", "etcd", "medium"))},
	{"default offering: found", Invalid, "No service offering with ID: 99", creating(ptr("99"), allMedium...)},
	{"default offering: not custom", Invalid, createCustom, creating(ptr("custom"), allMedium...)},
	{"default offering: large enough", Invalid, createTiny, creating(ptr("tiny"), allMedium...)},
	{"default offering: vCPUs for the version", Invalid, createCores, needing(5, 2048, creating(ptr("medium"), allLarge...))},
	{"default offering: memory for the version", Invalid, createMemory, needing(2, 4097, creating(ptr("medium"), allLarge...))},

	{"resource limits", Failed, "Resource limits prevent creating the cluster: the account may use 10 VMs, uses 9 and needs 2 more",
		func(f *CreateFacts, _ *CreateRequest) { f.Limits.VMs, f.Used.VMs = ptr(10), 9 }},
	{"resource limits", Failed, "Resource limits prevent creating the cluster: the account may use 19 vCPUs, uses 0 and needs 20 more",
		func(f *CreateFacts, r *CreateRequest) {
			f.Limits.Cores, r.Size, r.EtcdNodes = ptr(19), ptr(int64(3)), ptr(int64(1))
		}},
	{"resource limits", Failed, "Resource limits prevent creating the cluster: the account may use 8191 MB of memory, uses 0 and needs 8192 more",
		func(f *CreateFacts, _ *CreateRequest) { f.Limits.MemoryMB = ptr(int64(8191)) }},
}

var (
	allMedium = []string{"worker", "medium", "control", "medium", "etcd", "medium"}
	allLarge  = []string{"worker", "large", "control", "large", "etcd", "large"}
)

func (r createRefusal) creation() creation {
	f, req := newCreation(r.edit)
	return creation{f, req, orDefault(req.Size, 1), orDefault(req.ControlNodes, 1), orDefault(req.EtcdNodes, 0)}
}

// Every limit of cks.md §8.6 refuses with its text.
//
// Keeps: §8.6/worker, §8.6/control, §8.6/maximum, §8.6/offering, §8.6/ha.
func TestCreateRefusals(t *testing.T) {
	t.Parallel()
	for _, r := range createRefusals {
		t.Run(r.check+"/"+r.text, func(t *testing.T) {
			t.Parallel()
			f, req := newCreation(r.edit)
			_, err := CheckCreate(f, req)
			checkText(t, err, r.code, r.text)
			if name, _ := outcome(createChecks, "", r.creation()); name != r.check {
				t.Errorf("refused by %q, want %q", name, r.check)
			}
		})
	}
}

func TestCreateChecksAreAllNeeded(t *testing.T) {
	t.Parallel()
	var names []string
	for _, r := range createRefusals {
		names = append(names, r.check)
		if _, text := outcome(createChecks, r.check, r.creation()); text == r.text {
			t.Errorf("without the check %q the request is still refused with %q", r.check, text)
		}
	}
	checkList(t, createChecks, names)
}

// What an accepted create request asks for.
//
// Keeps: §8.4/create, §8.4/etcd-absent.
func TestCreate(t *testing.T) {
	t.Parallel()
	base := Cluster{Name: "demo", State: Created, ZoneID: "z1", VersionID: "v1", TemplateID: "t1",
		DefaultOffering: "medium", Offerings: map[Role]string{}, ControlNodes: 1, Size: 1}
	for _, c := range []struct {
		name string
		edit createEdit
		want func(*Cluster)
	}{
		{"defaults", func(*CreateFacts, *CreateRequest) {}, func(*Cluster) {}},
		{"numbers of nodes", func(_ *CreateFacts, r *CreateRequest) {
			r.Size, r.ControlNodes, r.EtcdNodes = ptr(int64(7)), ptr(int64(3)), ptr(int64(10))
		}, func(c *Cluster) { c.Size, c.ControlNodes, c.EtcdNodes = 7, 3, 10 }},
		{"what is only kept", func(_ *CreateFacts, r *CreateRequest) {
			r.Description, r.Keypair, r.CSI = "of ours", "key", true
		}, func(c *Cluster) { c.Description, c.Keypair, c.CSI = "of ours", "key", true }},
		{"a network", func(f *CreateFacts, r *CreateRequest) {
			r.NetworkID, f.Network = "7", &Network{ID: "n1", Name: "lan", ZoneID: "z1"}
		}, func(c *Cluster) { c.NetworkID, c.NetworkName = "n1", "lan" }},
		{"templates by type", func(f *CreateFacts, r *CreateRequest) {
			booting("Worker", "t3", "WORKER", "T2", "etcd", "t2", "default", "t2")(f, r)
		}, func(c *Cluster) { c.Templates = map[Role]string{Worker: "t2"} }},
		{"a template of etcd nodes", func(f *CreateFacts, r *CreateRequest) {
			r.EtcdNodes = ptr(int64(1))
			booting("etcd", "t2")(f, r)
		}, func(c *Cluster) { c.EtcdNodes, c.Templates = 1, map[Role]string{Etcd: "t2"} }},
		{"a display name", func(_ *CreateFacts, r *CreateRequest) { r.Name = "Prod_A 01" }, func(c *Cluster) { c.Name = "Prod_A 01" }},
		{"the longest name", func(_ *CreateFacts, r *CreateRequest) { r.Name = strings.Repeat("é", 63) },
			func(c *Cluster) { c.Name = strings.Repeat("é", 63) }},
		{"an offering by number", func(_ *CreateFacts, r *CreateRequest) { r.OfferingID = ptr("5") }, func(c *Cluster) { c.DefaultOffering = "large" }},
		{"offerings by type only", func(_ *CreateFacts, r *CreateRequest) {
			r.OfferingID, r.NodeOfferings = nil, nodeOfferings("worker", "LARGE", "Control", "small").NodeOfferings
		}, func(c *Cluster) {
			c.DefaultOffering, c.Offerings = "", map[Role]string{Worker: "large", Control: "small"}
		}},
		{"a worker offering beside the default", func(_ *CreateFacts, r *CreateRequest) {
			r.NodeOfferings = nodeOfferings("worker", "large", "default", "tiny").NodeOfferings
		}, func(c *Cluster) { c.Offerings[Worker] = "large" }},
		{"an etcd offering without etcd nodes", func(_ *CreateFacts, r *CreateRequest) {
			r.NodeOfferings = nodeOfferings("etcd", "tiny").NodeOfferings
		}, func(*Cluster) {}},
		{"an etcd offering with etcd nodes", func(_ *CreateFacts, r *CreateRequest) {
			r.EtcdNodes, r.NodeOfferings = ptr(int64(1)), nodeOfferings("etcd", "large").NodeOfferings
		}, func(c *Cluster) { c.EtcdNodes, c.Offerings[Etcd] = 1, "large" }},
		{"one control node on an old version", func(f *CreateFacts, _ *CreateRequest) { f.Version.Version = "1.9.0" }, func(*Cluster) {}},
		{"just within limits", func(f *CreateFacts, _ *CreateRequest) {
			f.Limits = Limits{VMs: ptr(2), Cores: ptr(8), MemoryMB: ptr(int64(8192))}
		}, func(*Cluster) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, req := newCreation(c.edit)
			got, err := CheckCreate(f, req)
			if err != nil {
				t.Fatal(err)
			}
			want := base
			want.Offerings = map[Role]string{}
			c.want(&want)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

// A delete is refused in every state from which the table has no way.
//
// Keeps: §4/fires-delete-refused.
func TestCheckDelete(t *testing.T) {
	t.Parallel()
	allowed := []State{Running, Stopped, Alert, Error}
	for _, s := range States {
		err := CheckDelete(Cluster{ID: "c1", Name: "demo", State: s})
		if slices.Contains(allowed, s) {
			if err != nil {
				t.Errorf("%s: %v", s, err)
			}
			continue
		}
		checkText(t, err, Conflict, "Cannot perform delete operation on Kubernetes cluster : demo in state: "+string(s))
	}
	checkText(t, CheckDelete(Cluster{ID: "c1", State: Running, Removed: true}), Invalid, "Invalid Kubernetes cluster ID")
	checkText(t, CheckDelete(Cluster{}), Invalid, "Invalid Kubernetes cluster ID")
}

// Starting what runs and stopping what is stopped is no work; what is on its
// way or destroyed is left alone.
func TestStartAndStopVM(t *testing.T) {
	t.Parallel()
	type want struct{ start, stop Kind }
	wants := map[VMState]want{
		VMRunning: {Nothing, StopVM}, VMStopped: {StartVM, Nothing}, VMShutdown: {StartVM, Nothing}, VMUnknown: {"", StopVM},
	}
	for _, s := range VMStates {
		v := VM{Name: "demo-node-1", State: s}
		start, startErr := CheckStartVM(v)
		stop, stopErr := CheckStopVM(v)
		if got := (want{start, stop}); got != wants[s] {
			t.Errorf("%s: %v, want %v", s, got, wants[s])
		}
		if start == "" {
			checkText(t, startErr, Conflict, "Instance demo-node-1 is in "+string(s)+" state and can not be started")
		}
		if stop == "" {
			checkText(t, stopErr, Conflict, "Instance demo-node-1 is in "+string(s)+" state and can not be stopped")
		}
	}
	_, err := CheckStartVM(VM{Name: "demo-node-1", State: VMStopped, Removed: true})
	checkText(t, err, Conflict, "Instance demo-node-1 is in Expunging state and can not be started")
}
