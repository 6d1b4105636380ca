package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What validation accepts and refuses, through HTTP on whole servers, as far as
// bad input (hostile_test.go) does not show it.

// Control nodes count against the maximum: 7 workers beside 3 control nodes are
// the 10 that a cluster may have, one more is refused, and maxsize is bounded
// in the same way (A15; cks.md §8.6).
//
// Keeps: A15, §3.1/max, §8.6/maximum.
func TestControlNodesCountAgainstTheMaximum(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id, scale := "id="+c.id(), "scaleKubernetesCluster"
	if v := c.cluster(); v["controlnodes"] != 3.0 || v["size"] != 2.0 || v.text("state") != "Running" {
		t.Fatalf("the demo cluster is %v", v)
	}
	const text = "Maximum cluster size can not exceed 10. Please contact your administrator"
	c.refused(text, scale, id, "size=8")
	c.refused(text, scale, id, "autoscalingenabled=true", "minsize=1", "maxsize=8")
	if v := c.do(scale, id, "autoscalingenabled=true", "minsize=1", "maxsize=7").object("kubernetescluster"); v["maxsize"] != 7.0 {
		t.Errorf("autoscaling up to %v", v["maxsize"])
	}
	v := c.do(scale, id, "size=7").object("kubernetescluster")
	if v["size"] != 7.0 || len(v.list("virtualmachines")) != 10 {
		t.Errorf("size %v with %d VMs", v["size"], len(v.list("virtualmachines")))
	}
	c.refused(text, scale, id, "size=8")
	c.consistent()
}

// Good bounds turn autoscaling on and are listed; the cluster-autoscaler then
// scales with the key of the cluster's owner by plain size and nodeids, which
// nothing keeps within the bounds; turned off along with a size, the size is
// dropped (A16; cks.md §3.2, §3.3).
//
// Keeps: A16, §3.2/size, §3.2/nodeids, §3.2/autoscaler, §3.3/off-with-size.
func TestAutoscalingIsShownAndDoesNotStandInTheWay(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	ann, autoscaler := l.account("ann"), dialects[0]
	id := ann.create("mine")[0]
	listed := func(on bool, lo, hi, size int64) {
		t.Helper()
		list, _ := ann.listed(autoscaler, "id="+id)
		if v := list[0]; v.AutoscalingEnabled != on || v.MinSize != lo || v.MaxSize != hi || *v.Size != size {
			t.Errorf("listed: autoscaling %t from %d to %d, size %d", v.AutoscalingEnabled, v.MinSize, v.MaxSize, *v.Size)
		}
	}
	listed(false, 0, 0, 1)
	ann.scaled(autoscaler, "id="+id, "autoscalingenabled=true", "minsize=1", "maxsize=3")
	listed(true, 1, 3, 1)
	ann.scaled(autoscaler, "id="+id, "autoscalingenabled=true", "minsize=1", "maxsize=3") // as it is
	v := ann.scaled(autoscaler, "id="+id, "size=2")
	ann.scaled(autoscaler, "id="+id, "nodeids="+v.VirtualMachines[2].ID)
	listed(true, 1, 3, 1)
	ann.scaled(autoscaler, "id="+id, "size=4")
	listed(true, 1, 3, 4)
	ann.scaled(autoscaler, "id="+id, "autoscalingenabled=false", "size=2")
	listed(false, 0, 0, 4)
	ann.scaled(autoscaler, "id="+id, "autoscalingenabled=false", "size=2")
	listed(false, 0, 0, 2)
}

// A stopped cluster changes its offering, to a smaller one too, and stays
// Stopped (cks.md §3.1 11f, §4).
//
// Keeps: §3.1/11f-states, §4/fires-offering.
func TestStoppedClusterChangesItsOffering(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id := "id=" + c.id()
	offering := func(name string) string {
		return "serviceofferingid=" + c.call("listServiceOfferings", "name="+name).list("serviceoffering")[0].text("id")
	}
	c.do("scaleKubernetesCluster", id, offering("large"))
	c.refused("offers lesser resources as compared to service offering : large", "scaleKubernetesCluster", id, offering("small"))
	for _, vm := range append(c.workers(), c.controls()...) {
		c.do("stopVirtualMachine", "id="+vm)
	}
	c.inState("Stopped")
	v := c.do("scaleKubernetesCluster", id, offering("small")).object("kubernetescluster")
	if v.text("state") != "Stopped" || v.text("serviceofferingname") != "small" || v.text("cpunumber") != "10" || v.text("memory") != "10240" {
		t.Errorf("%s with offering %s, %s vCPUs, %s MB", v.text("state"), v.text("serviceofferingname"), v.text("cpunumber"), v.text("memory"))
	}
	c.consistent()
}

// Commands of CloudStack's that are not there are answered in its form, as
// unknown ones, and do nothing.
func TestCommandsThatAreNotThereDoNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h"})
	db := connect(t, l.url)
	w := l.workers()
	before := l.everything(db)
	for command, params := range map[string][]string{
		"expungeVirtualMachine": {"id=" + w[0]},
		"rebootVirtualMachine":  {"id=" + w[0]},
	} {
		for _, d := range []dialect{dialects[0], dialects[1]} {
			r := l.speak(d, command, params...)
			if r.status != http.StatusUnauthorized || r.answer["errorcode"] != 401.0 || !strings.Contains(r.answer.text("errortext"), "unable to verify user credentials") {
				t.Errorf("%s by %s: %d %s", command, d.name, r.status, r.raw)
			}
		}
		address := strings.Join(append([]string{l.client.url + "?command=" + command, "response=json"}, params...), "&")
		if status, body := get(t, address, l.client.keys); status != 432 || !strings.Contains(body, "Unknown API command: "+command) {
			t.Errorf("%s with the keys: %d %s", command, status, body)
		}
		if known := l.call("listApis").list("api"); slices.ContainsFunc(known, func(a answer) bool { return a.text("name") == command }) {
			t.Errorf("%s is there: it needs a test of its own", command)
		}
	}
	l.unharmed(db, before)
}
