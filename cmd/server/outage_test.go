package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ckscale/internal/store/storetest"
)

// A database that takes nothing more, and one that lets nobody in: what the
// answers are, what is kept, and how little the servers do meanwhile.

// disk makes a database answer writes as one does whose disk is full, and
// counts them: what a refused statement does is undone, but not a sequence.
type disk struct {
	testing.TB
	db *pgx.Conn
}

func newDisk(t testing.TB, url string) *disk {
	t.Helper()
	d := &disk{t, connect(t, url)}
	d.exec(`CREATE SEQUENCE refusals; SELECT nextval('refusals')`)
	return d
}

func (d *disk) exec(sql string) {
	d.Helper()
	if _, err := d.db.Exec(d.Context(), sql); err != nil {
		d.Fatalf("%s: %v", sql, err)
	}
}

// refuse refuses what writes ("INSERT", "INSERT OR UPDATE") rows of the tables;
// none are all.
func (d *disk) refuse(what string, tables ...string) {
	d.Helper()
	d.exec(`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			PERFORM nextval('refusals');
			RAISE 'could not extend file "base/5/16384": No space left on device' USING ERRCODE = '53100';
		END $$`)
	if len(tables) == 0 {
		tables = ask[[]string](d, d.db, `SELECT array_agg(relname::text) FROM pg_stat_user_tables WHERE relname <> 'schema_migrations'`)
	}
	for _, table := range tables {
		d.exec(fmt.Sprintf(`CREATE OR REPLACE TRIGGER refuse BEFORE %s ON %s FOR EACH ROW EXECUTE FUNCTION refuse()`, what, table))
	}
}

// free takes everything again.
func (d *disk) free() {
	d.Helper()
	d.exec(`DROP FUNCTION refuse CASCADE`)
}

// refusals is how many writes have been refused.
func (d *disk) refusals() int {
	d.Helper()
	return ask[int](d, d.db, "SELECT last_value - 1 FROM refusals")
}

// effort is what a server has spent.
type effort struct {
	cpu   time.Duration
	lines int // of its log
}

func (s *child) effort() effort {
	s.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		s.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may hold anything
	var ticks int
	for _, field := range strings.Fields(rest)[11:13] { // utime and stime, in 1/100 s
		n, err := strconv.Atoi(field)
		if err != nil {
			s.Fatal(err)
		}
		ticks += n
	}
	return effort{time.Duration(ticks) * 10 * time.Millisecond, strings.Count(s.stdout.String(), "\n")}
}

// quiet checks that a server does next to nothing: that is what it has to do
// while it can do nothing. statements counts what reaches the database.
func (s *child) quiet(while string, statements func() int) {
	s.Helper()
	begin, before, asked := time.Now(), s.effort(), statements()
	time.Sleep(4 * time.Second) // what is measured is what it does meanwhile
	took := time.Since(begin).Seconds()
	now := s.effort()
	cpu, lines, asks := (now.cpu-before.cpu).Seconds()/took, float64(now.lines-before.lines)/took, float64(statements()-asked)/took
	s.Logf("%s: %.1f %% of a core, %.1f lines logged and %.1f statements a second", while, 100*cpu, lines, asks)
	if cpu > 0.15 || lines > 6 || asks > 15 {
		s.Errorf("%s, the server is busy: %.0f %% of a core, %.0f lines logged and %.0f statements a second", while, 100*cpu, lines, asks)
	}
}

func none() int { return 0 }

// unavailable checks that a request is answered as CloudStack answers while it
// cannot be served, with nothing of the database in it.
func (c *client) unavailable(command string, params ...string) {
	c.Helper()
	for _, d := range dialects[:2] {
		r := c.speak(d, command, params...)
		if r.status != http.StatusServiceUnavailable || r.answer["errorcode"] != 503.0 || r.answer["cserrorcode"] != 9999.0 ||
			r.key != strings.ToLower(command)+"response" || r.answer.text("errortext") == "" {
			c.Errorf("%s: %d %s %s", command, r.status, r.key, r.raw)
		}
		if bad := innerAnswer.FindString(r.answer.text("errortext") + r.header.Get("X-Description")); bad != "" || strings.Contains(string(r.raw), "device") {
			c.Errorf("%s shows %q: %s", command, bad, r.raw)
		}
	}
}

