package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"ckscale/internal/store/storetest"
)

// A transaction pooler between the servers and their database: PgBouncer as
// Debian has it, with nothing in its configuration for our sake.

// pooler is a PgBouncer in front of a database.
type pooler struct {
	testing.TB
	url  string
	ini  string
	cred *syscall.Credential
	stop func() // ends it at once
}

const poolerIni = `[databases]
ckscale = %s
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = %s
auth_type = any
pool_mode = transaction
default_pool_size = 4
stats_users = anybody
`

// newPooler starts a PgBouncer in front of the database at direct. t is skipped
// where there is none.
func newPooler(t *testing.T, direct string) *pooler {
	t.Helper()
	dir := dataDir(t)
	cfg, err := pgconn.ParseConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	to := fmt.Sprintf("host=%s port=%d dbname=%s user=%s", cfg.Host, cfg.Port, cfg.Database, cfg.User)
	if cfg.Password != "" {
		to += " password=" + cfg.Password
	}
	p := &pooler{TB: t, ini: filepath.Join(dir, "pgbouncer.ini"),
		url: "postgres://anybody@/ckscale?" + url.Values{"host": {dir}, "port": {"6432"}, "sslmode": {"disable"}}.Encode()}
	if os.Getuid() == 0 { // which PgBouncer refuses to run as: as whoever can reach the database
		p.cred = &syscall.Credential{Uid: 65534, Gid: 65534}
		if fi, err := os.Stat(cfg.Host); err == nil {
			stat := fi.Sys().(*syscall.Stat_t)
			p.cred = &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}
		}
		if err := os.Chown(dir, int(p.cred.Uid), int(p.cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.ini, fmt.Appendf(nil, poolerIni, to, dir), 0o644); err != nil {
		t.Fatal(err)
	}
	p.start()
	t.Cleanup(func() { p.stop() })
	return p
}

// program finds PgBouncer, which Debian keeps where only root's PATH leads.
func (p *pooler) program() string {
	p.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	p.Skip("there is no PgBouncer here: apt-get install pgbouncer")
	return ""
}

func (p *pooler) start() {
	p.Helper()
	cmd := exec.Command(p.program(), p.ini)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.cred, Pdeathsig: syscall.SIGKILL}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // Pdeathsig fires when the thread ends
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is always killed
		}
	}()
	if err := <-started; err != nil {
		p.Fatal(err)
	}
	p.stop = sync.OnceFunc(func() {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			p.Error(err)
		}
		<-ended
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		db, err := pgx.Connect(p.Context(), p.url)
		if err == nil {
			if err := db.Close(p.Context()); err != nil {
				p.Error(err)
			}
			return
		}
		if time.Now().After(end) {
			p.stop()
			p.Fatalf("PgBouncer does not answer: %v\n%s", err, &out)
		}
	}
}

// statements is how many have come through since the start.
func (p *pooler) statements() int {
	p.Helper()
	db, err := pgx.Connect(p.Context(), strings.Replace(p.url, "/ckscale?", "/pgbouncer?default_query_exec_mode=simple_protocol&", 1))
	if err != nil {
		p.Fatal(err)
	}
	defer db.Close(p.Context()) //nolint:errcheck // it was only read from
	rows, err := db.Query(p.Context(), "SHOW STATS")
	if err != nil {
		p.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		p.Fatal(err)
	}
	for _, row := range all {
		if row["database"] == "ckscale" {
			n, err := row["total_query_count"].(pgtype.Numeric).Int64Value()
			if err != nil {
				p.Fatal(err)
			}
			return int(n.Int64)
		}
	}
	p.Fatalf("no statistics in %v", all)
	return 0
}

// TestServersBehindAPooler: through a transaction pooler servers do all of their
// work. They cannot hear each other then, nor migrate, which needs a session;
// both is said once and clearly, and neither costs anything but the wait of a
// poll. With the address of the database itself they do that as well.
//
// Keeps: A56.
func TestServersBehindAPooler(t *testing.T) {
	t.Parallel()
	many(t, 2, map[string]func(*testing.T){"alone": poolerAlone, "with the direct address": poolerAndDirect})
}

