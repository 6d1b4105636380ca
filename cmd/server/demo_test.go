package main

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"
)

// The seed's lab report, S1-S5, and the acceptance list of cks.md §11, through
// HTTP on whole servers.

// TestStoppedWorkerMeansAlert is S1, and the end of S5: started again, the
// cluster is Running (cks.md §11.1, §11.9).
//
// Keeps: §8.6/stop, §4/fires-scanner.
// Keeps: §2.8/stopped.
// Keeps: §11/1, §11/9, #14603.
// Keeps: seed/S1, seed/S5, seed/scanner-alert.
func TestStoppedWorkerMeansAlert(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	w := c.workers()[0]
	if vm := c.do("stopVirtualMachine", "id="+w).object("virtualmachine"); vm.text("state") != "Stopped" {
		t.Errorf("the VM is %v", vm["state"])
	}
	c.inState("Alert")
	if vm := c.do("startVirtualMachine", "id="+w).object("virtualmachine"); vm.text("state") != "Running" {
		t.Errorf("the VM is %v", vm["state"])
	}
	c.inState("Running")
	c.consistent()
}

// TestAlertScalesUp is S2: size 2 to 3 with one worker stopped. The result is
// the final one; the scanner puts the cluster back in Alert (cks.md §11.2).
//
// Keeps: §3.6/accepted.
// Keeps: §11/2, §5.2/5, §5.2/iso-after-ready, §6/after-scale, #14603.
// Keeps: seed/S2, seed/S2-result, seed/alert-scales, seed/scanner-alert-again, seed/iso-after-join.
func TestAlertScalesUp(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_SIM_SPEED": "20"})
	id, w := c.id(), c.workers()[0]
	c.do("stopVirtualMachine", "id="+w)
	c.inState("Alert")
	job := c.start("scaleKubernetesCluster", "id="+id, "size=3")
	held := c.isoHeldUntilReady(job)
	result := c.ended(job).object("jobresult").object("kubernetescluster")
	if result.text("state") != "Running" || result["size"] != 3.0 || len(result.list("virtualmachines")) != 6 {
		t.Errorf("result: %v", result)
	}
	if !held {
		t.Error("the ISO was never seen attached")
	}
	c.inState("Alert")
	c.consistent()
	c.do("startVirtualMachine", "id="+w)
	c.inState("Running")
	c.do("scaleKubernetesCluster", "id="+id, "size=4") // a normal one afterwards waits on nothing
	c.consistent()
}

// isoHeldUntilReady watches a scale-up by one: once attached, the ISO may go
// only after the new node is Ready.
func (c *client) isoHeldUntilReady(job string) (seen bool) {
	c.Helper()
	attached := ""
	c.until("job ended", time.Minute, func() bool {
		ended := c.call("queryAsyncJobResult", "jobid="+job)["jobstatus"] != 0.0
		world := c.call("querySimulator")
		still := false
		for _, vm := range world.list("vm") {
			if vm["isoattached"] == true {
				seen, still, attached = true, true, vm.text("id")
			}
		}
		if ended && still {
			c.Fatal("the job has ended with the ISO attached")
		}
		if seen && !still {
			for _, node := range world.list("node") {
				if node.text("vmid") == attached && node.text("ready") == "True" {
					return ended
				}
			}
			c.Fatal("the ISO was detached before the new node was Ready")
		}
		return ended
	})
	return seen
}

