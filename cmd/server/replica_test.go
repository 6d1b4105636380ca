package main

import (
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ckscale/internal/cks"
	"ckscale/internal/jobs"
)

// A server that stands still, as one does whose machine is paused, whose disk
// hangs or whose network is cut, is not dead: it goes on one day with a lease
// that is somebody else's by then.

// with returns the address of a database with one setting more.
func with(t testing.TB, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// pausable starts a server that can be paused: it goes on before it is told to
// end. What it leaves open in the database while it stands still is ended after
// two seconds; by default it is 15.
func pausable(t testing.TB, env map[string]string) *child {
	t.Helper()
	own := map[string]string{}
	for name, value := range env {
		own[name] = value
	}
	own["DATABASE_URL"] = with(t, env["DATABASE_URL"], "idle_in_transaction_session_timeout", "2000")
	s := spawn(t, own)
	t.Cleanup(func() {
		select {
		case <-s.ended:
		default:
			s.tell(syscall.SIGCONT)
		}
	})
	return s
}

// goesOn lets a paused server go on, and waits until it has found out that the
// job is not its own any more.
func (s *child) goesOn(c *client, job string) {
	s.Helper()
	s.tell(syscall.SIGCONT)
	c.until("the paused server has noticed", time.Minute, func() bool {
		for line := range strings.Lines(s.stdout.String()) {
			lost := strings.Contains(line, `"the lease is lost; whoever has it goes on"`) ||
				strings.Contains(line, `"cannot record how a job went; its lease will run out"`)
			if lost && strings.Contains(line, job) {
				return true
			}
		}
		return false
	})
}

// deeds is all that has been done to the cloud and to the job. Pods move by
// themselves.
func (c *client) deeds(job string) []any {
	c.Helper()
	world := c.call("querySimulator")
	for _, n := range world.list("node") {
		delete(n, "pods")
	}
	return []any{world["call"], world["vm"], world["node"], c.cluster(), c.call("queryAsyncJobResult", "jobid="+job)}
}

// TestPausedServerDoesNothingMore pauses a server at every step of a scale-up
// and of a scale-down, when the step has acted and when that is recorded, for
// longer than its lease. Another server ends the job as if nothing had happened.
// When the first one goes on it does nothing more: the cloud's counts of calls,
// its VMs and nodes, the cluster and the job stay as they are (A51).
//
// Keeps: §2.3/restart.
// Keeps: A51.
func TestPausedServerDoesNothingMore(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T){}
	for _, s := range scalings[:2] { // removal by id has the same steps as the second
		for _, recorded := range []bool{false, true} {
			m := moment{recorded: recorded}
			cases[fmt.Sprintf("%s/recorded %t", s.kind, recorded)] = func(t *testing.T) { s.pausedAt(t, jobs.Steps(s.kind), m) }
		}
	}
	many(t, len(cases), cases)
}

// pausedAt makes the request once for each of the steps. The server that ends
// the job is the one to be paused next.
func (s scaling) pausedAt(t *testing.T, steps []string, m moment) {
	env := childEnv(t, nil)
	server := pausable(t, env)
	for _, m.step = range steps {
		t.Logf("paused when %s:", m)
		c := server.client()
		s.prepare(c)
		before, made := c.workers(), c.callsOf("vm.create")
		gate := shut(t, env["DATABASE_URL"], m)
		job := c.start("scaleKubernetesCluster", "id="+c.id(), s.request(before))
		gate.reached(c)
		server.tell(syscall.SIGSTOP)
		gate.exec("SELECT pg_advisory_unlock($1)", int64(standLock)) // what it has sent to the database happens
		gate.exec(standNoMore)                                       // and has happened now
		waits := ask[bool](t, gate.db, "SELECT owner IS NULL FROM jobs WHERE id = $1", job)
		other := pausable(t, env)
		c = other.client()
		if ended := gate.ended(c, job); ended["jobstatus"] != 1.0 {
			t.Fatalf("job %v", ended)
		}
		s.check(c, before, c.workers(), made)
		c.whole()
		was := c.deeds(job)
		if waits { // the last thing it did was to put the job back: nothing is to be noticed
			server.tell(syscall.SIGCONT)
		} else {
			server.goesOn(c, job)
		}
		server.client().whole() // it serves as before
		if diff := cmp.Diff(was, c.deeds(job)); diff != "" {
			t.Error(diff)
		}
		server.stop(time.Minute)
		server = other
	}
}

// TestCallOfPausedServerIsGivenUp pauses a server in the middle of a call that
// deletes a node, for longer than its lease. The server that takes the job over
// cannot delete it and gives up: the node stays, and its client is told. When
// the first server goes on, its call must not get through.
//
// Keeps: A51.
func TestCallOfPausedServerIsGivenUp(t *testing.T) {
	t.Parallel()
	env := childEnv(t, nil)
	server := pausable(t, env)
	c := server.client()
	worker := c.workers()[0]
	c.simulate("node.delete", "delay:3s", "count=1")
	job := c.start("scaleKubernetesCluster", "id="+c.id(), "nodeids="+worker)
	c.until("the call is under way", time.Minute, func() bool { return c.callsOf("node.delete")[worker] == 1 })
	c.simulate("node.delete", "fail") // the next ones
	server.tell(syscall.SIGSTOP)
	c = pausable(t, env).client()
	if ended := c.ended(job); ended["jobstatus"] != 2.0 {
		t.Fatalf("job %v", ended)
	}
	c.inState("Running") // by the scanner, after the failure
	was := c.deeds(job)
	server.goesOn(c, job)
	if diff := cmp.Diff(was, c.deeds(job)); diff != "" {
		t.Error(diff)
	}
	if ready := c.ready(worker); ready != string(cks.NodeReady) {
		t.Errorf("the node that was kept is %q", ready)
	}
	c.simulate("node.delete", "clear")
	c.do("scaleKubernetesCluster", "id="+c.id(), "nodeids="+worker)
	c.whole()
}
