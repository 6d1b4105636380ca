package main

import (
	"strings"
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/jobs"
)

// smallHA are the parameters of ha for a cluster of four VMs.
func (c *client) smallHA(name string) []string {
	c.Helper()
	return append(c.ha(name), "controlnodes=2", "etcdnodes=1")
}

// TestServerIsKilledAtEveryStepOfACreate kills the server at every step of the
// creation of a cluster with etcd nodes, when the step has acted and when that
// is recorded. The next server ends the job as if nothing had happened: no VM
// is made twice, and none is forgotten.
//
// Keeps: §6/4-starting, §5.9/restart, #14609.
// Keeps: A50.
func TestServerIsKilledAtEveryStepOfACreate(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T){}
	for name, m := range map[string]moment{"acted": {}, "recorded": {recorded: true}} {
		cases[name] = func(t *testing.T) { createRounds(t, m) }
	}
	many(t, len(cases), cases)
}

func createRounds(t *testing.T, m moment) {
	env := childEnv(t, nil)
	server := spawn(t, env)
	for _, m.step = range jobs.Steps(cks.CreateCluster) {
		t.Logf("killed when %s:", m)
		c := server.client()
		before := c.callsOf("vm.create")
		gate := shut(t, env["DATABASE_URL"], m)
		a := c.call("createKubernetesCluster", c.smallHA("ha")...)
		server = gate.crash(c, server, env)
		c = server.client()
		ended := gate.ended(c, a.text("jobid"))
		made := ended.object("jobresult").object("kubernetescluster")
		vms := made.list("virtualmachines")
		if ended["jobstatus"] != 1.0 || made.text("state") != "Running" || len(vms) != 4 || made["size"] != 1.0 {
			t.Fatalf("job %v", ended)
		}
		calls := c.callsOf("vm.create")
		for _, vm := range vms {
			if n := calls[vm.text("id")]; n < 1 || n > 2 {
				t.Errorf("%s was asked for %d times", vm.text("name"), n)
			}
		}
		if len(calls) != len(before)+len(vms) {
			t.Errorf("VMs were made for nobody: before %v, now %v", before, calls)
		}
		c.consistent()
		c.kubeconfig(a.text("id"))
		c.do("deleteKubernetesCluster", "id="+a.text("id"))
		c.whole()
	}
}

// TestServerIsKilledWhileItUndoesACreate kills the server at every step that
// follows when a creation has failed. The next server ends the job as failed,
// without a VM; the cluster can be deleted, and its network goes with it.
//
// Keeps: §5.9/restart, §6/never.
// Keeps: A50.
func TestServerIsKilledWhileItUndoesACreate(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T){}
	for _, step := range jobs.UndoSteps(cks.CreateCluster) {
		for _, recorded := range []bool{false, true} {
			m := moment{step: step, recorded: recorded, undo: true}
			cases[m.String()] = func(t *testing.T) { createUndone(t, m) }
		}
	}
	many(t, len(cases), cases)
}

func createUndone(t *testing.T, m moment) {
	env := childEnv(t, nil)
	server := spawn(t, env)
	c := server.client()
	c.simulate("iso.attach", "fail:no ISO")
	gate := shut(t, env["DATABASE_URL"], m)
	a := c.call("createKubernetesCluster", c.smallHA("ha")...)
	id := a.text("id")
	c = gate.crash(c, server, env).client()
	ended := gate.ended(c, a.text("jobid"))
	if text := ended.object("jobresult").text("errortext"); ended["jobstatus"] != 2.0 || !strings.Contains(text, "no ISO") {
		t.Errorf("job %v", ended)
	}
	if k := c.byID(id); k.text("state") != "Error" || len(k.list("virtualmachines")) != 0 {
		t.Errorf("the cluster is %v", k)
	}
	if status, a := c.send("getKubernetesClusterConfig", "id="+id); status != 530 || a.text("errortext") != "Config not found for Kubernetes cluster : ha" {
		t.Errorf("kubeconfig: %d %v", status, a)
	}
	c.whole()
	c.simulate("iso.attach", "clear")
	c.do("deleteKubernetesCluster", "id="+id)
	if names := c.sees("listNetworks", "network", "name"); names["ha-network"] {
		t.Errorf("networks: %v", names)
	}
	c.whole()
}
