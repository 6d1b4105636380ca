package main

import (
	"maps"
	"strings"
	"testing"
)

// with is a resource in which some arguments are written otherwise; "" takes
// one out.
func (r resource) with(arguments ...string) resource {
	out := maps.Clone(r)
	for _, a := range pairs(arguments) {
		if out[a.name] = a.value; a.value == "" {
			delete(out, a.name)
		}
	}
	return out
}

// written is a cluster by the names of what it refers to, and by their ids.
func (c *client) written(byID bool) resource {
	c.Helper()
	version := c.call("listKubernetesSupportedVersions").list("kubernetessupportedversion")[0]
	r := resource{"name": "tf", "description": "tf", "size": "1", "state": "Running", "service_offering": "small",
		"zone": c.call("listZones").list("zone")[0].text("name"), "kubernetes_version": version.text("name")}
	if byID {
		r["service_offering"], r["kubernetes_version"] = c.offeringsByName()["small"], version.text("id")
		r["zone"] = c.call("listZones").list("zone")[0].text("id")
	}
	return r
}

// Terraform makes a cluster from names and from ids, changes its size, its
// offering and autoscaling, and deletes it. Each plan after that is empty: what
// it reads is what was written, and nothing else has changed.
//
// Keeps: tf/names, tf/size, tf/autoscaling, tf/drift, tf/delete.
func TestTerraformManagesACluster(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	tf := &terraform{client: c}
	for _, byID := range []bool{false, true} {
		r := c.written(byID)
		if err := tf.create(r.with("keypair=ops", "control_nodes_size=1")); err != nil {
			t.Fatal(err)
		}
		tf.apply(r)
		tf.apply(r.with("size=3"))
		r = r.with("size=2", "service_offering=medium")
		tf.apply(r)
		for _, bounds := range []string{"1 4", "2 5"} {
			lo, hi, _ := strings.Cut(bounds, " ")
			tf.apply(r.with("autoscaling_enabled=true", "min_size="+lo, "max_size="+hi))
			if got := c.deployments()[tf.id]; got != lo+" to "+hi {
				t.Errorf("deployed: %q", got)
			}
		}
		tf.apply(r.with("autoscaling_enabled=false")) // with bounds of 0
		if got := c.deployments()[tf.id]; got != "" {
			t.Errorf("deployed: %q", got)
		}
		if err := tf.delete(); err != nil || !tf.read(r) {
			t.Errorf("deleted: %v, and listed as %v", err, tf.state)
		}
		if err := tf.delete(); err == nil || err.Error() != `Undefined error: "Invalid Kubernetes cluster ID"` { // as CloudStack, which remembers it
			t.Errorf("deleted again: %v", err)
		}
	}
	const scale = "scaleKubernetesCluster "
	const each = "createKubernetesCluster controlnodes description keypair kubernetesversionid name serviceofferingid size zoneid\n" +
		scale + "id serviceofferingid size\n" + scale + "id serviceofferingid size\n" +
		scale + "autoscalingenabled id maxsize minsize\n" + scale + "autoscalingenabled id maxsize minsize\n" +
		scale + "autoscalingenabled id maxsize minsize\n" + "deleteKubernetesCluster id\ndeleteKubernetesCluster id\n"
	if got := strings.Join(tf.posts, "\n") + "\n"; got != each+each {
		t.Errorf("it sent\n%swant twice\n%s", got, each)
	}
	if tf.id = "11111111-2222-3333-4444-555555555555"; tf.delete() != nil || !strings.HasPrefix(tf.gone(), "CloudStack API error 431 (CSExceptionErrorCode: 9999): ") {
		t.Errorf("a cluster that never was: %s", tf.gone())
	}
}

// gone is the error about a cluster that does not exist.
func (tf *terraform) gone() string {
	tf.Helper()
	_, err := tf.request("listKubernetesClusters", "id="+tf.id)
	if err == nil {
		return ""
	}
	return err.Error()
}

