package main

import (
	"slices"
	"strings"
	"testing"
)

// versionNamed is the id of a Kubernetes version.
func (c *client) versionNamed(number string) string {
	c.Helper()
	for _, v := range c.call("listKubernetesSupportedVersions").list("kubernetessupportedversion") {
		if v.text("semanticversion") == number {
			return v.text("id")
		}
	}
	c.Fatalf("no version %s", number)
	return ""
}

// versions are those of the demo cluster's nodes, as they are listed.
func (c *client) versions() map[string]string {
	c.Helper()
	all := map[string]string{}
	for _, vm := range c.cluster().list("virtualmachines") {
		all[vm.text("id")] = vm.text("kubernetesnodeversion")
	}
	return all
}

// kubelets are the versions that the nodes of the simulated cloud have.
func (c *client) kubelets() map[string]string {
	c.Helper()
	all := map[string]string{}
	for _, n := range c.call("querySimulator").list("node") {
		all[n.text("vmid")] = n.text("version")
	}
	return all
}

// vmStates are the states of the demo cluster's VMs, each once.
func (c *client) vmStates() []string {
	c.Helper()
	var all []string
	for _, vm := range c.cluster().list("virtualmachines") {
		all = append(all, vm.text("state"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestStopAndStart: a cluster is stopped with all its VMs, cannot be scaled, and
// stays Stopped when VMs are started by hand; started, it is as it was, and can
// be scaled. Stopping and starting what is so already does nothing.
//
// Keeps: §4/start-stop, §3.1/12a.
func TestStopAndStart(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id, w := c.id(), c.workers()
	if a := c.do("startKubernetesCluster", "id="+id); a.object("kubernetescluster").text("state") != "Running" || len(a) != 1 {
		t.Errorf("start of a running cluster: %v", a)
	}
	if a := c.do("stopKubernetesCluster", "id="+id); a["success"] != true || len(a) != 1 {
		t.Errorf("stop: %v", a)
	}
	if got := c.cluster().text("state"); got != "Stopped" || !slices.Equal(c.vmStates(), []string{"Stopped"}) {
		t.Errorf("the cluster is %s, its VMs %v", got, c.vmStates())
	}
	stops := c.calls("vm.stop")
	if a := c.do("stopKubernetesCluster", "id="+id); a["success"] != true || c.calls("vm.stop") != stops {
		t.Errorf("stop again: %v", a)
	}
	c.refused("Kubernetes cluster : demo is in Stopped state", "scaleKubernetesCluster", "id="+id, "size=3")
	c.refused("is not in running state", "upgradeKubernetesCluster", "id="+id, "kubernetesversionid="+c.versionNamed("1.34.1"))
	c.do("startVirtualMachine", "id="+w[0])
	if got := c.cluster().text("state"); got != "Stopped" {
		t.Errorf("a VM started by hand makes it %s", got)
	}
	started := c.do("startKubernetesCluster", "id="+id).object("kubernetescluster")
	if started.text("state") != "Running" || started["size"] != 2.0 || !slices.Equal(c.vmStates(), []string{"Running"}) {
		t.Errorf("started: %v", started)
	}
	for _, vm := range append(c.workers(), c.controls()...) {
		if c.ready(vm) != "True" {
			t.Errorf("the node of %s is %s", vm, c.ready(vm))
		}
	}
	c.do("scaleKubernetesCluster", "id="+id, "size=3")
	c.whole()
	var told []string
	for _, e := range c.call("listEvents", "resourceid="+id).list("event") {
		if typ := e.text("type"); typ == "KUBERNETES.CLUSTER.STOP" || typ == "KUBERNETES.CLUSTER.START" {
			told = append(told, typ+" "+e.text("state")+" "+e.text("description"))
		}
	}
	for _, want := range []string{
		"KUBERNETES.CLUSTER.STOP Scheduled Stopping Kubernetes cluster ID: " + id, "KUBERNETES.CLUSTER.STOP Started Stopping Kubernetes cluster",
		"KUBERNETES.CLUSTER.STOP Completed Successfully completed stopping Kubernetes cluster",
		"KUBERNETES.CLUSTER.START Completed Successfully completed starting Kubernetes cluster",
	} {
		if !slices.Contains(told, want) {
			t.Errorf("no event %q in %q", want, told)
		}
	}
}

// TestUpgradeThatFailsIsRepeated: a worker cannot be upgraded; the cluster is in
// Alert at its old version, the text says which node it was, and the nodes
// before it have the new version. Asked again, the upgrade leaves them alone.
// New nodes have the new version.
//
// Keeps: §4/upgrade, §2.7/after-upgrade, #14611/upgrade.
func TestUpgradeThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_RETRY_WAIT": "20ms"})
	id, w, control := c.id(), c.workers(), c.controls()
	from, to := c.cluster().text("kubernetesversionid"), c.versionNamed("1.34.1")
	names := map[string]string{}
	for _, vm := range c.cluster().list("virtualmachines") {
		names[vm.text("id")] = vm.text("name")
	}
	c.simulate("node.upgrade", "fail:no space left on device", "vmid="+w[1])
	c.refused("unable to upgrade Kubernetes node on VM : "+names[w[1]]+": no space left on device",
		"upgradeKubernetesCluster", "id="+id, "kubernetesversionid="+to)
	if n := c.callsOf("node.drain"); len(n) != 5 || n[w[1]] != 1 {
		t.Errorf("drains: %v", n)
	}
	got := c.versions()
	for _, vm := range append(control, w[0]) {
		if got[vm] != "v1.34.1" || c.kubelets()[vm] != "v1.34.1" {
			t.Errorf("%s is at %s", vm, got[vm])
		}
	}
	if got[w[1]] != "1.33.1" || c.kubelets()[w[1]] != "v1.33.1" || c.cluster().text("kubernetesversionid") != from {
		t.Errorf("the failing node is at %s, the cluster at %s", got[w[1]], c.cluster().text("kubernetesversionname"))
	}
	c.inState("Running")
	c.consistent()
	c.simulate("node.upgrade", "clear")
	before := c.callsOf("node.upgrade")
	upgraded := c.do("upgradeKubernetesCluster", "id="+id, "kubernetesversionid="+to).object("kubernetescluster")
	if upgraded.text("state") != "Running" || upgraded.text("kubernetesversionid") != to {
		t.Errorf("upgraded: %v", upgraded)
	}
	for vm, n := range c.callsOf("node.upgrade") {
		if vm != w[1] && n != before[vm] {
			t.Errorf("%s was upgraded again", vm)
		}
	}
	c.refused("Kubernetes clusters can not be upgraded, current version: 1.34.1, upgrade version: 1.34.1", "upgradeKubernetesCluster", "id="+id, "kubernetesversionid="+to)
	c.refused("Kubernetes clusters can not be downgraded, current version: 1.34.1, upgrade version: 1.33.1", "upgradeKubernetesCluster", "id="+id, "kubernetesversionid="+from)
	c.do("scaleKubernetesCluster", "id="+id, "size=3")
	if v := c.versions()[c.workers()[2]]; v != "1.34.1" || c.kubelets()[c.workers()[2]] != "v1.34.1" {
		t.Errorf("the new node has version %s", v)
	}
	c.whole()
	events := c.call("listEvents", "type=KUBERNETES.CLUSTER.UPGRADE", "level=ERROR").list("event")
	if len(events) != 3 || !slices.ContainsFunc(events, func(e answer) bool { return strings.Contains(e.text("description"), names[w[1]]) }) {
		t.Errorf("events: %v", events)
	}
}
