package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// What the cluster-autoscaler does to a cluster in its life (clients.md §3).

// wants checks the error of one of its calls; "" is none.
func (a *autoscaler) wants(text string, err error) {
	a.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		a.Errorf("error %v, want %q", err, text)
	}
}

// It grows a group, finds nodes that it does not need, and deletes them one job
// at a time. Each job's result has the size, the bounds and the VMs that the
// next list has, and no node is ever without a VM that is listed.
//
// Keeps: ca/result, ca/members, ca/one-by-one, ca/bounds.
func TestAutoscalerGrowsAndShrinksAGroup(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	a := c.autoscale(c.id(), 1, 5) // by hand, as somebody may without CloudStack
	a.believes(2)
	a.wants("not possible", a.IncreaseSize(4))
	a.wants("", a.IncreaseSize(2))
	a.believes(4)

	c.do("scaleKubernetesCluster", "id="+a.id, "autoscalingenabled=true", "minsize=2", "maxsize=4")
	a.refresh()
	a.believes(4)
	if lo, hi := a.bounds(); lo != 2 || hi != 4 {
		t.Errorf("from %d to %d", lo, hi)
	}
	a.wants("not possible", a.IncreaseSize(1))

	c.simulate("node.delete", "delay:500ms") // so that it looks meanwhile
	c.simulate("vm.destroy", "delay:500ms")
	unneeded := a.workers()[1:3]
	for i, name := range unneeded {
		a.wants("", a.DeleteNodes(name))
		a.believes(3 - i)
		if lo, hi := a.bounds(); lo != 2 || hi != 4 || slices.Contains(a.workers(), name) {
			t.Errorf("without %s: from %d to %d, workers %q", name, lo, hi, a.workers())
		}
	}
	if a.lingered == 0 {
		t.Error("it never looked while a node was gone and its VM not")
	}
	a.wants("min size reached", a.DeleteNodes(a.workers()[0]))
	if len(a.sent) != 3 || strings.Count(strings.Join(a.sent, ""), "nodeids=") != 2 {
		t.Errorf("it asked for %q", a.sent)
	}
	c.consistent()
}

// A node is down, which it does not know: its cluster is in Alert and grows, and
// the node goes when it is not needed any more, without a drain.
//
// Keeps: ca/alert, seed/autoscaler-in-alert.
func TestAutoscalerWorksInAlert(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	a := c.autoscale(c.id(), 1, 5)
	down := c.workers()[1]
	name := a.workers()[1]
	c.do("stopVirtualMachine", "id="+down)
	c.inState("Alert")
	a.refresh()
	a.believes(2)
	a.wants("", a.IncreaseSize(1))
	if a.picture.Size != 3 || len(a.workers()) != 3 {
		t.Errorf("it believes in %+v", a.picture)
	}
	c.inState("Alert")
	a.refresh()
	a.believes(3)
	a.wants("", a.DeleteNodes(name))
	a.believes(2)
	if c.cluster().text("state") != "Running" || c.callsOf("node.drain")[down] != 0 {
		t.Errorf("%s, %d drains", c.cluster().text("state"), c.callsOf("node.drain")[down])
	}
	c.consistent()
}

// What fails changes nothing that it believes in, and it asks for the same
// again: for a node whose pods may not move, one whose node object cannot be
// deleted, and a scale-up that finds no host, after which size is back.
//
// Keeps: ca/repeat, ca/size-back.
func TestAutoscalerRepeatsWhatFailed(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_DRAIN_TIMEOUT": "300ms"})
	a := c.autoscale(c.id(), 1, 6)
	a.wants("", a.IncreaseSize(1))
	for i, fault := range []struct{ operation, value, text string }{
		{"node.drain", "budget", "drain"},
		{"node.delete", "fail:etcd leader changed", "etcd leader changed"},
	} {
		name, size := a.workers()[1], a.picture.Size
		c.simulate(fault.operation, fault.value)
		begin := len(a.sent)
		for range 2 { // every ten minutes, for ever
			a.wants(fault.text, a.DeleteNodes(name))
			c.inState("Running")
			a.refresh()
			a.believes(size)
		}
		c.simulate(fault.operation, "clear")
		a.wants("", a.DeleteNodes(name))
		a.believes(size - 1)
		if again := a.sent[begin:]; len(slices.Compact(slices.Clone(again))) != 1 || len(again) != 3 {
			t.Errorf("%d: it asked for %q", i, again)
		}
	}
	c.simulate("vm.start", "fail:no host has room")
	for range 2 { // after 5 minutes, 10, ...
		a.wants("no host has room", a.IncreaseSize(2))
		c.inState("Running")
		a.refresh()
		a.believes(1)
	}
	c.simulate("vm.start", "clear")
	a.wants("", a.IncreaseSize(2))
	a.believes(3)
	c.consistent()
}