// With autoscaling written from the start, the cluster is made and then set.
//
// Keeps: tf/autoscaling.
func TestTerraformCreatesAnAutoscalingCluster(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	tf := &terraform{client: c}
	r := c.written(false).with("autoscaling_enabled=true", "min_size=1", "max_size=3")
	if err := tf.create(r); err != nil {
		t.Fatal(err)
	}
	tf.apply(r)
	if len(tf.posts) != 2 || c.deployments()[tf.id] != "1 to 3" {
		t.Errorf("it sent %q; deployed: %v", tf.posts, c.deployments())
	}
}

// In Alert an update of the size, with the offering that the cluster has,
// works; the state is not as it was written until the node is up again.
//
// Keeps: tf/alert, seed/accept-current.
func TestTerraformScalesInAlert(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	tf := &terraform{client: c}
	r := c.written(false).with("size=2", "state=")
	if err := tf.create(r); err != nil {
		t.Fatal(err)
	}
	down := c.byID(tf.id).list("virtualmachines")[2].text("id")
	c.do("stopVirtualMachine", "id="+down)
	c.become(tf.id, "Alert")
	tf.apply(r.with("size=3"))
	c.become(tf.id, "Alert")
	tf.apply(r.with("size=2")) // the down node goes
	if changed := tf.plan(r.with("state=Running")); len(changed) != 0 || c.callsOf("node.drain")[down] != 0 {
		t.Errorf("the plan has %v, after %d drains", changed, c.callsOf("node.drain")[down])
	}
}

// A create that fails leaves a cluster that is found by its name, which can be
// deleted; the same can be created again then.
//
// Keeps: tf/adopt.
func TestTerraformAdoptsWhatWasHalfMade(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	tf := &terraform{client: c}
	r := c.written(false)
	c.simulate("vm.create", "fail:no host has room")
	if err := tf.create(r); err == nil || !strings.Contains(err.Error(), "no host has room") || tf.id == "" {
		t.Fatalf("created %q: %v", tf.id, err)
	}
	c.simulate("vm.create", "clear")
	if err := tf.delete(); err != nil || !tf.read(r) {
		t.Errorf("deleted: %v, and listed as %v", err, tf.state)
	}
	if err := tf.create(r); err != nil {
		t.Fatal(err)
	}
	tf.apply(r)
}

// Terraform stops and starts a cluster by its state, and upgrades it by its
// version, a minor release at a time; what it may not do it is told, and the
// plan goes on to say so.
//
// Keeps: tf/state, tf/upgrade.
func TestTerraformStopsStartsAndUpgrades(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	for _, byID := range []bool{false, true} {
		tf := &terraform{client: c}
		version := func(number string) string {
			if byID {
				return "kubernetes_version=" + c.versionNamed(number)
			}
			return "kubernetes_version=v" + number
		}
		r := c.written(byID).with(version("1.32.9"), "size=2")
		if err := tf.create(r); err != nil {
			t.Fatal(err)
		}
		tf.apply(r.with("state=Stopped"))
		stopped := r.with("state=Stopped", "size=3")
		if err := tf.update(stopped, tf.plan(stopped)); err == nil || !strings.Contains(err.Error(), "is in Stopped state") {
			t.Errorf("scaled while it is stopped: %v", err)
		}
		if changed := tf.plan(stopped); len(changed) != 1 || !changed["size"] {
			t.Errorf("the plan has %v", changed)
		}
		tf.apply(r)
		two := r.with(version("1.34.1"))
		if err := tf.update(two, tf.plan(two)); err == nil || !strings.Contains(err.Error(), "between next minor or patch version releases") {
			t.Errorf("upgraded by two: %v", err)
		}
		tf.apply(r.with(version("1.33.1")))
		tf.apply(r.with(version("1.34.1"), "size=3"))
		if err := tf.update(r, tf.plan(r)); err == nil { // the size goes down, the version does not
			t.Error("downgraded")
		}
		if changed := tf.plan(r); len(changed) != 1 || !changed["kubernetes_version"] {
			t.Errorf("the plan has %v", changed)
		}
		if err := tf.delete(); err != nil || !tf.read(r) {
			t.Errorf("deleted: %v, and listed as %v", err, tf.state)
		}
	}
	c.consistent()
}
