package embeddedpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	fastShutdown      = syscall.SIGINT  // sessions are ended, data are written
	immediateShutdown = syscall.SIGQUIT // like a crash; the log is replayed at the next start

	shutdownPatience = 30 * time.Second // before a fast shutdown becomes an immediate one
	healthyAfter     = time.Minute      // a server that lived so long may die again without counting
	maxDeaths        = 8                // in a row
)

// supervise keeps postgres running until Stop, or until it dies too often.
func (s *Server) supervise() {
	// Pdeathsig fires when the thread that forked ends, so this goroutine keeps
	// its thread; as it never gives it back, the thread ends with it.
	runtime.LockOSThread()
	defer close(s.done)
	defer func() { s.fail = errors.Join(s.fail, s.lock.Close()) }()
	for deaths := 0; ; {
		begin := time.Now()
		err := s.runOnce()
		if err == nil {
			return
		}
		if time.Since(begin) > healthyAfter {
			deaths = 0
		}
		if deaths++; deaths > maxDeaths || !s.ready.Load() {
			s.fail = err
			return
		}
		select {
		case <-s.stop:
			return
		case <-time.After(100 * time.Millisecond << deaths):
		}
	}
}

// runOnce runs postgres until it ends. It returns nil if that was asked for.
func (s *Server) runOnce() error {
	if err := s.endOld(context.Background()); err != nil {
		return err
	}
	c := s.command("postgres", s.arguments()...)
	c.Stdout, c.Stderr = s.log, s.log
	c.WaitDelay = time.Second              // orphaned sessions may keep the pipe open
	c.SysProcAttr.Setpgid = true           // Ctrl-C in a terminal is for us alone
	c.SysProcAttr.Pdeathsig = fastShutdown // we die, even by SIGKILL
	if err := c.Start(); err != nil {
		return err
	}
	exited := make(chan error, 1)
	go func() { exited <- c.Wait() }()
	select {
	case err := <-exited:
		return fmt.Errorf("postgres ended: %v\n%s", err, s.log)
	case <-s.stop:
	}
	// A process that is gone already is what we want.
	_ = c.Process.Signal(fastShutdown)
	select {
	case <-exited:
	case <-time.After(shutdownPatience):
		_ = c.Process.Signal(immediateShutdown)
		<-exited
	}
	return nil
}

func (s *Server) arguments() []string {
	settings := map[string]string{
		"listen_addresses":          "",
		"port":                      port,
		"unix_socket_directories":   s.sock,
		"recovery_init_sync_method": "syncfs", // recovery after a crash takes a fifth of the time
	}
	maps.Copy(settings, s.cfg.Settings)
	args := []string{"-D", s.data}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// command is one of PostgreSQL's programs under the right user, away from our
// folder and from our environment, whose PG* variables would change its mind.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir = "/"
	c.Env = []string{"PATH=" + s.bin + ":/usr/bin:/bin", "LC_ALL=C"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	return c
}

// initdb makes the data beside their final place: a crash in the middle leaves
// nothing that looks complete.
func (s *Server) initdb(ctx context.Context) error {
	// The thread must outlive the child for Pdeathsig.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	side := s.data + ".new"
	var out []byte
	var err error
	// Sorting by code point, but upper and lower case of all letters where the
	// machine knows them.
	for _, ctype := range []string{"C.UTF-8", "C"} {
		if err = os.RemoveAll(side); err != nil {
			return err
		}
		args := []string{"-D", side, "-U", superuser, "-E", "UTF8", "--locale=C", "--lc-ctype=" + ctype,
			"--auth-local=trust", "--auth-host=reject", "--data-checksums"}
		if s.cfg.Settings["fsync"] == "off" {
			args = append(args, "--no-sync")
		}
		c := s.command("initdb", args...)
		c.SysProcAttr.Pdeathsig = syscall.SIGKILL
		out, err = output(ctx, c)
		if err == nil || !bytes.Contains(out, []byte("invalid locale")) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, bytes.TrimSpace(out))
	}
	if err := os.Rename(side, s.data); err != nil {
		return fmt.Errorf("%s holds something else than PostgreSQL's data: %w", s.data, err)
	}
	return nil
}

// output is c.CombinedOutput on this thread, ended with ctx.
func output(ctx context.Context, c *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.Process.Kill() })()
	if err := c.Wait(); err != nil {
		return out.Bytes(), errors.Join(ctx.Err(), err)
	}
	return out.Bytes(), nil
}

// tail hands on what PostgreSQL prints and remembers the end of it for errors.
type tail struct {
	to io.Writer

	mu   sync.Mutex
	last []byte
}

const tailSize = 2000

// Write never fails: a full disk under the log must not stop the server.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-tailSize):]
	if t.to != nil {
		_, _ = t.to.Write(p)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}