// TestStaleReadyDoesNotEndScaleUp is the deterministic variant of S2: in Alert
// with worker 1 long down, worker 2 is stopped just before size=3. The 3
// control nodes and its stale Ready make the expected 4 at once; the scale-up
// keeps waiting for the new node (cks.md §11.3).
//
// Keeps: §11/3, §5.2/by-name, §5.2/iso-after-ready.
// Keeps: seed/S2-stale, seed/S2-alert, seed/S2-then-down, seed/S2-then-up, seed/by-name, seed/iso-after-join.
func TestStaleReadyDoesNotEndScaleUp(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_SIM_SPEED": "10"})
	id, w := c.id(), c.workers()
	c.do("stopVirtualMachine", "id="+w[0])
	c.until("worker 1 is Unknown", 20*time.Second, func() bool { return c.ready(w[0]) == "Unknown" })
	c.inState("Alert")
	c.simulate("vm.set", "Stopped", "vmid="+w[1])
	job := c.start("scaleKubernetesCluster", "id="+id, "size=3")
	if c.ready(w[1]) != "True" {
		t.Fatal("worker 2 is not stale any more: the scenario needs a slower simulation")
	}
	if !c.isoHeldUntilReady(job) {
		t.Error("the ISO was never seen attached")
	}
	if status := c.ended(job)["jobstatus"]; status != 1.0 {
		t.Fatalf("job: %v", c.ended(job))
	}
	if fresh := c.workers()[2]; c.ready(fresh) != "True" {
		t.Errorf("the new node is %q", c.ready(fresh))
	}
	c.inState("Alert") // both stopped workers are still in it
	c.do("scaleKubernetesCluster", "id="+id, "size=1")
	if left := c.workers(); len(left) != 1 || slices.Contains(w, left[0]) {
		t.Errorf("left: %v", left)
	}
	if n := c.calls("node.drain"); n != 0 {
		t.Errorf("%d drains", n)
	}
	c.inState("Running")
	c.consistent()
	c.do("scaleKubernetesCluster", "id="+id, "size=2")
	c.consistent()
}

// TestAlertScalesDown is S3: the stopped worker goes first and undrained, its
// node object too; with two stopped, both go (cks.md §11.4).
//
// Keeps: §3.6/accepted.
// Keeps: §2.7/gone.
// Keeps: §11/4, §5.3/down-first, #14603.
// Keeps: seed/S3, seed/S3-two, seed/alert-scales, seed/no-drain, seed/node-object.
func TestAlertScalesDown(t *testing.T) {
	t.Parallel()
	for down := 1; down <= 2; down++ {
		t.Run(fmt.Sprint(down), func(t *testing.T) {
			t.Parallel()
			c := demo(t, nil)
			id := c.id()
			c.do("scaleKubernetesCluster", "id="+id, "size=3")
			w := c.workers()
			for _, vm := range w[:down] { // the oldest ones
				c.do("stopVirtualMachine", "id="+vm)
			}
			c.inState("Alert")
			result := c.do("scaleKubernetesCluster", "id="+id, fmt.Sprintf("size=%d", 3-down)).object("kubernetescluster")
			if result.text("state") != "Running" || !slices.Equal(c.workers(), w[down:]) {
				t.Errorf("%s with %v of %v", result.text("state"), c.workers(), w)
			}
			for _, vm := range w[:down] {
				if s := c.ready(vm); s != "" {
					t.Errorf("the node object of a removed worker is there: %s", s)
				}
			}
			if n := c.calls("node.drain"); n != 0 {
				t.Errorf("%d drains", n)
			}
			c.consistent()
		})
	}
}

// TestAlertRemovesNamedWorker is S4, asked for as the cluster-autoscaler does;
// a scale-up follows, and the same request again is refused (cks.md §11.5, A25,
// A43).
//
// Keeps: §3.6/accepted.
// Keeps: §11/5, §5.4/down, #14603.
// Keeps: seed/S4, seed/S4-then-up, seed/accept-nodeids.
func TestAlertRemovesNamedWorker(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id, w := c.id(), c.workers()
	c.do("stopVirtualMachine", "id="+w[1])
	c.inState("Alert")
	result := c.do("scaleKubernetesCluster", "id="+id, "nodeids="+w[1]).object("kubernetescluster")
	if result.text("state") != "Running" || result["size"] != 1.0 || len(result.list("virtualmachines")) != 4 {
		t.Errorf("result: %v", result)
	}
	if n := c.calls("node.drain"); n != 0 {
		t.Errorf("%d drains", n)
	}
	c.refused("Invalid node ids", "scaleKubernetesCluster", "id="+id, "nodeids="+w[1])
	c.do("scaleKubernetesCluster", "id="+id, "size=2")
	c.consistent()
}

