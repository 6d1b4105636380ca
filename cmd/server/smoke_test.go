package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// CloudStack's own smoke test of its Kubernetes Service
// (test/integration/smoke/test_kubernetes_clusters.py), scenario by scenario:
// what it asks for, and all that it looks at.

// deployed is what a scenario starts from: a cluster that runs.
type deployed struct {
	*client
	id, name, version string
	size, controls    int
}

// deploy makes a cluster and checks it.
func (c *client) deploy(name, version string, size, controls int) *deployed {
	c.Helper()
	d := &deployed{client: c, name: name, version: version, size: size, controls: controls}
	a := c.call("createKubernetesCluster", d.params()...)
	d.id = a.text("id")
	job := c.ended(a.text("jobid"))
	if job["jobstatus"] != 1.0 {
		c.Fatalf("deploy: %v", job)
	}
	d.verify("Running", job.object("jobresult").object("kubernetescluster"))
	return d
}

func (d *deployed) params() []string {
	d.Helper()
	return []string{"name=" + d.name, "description=" + d.name, "zoneid=" + d.call("listZones").list("zone")[0].text("id"),
		"kubernetesversionid=" + d.versionNamed(d.version), "serviceofferingid=" + d.offeringsByName()["small"],
		fmt.Sprintf("size=%d", d.size), fmt.Sprintf("controlnodes=%d", d.controls)}
}

// verify checks what a job has given, and that the list has the same: the
// state, the name, the version, the counts, and a VM for each node, which runs
// or not as the cluster does and is a node of that version.
func (d *deployed) verify(state string, result answer) {
	d.Helper()
	for _, v := range []answer{result, d.byID(d.id)} {
		if v.text("state") != state || v.text("name") != d.name || v.text("kubernetesversionid") != d.versionNamed(d.version) ||
			v["size"] != float64(d.size) || v["controlnodes"] != float64(d.controls) || v["masternodes"] != v["controlnodes"] ||
			v.text("endpoint") == "" || len(v.list("virtualmachines")) != d.size+d.controls {
			d.Errorf("want %+v in %s, got %v", *d, state, v)
		}
	}
	nodes := map[string]answer{}
	for _, n := range d.call("querySimulator", "clusterid="+d.id).list("node") {
		nodes[n.text("vmid")] = n
	}
	for _, vm := range d.call("listVirtualMachines", "kubernetesclusterid="+d.id).list("virtualmachine") {
		n := nodes[vm.text("id")]
		if delete(nodes, vm.text("id")); vm.text("state") != state || n.text("name") != vm.text("name") ||
			strings.TrimPrefix(n.text("version"), "v") != d.version || state == "Running" && n.text("ready") != "True" {
			d.Errorf("VM %s is %s; its node is %v", vm.text("name"), vm.text("state"), n)
		}
	}
	if len(nodes) != 0 {
		d.Errorf("nodes without a VM: %v", nodes)
	}
}

// scale changes the size and checks the outcome.
func (d *deployed) scale(size int) {
	d.Helper()
	d.size = size
	d.verify("Running", d.do("scaleKubernetesCluster", "id="+d.id, fmt.Sprintf("size=%d", size)).object("kubernetescluster"))
}

// upgrade changes the version and checks the outcome.
func (d *deployed) upgrade(version string) {
	d.Helper()
	d.version = version
	d.verify("Running", d.do("upgradeKubernetesCluster", "id="+d.id, "kubernetesversionid="+d.versionNamed(version)).object("kubernetescluster"))
}

// delete deletes the cluster and checks that nothing is left of it.
func (d *deployed) delete() {
	d.Helper()
	if a := d.do("deleteKubernetesCluster", "id="+d.id); a["success"] != true || len(a) != 1 {
		d.Errorf("deleted: %v", a)
	}
	left := d.call("querySimulator", "clusterid="+d.id)
	if list := d.call("listKubernetesClusters", "id="+d.id); len(list) != 0 || len(left.list("vm"))+len(left.list("node")) != 0 {
		d.Errorf("after its end it is listed as %v, with %v", list, left)
	}
}

// A cluster is deployed and upgraded, by a patch and by a minor release; a lower
// version is refused, and changes nothing.
//
// Keeps: smoke/deploy, smoke/upgrade, smoke/downgrade, smoke/delete.
func TestSmokeDeployAndUpgrade(t *testing.T) {
	t.Parallel()
	d := demo(t, nil).deploy("upgraded", "1.32.9", 1, 1)
	d.upgrade("1.33.1")
	d.refused("can not be downgraded", "upgradeKubernetesCluster", "id="+d.id, "kubernetesversionid="+d.versionNamed("1.32.9"))
	d.verify("Running", d.byID(d.id))
	d.upgrade("1.34.1")
	d.delete()
}

