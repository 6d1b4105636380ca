package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// deployVM makes a plain VM, with the demo cluster's zone, template and offering,
// and returns its id.
func (c *client) deployVM(params ...string) string {
	c.Helper()
	k := c.cluster()
	a := c.call("deployVirtualMachine", append(params,
		"zoneid="+k.text("zoneid"), "templateid="+k.text("templateid"), "serviceofferingid="+k.text("serviceofferingid"))...)
	job := c.ended(a.text("jobid"))
	if vm := job.object("jobresult").object("virtualmachine"); job["jobstatus"] != 1.0 || vm.text("id") != a.text("id") {
		c.Fatalf("deployVirtualMachine %q: %v, job %v", params, a, job)
	}
	return a.text("id")
}

// vm is a VM as listVirtualMachines shows it; nil when it is not listed.
func (c *client) vm(id string) answer {
	c.Helper()
	for _, vm := range c.call("listVirtualMachines", "listall=true").list("virtualmachine") {
		if vm.text("id") == id {
			return vm
		}
	}
	return nil
}

// member is a VM as its cluster shows it; nil when it is none of the cluster's.
func (c *client) member(id string) answer {
	c.Helper()
	for _, vm := range c.cluster().list("virtualmachines") {
		if vm.text("id") == id {
			return vm
		}
	}
	return nil
}

// TestPlainVMsLive: a VM of no cluster is deployed, listed, stopped, started and
// destroyed, and nothing is left of it.
//
// Keeps: ours/plain, ours/plain-name, ours/plain-destroyed.
func TestPlainVMsLive(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id := c.deployVM("name=Box-1", "displayname=my box", "keypair=k", "networkids="+c.cluster().text("networkid"))
	vm := c.vm(id)
	for field, want := range map[string]any{
		"name": "Box-1", "displayname": "my box", "state": "Running", "vmtype": "User", "account": "admin", "keypairs": "k",
	} {
		if vm[field] != want {
			t.Errorf("%s is %v, want %v", field, vm[field], want)
		}
	}
	if nic := vm.list("nic")[0]; nic.text("networkname") != "demo-network" || nic.text("ipaddress") == "" {
		t.Errorf("NIC %v", nic)
	}
	for _, bad := range []struct{ want, param string }{
		{"There already exists a VM with the name: box-1.", "name=box-1"},
		{"Invalid name.", "name=-x"},
	} {
		k := c.cluster()
		status, a := c.send("deployVirtualMachine", bad.param,
			"zoneid="+k.text("zoneid"), "templateid="+k.text("templateid"), "serviceofferingid="+k.text("serviceofferingid"))
		if status != 431 || !strings.Contains(a.text("errortext"), bad.want) {
			t.Errorf("%s: %d %v", bad.param, status, a)
		}
	}
	if got := c.do("stopVirtualMachine", "id="+id).object("virtualmachine").text("state"); got != "Stopped" {
		t.Errorf("stopped it is %s", got)
	}
	if got := c.do("startVirtualMachine", "id="+id).object("virtualmachine").text("state"); got != "Running" {
		t.Errorf("started it is %s", got)
	}
	c.simulate("vm.set", "Error", "vmid="+id)
	c.until("its state is seen", 20*time.Second, func() bool { return c.vm(id).text("state") == "Error" })
	unnamed := c.deployVM("startvm=false")
	if vm := c.vm(unnamed); vm.text("name") != "VM-"+unnamed || vm.text("state") != "Stopped" {
		t.Errorf("the unnamed VM is %v", vm)
	}
	c.consistent()
	for _, id := range []string{id, unnamed} {
		c.do("destroyVirtualMachine", "id="+id, "expunge=true")
		if c.vm(id) != nil {
			t.Errorf("%s is still listed", id)
		}
		if status, a := c.send("destroyVirtualMachine", "id="+id); status != 431 || !strings.Contains(a.text("errortext"), "entity does not exist") {
			t.Errorf("destroyed again: %d %v", status, a)
		}
	}
	c.deployVM("name=Box-1") // the name is free again
	c.consistent()
}

// TestMemberCannotBeDestroyed: by the command for VMs, that is.
//
// Keeps: §8.6/destroy.
func TestMemberCannotBeDestroyed(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	for _, id := range []string{c.workers()[0], c.controls()[0]} {
		c.refused("Instance is a part of a Kubernetes cluster: demo. Use Instance delete option from Kubernetes cluster details or "+
			"scale API for Kubernetes clusters with 'nodeids' to destroy the instance.", "destroyVirtualMachine", "id="+id)
	}
	if n := c.calls("vm.destroy"); n != 0 {
		t.Errorf("%d VMs were destroyed", n)
	}
	c.whole()
}

