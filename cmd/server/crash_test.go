package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/embeddedpg"
	"ckscale/internal/jobs"
)

// scaling is a request in which a server is killed, and what it must lead to
// all the same.
type scaling struct {
	kind    cks.Kind
	prepare func(c *client)                                            // the demo cluster, also after an earlier round
	request func(workers []string) string                              // but for the cluster's id
	check   func(c *client, before, now []string, made map[string]int) // workers; calls of vm.create before
}

var scalings = []scaling{
	{cks.ScaleUp, twoWorkers, func([]string) string { return "size=3" }, grewByOne},
	{cks.ScaleDown, oneOfThreeDown, func([]string) string { return "size=1" }, lostFirstAndThird},
	{cks.RemoveNodes, oneOfThreeDown, func(w []string) string { return "nodeids=" + w[0] + "," + w[2] }, lostFirstAndThird},
}

func twoWorkers(c *client) {
	c.Helper()
	c.do("scaleKubernetesCluster", "id="+c.id(), "size=2")
}

// oneOfThreeDown gives the cluster three workers and stops the first.
func oneOfThreeDown(c *client) {
	c.Helper()
	c.do("scaleKubernetesCluster", "id="+c.id(), "size=3")
	c.do("stopVirtualMachine", "id="+c.workers()[0])
	c.inState("Alert")
}

// grewByOne: the new worker was chosen once and asked for at most twice.
func grewByOne(c *client, before, now []string, made map[string]int) {
	c.Helper()
	if len(now) != 3 || !slices.Equal(now[:2], before) {
		c.Fatalf("workers %v, before %v", now, before)
	}
	calls := c.callsOf("vm.create")
	if n := calls[now[2]]; n < 1 || n > 2 || len(calls) != len(made)+1 {
		c.Errorf("vm.create before %v, now %v; the new worker is %s", made, calls, now[2])
	}
	if s := c.ready(now[2]); s != "True" {
		c.Errorf("the new node is %q", s)
	}
}

// lostFirstAndThird: the first was down, so it was not drained.
func lostFirstAndThird(c *client, before, now []string, _ map[string]int) {
	c.Helper()
	if !slices.Equal(now, before[1:2]) {
		c.Errorf("workers %v, before %v", now, before)
	}
	if n := c.callsOf("node.drain"); n[before[0]] != 0 || n[before[1]] != 0 || n[before[2]] < 1 || n[before[2]] > 2 {
		c.Errorf("workers %v, drains %v", before, n)
	}
	if n := c.callsOf("vm.destroy"); n[before[0]] < 1 || n[before[0]] > 2 || n[before[1]] != 0 || n[before[2]] < 1 || n[before[2]] > 2 {
		c.Errorf("workers %v, vm.destroy %v", before, n)
	}
}

// TestServerIsKilledAtEveryStep kills the server at every step of a scale-up
// and of both scale-downs, when the step has acted and when that is recorded.
// The next server ends the job as if nothing had happened (A50, A51).
//
// Keeps: §2.3/restart.
// Keeps: §5.9/restart, §5.9/no-dead-end, #14609.
// Keeps: A50.
func TestServerIsKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T){}
	for _, s := range scalings {
		steps := jobs.Steps(s.kind)
		cases[string(s.kind)+"/acted"] = func(t *testing.T) { s.rounds(t, steps, moment{}, -1) }
		cases[string(s.kind)+"/recorded"] = func(t *testing.T) { s.rounds(t, steps, moment{recorded: true}, -1) }
	}
	// A scale-down goes round once for each worker: here the second, which runs.
	loop := jobs.Steps(cks.ScaleDown)
	loop = loop[slices.Index(loop, "next-node"):]
	cases["scale-down/acted in the second pass"] = func(t *testing.T) { scalings[1].rounds(t, loop, moment{}, 2) }
	many(t, len(cases), cases)
}

