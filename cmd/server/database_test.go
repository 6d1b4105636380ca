package main

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ckscale/internal/embeddedpg"
)

// The database lost and back, through HTTP on whole servers (A07, A28, A56).

// private is a PostgreSQL that a test can stop and start again.
type private struct {
	testing.TB
	cfg    embeddedpg.Config
	server *embeddedpg.Server
}

// newPrivate starts one. It may be given settings of postgresql.conf.
func newPrivate(t *testing.T, more map[string]string) *private {
	t.Helper()
	p := &private{TB: t, cfg: embeddedpg.Config{
		Dir: filepath.Join(dataDir(t), "pg"), Database: "ckscale",
		Settings: map[string]string{"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"},
	}}
	maps.Copy(p.cfg.Settings, more)
	p.start()
	t.Cleanup(p.stop)
	return p
}

func (p *private) start() {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), time.Minute)
	defer cancel()
	var err error
	if p.server, err = embeddedpg.Start(ctx, p.cfg); err != nil {
		p.Fatal(err)
	}
}

func (p *private) stop() {
	p.Helper()
	if err := p.server.Stop(); err != nil {
		p.Error(err)
	}
}

// pid is PostgreSQL's first process, 0 while there is none.
func (p *private) pid() int {
	b, err := os.ReadFile(filepath.Join(p.cfg.Dir, "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0 // it is being written
	}
	return n
}

const databasePassword = "the-database-password"

// url has a password, which nobody asks for and nobody must show.
func (p *private) url() string {
	p.Helper()
	u, err := url.Parse(p.server.URL())
	if err != nil {
		p.Fatal(err)
	}
	u.User = url.UserPassword("postgres", databasePassword)
	return u.String()
}

// inner is what neither answers nor logs may show: SQL, where the database is
// and how one gets in, and our own secrets.
var inner = regexp.MustCompile(`(?i)postgres(ql)?://|` + databasePassword + `|` + adminKeys.Secret + `|signature=|\b(select|insert into|update|delete from)\b.*\b(from|values|set|where)\b`)

// innerAnswer is what an answer must not show besides.
var innerAnswer = regexp.MustCompile(`(?i)sql|pgx|pool|socket|\.s\.PGSQL|/tmp|dial|refused|terminat|cluster_id|postgres|ckscale`)

// While the database is gone every command says so at once, in JSON; when it is
// back, requests work again and a job that was under way ends, without a
// restart.
//
// Keeps: A07.
// Keeps: A28.
func TestDatabaseLostAndBack(t *testing.T) {
	t.Parallel()
	pg := newPrivate(t, nil)
	l := newLab(t, map[string]string{"DATABASE_URL": pg.url(), "CKSCALE_LOG_LEVEL": "DEBUG", "CKSCALE_LEASE": "1s", "CKSCALE_SCAN_INTERVAL": "200ms"})
	stranger := l.account("ann") // whose key no server remembers
	db, err := pgx.Connect(t.Context(), l.url)
	if err != nil {
		t.Fatal(err)
	}
	id := l.id()
	l.do("scaleKubernetesCluster", "id="+id, "size=2") // a job to ask for
	commands := l.everyCommand(db)
	l.simulate("node.join", "fail") // holds the job until it is cleared
	job := l.start("scaleKubernetesCluster", "id="+id, "size=3")
	l.until("the job waits for the node", 20*time.Second, func() bool {
		return ask[int](t, db, "SELECT count(*)::int FROM vms WHERE phase = 'chosen' AND state = 'Running'") == 1
	})
	if err := db.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 {
		pg.stop()
		l.withoutDatabase(commands, stranger)
		pg.start()
		l.until("ready again", 20*time.Second, func() bool { return l.probe("/readyz") == http.StatusOK })
		if got := l.call("queryAsyncJobResult", "jobid="+job); got["jobstatus"] != 0.0 {
			t.Fatalf("the job ended: %v", got)
		}
	}
	if list := stranger.call("listKubernetesClusters"); len(list) != 0 {
		t.Errorf("ann sees %v", list)
	}
	l.simulate("node.join", "clear")
	if got := l.ended(job); got["jobstatus"] != 1.0 || got.object("jobresult").object("kubernetescluster")["size"] != 3.0 {
		t.Errorf("the job: %v", got)
	}
	l.do("scaleKubernetesCluster", "id="+id, "size=2")
	l.simulate("vm.set", "Stopped", "vmid="+l.workers()[0])
	l.inState("Alert") // the scanner is back, too
	l.do("scaleKubernetesCluster", "id="+id, "size=1")
	l.inState("Running")
	l.consistent()
	l.logsNothing()
}

// needNone are the commands that need nothing but the key, which is remembered
// for a while. A logout without a session needs not even that.
var needNone = map[string]bool{"listApis": true, "listEventTypes": true, "listCapabilities": true, "logout": true}

// withoutDatabase checks every answer while there is no database.
func (l *lab) withoutDatabase(commands map[string][]string, stranger *client) {
	l.Helper()
	for command, params := range commands {
		for who, c := range map[string]*client{"ann": stranger, "admin": l.client} {
			for _, d := range []dialect{dialects[0], dialects[1]} {
				begin := time.Now()
				r := c.speak(d, command, params...)
				if took := time.Since(begin); took > 5*time.Second {
					l.Errorf("%s took %s", command, took)
				}
				if needNone[command] && (who == "admin" || command == "logout") && r.status == http.StatusOK {
					continue
				}
				if command == "login" && d.reads == d.writes && r.status == http.StatusMethodNotAllowed {
					continue // it does not get as far
				}
				if r.status != http.StatusServiceUnavailable || r.answer["errorcode"] != 503.0 || r.answer["cserrorcode"] != 9999.0 ||
					r.key != strings.ToLower(command)+"response" || r.answer.text("errortext") == "" {
					l.Errorf("%s for %s: %d %s %s", command, who, r.status, r.key, r.raw)
				}
				if bad := innerAnswer.FindString(r.answer.text("errortext") + r.header.Get("X-Description")); bad != "" {
					l.Errorf("%s shows %q: %s", command, bad, r.raw)
				}
			}
		}
	}
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200, "/metrics": 200, "/openapi.yaml": 200} {
		if got := l.probe(path); got != want {
			l.Errorf("%s: %d", path, got)
		}
	}
	r := l.as(keys{adminKeys.API, "wrong"}).speak(dialects[0], "listZones")
	if r.status != http.StatusUnauthorized && r.status != http.StatusServiceUnavailable {
		l.Errorf("a wrong secret: %d %s", r.status, r.raw)
	}
}