const deaf = "cannot hear the other servers"

func poolerAlone(t *testing.T) {
	direct := storetest.URL(t)
	p := newPooler(t, direct)
	env := childEnv(t, map[string]string{"DATABASE_URL": p.url})
	refused := spawn(t, env)
	refused.gone(time.Minute)
	if out := refused.stderr.String(); refused.err == nil || !strings.Contains(out, "migrate") || !strings.Contains(out, "DATABASE_DIRECT_URL") {
		t.Errorf("on an empty database the server says %q, %v", out, refused.err)
	}
	command := process{getenv: environment(map[string]string{"DATABASE_URL": direct, "HOME": t.TempDir()}), stdout: io.Discard, stderr: io.Discard}
	if err := command.run(t.Context(), []string{"migrate", "up"}); err != nil {
		t.Fatal(err)
	}
	servers := []*child{spawn(t, env), spawn(t, env)}
	clients := []*client{servers[0].client(), servers[1].client()}
	db := connect(t, direct)
	servers[1].quiet("with nothing to do", p.statements)
	scalesAtOnce(clients, direct)
	if n := ask[int](t, db, "SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); n != 0 {
		t.Errorf("%d locks are left in sessions of the pooler", n)
	}
	c := clients[0]
	id, w := c.id(), c.workers()
	c.do("stopVirtualMachine", "id="+w[0])
	c.inState("Alert")
	c.simulate("node.join", "fail")
	job := clients[1].start(scale, "id="+id, "size=3")
	p.stop()
	c.unavailable("listVirtualMachines")
	servers[0].quiet("while the pooler is away", none)
	p.start()
	c.until("it is served again", 20*time.Second, func() bool { return c.probe("/readyz") == http.StatusOK })
	c.until("it can be ordered about", 20*time.Second, func() bool {
		status, _ := c.send("configureSimulator", "name=node.join", "value=clear")
		return status == http.StatusOK
	})
	if ended := c.ended(job); ended["jobstatus"] != 1.0 {
		t.Errorf("the job: %v", ended)
	}
	c.do(scale, "id="+id, "nodeids="+w[0])
	c.inState("Running")
	c.consistent()
	for _, s := range servers {
		if n := strings.Count(s.stdout.String(), deaf+`","err":"listen: a pooler`); n != 1 {
			t.Errorf("that it cannot hear the others is logged %d times", n)
		}
	}
}

func poolerAndDirect(t *testing.T) {
	direct := storetest.URL(t)
	p := newPooler(t, direct)
	env := childEnv(t, map[string]string{"DATABASE_URL": p.url, "DATABASE_DIRECT_URL": direct})
	servers := []*child{spawn(t, env), spawn(t, env)}
	clients := []*client{servers[0].client(), servers[1].client()}
	db := connect(t, direct)
	listeners := func() int {
		return ask[int](t, db, "SELECT count(*)::int FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()")
	}
	clients[0].until("both listen", 20*time.Second, func() bool { return listeners() == 2 })
	scalesAtOnce(clients, direct)
	for _, s := range servers {
		if strings.Contains(s.stdout.String(), deaf) {
			t.Error("it cannot hear the others")
		}
	}
}

// scalesAtOnce lets servers scale eight clusters at once, through a pool of four
// sessions, while their jobs are asked about.
func scalesAtOnce(servers []*client, direct string) {
	c := servers[0]
	c.Helper()
	var wg sync.WaitGroup
	for i, view := range clusters(c.TB, direct, 8, storetest.Spec{Control: 1, Workers: 2}) {
		wg.Go(func() {
			c, size := servers[i%2], 1+i%4 // 1, 2: nothing to do, 3, 4
			job := c.start(scale, "id="+view.Cluster.ID, fmt.Sprintf("size=%d", size))
			ended := servers[(i+1)%2].ended(job)
			if ended["jobstatus"] != 1.0 {
				c.Errorf("size %d: %v", size, ended)
			}
		})
	}
	wg.Wait()
	c.consistent()
}