// rounds makes the request once for each of the steps and kills the server at
// the moment m of that; with a worker's number, in the pass that removes that
// one. The server that ends the job is the one to be killed next.
func (s scaling) rounds(t *testing.T, steps []string, m moment, worker int) {
	env := childEnv(t, nil)
	server := spawn(t, env)
	for _, m.step = range steps {
		t.Logf("killed when %s:", m)
		c := server.client()
		s.prepare(c)
		before, made := c.workers(), c.callsOf("vm.create")
		if worker >= 0 {
			m.vmID = before[worker]
		}
		gate := shut(t, env["DATABASE_URL"], m)
		job := c.start("scaleKubernetesCluster", "id="+c.id(), s.request(before))
		server = gate.crash(c, server, env)
		c = server.client()
		ended := gate.ended(c, job)
		result := ended.object("jobresult").object("kubernetescluster")
		now := c.workers()
		if ended["jobstatus"] != 1.0 || result["size"] != float64(len(now)) {
			t.Fatalf("%d workers; job %v", len(now), ended)
		}
		s.check(c, before, now, made)
		c.whole()
	}
	c := server.client()
	c.do("scaleKubernetesCluster", "id="+c.id(), "size=2")
	c.whole()
}

// crash lets the server die at the gate, opens that, and starts a new server.
func (g *gate) crash(c *client, server *child, env map[string]string) *child {
	g.Helper()
	g.reached(c)
	server.kill()
	g.buried(c)
	g.open()
	return spawn(g.TB, env)
}

// whole checks that the cluster's records, its VMs and its nodes agree.
func (c *client) whole() {
	c.Helper()
	c.consistent()
	c.sameNodes()
}

// undoing is a request that fails, and why.
type undoing struct {
	kind  cks.Kind
	fault string // fails at it
	size  int    // asked for
	why   string
}

// TestServerIsKilledWhileItUndoes kills the server at every step that follows
// when a scaling has failed. The next server ends the job as failed, with the
// cluster as it was.
//
// Keeps: §5.9/restart, §6/never.
// Keeps: A50.
func TestServerIsKilledWhileItUndoes(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T){}
	for _, u := range []undoing{
		{cks.ScaleUp, "node.join", 3, "0 of 1 new nodes joined"},
		{cks.ScaleDown, "node.drain", 1, "failed to remove Kubernetes node"},
	} {
		for _, step := range jobs.UndoSteps(u.kind) {
			for _, recorded := range []bool{false, true} {
				m := moment{step: step, recorded: recorded, undo: true}
				cases[fmt.Sprintf("%s/%s", u.kind, m)] = func(t *testing.T) { u.killedAt(t, m) }
			}
		}
	}
	many(t, len(cases), cases)
}

func (u undoing) killedAt(t *testing.T, m moment) {
	env := childEnv(t, map[string]string{"CKSCALE_SCALE_TIMEOUT": "2s"})
	server := spawn(t, env)
	c := server.client()
	id, before := c.id(), c.workers()
	c.simulate(u.fault, "fail")
	gate := shut(t, env["DATABASE_URL"], m)
	job := c.start("scaleKubernetesCluster", "id="+id, fmt.Sprintf("size=%d", u.size))
	delete(env, "CKSCALE_SCALE_TIMEOUT") // for the jobs to come
	c = gate.crash(c, server, env).client()
	ended := gate.ended(c, job)
	if text := ended.object("jobresult").text("errortext"); ended["jobstatus"] != 2.0 || !strings.Contains(text, u.why) {
		t.Errorf("job %v", ended)
	}
	c.inState("Running")
	if now := c.workers(); !slices.Equal(now, before) {
		t.Errorf("workers %v, before %v", now, before)
	}
	c.whole()
	c.simulate(u.fault, "clear")
	c.do("scaleKubernetesCluster", "id="+id, fmt.Sprintf("size=%d", u.size))
	c.whole()
}

