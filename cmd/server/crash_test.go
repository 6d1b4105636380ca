package main

import (
	"fmt"
	"slices"
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/jobs"
)

// scaling is a request that a server is killed in, and what it must lead to
// all the same.
type scaling struct {
	kind    cks.Kind
	prepare func(c *client)                            // the demo cluster
	request func(w []string) []string                  // of workers w
	check   func(c *client, w []string, result answer) // of workers w before
	then    string                                     // a size that the cluster is scaled to afterwards
}

var scalings = []scaling{
	{cks.ScaleUp, func(*client) {}, func([]string) []string { return []string{"size=3"} }, grewByOne, "size=2"},
	{cks.ScaleDown, downWorker, func([]string) []string { return []string{"size=1"} }, lostTwo, "size=2"},
	{cks.RemoveNodes, downWorker, func(w []string) []string { return []string{"nodeids=" + w[0] + "," + w[2]} }, lostTwo, "size=2"},
}

// downWorker gives the demo cluster a third worker and stops the first.
func downWorker(c *client) {
	c.Helper()
	c.do("scaleKubernetesCluster", "id="+c.id(), "size=3")
	c.do("stopVirtualMachine", "id="+c.workers()[0])
	c.inState("Alert")
}

// grewByOne: one new worker, chosen once and made in at most two calls.
func grewByOne(c *client, w []string, result answer) {
	c.Helper()
	now := c.workers()
	if result["size"] != 3.0 || len(now) != 3 || !slices.Equal(now[:2], w) {
		c.Fatalf("size %v with %v of %v", result["size"], now, w)
	}
	made := c.callsOf("vm.create")
	if n := made[now[2]]; len(made) != 1 || n < 1 || n > 2 {
		c.Errorf("vm.create of %s: %v", now[2], made)
	}
	if s := c.ready(now[2]); s != "True" {
		c.Errorf("the new node is %q", s)
	}
}

// lostTwo: the first worker, which is down and never drained, and the third.
func lostTwo(c *client, w []string, result answer) {
	c.Helper()
	if now := c.workers(); result["size"] != 1.0 || !slices.Equal(now, w[1:2]) {
		c.Errorf("size %v with %v of %v", result["size"], now, w)
	}
	if n := c.callsOf("node.drain"); n[w[0]] != 0 || n[w[2]] < 1 || n[w[2]] > 2 || n[w[1]] != 0 {
		c.Errorf("drains of %v: %v", w, n)
	}
	if n := c.callsOf("vm.destroy"); len(n) != 2 || n[w[0]] > 2 || n[w[2]] > 2 {
		c.Errorf("vm.destroy: %v", n)
	}
}

// TestServerIsKilledAtEveryStep kills the server in every step of a scale-up
// and of both scale-downs, after the step has acted and after that is recorded.
// The next server ends the job as if nothing had happened (A50, A51).
func TestServerIsKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T){}
	for _, s := range scalings {
		for _, step := range jobs.Steps(s.kind) {
			for _, recorded := range []bool{false, true} {
				m := moment{step: step, recorded: recorded}
				cases[fmt.Sprintf("%s/%s", s.kind, m)] = func(t *testing.T) { s.killedAt(t, m, -1) }
			}
		}
	}
	for _, s := range scalings[1:] {
		for _, step := range []string{"drain", "destroy-vm"} { // in the second pass, of a worker that runs
			m := moment{step: step}
			cases[fmt.Sprintf("%s/second %s", s.kind, m)] = func(t *testing.T) { s.killedAt(t, m, 2) }
		}
	}
	many(t, 6, cases)
}

// killedAt kills the server at m; with a worker's number, in the pass that
// removes that one.
func (s scaling) killedAt(t *testing.T, m moment, worker int) {
	env := childEnv(t, nil)
	dies := spawn(t, env)
	c := dies.client()
	s.prepare(c)
	id, w := c.id(), c.workers()
	if worker >= 0 {
		m.vmID = w[worker]
	}
	gate := shut(t, env["DATABASE_URL"], m)
	job := c.start("scaleKubernetesCluster", append(s.request(w), "id="+id)...)
	gate.reached(c)
	dies.kill()
	gate.buried(c)
	gate.open()
	c = spawn(t, env).client()
	ended := c.ended(job)
	if ended["jobstatus"] != 1.0 {
		t.Fatalf("the job did not succeed: %v", ended)
	}
	s.check(c, w, ended.object("jobresult").object("kubernetescluster"))
	c.consistent()
	c.sameNodes()
	c.do("scaleKubernetesCluster", "id="+id, s.then)
	c.consistent()
	c.sameNodes()
}