// TestExternalNodeLives: a plain VM joins the cluster, is counted, is never
// taken by scaling, leaves, and runs on.
//
// Keeps: §4/external-nodes, §8.5/external, seed/external-removal, seed/external-untouched, A31, §8.2/manual-upgrade-kept, §8.5/external-changes, ours/nodes-whole, ours/nodes-own, ours/nodes-removed, ours/nodes-one-left.
func TestExternalNodeLives(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id, own := c.id(), c.workers()
	box := c.deployVM("name=Box")
	before := c.cluster()
	result := c.do("addNodesToKubernetesCluster", "id="+id, "nodeids="+box, "manualupgrade=true").object("kubernetescluster")
	if result.text("state") != "Running" || result["size"] != 3.0 || len(result.list("virtualmachines")) != 6 {
		t.Errorf("result: %v", result)
	}
	if result.text("cpunumber") <= before.text("cpunumber") || result.text("memory") == before.text("memory") {
		t.Errorf("%s cores and %s MB, before %s and %s", result.text("cpunumber"), result.text("memory"), before.text("cpunumber"), before.text("memory"))
	}
	node := c.member(box)
	if node["isexternalnode"] != true || node["manualupgrade"] != true || node.text("name") != "Box" || node.text("kubernetesnodeversion") == "" {
		t.Errorf("the node is %v", node)
	}
	if c.ready(box) != "True" {
		t.Error("the node is not Ready")
	}
	c.inState("Running")
	c.whole()
	c.refused("is already part of the cluster", "addNodesToKubernetesCluster", "id="+id, "nodeids="+box)
	c.refused("removeNodesFromKubernetesCluster", "scaleKubernetesCluster", "id="+id, "nodeids="+box)
	c.refused("It is an external node", "destroyVirtualMachine", "id="+box)
	c.refused("is the cluster's own", "removeNodesFromKubernetesCluster", "id="+id, "nodeids="+own[0])
	c.do("scaleKubernetesCluster", "id="+id, "size=1") // as small as it can be
	if c.member(box) == nil || len(c.workers()) != 0 {
		t.Errorf("size 1 left the workers %v and the external node %v", c.workers(), c.member(box))
	}
	c.refused("Can not remove all nodes", "removeNodesFromKubernetesCluster", "id="+id, "nodeids="+box)
	c.do("scaleKubernetesCluster", "id="+id, "size=2")
	result = c.do("removeNodesFromKubernetesCluster", "id="+id, "nodeids="+box).object("kubernetescluster")
	if result.text("state") != "Running" || result["size"] != 1.0 || len(result.list("virtualmachines")) != 4 {
		t.Errorf("result: %v", result)
	}
	if vm := c.vm(box); vm.text("state") != "Running" || c.ready(box) != "" {
		t.Errorf("the VM is %v, its node %q", vm, c.ready(box))
	}
	if n := c.callsOf("node.drain"); n[box] != 1 {
		t.Errorf("drains: %v", n)
	}
	if n := c.callsOf("vm.destroy"); n[box] != 0 || n[own[0]] == 0 {
		t.Errorf("destroyed: %v", n)
	}
	c.whole()
	c.do("stopVirtualMachine", "id="+box)
	c.refused("has to be Running", "addNodesToKubernetesCluster", "id="+id, "nodeids="+box)
	c.do("startVirtualMachine", "id="+box)
	c.do("addNodesToKubernetesCluster", "id="+id, "nodeids="+box) // again
	if c.member(box)["manualupgrade"] != false {
		t.Error("manualupgrade was kept")
	}
	c.do("stopKubernetesCluster", "id="+id) // it lives as the cluster does
	if got := c.vm(box).text("state"); got != "Stopped" {
		t.Errorf("the VM is %s", got)
	}
	c.do("startKubernetesCluster", "id="+id)
	if c.ready(box) != "True" {
		t.Error("the node has not come back")
	}
	c.whole()
	c.do("deleteKubernetesCluster", "id="+id) // the VM is its owner's
	c.do("stopVirtualMachine", "id="+box)
	c.do("destroyVirtualMachine", "id="+box)
}

// TestExternalNodesInAlert: nodes are added to and removed from a cluster that
// is in Alert; the scanner puts it back there. One that is down is not drained.
//
// Keeps: §4/external-nodes, ours/nodes-removed.
func TestExternalNodesInAlert(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id := c.id()
	boxes := []string{c.deployVM("name=one"), c.deployVM("name=two")}
	c.do("stopVirtualMachine", "id="+c.workers()[0])
	c.inState("Alert")
	if got := c.do("addNodesToKubernetesCluster", "id="+id, "nodeids="+strings.Join(boxes, ",")).object("kubernetescluster"); got.text("state") != "Running" || got["size"] != 4.0 {
		t.Errorf("result: %v", got)
	}
	c.inState("Alert")
	c.do("stopVirtualMachine", "id="+boxes[0])
	c.inState("Alert")
	c.do("removeNodesFromKubernetesCluster", "id="+id, "nodeids="+strings.Join(boxes, ","))
	if n := c.callsOf("node.drain"); n[boxes[0]] != 0 || n[boxes[1]] != 1 {
		t.Errorf("drains: %v", n)
	}
	for i, state := range []string{"Stopped", "Running"} {
		if got := c.vm(boxes[i]).text("state"); got != state {
			t.Errorf("VM %d is %s", i, got)
		}
	}
	c.inState("Alert")
	c.consistent()
	c.do("startVirtualMachine", "id="+c.workers()[0])
	c.inState("Running")
	c.whole()
}

// TestExternalNodeEvents: the commands have events of CloudStack's types.
func TestExternalNodeEvents(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	box := c.deployVM("name=box")
	c.do("addNodesToKubernetesCluster", "id="+c.id(), "nodeids="+box)
	c.do("removeNodesFromKubernetesCluster", "id="+c.id(), "nodeids="+box)
	c.do("destroyVirtualMachine", "id="+box)
	for kind, id := range map[string]string{
		"VM.CREATE": box, "VM.DESTROY": box, "KUBERNETES.CLUSTER.NODES.ADD": c.id(), "KUBERNETES.CLUSTER.NODES.REMOVE": c.id(),
	} {
		var states []string
		for _, e := range c.call("listEvents", "type="+kind, "resourceid="+id).list("event") {
			states = append(states, e.text("state"))
		}
		if want := []string{"Completed", "Started", "Scheduled"}; !slices.Equal(states, want) {
			t.Errorf("%s: %v, want %v", kind, states, want)
		}
	}
}
