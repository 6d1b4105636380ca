package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// The rest of the acceptance list of cks.md §11, and the mended defects of §7
// that a client can see, through HTTP on whole servers; demo_test.go has the
// lab report.

// offeringsByName are the ids of the service offerings.
func (c *client) offeringsByName() map[string]string {
	c.Helper()
	ids := map[string]string{}
	for _, o := range c.call("listServiceOfferings").list("serviceoffering") {
		ids[o.text("name")] = o.text("id")
	}
	return ids
}

// created makes a cluster of one worker and returns its id.
func (c *client) created(name string, params ...string) string {
	c.Helper()
	a := c.call("createKubernetesCluster", append(params, "name="+name, "description="+name, "size=1", "controlnodes=1",
		"zoneid="+c.call("listZones").list("zone")[0].text("id"),
		"kubernetesversionid="+c.call("listKubernetesSupportedVersions").list("kubernetessupportedversion")[0].text("id"))...)
	if job := c.ended(a.text("jobid")); job["jobstatus"] != 1.0 {
		c.Fatalf("create: %v", job)
	}
	return a.text("id")
}

// byID is a cluster as it is listed.
func (c *client) byID(id string) answer {
	c.Helper()
	list := c.call("listKubernetesClusters", "id="+id).list("kubernetescluster")
	if len(list) != 1 {
		c.Fatalf("%d clusters with the id %s", len(list), id)
	}
	return list[0]
}

// TestAlertRefusalsByCause: what demo_test.go's S5 leaves: the first control
// node is not running (A4), more VMs than nodes (A5), an etcd node is down (A6),
// only VMs that may still run (A7), only an external node down (A7), and another
// state than Alert (rule 8).
//
// Keeps: §11/6, §11/8.
func TestAlertRefusalsByCause(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	db := connect(t, l.url)
	id, w, control := l.id(), l.workers(), l.controls()
	scale := func(want string, params ...string) {
		t.Helper()
		l.refused(want, "scaleKubernetesCluster", append(params, "id="+id)...)
	}
	l.do("stopVirtualMachine", "id="+w[0])
	l.inState("Alert")

	l.simulate("vm.set", "Unknown", "vmid="+control[0])
	l.until("the control node is seen", 20*time.Second, func() bool {
		return ask[bool](t, db, "SELECT state = 'Unknown' FROM vms WHERE id = $1", control[0])
	})
	scale("Kubernetes cluster demo is in Alert state and its first control node VM is not running; start it before scaling the cluster", "size=4")
	l.simulate("vm.set", "Running", "vmid="+control[0])
	l.until("it is seen again", 20*time.Second, func() bool {
		return ask[bool](t, db, "SELECT state = 'Running' FROM vms WHERE id = $1", control[0])
	})

	l.simulate("iso.attach", "fail") // a scale-up fails, and its VM cannot be destroyed
	l.simulate("vm.destroy", "fail")
	scale("0 of 1 new nodes joined", "size=3")
	scale("Kubernetes cluster demo is in Alert state and has 6 VMs for 5 nodes; remove or recover them before scaling the cluster", "size=3")
	l.simulate("vm.destroy", "clear")
	l.simulate("iso.attach", "clear")
	l.until("it is destroyed", 20*time.Second, func() bool { return len(l.cluster().list("virtualmachines")) == 5 })

	const none = "Kubernetes cluster demo is in Alert state but none of its worker node VMs is down; scaling will not recover it"
	external := func(is bool) {
		t.Helper()
		if _, err := db.Exec(t.Context(), "UPDATE vms SET external = $2 WHERE id = $1", w[0], is); err != nil {
			t.Fatal(err)
		}
	}
	external(true)
	scale(none, "size=4")
	external(false)
	l.do("startVirtualMachine", "id="+w[0])
	l.inState("Running")
	for _, state := range []string{"Unknown", "Migrating"} {
		l.simulate("vm.set", state, "vmid="+w[1])
		l.inState("Alert")
		scale(none, "size=3")
		scale(none, "nodeids="+w[1])
		l.simulate("vm.set", "Running", "vmid="+w[1])
		l.inState("Running")
	}

	l.simulate("node.upgrade", "delay:2s") // five of them
	upgrade := l.start("upgradeKubernetesCluster", "id="+id, "kubernetesversionid="+l.versionNamed("1.34.1"))
	scale("Kubernetes cluster demo is in Upgrading state and can not be scaled", "size=3")
	l.simulate("node.upgrade", "clear")
	l.ended(upgrade)
	l.inState("Running")
	l.do("scaleKubernetesCluster", "id="+id, "serviceofferingid="+l.offeringsByName()["medium"]) // accepted in Running
	l.consistent()
}

// TestDownEtcdNodeRefusesScaling: new nodes could not join (A6).
//
// Keeps: §11/8.
func TestDownEtcdNodeRefusesScaling(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	id := c.created("kept", "serviceofferingid="+c.offeringsByName()["small"], "etcdnodes=1")
	etcd := c.byID(id).list("virtualmachines")[0]
	if etcd["isetcdnode"] != true {
		t.Fatalf("VM %v", etcd)
	}
	c.do("stopVirtualMachine", "id="+etcd.text("id"))
	c.until("it is in Alert", 20*time.Second, func() bool { return c.byID(id).text("state") == "Alert" })
	c.refused("Kubernetes cluster kept is in Alert state and a control or etcd node VM is down; recover the control plane before scaling the cluster",
		"scaleKubernetesCluster", "id="+id, "size=2")
	c.do("startVirtualMachine", "id="+etcd.text("id"))
	c.until("it is Running", 20*time.Second, func() bool { return c.byID(id).text("state") == "Running" })
	c.do("scaleKubernetesCluster", "id="+id, "size=2")
}

