package main

import (
	"errors"
	"net"
	"slices"
	"testing"
	"time"
)

// Public reports about the worker and about repeated requests (reports.md A.4,
// A.5), through HTTP on whole servers.

// become waits until a cluster is in a state.
func (c *client) become(id, state string) {
	c.Helper()
	c.until("cluster in "+state, 20*time.Second, func() bool { return c.byID(id).text("state") == state })
}

// A stopped worker puts an autoscaling cluster of one control node and three
// workers into Alert. The autoscaler asks to remove it, by GET: it goes without
// a drain, and the cluster is Running when the job's result is read.
//
// Keeps: A25, seed/autoscaler-in-alert, seed/accept-nodeids.
func TestAutoscalerRemovesAStoppedWorker(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	autoscaler := dialects[0]
	id := c.create("autoscaled")[0]
	c.scaled(autoscaler, "id="+id, "size=3")
	c.scaled(autoscaler, "id="+id, "autoscalingenabled=true", "minsize=1", "maxsize=3")
	w3 := c.byID(id).list("virtualmachines")[3].text("id")
	c.simulate("vm.set", "Stopped", "vmid="+w3)
	c.become(id, "Alert")
	v := c.scaled(autoscaler, "id="+id, "nodeids="+w3)
	if v.State != "Running" || *v.Size != 2 || len(v.VirtualMachines) != 3 ||
		slices.ContainsFunc(v.VirtualMachines, func(vm typedVM) bool { return vm.ID == w3 }) {
		t.Errorf("result: %+v", v)
	}
	if state := c.byID(id).text("state"); state != "Running" {
		t.Errorf("the cluster is listed as %s", state)
	}
	if n := c.callsOf("node.drain")[w3]; n != 0 || c.ready(w3) != "" {
		t.Errorf("%d drains, the node is %q", n, c.ready(w3))
	}
	for _, vm := range c.call("querySimulator", "clusterid="+id).list("vm") {
		if vm.text("id") == w3 {
			t.Error("its VM is still there")
		}
	}
	c.scaled(autoscaler, "id="+id, "size=3") // and it can grow again
	c.consistent()
}

// A shrink that also asks for a smaller offering, or for one that is not there,
// is refused before anything is touched; with a larger one both are done.
//
// Keeps: A34.
func TestShrinkingWithAnOfferingIsAllOrNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h"})
	db := connect(t, l.url)
	id, o := l.id(), l.offeringsByName()
	l.do("scaleKubernetesCluster", "id="+id, "serviceofferingid="+o["medium"])
	before := l.everything(db)
	l.refused("offers lesser resources as compared to service offering : medium", "scaleKubernetesCluster", "id="+id, "size=1", "serviceofferingid="+o["small"])
	if status, a := l.send("scaleKubernetesCluster", "id="+id, "size=1", "serviceofferingid=99999999-0000-4000-8000-000000000000"); status != 431 {
		t.Errorf("an unknown offering: %d %v", status, a)
	}
	same(t, before, l.everything(db))
	v := l.do("scaleKubernetesCluster", "id="+id, "size=1", "serviceofferingid="+o["large"]).object("kubernetescluster")
	if v["size"] != 1.0 || v.text("serviceofferingname") != "large" {
		t.Errorf("size %v, offering %s", v["size"], v.text("serviceofferingname"))
	}
	l.consistent()
}

// While a scale to 5 is carried out, a smaller size and autoscaling are refused;
// the first ends with its size, and nothing of the others was begun.
//
// Keeps: A45, seed/second-refused.
func TestLaterRequestsDoNotDisturbTheFirst(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_ENDPOINT_URL": "https://api.example.test/client/api"})
	id, w := c.id(), c.workers()
	c.simulate("node.join", "fail") // until it is cleared
	first := c.start("scaleKubernetesCluster", "id="+id, "size=5")
	const scaling = "Kubernetes cluster demo is in Scaling state and can not be scaled"
	c.refused(scaling, "scaleKubernetesCluster", "id="+id, "size=2")
	c.until("its VMs run", 20*time.Second, func() bool { return len(c.callsOf("iso.attach")) == 3 })
	c.refused(scaling, "scaleKubernetesCluster", "id="+id, "autoscalingenabled=true", "minsize=1", "maxsize=3")
	if job := c.call("queryAsyncJobResult", "jobid="+first); job["jobstatus"] != 0.0 || c.cluster().text("state") != "Scaling" {
		t.Errorf("the first job: %v", job)
	}
	c.simulate("node.join", "clear")
	v := c.ended(first).object("jobresult").object("kubernetescluster")
	if v["size"] != 5.0 || v["autoscalingenabled"] != false || !slices.Equal(c.workers()[:2], w) {
		t.Errorf("the first job ended with %v", v)
	}
	if n := c.callsOf("vm.create"); len(n) != 3 || c.calls("vm.create") != 3 || c.calls("vm.destroy")+c.calls("autoscaler.set")+c.calls("node.drain") != 0 {
		t.Errorf("calls: %v", c.call("querySimulator").list("call"))
	}
	c.consistent()
}

// A client gives up in the middle of a poll, while its scale to 3 goes on, and
// sends the same resize again, with the offering that the cluster has: refused
// while the first is carried out, nothing to do after it. One VM is made.
//
// Keeps: A47.
func TestClientThatGivesUpAndAsksAgain(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id, small := c.id(), "serviceofferingid="+c.offeringsByName()["small"]
	c.simulate("node.join", "fail") // longer than any client waits, until it is cleared
	first := c.start("scaleKubernetesCluster", "id="+id, "size=3")
	c.hangsUp("queryAsyncJobResult", "jobid="+first)
	c.refused("Kubernetes cluster demo is in Scaling state and can not be scaled", "scaleKubernetesCluster", "id="+id, "size=3", small)
	c.hangsUp("queryAsyncJobResult", "jobid="+first)
	if job := c.call("queryAsyncJobResult", "jobid="+first); job["jobstatus"] != 0.0 {
		t.Errorf("the first job: %v", job)
	}
	c.simulate("node.join", "clear")
	if job := c.ended(first); job["jobstatus"] != 1.0 {
		t.Errorf("the first job: %v", job)
	}
	v := c.do("scaleKubernetesCluster", "id="+id, "size=3", small).object("kubernetescluster")
	if v["size"] != 3.0 || len(v.list("virtualmachines")) != 6 {
		t.Errorf("the third request gives %v", v)
	}
	if n := c.calls("vm.create"); n != 1 {
		t.Errorf("%d VMs were made", n)
	}
	c.consistent()
}

// hangsUp sends a request and closes the connection without waiting for the
// answer.
func (c *client) hangsUp(command string, params ...string) {
	c.Helper()
	host, _ := c.site()
	conn, err := net.Dial("tcp", host)
	if err != nil {
		c.Fatal(err)
	}
	_, err = conn.Write([]byte("GET /client/api?" + c.keys.signed(command, params...) + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"))
	if err := errors.Join(err, conn.Close()); err != nil {
		c.Fatal(err)
	}
}