// TestAlertRefusals is S5a-e, with the other rules of cks.md §3.6 and what is
// accepted all the same (§11.6-8).
//
// Keeps: §3.6/A1, §3.6/A1-same, §3.6/A2, §3.6/A3, §3.6/A6, §3.6/A6-first, §3.6/A7.
// Keeps: §11/6, §11/7, §11/8.
// Keeps: seed/S5a, seed/S5b, seed/S5c, seed/S5d, seed/S5e, seed/running-offering.
func TestAlertRefusals(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id, w, control := c.id(), c.workers(), c.controls()
	offering := map[string]string{}
	for _, o := range c.call("listServiceOfferings").list("serviceoffering") {
		offering[o.text("name")] = o.text("id")
	}
	scale := func(want string, params ...string) {
		t.Helper()
		c.refused(want, "scaleKubernetesCluster", append(params, "id="+id)...)
	}
	const only = "Kubernetes cluster demo is in Alert state; only its size can be changed or nodes removed"
	c.do("stopVirtualMachine", "id="+w[0])
	c.inState("Alert")
	recover := only + ". Recover the cluster before changing its service offering or autoscaling"
	scale(recover, "serviceofferingid="+offering["large"])
	scale(recover, "nodeofferings[0].node=worker", "nodeofferings[0].offering="+offering["large"], "size=3")
	scale(recover, "autoscalingenabled=true", "minsize=1", "maxsize=3")
	scale(only+", and the request does neither", "size=2")
	scale("Kubernetes cluster demo is in Alert state; only worker nodes can be removed from it", "nodeids="+control[1])
	scale("Invalid node ids", "nodeids="+w[1]+","+w[1])
	if n := c.calls("vm.create") + c.calls("vm.destroy"); n != 0 {
		t.Errorf("refused requests made or destroyed %d VMs", n)
	}
	// The offering and autoscaling that it has already may be sent along.
	c.do("scaleKubernetesCluster", "id="+id, "size=3", "serviceofferingid="+offering["small"], "autoscalingenabled=false",
		"nodeofferings[0].node=worker", "nodeofferings[0].offering="+offering["small"],
		"nodeofferings[1].node=control", "nodeofferings[1].offering="+offering["small"])
	c.inState("Alert")
	c.do("stopVirtualMachine", "id="+control[2])
	down := "is in Alert state and a control or etcd node VM is down; recover the control plane before scaling the cluster"
	scale(down, "size=4")
	c.do("stopVirtualMachine", "id="+control[0])
	scale(down, "size=4") // also for the first one
	for _, vm := range []string{control[0], control[2], w[0]} {
		c.do("startVirtualMachine", "id="+vm)
	}
	c.inState("Running")
	c.simulate("vm.set", "Unknown", "vmid="+w[1])
	c.inState("Alert")
	scale("is in Alert state but none of its worker node VMs is down", "size=4")
	c.simulate("vm.set", "Running", "vmid="+w[1])
	c.inState("Running")
	c.do("scaleKubernetesCluster", "id="+id, "serviceofferingid="+offering["large"])
	if got := c.cluster().text("serviceofferingname"); got != "large" {
		t.Errorf("offering %s", got)
	}
	c.consistent()
}

// TestOneOfManyScalesHoldsCluster: sixteen requests at once; the others are
// refused with the state in the text (cks.md §11.10, A44, A45).
//
// Keeps: §11/10, #14609.
// Keeps: seed/both-validated, seed/second-refused.
func TestOneOfManyScalesHoldsCluster(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_SIM_SPEED": "10"})
	id := c.id()
	const n = 16
	ids := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { ids[i] = c.start("scaleKubernetesCluster", "id="+id, fmt.Sprintf("size=%d", 3+i%3)) })
	}
	wg.Wait()
	succeeded := 0
	for _, job := range ids {
		ended := c.ended(job)
		if ended["jobstatus"] == 1.0 {
			succeeded++
			continue
		}
		if text := ended.object("jobresult").text("errortext"); text != "Kubernetes cluster demo is in Scaling state and can not be scaled" {
			t.Errorf("refused with %q", text)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d of %d succeeded", succeeded, n)
	}
	c.consistent()
}