// While the disk of the database is full, requests that would change something
// are refused with 503 and change nothing, reads are answered, and jobs are
// kept: first one that needs a new row, then everything. The server does not
// spin. When there is room again the job ends as if nothing had happened.
//
// Keeps: A07, A28.
func TestFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	env := childEnv(t, map[string]string{"CKSCALE_LEASE": "2s"})
	server := spawn(t, env)
	c := server.client()
	id, w := c.id(), c.workers()
	other := c.create("other")[0]
	d := newDisk(t, env["DATABASE_URL"])

	d.refuse("INSERT", "jobs")
	before := records(t, d.db)
	for command, params := range map[string]string{
		scale: "id=" + id + " size=3", create: "name=x zoneid=1 kubernetesversionid=1 serviceofferingid=2 size=1 description=x",
		"stopVirtualMachine": "id=" + w[0], "deleteKubernetesCluster": "id=" + other,
		"stopKubernetesCluster": "id=" + other,
	} {
		c.unavailable(command, strings.Fields(params)...)
	}
	c.unavailable(scale, "id="+id, "size=1000") // a job that has failed is one, too
	same(t, before, records(t, d.db))
	d.free()

	// A job that cannot write what it has chosen waits, and is not failed.
	d.refuse("INSERT", "vms")
	refused := d.refusals()
	job := c.start(scale, "id="+id, "size=3")
	c.until("the job has met the full disk twice", 20*time.Second, func() bool { return d.refusals() >= refused+2 })
	d.refuse("INSERT OR UPDATE")
	server.quiet("while the disk is full", d.refusals)
	for command, params := range map[string]string{
		scale: "id=" + other + " size=3", "stopVirtualMachine": "id=" + w[0], "configureSimulator": "name=vm.set value=Stopped vmid=" + w[0],
	} {
		c.unavailable(command, strings.Fields(params)...)
	}
	if got := c.call("queryAsyncJobResult", "jobid="+job); got["jobstatus"] != 0.0 {
		t.Errorf("the job: %v", got)
	}
	if v := c.cluster(); v.text("state") != "Scaling" || !slices.Equal(c.workers(), w) || c.probe("/readyz") != http.StatusOK {
		t.Errorf("the cluster is %v", v)
	}
	d.free()
	if ended := c.ended(job); ended["jobstatus"] != 1.0 || ended.object("jobresult").object("kubernetescluster")["size"] != 3.0 {
		t.Errorf("the job: %v", ended)
	}
	if n := c.callsOf("vm.create"); n[c.workers()[2]] != 1 {
		t.Errorf("vm.create: %v", n)
	}
	c.do(scale, "id="+other, "size=2")
	c.consistent()
}

// A database that lets nobody in is asked again and again, but not in a hurry,
// and when it does the job goes on.
//
// Keeps: A07.
func TestRefusedByTheDatabase(t *testing.T) {
	t.Parallel()
	env := childEnv(t, nil)
	server := spawn(t, env)
	c := server.client()
	id := c.id()
	c.simulate("node.join", "fail") // until it is cleared
	job := c.start(scale, "id="+id, "size=3")
	u, err := url.Parse(env["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	admin := connect(t, u.String())
	let := func(in bool) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS %t", name, in)); err != nil {
			t.Fatal(err)
		}
	}
	let(false)
	ask[int](t, admin, "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE datname = $1", name)
	c.unavailable("queryAsyncJobResult", "jobid="+job)
	server.quiet("while nobody is let in", none)
	c.unavailable(scale, "id="+id, "size=3")
	let(true)
	c.until("it is served again", 20*time.Second, func() bool { return c.probe("/readyz") == http.StatusOK })
	c.simulate("node.join", "clear")
	if ended := c.ended(job); ended["jobstatus"] != 1.0 {
		t.Errorf("the job: %v", ended)
	}
	c.consistent()
}

