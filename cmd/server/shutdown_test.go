package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ckscale/internal/jobs"
)

// stepGrace is what steps get from a server that is not told otherwise.
const stepGrace = 20 * time.Second

// hangs says which call to the cloud hangs in a step. In a step that is not
// here, or makes no call, the database does.
var hangs = map[string]string{
	"create-and-start": "vm.create", "attach-iso": "iso.attach", "wait-ready-count": "node.list", "detach-iso": "iso.detach",
	"drain": "node.drain", "delete-node": "node.delete", "destroy-vm": "vm.destroy",
}

// TestServerIsToldToStopInEveryStep: of two servers, the one that executes a job
// is told to stop while the step hangs. It ends within its grace period, and
// the other one takes the job at once, long before the lease has run out, and
// ends it as if nothing had happened. That goes on until every step of a
// scale-up and of a removal has been met.
//
// Keeps: A52.
func TestServerIsToldToStopInEveryStep(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T){}
	for _, s := range []scaling{scalings[0], scalings[2]} {
		steps := jobs.Steps(s.kind)
		half := (len(steps) + 1) / 2
		cases[string(s.kind)+"/first steps"] = func(t *testing.T) { s.stopped(t, steps[:half]) }
		cases[string(s.kind)+"/last steps"] = func(t *testing.T) { s.stopped(t, steps[half:]) }
	}
	many(t, len(cases), cases)
}

const shortGrace = 500 * time.Millisecond

// stopped makes the request once for each of the steps, and stops the server
// that executes it.
func (s scaling) stopped(t *testing.T, steps []string) {
	env := childEnv(t, map[string]string{"CKSCALE_GRACE": shortGrace.String(), "CKSCALE_LEASE": "60s", "CKSCALE_SCAN_INTERVAL": "1h"})
	servers := twoServers{spawn(t, env), spawn(t, env)}
	db := connect(t, env["DATABASE_URL"])
	for i, step := range steps {
		if i > 0 {
			servers[0] = spawn(t, env)
		}
		c := servers[0].client()
		s.prepare(c)
		before, made := c.workers(), c.callsOf("vm.create")
		job, release := s.hangIn(c, db, env["DATABASE_URL"], step, before)
		if at := ask[string](t, db, "SELECT step FROM jobs WHERE status = 0"); at != s.before(step) {
			t.Errorf("the job hangs behind %q, not in %s", at, step)
		}
		servers.first(ask[string](t, db, "SELECT owner FROM jobs WHERE status = 0"))
		begin := time.Now()
		servers[0].tell(syscall.SIGTERM)
		servers[0].gone(shortGrace + 10*time.Second)
		ended := time.Now()
		if err := servers[0].err; err != nil {
			t.Errorf("the server ended with %v\n%s", err, servers[0].stderr)
		}
		c = servers[1].client()
		_, heir := servers[1].serving()
		c.until("the other server has the job", 15*time.Second, func() bool {
			return ask[bool](t, db, "SELECT coalesce(owner = $2, status <> 0) FROM jobs WHERE id = $1", job, heir)
		})
		t.Logf("%s: ended after %s, taken over after %s more", step, ended.Sub(begin).Round(time.Millisecond), time.Since(ended).Round(time.Millisecond))
		release(c)
		if ended := c.ended(job); ended["jobstatus"] != 1.0 {
			t.Fatalf("%s: job %v", step, ended)
		}
		s.check(c, before, c.workers(), made)
		c.whole()
	}
}

