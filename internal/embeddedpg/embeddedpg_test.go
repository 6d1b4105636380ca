package embeddedpg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// childDir makes the test binary a supervisor: it starts a server there,
// prints a line and then waits until its standard input ends.
const childDir = "EMBEDDEDPG_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	os.Exit(m.Run())
}

func child(dir string) int {
	s, err := Start(context.Background(), config(dir))
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	fmt.Println("started")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Stop(); err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	return 0
}

func config(dir string) Config {
	return Config{Dir: dir, Database: "app", Settings: map[string]string{"fsync": "off", "shared_buffers": "8MB"}}
}

// folder is a temporary folder that any user can reach, unlike t.TempDir.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// query runs sql and returns its first value, trying until the server answers.
func query(t *testing.T, url, sql string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		text, err := queryOnce(ctx, url, sql)
		if err == nil {
			return text
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", sql, err)
		case <-time.After(poll):
		}
	}
}

func queryOnce(ctx context.Context, url, sql string) (text string, err error) {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	rows, err := c.Query(ctx, sql)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	if rows.Next() {
		if err := rows.Scan(&text); err != nil {
			return "", err
		}
	}
	rows.Close()
	return text, rows.Err()
}

func TestDataOutliveRestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(folder(t), "state", "pg") // made on the way
	s := start(t, dir)
	query(t, s.URL(), "CREATE TABLE kept AS SELECT 'yes' AS answer")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, dir)
	if got := query(t, s.URL(), "SELECT answer FROM kept"); got != "yes" {
		t.Errorf("the restarted server knows %q", got)
	}
	if got := query(t, s.URL(), "SELECT lower('ÄÖ')"); got != "äö" {
		t.Errorf("lower case of ÄÖ is %q", got)
	}
}

func TestOnlyItsOwnerCanConnect(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := start(t, dir)
	if got := query(t, s.URL(), "SELECT current_setting('listen_addresses')"); got != "" {
		t.Errorf("it listens on %q", got)
	}
	fi, err := os.Stat(filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	if fi.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder has mode %v", fi.Mode())
	}
}

func TestSecondServerOnSameFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := start(t, dir)
	_, err := Start(t.Context(), config(dir))
	if !errors.Is(err, ErrInUse) {
		t.Fatalf("the second start says %v", err)
	}
	if got := query(t, s.URL(), "SELECT 'fine'"); got != "fine" {
		t.Errorf("the first server says %q", got)
	}
}

func TestKilledPostmasterComesBack(t *testing.T) {
	t.Parallel()
	s := start(t, folder(t))
	query(t, s.URL(), "CREATE TABLE kept AS SELECT 'yes' AS answer")
	pid := postmaster(filepath.Join(s.data, "postmaster.pid"))
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := query(t, s.URL(), "SELECT answer FROM kept"); got != "yes" {
		t.Errorf("after the crash it knows %q", got)
	}
	if now := postmaster(filepath.Join(s.data, "postmaster.pid")); now == pid {
		t.Errorf("postmaster %d was not replaced", pid)
	}
}

// process is a supervisor in a process of its own.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func startProcess(t *testing.T, binary, dir string, cred *syscall.Credential) process {
	t.Helper()
	c := exec.Command(binary)
	c.Env = append(os.Environ(), childDir+"="+dir)
	c.Dir = "/"
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() }) // it may have ended already
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "started\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return process{c, stdin}
}

// waitUntil waits for what nobody announces.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("%s: not so after 30 s", what)
		case <-time.After(poll):
		}
	}
}

func ended(t *testing.T, data string) func() bool {
	return func() bool {
		left, err := processesIn(data)
		if err != nil {
			t.Fatal(err)
		}
		return len(left) == 0
	}
}

func TestKilledParentLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := startProcess(t, os.Args[0], dir, nil)
	data := filepath.Join(dir, "data")
	if ended(t, data)() {
		t.Fatal("no server runs")
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the orphan ended", ended(t, data))
}

// A stopped process is one that cannot act on its parent's death yet.
func TestOldPostmasterIsToldToStop(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := startProcess(t, os.Args[0], dir, nil)
	query(t, URL(dir, "app"), "CREATE TABLE kept AS SELECT 'yes' AS answer")
	old := postmaster(filepath.Join(dir, "data", "postmaster.pid"))
	if err := syscall.Kill(old, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err == nil {
		t.Fatal("the child was not killed")
	}
	go func() {
		<-time.After(200 * time.Millisecond)
		_ = syscall.Kill(old, syscall.SIGCONT)
	}()
	s := start(t, dir)
	if got := query(t, s.URL(), "SELECT answer FROM kept"); got != "yes" {
		t.Errorf("the new server knows %q", got)
	}
}

// The numbers in the files of a killed server may belong to another process by
// now; PostgreSQL would believe that it still runs.
func TestStaleFilesAreRemoved(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := start(t, dir)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "600") // under the user of the server, or it would not be believed
	other.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	stale := fmt.Sprintf("%d\n%s\n1700000000\n%s\n%s\n\n", other.Process.Pid, s.data, port, s.sock)
	for _, path := range []string{filepath.Join(s.data, "postmaster.pid"), filepath.Join(s.sock, ".s.PGSQL."+port+".lock")} {
		if err := os.WriteFile(path, []byte(stale), 0o600); err != nil {
			t.Fatal(err)
		}
		if s.cred != nil {
			if err := os.Chown(path, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s = start(t, dir)
	if got := query(t, s.URL(), "SELECT 'fine'"); got != "fine" {
		t.Errorf("the server says %q", got)
	}
	if err := syscall.Kill(other.Process.Pid, 0); err != nil {
		t.Errorf("the process that got the number was harmed: %v", err)
	}
}

func TestCutInitLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	half := filepath.Join(dir, "data.new")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
}

func TestOrdinaryUserCanRunIt(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("every other test shows it")
	}
	cred := &syscall.Credential{Uid: 65534, Gid: 65534}
	dir := folder(t)
	binary := filepath.Join(dir, "child") // go test's own folder is closed to others
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, program, 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	if err := errors.Join(os.Mkdir(home, 0o755), os.Chown(home, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, binary, home, cred)
	if got := query(t, URL(home, "app"), "SELECT 'fine'"); got != "fine" {
		t.Errorf("the server says %q", got)
	}
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the child ended with %v", err)
	}
	waitUntil(t, "the server ended", ended(t, filepath.Join(home, "data")))
}

func TestFailedStartSaysWhy(t *testing.T) {
	t.Parallel()
	cfg := config(folder(t))
	cfg.Settings["shared_buffers"] = "plenty"
	_, err := Start(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers"`) {
		t.Errorf("the start says %v", err)
	}
	start(t, cfg.Dir) // the lock was given back
}
