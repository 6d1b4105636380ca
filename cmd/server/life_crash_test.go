package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/jobs"
)

// life is a request on the cluster "demo" in which a server is killed.
type life struct {
	kind    cks.Kind
	command string
	prepare func(c *client, id string)
	params  func(c *client) []string
	loop    []string // steps that come again for every node
	check   func(c *client, vms []string, m moment)
}

var lives = []life{
	{kind: cks.StopCluster, command: "stopKubernetesCluster", check: func(c *client, _ []string, _ moment) {
		if got := c.cluster().text("state"); got != "Stopped" || !slices.Equal(c.vmStates(), []string{"Stopped"}) {
			c.Errorf("%s, VMs %v", got, c.vmStates())
		}
	}},
	{kind: cks.StartCluster, command: "startKubernetesCluster", prepare: func(c *client, id string) {
		c.do("stopKubernetesCluster", "id="+id)
	}, check: func(c *client, vms []string, _ moment) {
		if got := c.cluster().text("state"); got != "Running" || !slices.Equal(c.vmStates(), []string{"Running"}) {
			c.Errorf("%s, VMs %v", got, c.vmStates())
		}
		for _, vm := range vms {
			if c.ready(vm) != "True" {
				c.Errorf("the node of %s is %q", vm, c.ready(vm))
			}
		}
	}},
	{kind: cks.UpgradeCluster, command: "upgradeKubernetesCluster", params: func(c *client) []string {
		return []string{"kubernetesversionid=" + c.versionNamed("1.34.1")}
	}, loop: []string{"next-node", "drain", "upgrade-node", "wait-node", "uncordon", "record-node"}, check: checkUpgraded},
}

// checkUpgraded: all nodes have the new version, those before the one at which
// the server died were seen to once, and that one twice at most.
func checkUpgraded(c *client, vms []string, m moment) {
	c.Helper()
	if k := c.cluster(); k.text("state") != "Running" || k.text("kubernetesversionname") != "v1.34.1" {
		c.Errorf("%s at %s", k.text("state"), k.text("kubernetesversionname"))
	}
	recorded, kubelets := c.versions(), c.kubelets()
	for _, vm := range vms {
		if recorded[vm] != "v1.34.1" || kubelets[vm] != "v1.34.1" || c.ready(vm) != "True" {
			c.Errorf("%s is recorded at %s, has %s and is %s", vm, recorded[vm], kubelets[vm], c.ready(vm))
		}
		most := 1
		if vm == m.vmID {
			most = 2
		}
		for _, operation := range []string{"node.drain", "node.upgrade", "node.uncordon"} {
			if n := c.callsOf(operation)[vm]; n < 1 || n > most {
				c.Errorf("%s of %s: %d times", operation, vm, n)
			}
		}
	}
}

// fresh replaces the cluster "demo" by a new one, with one control node and two
// workers, at version 1.33.1.
func (c *client) fresh() (id string, vms []string) {
	c.Helper()
	c.do("deleteKubernetesCluster", "id="+c.id())
	a := c.call("createKubernetesCluster", "name=demo", "description=demo", "size=2", "controlnodes=1",
		"zoneid="+c.call("listZones").list("zone")[0].text("id"), "kubernetesversionid="+c.versionNamed("1.33.1"),
		"serviceofferingid="+c.offeringsByName()["small"])
	if job := c.ended(a.text("jobid")); job["jobstatus"] != 1.0 {
		c.Fatalf("create: %v", job)
	}
	return a.text("id"), append(c.controls(), c.workers()...)
}

// TestServerIsKilledInALife kills the server at every step of a stop, a start
// and an upgrade, there in the pass of the last worker, when the step has acted
// and when that is recorded. The next server ends the job as if nothing had
// happened.
//
// Keeps: §6/never, §6/4-starting, §4/start-stop, #14611/upgrade.
// Keeps: A50.
func TestServerIsKilledInALife(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T){}
	for _, l := range lives {
		for _, recorded := range []bool{false, true} {
			cases[fmt.Sprintf("%s/recorded %t", l.kind, recorded)] = func(t *testing.T) { l.rounds(t, recorded) }
		}
	}
	many(t, len(cases), cases)
}

func (l life) rounds(t *testing.T, recorded bool) {
	env := childEnv(t, nil)
	server := spawn(t, env)
	for _, step := range jobs.Steps(l.kind) {
		c := server.client()
		id, vms := c.fresh()
		if l.prepare != nil {
			l.prepare(c, id)
		}
		m := moment{step: step, recorded: recorded}
		if slices.Contains(l.loop, step) {
			m.vmID = vms[len(vms)-1]
		}
		t.Logf("killed when %s:", m)
		params := []string{"id=" + id}
		if l.params != nil {
			params = append(params, l.params(c)...)
		}
		gate := shut(t, env["DATABASE_URL"], m)
		job := c.start(l.command, params...)
		server = gate.crash(c, server, env)
		c = server.client()
		if ended := gate.ended(c, job); ended["jobstatus"] != 1.0 {
			t.Fatalf("job %v", ended)
		}
		l.check(c, vms, m)
		c.whole()
	}
}

// TestUpgradeGoesOnAtAnotherServer: of two servers, the one that upgrades a
// cluster is killed while it hangs in a worker's upgrade; the other one ends it.
//
// Keeps: A50, #14611/upgrade.
func TestUpgradeGoesOnAtAnotherServer(t *testing.T) {
	t.Parallel()
	env := childEnv(t, nil)
	servers := map[string]*child{}
	for range 2 {
		s := spawn(t, env)
		_, owner := s.serving()
		servers[owner] = s
	}
	db := connect(t, env["DATABASE_URL"])
	for _, s := range servers {
		c := s.client()
		id, w := c.id(), c.workers()
		vms := append(c.controls(), w...)
		c.simulate("node.upgrade", "hang", "count=1", "vmid="+w[0])
		job := c.start("upgradeKubernetesCluster", "id="+id, "kubernetesversionid="+c.versionNamed("1.34.1"))
		c.until("the upgrade hangs", time.Minute, func() bool { return c.callsOf("node.upgrade")[w[0]] == 1 })
		if ended := c.call("queryAsyncJobResult", "jobid="+job); ended["jobstatus"] != 0.0 || c.cluster().text("state") != "Upgrading" {
			t.Errorf("job %v", ended)
		}
		owner := ask[string](t, db, "SELECT owner FROM jobs WHERE status = 0")
		servers[owner].kill()
		delete(servers, owner)
		for _, other := range servers {
			c := other.client()
			if ended := c.ended(job); ended["jobstatus"] != 1.0 || !strings.Contains(fmt.Sprint(ended["jobresult"]), "v1.34.1") {
				t.Errorf("job %v", ended)
			}
			checkUpgraded(c, vms, moment{vmID: w[0]})
			c.whole()
		}
		return
	}
}