// sizes are the cores of the VMs of a cluster, by part of their names, and the
// sum, which must be what the cluster shows.
func (c *client) sizes(id string) string {
	c.Helper()
	var parts []string
	cores, memory := 0, 0
	for _, vm := range c.call("listVirtualMachines", "kubernetesclusterid="+id).list("virtualmachine") {
		n, mb := int(vm["cpunumber"].(float64)), int(vm["memory"].(float64))
		kind, _, _ := strings.Cut(strings.SplitN(vm.text("name"), "-", 2)[1], "-")
		parts, cores, memory = append(parts, fmt.Sprintf("%s %d", kind, n)), cores+n, memory+mb
	}
	slices.Sort(parts)
	shown := c.byID(id)
	if shown.text("cpunumber") != fmt.Sprint(cores) || shown.text("memory") != fmt.Sprint(memory) {
		c.Errorf("%d cores and %d MB; shown: %s and %s", cores, memory, shown.text("cpunumber"), shown.text("memory"))
	}
	return strings.Join(parts, ", ")
}

// TestOnlyNamedOfferingsAreActedOn: a cluster whose types have offerings of
// their own, and no common one, grows with its workers' one; neither a size nor
// the default that it has touches another type; its cores and memory are always
// those of its VMs; and a default that all types have already is recorded.
//
// Keeps: D3, D4, E8, E9, A33, §5.8/sum.
// Keeps: §5.2/b, §5.1/6-single.
func TestOnlyNamedOfferingsAreActedOn(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	o := c.offeringsByName()
	id := c.created("own", "nodeofferings[0].node=control", "nodeofferings[0].offering="+o["large"],
		"nodeofferings[1].node=worker", "nodeofferings[1].offering="+o["small"])
	if got := c.byID(id); got["serviceofferingid"] != nil || got.text("workerofferingid") != o["small"] {
		t.Fatalf("created: %v", got)
	}
	scale := func(want string, params ...string) answer {
		t.Helper()
		c.do("scaleKubernetesCluster", append(params, "id="+id)...)
		if got := c.sizes(id); got != want {
			t.Errorf("%q: %s, want %s", params, got, want)
		}
		return c.byID(id)
	}
	v := scale("control 4, node 2, node 2, node 2", "size=3")
	for _, s := range []struct{ vm, cluster string }{{"Stopped", "Alert"}, {"Running", "Running"}} { // the scanner as well
		c.simulate("vm.set", s.vm, "vmid="+v.list("virtualmachines")[1].text("id"))
		c.become(id, s.cluster)
	}
	scale("control 4, node 2", "size=1")
	if got := scale("control 4, node 4", "serviceofferingid="+o["large"]); got.text("serviceofferingname") != "large" || got["etcdofferingid"] != nil {
		t.Errorf("offerings: %v", got)
	}
	scale("control 4, node 4, node 4", "size=2")
	// Another default for all, one type of its own, and the default sent again.
	id = c.created("mixed", "serviceofferingid="+o["small"])
	scale("control 2, node 4", "nodeofferings[0].node=worker", "nodeofferings[0].offering="+o["large"])
	scale("control 2, node 4", "serviceofferingid="+o["small"])
	scale("control 2, node 4, node 4", "size=2", "serviceofferingid="+o["small"])
	scale("control 2, node 4", "size=1")
	scale("control 4, node 4", "nodeofferings[0].node=control", "nodeofferings[0].offering="+o["large"])
	if got := scale("control 4, node 4", "serviceofferingid="+o["large"]); got.text("serviceofferingid") != o["large"] || got["etcdofferingid"] != nil {
		t.Errorf("offerings: %v", got)
	}
}

// TestScalingLeavesTheEndpoint: there are no firewall rules and port forwards
// in the simulated cloud; what a client sees of a cluster's network, the address
// of its API at port 6443, stays the same, also where separate etcd nodes and
// external ones would have had rules of their own.
//
// Keeps: §5.7/rules, §5.7/6443, E7.
func TestScalingLeavesTheEndpoint(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	db := connect(t, l.url)
	id := l.created("kept", "serviceofferingid="+l.offeringsByName()["small"], "etcdnodes=1")
	network := func() string {
		c := l.byID(id)
		return fmt.Sprint(c["endpoint"], c["ipaddress"], c["ipaddressid"], c["networkid"])
	}
	before := network()
	if address := l.byID(id).text("ipaddress"); address == "" || l.byID(id).text("endpoint") != "https://"+address+":6443/" {
		t.Errorf("the network is %s", before)
	}
	l.do("scaleKubernetesCluster", "id="+id, "size=3")
	oldest := l.byID(id).list("virtualmachines")[2].text("id")
	if _, err := db.Exec(t.Context(), "UPDATE vms SET external = true WHERE id = $1", oldest); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{2, 4, 2} {
		l.do("scaleKubernetesCluster", "id="+id, fmt.Sprintf("size=%d", size))
		if after := network(); after != before {
			t.Errorf("the network was %s and is %s", before, after)
		}
	}
	vms := l.byID(id).list("virtualmachines")
	if len(vms) != 4 || vms[0]["isetcdnode"] != true || vms[2].text("id") != oldest || vms[2]["isexternalnode"] != true {
		t.Errorf("VMs: %v", vms)
	}
	if n := l.callsOf("node.drain")[oldest]; n != 0 {
		t.Errorf("the external node was drained %d times", n)
	}
}