// hanging asks for a third worker and waits until a server hangs in making it;
// the next call will not. It returns the job and the server that executes it.
func hanging(c *client, env map[string]string) (job, owner string) {
	c.Helper()
	url := env["DATABASE_URL"]
	if url == "" {
		url = embeddedpg.URL(embeddedDir(config{DataDir: env["CKSCALE_DATA_DIR"]}), embeddedName)
	}
	db := connect(c, url)
	c.simulate("vm.create", "hang", "count=1")
	job = c.start("scaleKubernetesCluster", "id="+c.id(), "size=3")
	c.until("the step hangs", time.Minute, func() bool { // the call is counted before it strikes
		return ask[bool](c, db, "SELECT document->'faults'->0->'struck' = '1' IS TRUE FROM world_documents WHERE key = 'simulator'")
	})
	owner = ask[string](c, db, "SELECT owner FROM jobs WHERE status = 0")
	if err := db.Close(c.Context()); err != nil { // before the database may end
		c.Error(err)
	}
	return job, owner
}

// grown checks that the hanging job has been ended by another server.
func (c *client) grown(job string) {
	c.Helper()
	if ended := c.ended(job); ended["jobstatus"] != 1.0 {
		c.Errorf("job %v", ended)
	}
	if n := c.callsOf("vm.create"); len(n) != 1 || n[c.workers()[2]] != 2 {
		c.Errorf("workers %v, vm.create %v", c.workers(), n)
	}
	c.whole()
}

// takesNoJobs waits until the server, which is told to stop, refuses them.
func (c *client) takesNoJobs() {
	c.Helper()
	id := c.id()
	c.until("no more jobs", 15*time.Second, func() bool {
		status, a := c.send("scaleKubernetesCluster", "id="+id, "size=3")
		return status == 503 && a.text("errortext") == "Maintenance or Shutdown has been initiated on this management server. Can not accept new jobs"
	})
	c.call("listKubernetesClusters")
}

// longLease is a lease that no test lives to see the end of.
const longLease = "1h"

// TestRestartTakesJobsUpAtOnce: with the embedded database, which dies with its
// server, a restart waits for no lease (design.md §5).
//
// Keeps: A50.
func TestRestartTakesJobsUpAtOnce(t *testing.T) {
	t.Parallel()
	env := childEnv(t, map[string]string{
		"DATABASE_URL": "", "CKSCALE_DATA_DIR": filepath.Join(dataDir(t), "state"), "CKSCALE_LEASE": longLease})
	server := spawn(t, env)
	job, _ := hanging(server.client(), env)
	server.kill()
	spawn(t, env).client().grown(job)
}

// TestOtherServerGoesOn: of two servers, the one that executes the job is
// killed.
//
// Keeps: A50.
func TestOtherServerGoesOn(t *testing.T) {
	t.Parallel()
	env := childEnv(t, nil)
	servers := map[string]*child{}
	for _, s := range []*child{spawn(t, env), spawn(t, env)} {
		_, owner := s.serving()
		servers[owner] = s
	}
	for _, s := range servers {
		job, owner := hanging(s.client(), env)
		servers[owner].kill()
		delete(servers, owner)
		for _, other := range servers {
			other.client().grown(job)
		}
		return
	}
}

// TestStoppedServerHandsOver: a server that is told to stop in a step that
// hangs ends after the grace period, and leaves the job to another one at once
// (A52). Till then it answers reads and takes no more jobs (cks.md §1.11).
//
// Keeps: §1.11/503.
// Keeps: A52.
func TestStoppedServerHandsOver(t *testing.T) {
	t.Parallel()
	env := childEnv(t, map[string]string{"CKSCALE_LEASE": longLease})
	server := spawn(t, env)
	job, _ := hanging(server.client(), env)
	server.tell(syscall.SIGTERM)
	server.client().takesNoJobs()
	other := spawn(t, env)
	server.gone(stepGrace + requestGrace + 20*time.Second)
	if server.err != nil {
		t.Errorf("the server ended with %v\n%s", server.err, server.stderr)
	}
	other.client().grown(job)
}
