package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// previousRelease is the commit of the release before this one, whose servers
// may still run while ours start. A release sets it to the one that it follows.
const previousRelease = "7706a2bfbe45e62d22f7ebc0a5969994d142ab30"

// previous returns the program of the previous release. It is built from the
// repository's history, once. t is skipped where there is none.
func previous(t *testing.T) string {
	t.Helper()
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	root, err := git("rev-parse", "--show-toplevel")
	if err == nil {
		_, err = git("rev-parse", "--verify", previousRelease+"^{commit}")
	}
	if err != nil {
		t.Skipf("the previous release, commit %.12s, is not here to be built: this needs a git checkout with its history", previousRelease)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	build := []string{"build", "-buildvcs=false"}
	name := fmt.Sprintf("%.12s-%s", previousRelease, runtime.Version())
	if raced() { // then what it is made of is compiled that way already
		build, name = append(build, "-race"), name+"-race"
	}
	program := filepath.Join(cache, "ckscale-test", name)
	if _, err := os.Stat(program); err == nil {
		return program
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(program), name+"-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // nobody misses it
	for _, cmd := range []*exec.Cmd{
		exec.CommandContext(t.Context(), "sh", "-c", `git -C "$1" archive "$2" | tar -x -C "$3"`, "sh", root, previousRelease, dir),
		exec.CommandContext(t.Context(), "go", append(build, "-o", filepath.Join(dir, "server-program"), "./cmd/server")...),
	} {
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	if err := os.Rename(filepath.Join(dir, "server-program"), program); err != nil { // whole, whoever else is at it
		t.Fatal(err)
	}
	return program
}

// raced reports whether this program has the race detector in it.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// TestPreviousReleaseSharesTheWork: servers are replaced one by one. One of the
// previous release made the database and goes on when a new one has migrated
// it, serves, and shares the jobs with it; each takes up what the other leaves
// behind. Its accounts count everywhere, and it also starts on the new schema.
//
// Keeps: A55.
func TestPreviousReleaseSharesTheWork(t *testing.T) {
	t.Parallel()
	program := previous(t)
	env := childEnv(t, map[string]string{"CKSCALE_WORKERS": "1"})
	old := spawnOf(t, program, env)
	old.serving()
	today := spawn(t, env)
	today.serving()
	db := connect(t, env["DATABASE_URL"])
	shareTheWork(t, db, env["DATABASE_URL"], old, today)

	out, err := exec.CommandContext(t.Context(), "env", "-i", "HOME="+t.TempDir(), "DATABASE_URL="+env["DATABASE_URL"], program, "account", "create", "ann").Output()
	if err != nil {
		t.Fatalf("account create: %v", err)
	}
	ann := keysIn(string(out))
	for _, s := range []*child{old, today} {
		if list := s.client().as(ann).call("listKubernetesClusters"); len(list) != 0 {
			t.Errorf("the new account sees %v", list)
		}
	}
	leaveBehind(t, db, old, today)
	old = spawnOf(t, program, env) // on the new schema
	old.serving()
	leaveBehind(t, db, today, old)
}

// keysIn are those that "account create" prints.
func keysIn(out string) (k keys) {
	for line := range strings.Lines(out) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "apikey":
			k.API = value
		case "secretkey":
			k.Secret = value
		}
	}
	return k
}

// leaveBehind kills a server in the middle of a step, and lets the other one end
// the job.
func leaveBehind(t *testing.T, db *pgx.Conn, dies, heir *child) {
	t.Helper()
	_, owner := dies.serving()
	c := dies.client()
	id := c.id()
	c.do(scale, "id="+id, "size=2")
	c.simulate("vm.create", "hang", "count=1")
	heir.tell(syscall.SIGSTOP) // or it may be the first to take the job
	job := c.start(scale, "id="+id, "size=3")
	c.until("the step hangs", time.Minute, func() bool {
		return ask[bool](t, db, `SELECT EXISTS (SELECT FROM world_documents, jsonb_array_elements(document->'faults') fault
			WHERE key = 'simulator' AND fault->>'struck' = '1') AND EXISTS (SELECT FROM jobs WHERE owner = $1)`, owner)
	})
	dies.kill()
	heir.tell(syscall.SIGCONT)
	c = heir.client()
	if ended := c.ended(job); ended["jobstatus"] != 1.0 {
		t.Errorf("job %v", ended)
	}
	c.simulate("vm.create", "clear")
	c.consistent()
}

// shareTheWork lets both servers accept, and carry out, jobs of every kind that
// scales.
func shareTheWork(t *testing.T, db *pgx.Conn, url string, servers ...*child) {
	t.Helper()
	if _, err := db.Exec(t.Context(), `CREATE TABLE did (owner text, kind text);
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO did VALUES (OLD.owner, OLD.kind); RETURN NULL; END $$;
		CREATE TRIGGER note AFTER UPDATE OF step ON jobs FOR EACH ROW WHEN (OLD.owner IS NOT NULL) EXECUTE FUNCTION note()`); err != nil {
		t.Fatal(err)
	}
	views := clusters(t, url, 6, storetest.Spec{Control: 1, Workers: 2})
	c := servers[0].client()
	offering := c.offeringsByName()["medium"]
	var jobs []string
	for i, view := range views {
		params := []string{"size=3", "nodeids=" + view.VMs[1].ID, "serviceofferingid=" + offering}[i%3]
		jobs = append(jobs, servers[i%2].client().start(scale, "id="+view.Cluster.ID, params))
	}
	for i, job := range jobs {
		if ended := servers[(i+1)%2].client().ended(job); ended["jobstatus"] != 1.0 {
			t.Errorf("job %v", ended)
		}
	}
	for i, view := range views {
		want := []float64{3, 1, 2}[i%3]
		for _, s := range servers {
			if v := s.client().byID(view.Cluster.ID); v["size"] != want || v.text("state") != string(cks.Running) {
				t.Errorf("size %v, %s; want %v", v["size"], v.text("state"), want)
			}
		}
	}
	if n := ask[int](t, db, "SELECT count(DISTINCT owner)::int FROM did"); n != 2 {
		t.Errorf("%d servers carried out steps", n)
	}
	for _, s := range servers {
		if code := s.client().probe("/readyz"); code != 200 {
			t.Errorf("readyz: %d", code)
		}
	}
}