// probe is the status of a path of the server itself.
func (c *client) probe(path string) int {
	c.Helper()
	host, _ := c.site()
	resp, err := http.Get("http://" + host + path)
	if err != nil {
		c.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		c.Error(err)
	}
	return resp.StatusCode
}

func (l *lab) logsNothing() {
	l.Helper()
	for line := range strings.Lines(l.server.stdout.String() + l.server.stderr.String()) {
		if bad := inner.FindString(line); bad != "" {
			l.Errorf("the log shows %q: %s", bad, line)
		}
	}
	if strings.Contains(l.server.stdout.String(), "panic") {
		l.Error("a panic is logged")
	}
}

// Each of the server's connections, the one that listens too, can be cut at
// any time: at worst one request is answered with 503, and jobs go on (A56).
//
// Keeps: A56.
func TestConnectionsCutOneByOne(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_LOG_LEVEL": "DEBUG", "CKSCALE_LEASE": "1s", "CKSCALE_SCAN_INTERVAL": "200ms"})
	db := connect(t, l.url)
	const ours = "datname = current_database() AND application_name = 'ckscale'"
	listeners := func(not int) int {
		return ask[int](t, db, "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND pid <> $1 AND "+ours, not)
	}
	id := l.id()
	for round := range 3 {
		var listener int
		l.until("the server listens", 10*time.Second, func() bool { listener = listeners(0); return listener != 0 })
		job := l.start("scaleKubernetesCluster", "id="+id, []string{"size=4", "size=2", "size=3"}[round])
		rows, err := db.Query(t.Context(), "SELECT pid FROM pg_stat_activity WHERE "+ours)
		if err != nil {
			t.Fatal(err)
		}
		pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			ask[bool](t, db, "SELECT pg_terminate_backend($1, 5000)", pid)
			l.until("requests are answered", 10*time.Second, func() bool {
				r := l.speak(dialects[round], "listKubernetesClusters", "id="+id)
				if r.status != http.StatusOK && (r.status != http.StatusServiceUnavailable || innerAnswer.MatchString(r.answer.text("errortext"))) {
					t.Fatalf("%d %s", r.status, r.raw)
				}
				return r.status == http.StatusOK
			})
		}
		l.until("the server listens again", 10*time.Second, func() bool { return listeners(listener) != 0 })
		l.until("the job ended", 30*time.Second, func() bool {
			status, job := l.send("queryAsyncJobResult", "jobid="+job)
			if status == http.StatusOK && job["jobstatus"] == 2.0 {
				t.Fatalf("the job failed: %v", job)
			}
			return status == http.StatusOK && job["jobstatus"] == 1.0
		})
		// The pool tries a connection before it uses it once that has been idle
		// for a second; until then a request may still meet one that was cut: 503.
		cut := time.Now()
		l.until("no cut connection is used unseen", 10*time.Second, func() bool { return time.Since(cut) > 1500*time.Millisecond })
	}
	l.inState("Running")
	l.consistent()
	l.logsNothing()
}

// A request whose connection is cut while the database works on it is answered
// with 503, and the next one works.
func TestRequestCutInTheMiddle(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h"})
	id := l.id()
	db, eye := connect(t, l.url), connect(t, l.url)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE clusters IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	req, err := dialects[0].request(t.Context(), l.client.url, l.keys, "listKubernetesClusters", "id="+id)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan reply, 1)
	go func() {
		defer close(answered)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			defer resp.Body.Close()
			answered <- l.read(resp)
		}
	}()
	l.until("the request waits", 10*time.Second, func() bool {
		return ask[int](t, eye, `SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
			AND datname = current_database() AND application_name = 'ckscale'`) > 0
	})
	r, ok := <-answered
	if !ok || r.status != http.StatusServiceUnavailable || innerAnswer.MatchString(r.answer.text("errortext")) {
		t.Errorf("%t %d %s", ok, r.status, r.raw)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.until("requests are answered", 10*time.Second, func() bool { return l.speak(dialects[0], "listKubernetesClusters").status == http.StatusOK })
}