// crash ends PostgreSQL as an immediate shutdown does, and returns when another
// one, which the embedded server's supervisor starts, has taken over.
func (p *private) crash() {
	p.Helper()
	old := p.pid()
	if old == 0 { // which would mean ourselves
		p.Fatal("PostgreSQL does not run")
	}
	if err := syscall.Kill(old, syscall.SIGQUIT); err != nil {
		p.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if now := p.pid(); now != 0 && now != old {
			return
		}
		if time.Now().After(end) {
			p.Fatal("PostgreSQL does not come back")
		}
	}
}

// PostgreSQL is restarted in immediate mode, as after a crash, three times in
// the middle of the jobs of two servers. Each job that a client was given ends
// as it should, its steps are carried out once, and no request gets another
// answer than what it asked for, or 503.
//
// Keeps: A07, A51.
func TestDatabaseCrashLosesNothing(t *testing.T) {
	t.Parallel()
	pg := newPrivate(t, map[string]string{"synchronous_commit": "on"}) // what was committed is there
	env := childEnv(t, map[string]string{"DATABASE_URL": pg.url(), "CKSCALE_LEASE": "2s", "CKSCALE_DEMO": "false"})
	servers := []*child{spawn(t, env), spawn(t, env)}
	clients := []*client{servers[0].client(), servers[1].client()}
	views := clusters(t, pg.url(), 6, storetest.Spec{Control: 1, Workers: 2})
	db := connect(t, pg.url())
	if _, err := db.Exec(t.Context(), `CREATE TABLE did (job uuid, step text);
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO did VALUES (NEW.id, NEW.step); RETURN NULL; END $$;
		CREATE TRIGGER note AFTER UPDATE OF step ON jobs FOR EACH ROW WHEN (NEW.step <> OLD.step) EXECUTE FUNCTION note()`); err != nil {
		t.Fatal(err)
	}
	clients[0].simulate("vm.create", "delay:500ms")
	clients[0].simulate("vm.destroy", "delay:500ms")
	for round, size := range []int{3, 2, 3} {
		begin := time.Now()
		jobs := make([]string, len(views))
		for i, view := range views {
			jobs[i] = clients[i%2].start(scale, "id="+view.Cluster.ID, fmt.Sprintf("size=%d", size))
		}
		pg.crash()
		var wg sync.WaitGroup
		for i, job := range jobs {
			wg.Go(func() {
				c := clients[(i+round)%2]
				c.until("the job ended", time.Minute, func() bool {
					r := c.speak(dialects[i%2], "queryAsyncJobResult", "jobid="+job)
					if r.status != http.StatusOK && (r.status != http.StatusServiceUnavailable || innerAnswer.MatchString(r.answer.text("errortext"))) {
						t.Errorf("%d %s", r.status, r.raw)
					}
					if r.status == http.StatusOK && r.answer["jobstatus"] == 2.0 {
						t.Errorf("the job failed: %s", r.raw)
					}
					return r.status == http.StatusOK && r.answer["jobstatus"] != 0.0
				})
			})
		}
		wg.Wait()
		t.Logf("round %d took %s", round, time.Since(begin))
	}
	for _, view := range views {
		if v := clients[0].byID(view.Cluster.ID); v["size"] != 3.0 || v.text("state") != "Running" {
			t.Errorf("size %v, %v", v["size"], v["state"])
		}
	}
	db = connect(t, pg.url())
	if twice := ask[string](t, db, `SELECT coalesce(string_agg(job || ' ' || step, ', '), '') FROM (
		SELECT job, step FROM did WHERE step <> '' GROUP BY 1, 2 HAVING count(*) > 1) again`); twice != "" {
		t.Errorf("done twice: %s", twice)
	}
	for vm, n := range clients[0].callsOf("vm.create") {
		if n > 2 { // once more when the answer was lost with the database
			t.Errorf("VM %s was asked for %d times", vm, n)
		}
	}
	clients[0].consistent()
}
