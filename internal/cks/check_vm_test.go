package cks

import (
	"strings"
	"testing"
)

// newDeployment is a request that is accepted.
func newDeployment() (DeployFacts, DeployRequest) {
	return DeployFacts{Zone: Zone{ID: "z1", Name: "zone1"}, Offering: testOfferings()["medium"], Template: &Template{ID: "t1", Name: "image", Ready: true}},
		DeployRequest{Name: "box-1", DisplayName: "my box", ZoneID: "z1", OfferingID: "medium", TemplateID: "t1"}
}

// A deployment is refused for the first rule that it breaks.
//
// Keeps: §3.1/13, ours/plain-name, ours/plain-limits.
func TestCheckDeploy(t *testing.T) {
	t.Parallel()
	const badName = `Invalid name. Vm name can contain ASCII letters 'a' through 'z', the digits '0' through '9', and the hyphen ('-'), ` +
		`must be between 1 and 63 characters long, and can't start or end with "-" and can't start with digit`
	const notReady = "Unable to use template t1: it is not in Ready state for datacenter : zone1"
	for _, c := range []struct {
		check string
		code  Code
		text  string
		edit  func(*DeployFacts, *DeployRequest)
	}{
		{"name", Invalid, badName, func(_ *DeployFacts, r *DeployRequest) { r.Name = "-a" }},
		{"name", Invalid, badName, func(_ *DeployFacts, r *DeployRequest) { r.Name = "1a" }},
		{"name", Invalid, badName, func(_ *DeployFacts, r *DeployRequest) { r.Name = "a-" }},
		{"name", Invalid, badName, func(_ *DeployFacts, r *DeployRequest) { r.Name = "a.b" }},
		{"name", Invalid, badName, func(_ *DeployFacts, r *DeployRequest) { r.Name = "a\n" }},
		{"name", Invalid, badName, func(_ *DeployFacts, r *DeployRequest) { r.Name = strings.Repeat("a", 64) }},
		{"name is free", Invalid, "There already exists a VM with the name: box-1.", func(f *DeployFacts, _ *DeployRequest) { f.Taken = true }},
		{"display name", Invalid, "Invalid displayname: it needs at most 255 printable characters", func(_ *DeployFacts, r *DeployRequest) { r.DisplayName = "\x00" }},
		{"display name", Invalid, "Invalid displayname: it needs at most 255 printable characters",
			func(_ *DeployFacts, r *DeployRequest) { r.DisplayName = strings.Repeat("é", 256) }},
		{"template", Invalid, notReady, func(f *DeployFacts, _ *DeployRequest) { f.Template = nil }},
		{"template", Invalid, notReady, func(f *DeployFacts, _ *DeployRequest) { f.Template.Ready = false }},
		{"not custom", Invalid, "Custom service offerings are not supported here, service offering ID: custom",
			func(f *DeployFacts, _ *DeployRequest) { f.Offering = testOfferings()["custom"] }},
		{"resource limits", Failed, "Resource limits prevent creating the Instance: the account may use 4 vCPUs, uses 1 and needs 4 more",
			func(f *DeployFacts, _ *DeployRequest) { f.Limits, f.Used = Limits{Cores: ptr(4)}, Usage{Cores: 1} }},
		{"resource limits", Failed, "Resource limits prevent creating the Instance: the account may use 1 VMs, uses 1 and needs 1 more",
			func(f *DeployFacts, _ *DeployRequest) { f.Limits, f.Used = Limits{VMs: ptr(1)}, Usage{VMs: 1} }},
		{"resource limits", Failed, "Resource limits prevent creating the Instance: the account may use 4095 MB of memory, uses 0 and needs 4096 more",
			func(f *DeployFacts, _ *DeployRequest) { f.Limits = Limits{MemoryMB: ptr(int64(4095))} }},
		{"", "", "", func(*DeployFacts, *DeployRequest) {}},
		{"", "", "", func(_ *DeployFacts, r *DeployRequest) { r.Name, r.DisplayName = "", "" }},
		{"", "", "", func(_ *DeployFacts, r *DeployRequest) { r.Name = strings.Repeat("A", 63) }},
		{"", "", "", func(f *DeployFacts, _ *DeployRequest) {
			f.Limits = Limits{VMs: ptr(1), Cores: ptr(4), MemoryMB: ptr(int64(4096))}
		}},
	} {
		f, req := newDeployment()
		c.edit(&f, &req)
		name, _ := firstBroken(deployChecks, deploying{f, req})
		if name != c.check {
			t.Errorf("%q is refused by %q", c.text, name)
		}
		if err := CheckDeploy(f, req); c.check == "" {
			if err != nil {
				t.Error(err)
			}
		} else {
			checkText(t, err, c.code, c.text)
		}
	}
}

// A member of a cluster is not destroyed by the command for VMs; one that is
// only linked to a cluster that others manage is.
//
// Keeps: §8.6/destroy.
func TestCheckDestroyVM(t *testing.T) {
	t.Parallel()
	const member = "Instance is a part of a Kubernetes cluster: demo. Use Instance delete option from Kubernetes cluster details or " +
		"scale API for Kubernetes clusters with 'nodeids' to destroy the instance."
	for want, v := range map[string]VM{
		member: {ClusterID: "c1", Role: Worker, Phase: Member},
		member + " It is an external node: remove it with removeNodesFromKubernetesCluster first.": {ClusterID: "c1", AccountID: "a1", External: true, Phase: Member},
		"Instance box is being created and can not be destroyed":                                   {AccountID: "a1", Phase: Chosen},
		"Instance box is being destroyed and can not be destroyed":                                 {AccountID: "a1", ClusterID: "c2", Linked: true, Phase: Leaving},
	} {
		v.Name = "box"
		checkText(t, CheckDestroyVM(v, "demo"), Conflict, want)
	}
	checkText(t, CheckDestroyVM(VM{Name: "box", AccountID: "a1", Phase: Doomed}, ""), Conflict, "Instance box is being destroyed and can not be destroyed")
	for _, v := range []VM{{AccountID: "a1", Phase: Member}, {AccountID: "a1", ClusterID: "c2", Linked: true, Phase: Member}} {
		if err := CheckDestroyVM(v, "x"); err != nil {
			t.Error(err)
		}
	}
}

// A VM on its way into a cluster or out of it is neither started nor stopped.
//
// Keeps: ours/nodes-alone.
func TestVMOnItsWayIsLeftAlone(t *testing.T) {
	t.Parallel()
	v := VM{Name: "box", AccountID: "a1", ClusterID: "c1", External: true, Phase: Chosen, State: VMRunning}
	_, err := CheckStopVM(v)
	checkText(t, err, Conflict, "Instance box is being added to a Kubernetes cluster and can not be stopped")
	v.Phase, v.State = Leaving, VMStopped
	_, err = CheckStartVM(v)
	checkText(t, err, Conflict, "Instance box is being removed from a Kubernetes cluster and can not be started")
	for _, v := range []VM{
		{ClusterID: "c1", Role: Worker, Phase: Leaving, State: VMRunning}, // an own worker is stopped as ever
		{AccountID: "a1", ClusterID: "c1", External: true, Phase: Member, State: VMRunning},
	} {
		if kind, err := CheckStopVM(v); kind != StopVM || err != nil {
			t.Errorf("%+v: %s, %v", v, kind, err)
		}
	}
}