// A cluster is scaled from 1 to 2 and back to 1, stopped and started; a named
// node is removed.
//
// Keeps: smoke/scale, smoke/stop-start, smoke/named-node.
func TestSmokeScaleStopAndStart(t *testing.T) {
	t.Parallel()
	d := demo(t, nil).deploy("scaled", "1.33.1", 1, 1)
	d.scale(2)
	d.scale(1)
	if a := d.do("stopKubernetesCluster", "id="+d.id); a["success"] != true || len(a) != 1 {
		t.Errorf("stopped: %v", a)
	}
	d.verify("Stopped", d.byID(d.id))
	d.verify("Running", d.do("startKubernetesCluster", "id="+d.id).object("kubernetescluster"))
	d.scale(3)
	vms := d.byID(d.id).list("virtualmachines")
	named := vms[2].text("id") // neither the oldest nor the newest worker
	d.size = 2
	after := d.do("scaleKubernetesCluster", "id="+d.id, "nodeids="+named).object("kubernetescluster")
	d.verify("Running", after)
	if slices.ContainsFunc(after.list("virtualmachines"), func(vm answer) bool { return vm.text("id") == named }) {
		t.Errorf("%s is still there: %v", named, after)
	}
	d.delete()
}

// Autoscaling is turned on with bounds, which are shown, and off.
//
// Keeps: smoke/autoscale.
func TestSmokeAutoscale(t *testing.T) {
	t.Parallel()
	d := demo(t, nil).deploy("autoscaled", "1.33.1", 1, 1)
	on := d.do("scaleKubernetesCluster", "id="+d.id, "autoscalingenabled=true", "minsize=1", "maxsize=2").object("kubernetescluster")
	if d.verify("Running", on); on["autoscalingenabled"] != true || on["minsize"] != 1.0 || on["maxsize"] != 2.0 {
		t.Errorf("turned on: %v", on)
	}
	off := d.do("scaleKubernetesCluster", "id="+d.id, "autoscalingenabled=false").object("kubernetescluster")
	if d.verify("Running", off); off["autoscalingenabled"] != false || off["minsize"] != nil || off["maxsize"] != nil {
		t.Errorf("turned off: %v", off)
	}
	d.delete()
}

// A cluster of two control nodes is deployed, upgraded, scaled and deleted. On
// Kubernetes before 1.16 it is refused, and nothing is made; with one control
// node it is not.
//
// Keeps: smoke/ha, smoke/ha-version.
func TestSmokeHighlyAvailable(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	d := l.deploy("ha", "1.33.1", 1, 2)
	d.upgrade("1.34.1")
	d.scale(2)
	d.scale(1)
	d.delete()

	st, err := store.Open(t.Context(), l.url)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for number, text := range map[string]string{
		"1.15.12": "HA support is available only for Kubernetes version 1.16.0 and above", "1.16.0": "",
	} {
		err := st.InTx(t.Context(), func(q *store.Queries) error {
			_, err := q.AddVersion(t.Context(), cks.KubernetesVersion{Name: "old " + number, Version: number, ISOName: number, MinCores: 2, MinMemoryMB: 2048, Enabled: true})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if text == "" {
			l.deploy("old", number, 1, 2).delete()
			continue
		}
		two := &deployed{client: l.client, name: "old", version: number, size: 1, controls: 2}
		status, a := l.send("createKubernetesCluster", two.params()...)
		if status != 431 || !strings.Contains(a.text("errortext"), text) {
			t.Errorf("two control nodes at %s: %d %v", number, status, a)
		}
		if list := l.call("listKubernetesClusters", "name=old"); len(list) != 0 {
			t.Errorf("it was made: %v", list)
		}
		l.deploy("old", number, 1, 1).delete()
	}
}

// While one operation runs, whichever it is, every other one is refused; the
// first ends as if nobody had asked.
//
// Keeps: smoke/one-at-a-time.
func TestSmokeOneOperationAtATime(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	db := connect(t, l.url)
	d := l.deploy("busy", "1.33.1", 1, 1)
	operations := map[string][]string{
		"scaleKubernetesCluster":   {"size=2"},
		"upgradeKubernetesCluster": {"kubernetesversionid=" + l.versionNamed("1.34.1")},
		"stopKubernetesCluster":    nil,
		"startKubernetesCluster":   nil,
		"deleteKubernetesCluster":  nil,
	}
	for _, s := range []struct{ command, state string }{
		{"scaleKubernetesCluster", "Scaling"}, {"upgradeKubernetesCluster", "Upgrading"}, {"stopKubernetesCluster", "Stopping"},
		{"startKubernetesCluster", "Starting"}, {"deleteKubernetesCluster", "Destroying"},
	} {
		// The cloud answers nothing: each call begins with being counted.
		cloud, err := db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if tag, err := cloud.Exec(t.Context(), "SELECT FROM world_documents WHERE key = $1 FOR UPDATE", "simulator/calls/"+d.id); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %v", tag, err)
		}
		first := l.start(s.command, append(operations[s.command], "id="+d.id)...)
		for second, params := range operations {
			job := l.ended(l.start(second, append(params, "id="+d.id)...))
			if text := job.object("jobresult").text("errortext"); job["jobstatus"] != 2.0 || !strings.Contains(text, s.state) {
				t.Errorf("%s during %s: %v", second, s.command, job)
			}
		}
		if got := l.byID(d.id).text("state"); got != s.state {
			t.Errorf("during %s it is %s", s.command, got)
		}
		if err := cloud.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if job := l.ended(first); job["jobstatus"] != 1.0 {
			t.Errorf("%s: %v", s.command, job)
		}
	}
	l.consistent()
}