// Control nodes are members of its group, and it asks for the removal of one
// that seems idle: refused, in Running and in Alert, as often as it asks, and
// nothing is done to any node. Others can be removed as ever.
//
// Keeps: ca/control.
func TestAutoscalerIsRefusedControlNodes(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	a := c.autoscale(c.id(), 1, 5)
	control, down := a.picture.VirtualMachines[0].Name, a.workers()[0]
	if !strings.Contains(control, "-control-") {
		t.Fatalf("the first VM is %s", control)
	}
	idle := func(refusal string) {
		t.Helper()
		for range 2 {
			a.wants("errorcode:530 errortext:Kubernetes cluster "+refusal, a.DeleteNodes(control))
			a.refresh()
			a.believes(2)
		}
		if n := c.calls("node.drain") + c.calls("node.delete") + c.calls("vm.destroy"); n != 0 {
			t.Errorf("%d calls: %v", n, c.call("querySimulator").list("call"))
		}
	}
	idle(": demo cannot be scaled by removing " + control + ", which is a control node")
	c.do("stopVirtualMachine", "id="+c.workers()[0])
	c.inState("Alert")
	a.refresh()
	idle("demo is in Alert state; only worker nodes can be removed from it")
	a.wants("", a.DeleteNodes(down))
	a.believes(1)
	c.consistent()
}

// deployments are the autoscalers of the simulated clusters, with their bounds,
// by cluster.
func (c *client) deployments() map[string]string {
	c.Helper()
	all := map[string]string{}
	for _, d := range c.call("querySimulator").list("autoscaler") {
		if all[d.text("clusterid")] != "" {
			c.Errorf("two autoscalers: %v", d)
		}
		all[d.text("clusterid")] = fmt.Sprint(d["minsize"], " to ", d["maxsize"])
	}
	return all
}

// Autoscaling that is on means that an autoscaler runs in the cluster, with its
// bounds; it goes with the setting and with the cluster. What cannot be deployed
// leaves the setting, the deployment and the cluster's state as they were.
//
// Keeps: ca/deployment.
func TestAutoscalerDeploymentFollowsTheSetting(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	demo, other := c.id(), c.create("other")[0]
	deployed := func(want map[string]string) {
		t.Helper()
		if got := c.deployments(); !maps.Equal(got, want) {
			t.Errorf("deployed: %v, want %v", got, want)
		}
		for id, bounds := range want {
			if v := c.byID(id); v["autoscalingenabled"] != true || fmt.Sprint(v["minsize"], " to ", v["maxsize"]) != bounds || v.text("state") != "Running" {
				t.Errorf("%s is listed in %s with autoscaling %v from %v to %v", v.text("name"), v.text("state"), v["autoscalingenabled"], v["minsize"], v["maxsize"])
			}
		}
	}
	set := func(id, on string, bounds ...string) []string {
		return append([]string{"id=" + id, "autoscalingenabled=" + on}, bounds...)
	}
	const scale = "scaleKubernetesCluster"
	deployed(nil)
	c.do(scale, set(demo, "true", "minsize=1", "maxsize=3")...)
	c.do(scale, set(other, "true", "minsize=1", "maxsize=2")...)
	deployed(map[string]string{demo: "1 to 3", other: "1 to 2"})
	c.do(scale, set(demo, "true", "minsize=1", "maxsize=3")...) // as it is
	if n := c.calls("autoscaler.set"); n != 2 {
		t.Errorf("set %d times", n)
	}
	c.simulate("autoscaler.set", "fail:no access", "count=1") // the next try is good
	c.do(scale, set(demo, "true", "minsize=2", "maxsize=5")...)
	deployed(map[string]string{demo: "2 to 5", other: "1 to 2"})

	c.simulate("autoscaler.set", "fail:no access")
	const failed = "Failed to autoscale Kubernetes cluster: demo : no access"
	c.refused(failed, scale, set(demo, "true", "minsize=1", "maxsize=4")...)
	c.refused(failed, scale, set(demo, "false")...)
	deployed(map[string]string{demo: "2 to 5", other: "1 to 2"})
	c.simulate("autoscaler.set", "clear")
	c.do(scale, set(demo, "false")...)
	deployed(map[string]string{other: "1 to 2"})
	if v := c.cluster(); v["autoscalingenabled"] != false || v["minsize"] != nil || v["maxsize"] != nil {
		t.Errorf("turned off: %v", v)
	}
	c.do("deleteKubernetesCluster", "id="+other)
	deployed(nil)
}
