package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ckscale/internal/store/storetest"
)

// asServer makes the test binary be the server instead.
const asServer = "SERVER_TEST_CHILD"

// TestMain lets tests run the server as a process that they can kill.
func TestMain(m *testing.M) {
	if os.Getenv(asServer) == "" {
		os.Exit(m.Run())
	}
	go func() { // no test process, however it ended, leaves a server behind
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	main()
	os.Exit(0)
}

// child is a whole server in a process of its own.
type child struct {
	testing.TB
	cmd            *exec.Cmd
	stdout, stderr *transcript
	ended          chan struct{}
	err            error // how it ended; read after ended
}

// adminKeys are what childEnv gives to the account admin.
var adminKeys = keys{"admin-key", "admin-secret"}

// childEnv is an environment for servers that share an empty database with the
// demo cluster to come. More may be given.
func childEnv(t testing.TB, more map[string]string) map[string]string {
	t.Helper()
	env := map[string]string{
		"CKSCALE_ADDR": "127.0.0.1:0", "CKSCALE_DATA_DIR": t.TempDir(), "CKSCALE_DEMO": "true", "CKSCALE_SIM_SPEED": "50",
		"CKSCALE_ADMIN_API_KEY": adminKeys.API, "CKSCALE_ADMIN_SECRET_KEY": adminKeys.Secret,
		"CKSCALE_LEASE": "1s", "CKSCALE_RETRY_WAIT": "50ms",
		"CKSCALE_ENCRYPTION_KEY": storetest.Key.Text(), // fixtures seal with it
	}
	for name, value := range more {
		env[name] = value
	}
	if _, given := env["DATABASE_URL"]; !given {
		env["DATABASE_URL"] = storetest.URL(t)
	}
	return env
}

// spawn starts a server, with nothing of our own environment but where
// programs and temporary files are. It is told to stop when t ends.
func spawn(t testing.TB, env map[string]string) *child { t.Helper(); return spawnIn(t, env, 0) }

// spawnIn is spawn in namespaces of its own: flags of clone(2).
func spawnIn(t testing.TB, env map[string]string, namespaces uintptr) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, self, env, namespaces)
}

// spawnOf starts a server of another program.
func spawnOf(t testing.TB, program string, env map[string]string) *child {
	t.Helper()
	return begin(t, program, env, 0)
}

func begin(t testing.TB, program string, env map[string]string, namespaces uintptr) *child {
	t.Helper()
	s := &child{TB: t, cmd: exec.Command(program), stdout: newTranscript(`"msg":"serving"`), stderr: newTranscript("never"), ended: make(chan struct{})}
	s.cmd.Env = []string{asServer + "=1", "CKSCALE_ADDR_FILE=" + filepath.Join(t.TempDir(), "addr"),
		"GORACE=atexit_sleep_ms=0"} // an orderly end takes a second otherwise
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "PG_BINDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			s.cmd.Env = append(s.cmd.Env, name+"="+value)
		}
	}
	for name, value := range env {
		s.cmd.Env = append(s.cmd.Env, name+"="+value)
	}
	s.cmd.Stdout, s.cmd.Stderr = s.stdout, s.stderr
	if _, err := s.cmd.StdinPipe(); err != nil { // open as long as we live; see TestMain
		t.Fatal(err)
	}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: namespaces} // another program knows nothing of TestMain
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig fires when the thread ends
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.err = s.cmd.Wait()
			close(s.ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.finish)
	return s
}

// finish ends the server and checks that it was in order till then.
func (s *child) finish() {
	s.Helper()
	select {
	case <-s.ended:
	default:
		s.stop(time.Minute)
	}
	if out := s.stderr.String(); strings.Contains(out, "DATA RACE") || strings.Contains(out, "panic: ") {
		s.Errorf("the server wrote\n%s", out)
	}
	if s.Failed() {
		s.Logf("log of the server:\n%s", s.stdout)
	}
}

func (s *child) tell(sig syscall.Signal) {
	s.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.Errorf("%v: %v", sig, err)
	}
}

// gone waits until the process has ended.
func (s *child) gone(limit time.Duration) {
	s.Helper()
	select {
	case <-s.ended:
	case <-time.After(limit):
		if err := s.cmd.Process.Kill(); err != nil {
			s.Error(err)
		}
		<-s.ended
		s.Errorf("the server did not end within %s", limit)
	}
}

// stop tells the server to end, which it does in good order within the limit.
func (s *child) stop(limit time.Duration) {
	s.Helper()
	s.tell(syscall.SIGTERM)
	s.gone(limit)
	if s.err != nil {
		s.Errorf("the server ended with %v\n%s", s.err, s.stderr)
	}
}

// kill ends the server at once, as a crash does.
func (s *child) kill() {
	s.Helper()
	s.tell(syscall.SIGKILL)
	s.gone(time.Minute)
}

// serving waits until requests are served. It returns the address, and the id
// under which the server holds leases.
func (s *child) serving() (addr, owner string) {
	s.Helper()
	select {
	case <-s.stdout.seen:
	case <-s.ended:
		if !strings.Contains(s.stdout.String(), s.stdout.word) { // it did serve, before it ended
			s.Fatalf("the server ended with %v\n%s", s.err, s.stderr)
		}
	case <-time.After(time.Minute):
		s.Fatal("the server does not serve")
	}
	for line := range strings.Lines(s.stdout.String()) {
		var entry struct{ Msg, Addr, Server string }
		if err := json.Unmarshal([]byte(line), &entry); err == nil && entry.Msg == "serving" {
			return entry.Addr, entry.Server
		}
	}
	s.Fatal("the log does not say where requests are served")
	return "", ""
}

// client speaks to the server as the account admin.
func (s *child) client() *client {
	s.Helper()
	addr, _ := s.serving()
	return &client{s.TB, apiURL(addr), adminKeys}
}

// callsOf is how often the simulated cloud was asked for an operation, by VM.
func (c *client) callsOf(operation string) map[string]int {
	c.Helper()
	n := map[string]int{}
	for _, call := range c.call("querySimulator").list("call") {
		if call.text("operation") == operation {
			n[call.text("vmid")] += int(call["count"].(float64))
		}
	}
	return n
}

// sameNodes checks that the nodes of the simulated cluster are those of the
// VMs that are listed.
func (c *client) sameNodes() {
	c.Helper()
	listed := map[string]bool{}
	for _, vm := range c.cluster().list("virtualmachines") {
		listed[vm.text("id")] = true
	}
	nodes := c.call("querySimulator").list("node")
	for _, n := range nodes {
		if !listed[n.text("vmid")] {
			c.Errorf("orphan node %s", n.text("name"))
		}
	}
	if len(nodes) != len(listed) {
		c.Errorf("%d VMs are listed and there are %d nodes", len(listed), len(nodes))
	}
}

// many runs subtests, at most so many at a time: each spends its time waiting
// for processes of its own, so the number of cores, which bounds t.Parallel,
// says little.
func many(t *testing.T, atOnce int, cases map[string]func(*testing.T)) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for name, run := range cases {
		group.Go(func() error { t.Run(name, run); return nil })
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
