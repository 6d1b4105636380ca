package main

import (
	"strings"
	"testing"
)

// TestExternallyManagedClusterAsCAPCDrivesIt: recorded without version, offering
// and size, given and taken machines that others make, and forgotten
// (clients.md §4). The service does nothing to it.
//
// Keeps: §3.1/6, ours/linked-create, ours/linked-vms, ours/linked-refused, ours/linked-delete, ours/linked-scanner.
func TestExternallyManagedClusterAsCAPCDrivesIt(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	zone := c.cluster().text("zoneid")
	made := c.call("createKubernetesCluster", "name=capc", "description=CAPC", "zoneid="+zone, "size=0", "clustertype=ExternalManaged",
		"externalloadbalanceripaddress=192.0.2.10")
	id := made.text("id")
	job := c.call("queryAsyncJobResult", "jobid="+made.text("jobid"))
	k := job.object("jobresult").object("kubernetescluster")
	for field, want := range map[string]any{
		"id": id, "state": "Running", "clustertype": "ExternalManaged", "size": 0.0, "controlnodes": 1.0, "ipaddress": "192.0.2.10",
		"endpoint": "https://192.0.2.10:6443/", "kubernetesversionid": nil, "serviceofferingid": nil,
	} {
		if k[field] != want {
			t.Errorf("%s is %v, want %v", field, k[field], want)
		}
	}
	if job["jobstatus"] != 1.0 {
		t.Errorf("the job is %v", job)
	}
	listed := func() answer {
		list := c.call("listKubernetesClusters", "clustertype=ExternalManaged").list("kubernetescluster")
		if len(list) != 1 || list[0].text("id") != id || list[0].text("state") != "Running" {
			t.Fatalf("listed: %v", list)
		}
		return list[0]
	}
	control, worker := c.deployVM("name=capc-control-0"), c.deployVM("name=capc-md-0")
	link := func(control string, vms ...string) {
		if a := c.call("addVirtualMachinesToKubernetesCluster", "id="+id, "virtualmachineids="+strings.Join(vms, ","), "iscontrolnode="+control); a["success"] != true {
			t.Errorf("linked: %v", a)
		}
	}
	link("true", control)
	link("false", worker, control) // it stays what it is
	if k := listed(); k["size"] != 1.0 || k["controlnodes"] != 1.0 || len(k.list("virtualmachines")) != 2 {
		t.Errorf("the cluster is %v", k)
	}
	for text, param := range map[string]string{
		"VM cannot be added to a CloudStack managed Kubernetes cluster": "id=" + c.id(),
		"Invalid Kubernetes cluster ID specified":                       "id=4711",
	} {
		if status, a := c.send("addVirtualMachinesToKubernetesCluster", param, "virtualmachineids="+worker); status != 431 || a.text("errortext") != text {
			t.Errorf("%s: %d %v", param, status, a)
		}
	}
	if status, a := c.send("removeVirtualMachinesFromKubernetesCluster", "id="+c.id(), "virtualmachineids="+c.workers()[0]); status != 431 ||
		a.text("errortext") != "VM cannot be removed from a CloudStack Managed Kubernetes cluster" {
		t.Errorf("removed from the demo cluster: %d %v", status, a)
	}
	c.refused("is not supported for an externally managed cluster (capc)", "scaleKubernetesCluster", "id="+id, "size=2")
	c.refused("is not supported for an externally managed cluster (capc)", "scaleKubernetesCluster", "id="+id, "autoscalingenabled=true", "minsize=1", "maxsize=2")
	for command, what := range map[string]string{"startKubernetesCluster": "Start", "stopKubernetesCluster": "Stop", "upgradeKubernetesCluster": "Upgrade"} {
		c.refused(what+" kubernetes cluster is not supported for an externally managed cluster (capc)", command, "id="+id,
			"kubernetesversionid="+c.cluster().text("kubernetesversionid"))
	}
	c.refused("is not supported for an externally managed cluster (capc)", "addNodesToKubernetesCluster", "id="+id, "nodeids="+worker)
	c.refused("is part of another Kubernetes cluster", "addNodesToKubernetesCluster", "id="+c.id(), "nodeids="+worker)
	c.do("stopVirtualMachine", "id="+worker) // the scanner leaves the cluster alone
	if v := listed().list("virtualmachines"); v[1].text("state") != "Stopped" {
		t.Errorf("the VM is %v", v[1])
	}
	c.consistent()
	unlinked := c.call("removeVirtualMachinesFromKubernetesCluster", "id="+id, "virtualmachineids="+worker+","+c.workers()[0])
	for _, u := range unlinked.list("removevirtualmachinesfromkubernetesclusterresponse") {
		if linked := u.text("id") == worker; u["success"] != linked || (u.text("displaytext") == "VM is not part of the cluster") == linked {
			t.Errorf("unlinked: %v", u)
		}
	}
	if k := listed(); unlinked["count"] != 2.0 || k["size"] != 0.0 || k["controlnodes"] != 1.0 {
		t.Errorf("%v; the cluster is %v", unlinked, k)
	}
	link("false", worker)
	c.do("destroyVirtualMachine", "id="+worker) // it is no member: CAPC destroys its own
	if k := listed(); k["size"] != 0.0 || len(k.list("virtualmachines")) != 1 {
		t.Errorf("the cluster is %v", k)
	}
	if job := c.call("queryAsyncJobResult", "jobid="+c.start("deleteKubernetesCluster", "id="+id)); job["jobstatus"] != 1.0 || job.object("jobresult")["success"] != true {
		t.Errorf("deleted: %v", job)
	}
	if list := c.call("listKubernetesClusters", "clustertype=ExternalManaged").list("kubernetescluster"); len(list) != 0 || c.vm(control).text("state") != "Running" {
		t.Errorf("listed: %v; the VM is %v", list, c.vm(control))
	}
	c.consistent()
}

// TestExternallyManagedClusterGoesWithItsVMs: when that is asked for.
//
// Keeps: ours/linked-delete.
func TestExternallyManagedClusterGoesWithItsVMs(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id := c.call("createKubernetesCluster", "name=capc", "zoneid="+c.cluster().text("zoneid"), "clustertype=ExternalManaged").text("id")
	box, other := c.deployVM("name=capc-control-0"), c.deployVM("name=other")
	c.call("addVirtualMachinesToKubernetesCluster", "id="+id, "virtualmachineids="+box, "iscontrolnode=true")
	c.do("deleteKubernetesCluster", "id="+id, "cleanup=true")
	if c.vm(box) != nil || c.vm(other) == nil {
		t.Errorf("linked %v, other %v", c.vm(box), c.vm(other))
	}
	c.consistent()
}