// hangIn makes the request, and returns when the job hangs in the step. release
// lets another server go on with it.
func (s scaling) hangIn(c *client, db *pgx.Conn, url, step string, workers []string) (job string, release func(*client)) {
	c.Helper()
	request := func() string { return c.start("scaleKubernetesCluster", "id="+c.id(), s.request(workers)) }
	call := hangs[step]
	switch call {
	case "":
		gate := shut(c.TB, url, moment{step: step})
		job = request()
		gate.reached(c)
		return job, func(*client) {
			gate.exec("SELECT pg_advisory_unlock($1)", int64(standLock)) // first: the other server may stand there by now
			gate.exec(standNoMore)
		}
	case "node.list": // the scanner lists nodes, too, but not while the job waits for one
		c.simulate("node.join", "fail")
		job = request()
		c.until("the job waits", time.Minute, func() bool {
			return ask[bool](c, db, "SELECT owner IS NULL AND step = $2 FROM jobs WHERE id = $1", job, s.before(step))
		})
		c.simulate(call, "hang", "count=1")
		c.simulate("node.join", "clear")
	default:
		c.simulate(call, "hang", "count=1")
		job = request()
	}
	c.until(step+" hangs", time.Minute, func() bool { // the call is counted before it strikes
		return ask[bool](c, db, `SELECT EXISTS (SELECT FROM world_documents, jsonb_array_elements(document->'faults') fault
			WHERE key = 'simulator' AND fault->>'operation' = $1 AND fault->>'struck' = '1')`, call)
	})
	return job, func(other *client) { other.simulate(call, "clear") }
}

// before is the step before another, "" for the first.
func (s scaling) before(step string) string {
	steps := append([]string{""}, jobs.Steps(s.kind)...)
	return steps[slices.Index(steps, step)-1]
}

// twoServers share a database.
type twoServers [2]*child

// first puts the server with that id first.
func (p *twoServers) first(owner string) {
	if _, id := p[0].serving(); id != owner {
		p[0], p[1] = p[1], p[0]
	}
}

// freeze stops all processes of PostgreSQL, so that it takes connections and
// answers nothing, until thaw.
func (p *private) freeze() (thaw func()) {
	p.Helper()
	first := p.pid()
	if first == 0 { // which would mean ourselves
		p.Fatal("PostgreSQL does not run")
	}
	pids := []int{first}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		p.Fatal(err)
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(first) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				p.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	tell := func(sig syscall.Signal) {
		for _, pid := range pids {
			if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
				p.Error(err)
			}
		}
	}
	tell(syscall.SIGSTOP)
	thaw = sync.OnceFunc(func() { tell(syscall.SIGCONT) })
	p.Cleanup(thaw)
	return thaw
}

// TestServerEndsWhenNothingAnswers: neither the cloud nor the database answers
// any more when the server is told to stop. It ends all the same, and the job
// goes on elsewhere when its lease has run out.
//
// Keeps: A52.
func TestServerEndsWhenNothingAnswers(t *testing.T) {
	t.Parallel()
	pg := newPrivate(t, nil)
	env := childEnv(t, map[string]string{"DATABASE_URL": pg.url(), "CKSCALE_GRACE": shortGrace.String()})
	server := spawn(t, env)
	job, _ := hanging(server.client(), env)
	thaw := pg.freeze()
	asked := make(chan struct{})
	go func() { // a request in flight
		defer close(asked)
		addr, _ := server.serving()
		if resp, err := http.Get("http://" + addr + "/readyz"); err == nil {
			_ = resp.Body.Close()
		}
	}()
	begin := time.Now()
	server.tell(syscall.SIGTERM)
	server.gone(shortGrace + 40*time.Second)
	t.Logf("ended after %s", time.Since(begin))
	<-asked
	thaw()
	spawn(t, env).client().grown(job)
}

// A client that sends its request for ever is cut off when the server is told
// to stop, and does not decide how that looks: the end is in good order.
func TestSlowClientDoesNotSpoilTheEnd(t *testing.T) {
	t.Parallel()
	s := spawn(t, childEnv(t, nil))
	addr, _ := s.serving()
	conn := dial(t, addr)
	if _, err := io.WriteString(conn, "POST /client/api?command=listZones HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err) // it is reading the body now
	}
	s.stop(requestGrace + 20*time.Second)
	if !strings.Contains(s.stdout.String(), "requests in flight were cut off") {
		t.Error("it says nothing about it")
	}
}