// TestNodeThatNeverJoins: the job fails at the deadline, the ISO is out and the
// VM gone (cks.md §11.11).
//
// Keeps: §11/11.
func TestNodeThatNeverJoins(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_SCALE_TIMEOUT": "3s"})
	c.simulate("node.join", "fail")
	c.refused("0 of 1 new nodes joined", "scaleKubernetesCluster", "id="+c.id(), "size=3")
	c.inState("Running")
	c.consistent()
}

// TestDownWorkerGoesFirstWhileRunning: whether or not the scanner has seen it
// (cks.md §11.12).
//
// Keeps: §11/12.
// Keeps: seed/running-down-first.
func TestDownWorkerGoesFirstWhileRunning(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id, w := c.id(), c.workers()
	c.simulate("vm.set", "Stopped", "vmid="+w[0])
	c.do("scaleKubernetesCluster", "id="+id, "size=1")
	if left := c.workers(); !slices.Equal(left, w[1:]) {
		t.Errorf("left: %v of %v", left, w)
	}
	if n := c.calls("node.drain"); n != 0 {
		t.Errorf("%d drains", n)
	}
	c.consistent()
}

// TestClusterLife: create, scale, delete, as the Terraform provider does it.
//
// Keeps: §4/fires-create, §4/fires-delete, §8.1/control-worker, §8.3/order, §8.4/capacity.
// Keeps: D6.
func TestClusterLife(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	zone := c.call("listZones").list("zone")[0].text("id")
	version := c.call("listKubernetesSupportedVersions", "keyword=1.34").list("kubernetessupportedversion")[0].text("id")
	offering := c.call("listServiceOfferings", "name=small").list("serviceoffering")[0].text("id")
	a := c.call("createKubernetesCluster", "name=life", "description=life", "zoneid="+zone, "kubernetesversionid="+version,
		"serviceofferingid="+offering, "size=1", "controlnodes=1", "etcdnodes=1")
	id := a.text("id")
	job := c.ended(a.text("jobid"))
	made := job.object("jobresult").object("kubernetescluster")
	if made.text("id") != id || made.text("state") != "Running" || len(made.list("virtualmachines")) != 3 {
		t.Fatalf("created: %v", job)
	}
	for i, stem := range []string{"etcd-1", "control", "node"} { // in the order in which they are made
		vm := made.list("virtualmachines")[i]
		if name := vm.text("name"); !regexp.MustCompile("^life-"+stem+"-[0-9a-f]{11}$").MatchString(name) || vm.text("displayname") != name {
			t.Errorf("VM %d is named %s, and %s", i, name, vm.text("displayname"))
		}
	}
	if made.text("cpunumber") != "6" || made.text("memory") != "6144" {
		t.Errorf("created with %s vCPUs, %s MB", made.text("cpunumber"), made.text("memory"))
	}
	grown := c.do("scaleKubernetesCluster", "id="+id, "size=3", "serviceofferingid="+offering).object("kubernetescluster")
	if grown["size"] != 3.0 || grown.text("cpunumber") != "10" || grown.text("memory") != "10240" {
		t.Errorf("scaled: %v", grown)
	}
	vms := c.call("listVirtualMachines", "kubernetesclusterid="+id).list("virtualmachine")
	for _, vm := range vms { // of every type
		if vm.text("templateid") == "" || vm.text("templateid") != made.text("templateid") {
			t.Errorf("%s has template %q, the cluster %q", vm.text("name"), vm.text("templateid"), made.text("templateid"))
		}
	}
	if len(vms) != 5 {
		t.Errorf("%d VMs", len(vms))
	}
	if gone := c.do("deleteKubernetesCluster", "id="+id); gone["success"] != true || len(gone) != 1 {
		t.Errorf("deleted: %v", gone)
	}
	if list := c.call("listKubernetesClusters", "id="+id); len(list) != 0 {
		t.Errorf("listed after it was deleted: %v", list)
	}
	if left := c.call("querySimulator", "clusterid="+id).list("vm"); len(left) != 0 {
		t.Errorf("VMs are left: %v", left)
	}
}
