package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"ckscale/internal/secretbox"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// transcript collects output, and tells when a word has come by.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
	word string
	seen chan struct{}
}

func newTranscript(word string) *transcript {
	return &transcript{word: word, seen: make(chan struct{})}
}

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := strings.Contains(o.text.String(), o.word)
	o.text.Write(p)
	if !before && strings.Contains(o.text.String(), o.word) {
		close(o.seen)
	}
	return len(p), nil
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// instance is a whole server in this process.
type instance struct {
	env    map[string]string
	stdout *transcript
	stderr *transcript
	stop   context.CancelFunc
	ended  chan error
}

// launch starts a server on a free port. More environment may be given.
func launch(t testing.TB, env map[string]string) *instance {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := &instance{
		env: map[string]string{
			"CKSCALE_ADDR": "127.0.0.1:0", "CKSCALE_ADDR_FILE": filepath.Join(t.TempDir(), "addr"), "CKSCALE_SIM_SPEED": "100",
		},
		stdout: newTranscript("never"), stderr: newTranscript("list kubernetesclusters"), stop: stop, ended: make(chan error, 1),
	}
	for name, value := range env {
		s.env[name] = value
	}
	go func() { s.ended <- s.process().run(ctx, nil) }()
	t.Cleanup(func() { s.end(t) })
	return s
}

func (s *instance) process() process {
	return process{getenv: environment(s.env), stdout: s.stdout, stderr: s.stderr}
}

// end stops the server and waits until it has let go of everything.
func (s *instance) end(t testing.TB) {
	t.Helper()
	if s.ended == nil {
		return
	}
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("the server ended with %v\n%s", err, s.stdout)
	}
	s.ended = nil
}

// serving waits until requests are served and returns the address.
func (s *instance) serving(t testing.TB) string {
	t.Helper()
	select {
	case <-s.stderr.seen:
	case err := <-s.ended:
		s.ended = nil
		t.Fatalf("the server ended with %v\n%s", err, s.stdout)
	case <-time.After(2 * time.Minute):
		t.Fatalf("the server does not serve\n%s", s.stdout)
	}
	b, err := os.ReadFile(s.env["CKSCALE_ADDR_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

var shownKeys = regexp.MustCompile(`curl -u "([A-Z2-7]+):([A-Z2-7]+)"`)

// keys are those that the banner shows.
func (s *instance) keys(t testing.TB) keys {
	t.Helper()
	m := shownKeys.FindStringSubmatch(s.stderr.String())
	if m == nil {
		t.Fatalf("the banner shows no keys:\n%s", s.stderr)
	}
	return keys{m[1], m[2]}
}

// get returns the status and the body of url for the account of k.
func get(t testing.TB, url string, k keys) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if k != (keys{}) {
		req.SetBasicAuth(k.API, k.Secret)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

type listedCluster struct {
	ID, Name, State string
	VMs             []struct{ Name, State string } `json:"virtualmachines"`
}

func listClusters(t *testing.T, addr string, k keys) []listedCluster {
	t.Helper()
	status, body := get(t, apiURL(addr)+"?command=listKubernetesClusters&listall=true", k)
	var answer struct {
		Response struct {
			Clusters []listedCluster `json:"kubernetescluster"`
		} `json:"listkubernetesclustersresponse"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	return answer.Response.Clusters
}

// dataDir is a folder that PostgreSQL can reach when we are root.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ckscale")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// design.md §7: one command starts everything, and all of it is there again
// after a restart.
func TestPlainStartServesTheDemo(t *testing.T) {
	t.Parallel()
	env := map[string]string{"CKSCALE_DATA_DIR": filepath.Join(dataDir(t), "state")}
	var first keys
	for round := range 2 {
		s := launch(t, env)
		addr := s.serving(t)
		if status, body := get(t, "http://"+addr+"/readyz", keys{}); status != http.StatusOK {
			t.Errorf("readyz: %d %s", status, body)
		}
		k := s.keys(t)
		if round == 0 {
			first = k
		} else if k != first {
			t.Error("the restart made other keys")
		}
		clusters := listClusters(t, addr, k)
		if len(clusters) != 1 || clusters[0].Name != "demo" || clusters[0].State != "Running" || len(clusters[0].VMs) != 5 {
			t.Errorf("round %d: clusters are %+v", round, clusters)
		}
		for _, vm := range clusters[0].VMs {
			if vm.State != "Running" {
				t.Errorf("VM %s is %s", vm.Name, vm.State)
			}
		}
		_, metrics := get(t, "http://"+addr+"/metrics", keys{})
		for _, name := range []string{"go_goroutines", "process_cpu_seconds_total", "ckscale_database_connections"} {
			if !strings.Contains(metrics, "\n"+name+" ") {
				t.Errorf("no metric %s", name)
			}
		}
		if err := s.process().run(t.Context(), []string{"healthcheck"}); err != nil {
			t.Errorf("healthcheck: %v", err)
		}
		s.end(t)
		if strings.Contains(s.stdout.String(), k.Secret) || strings.Contains(s.stdout.String(), k.API) {
			t.Error("the log shows a key")
		}
		if err := s.process().run(t.Context(), []string{"healthcheck"}); err == nil {
			t.Error("healthcheck finds a server that has ended")
		}
		socket := filepath.Join(env["CKSCALE_DATA_DIR"], "postgres", "sock", ".s.PGSQL.5432")
		if _, err := os.Stat(socket); !os.IsNotExist(err) {
			t.Errorf("PostgreSQL is still there: %v", err)
		}
	}
}

func TestKeysAreKeptFromOthers(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	if err := writeKeys(config{DataDir: dir}, filepath.Join(dir, "admin-keys.json"), newKeys()); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(filepath.Join(dir, "admin-keys.json"))
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
}

// Several servers fill an empty database once, and generate one pair of keys.
//
// Keeps: A55.
func TestServersStartAtOnce(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	const n = 4
	var servers [n]*instance
	key := secretbox.NewKey().Text()
	for i := range servers {
		servers[i] = launch(t, map[string]string{
			"DATABASE_URL": url, "CKSCALE_DEMO": "true", "CKSCALE_DATA_DIR": filepath.Join(t.TempDir(), "state"), "CKSCALE_ENCRYPTION_KEY": key})
	}
	var addrs []string
	var k keys
	shown := 0
	for _, s := range servers {
		addrs = append(addrs, s.serving(t))
		if shownKeys.MatchString(s.stderr.String()) && !strings.Contains(s.stderr.String(), "another server") {
			shown, k = shown+1, s.keys(t)
		}
	}
	if shown != 1 {
		t.Fatalf("%d servers show keys", shown)
	}
	for _, addr := range addrs {
		if clusters := listClusters(t, addr, k); len(clusters) != 1 || len(clusters[0].VMs) != 5 {
			t.Errorf("clusters are %+v", clusters)
		}
	}
}

func TestGivenKeysReplaceThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	env := map[string]string{"DATABASE_URL": url, "CKSCALE_DATA_DIR": t.TempDir()}
	for _, k := range []keys{{"first", "secret1"}, {"second", "secret2"}} {
		env["CKSCALE_ADMIN_API_KEY"], env["CKSCALE_ADMIN_SECRET_KEY"] = k.API, k.Secret
		s := launch(t, env)
		addr := s.serving(t)
		listClusters(t, addr, k)
		if out := s.stderr.String() + s.stdout.String(); strings.Contains(out, k.Secret) {
			t.Errorf("a secret of the environment is shown:\n%s", out)
		}
		if k.API == "second" {
			if status, body := get(t, apiURL(addr)+"?command=listKubernetesClusters", keys{"first", "secret1"}); status != http.StatusUnauthorized {
				t.Errorf("the old keys get %d %s", status, body)
			}
		}
		s.end(t)
	}
}

func TestAccountIsAddedBesideARunningServer(t *testing.T) {
	t.Parallel()
	s := launch(t, map[string]string{"CKSCALE_DATA_DIR": filepath.Join(dataDir(t), "state")})
	addr := s.serving(t)
	out := newTranscript("secretkey=")
	p := process{getenv: environment(s.env), stdout: out, stderr: io.Discard}
	if err := p.run(t.Context(), []string{"account", "create", "ann"}); err != nil {
		t.Fatal(err)
	}
	k := keys{}
	for line := range strings.Lines(out.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "apikey":
			k.API = value
		case "secretkey":
			k.Secret = value
		}
	}
	if clusters := listClusters(t, addr, k); len(clusters) != 0 {
		t.Errorf("the new account sees %+v", clusters)
	}
	if err := p.run(t.Context(), []string{"account", "create", "ann"}); err == nil {
		t.Error("a second account ann was added")
	}
	for _, args := range [][]string{{"account"}, {"account", "create"}, {"account", "create", ""}, {"account", "create", "a b"}, {"account", "drop", "ann"}} {
		if err := p.run(t.Context(), args); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}

func TestMigrateCommands(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DATABASE_URL": storetest.URL(t), "CKSCALE_DATA_DIR": t.TempDir()}
	latest := fmt.Sprintf("schema version %d of %[1]d\n", store.LatestVersion())
	for _, c := range []struct{ args, want string }{
		{"migrate version", "schema version 0 of "},
		{"migrate up", latest},
		{"migrate force 0", "schema version 0 of "},
		{"migrate up", latest}, // every statement can be run again
	} {
		out := newTranscript("never")
		p := process{getenv: environment(env), stdout: out, stderr: io.Discard}
		if err := p.run(t.Context(), strings.Fields(c.args)); err != nil || !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("%s: %q, %v", c.args, out, err)
		}
	}
	for _, args := range []string{"migrate", "migrate down", "migrate force", "migrate force x", "migrate force -1", "migrate force 999"} {
		p := process{getenv: environment(env), stdout: io.Discard, stderr: io.Discard}
		if err := p.run(t.Context(), strings.Fields(args)); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
}

func TestTakenAddressIsReportedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := filepath.Join(t.TempDir(), "state")
	env := map[string]string{"CKSCALE_ADDR": l.Addr().String(), "CKSCALE_DATA_DIR": dir}
	p := process{getenv: environment(env), stdout: io.Discard, stderr: io.Discard}
	if err := p.run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was made: %v", err)
	}
}

func TestUnknownCommandIsRefused(t *testing.T) {
	t.Parallel()
	p := process{getenv: environment(nil), stdout: io.Discard, stderr: io.Discard}
	for _, args := range []string{"start", "serve now", "healthcheck now"} {
		if err := p.run(t.Context(), strings.Fields(args)); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
}

func TestHelpNamesEveryCommand(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := process{getenv: environment(nil), stdout: &out, stderr: io.Discard}
	if err := p.run(t.Context(), []string{"-help"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		if !strings.Contains(out.String(), fmt.Sprintf("  %s %s", c.name, c.args)) {
			t.Errorf("no command %s in\n%s", c.name, out.String())
		}
	}
}

func TestReachableAddress(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80", "0.0.0.0:8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080",
		"[::]:8080": "127.0.0.1:8080", "[::1]:1": "[::1]:1", "localhost:1": "localhost:1",
	} {
		if got := reachable(addr); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
