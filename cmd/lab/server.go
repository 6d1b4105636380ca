package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// server is a server of our own, with its data in a folder that goes with it.
type server struct {
	url, key, secret string // as of client

	dir   string
	cmd   *exec.Cmd
	log   tail
	ended chan struct{}
	err   error // how it ended; read after ended
}

// tail keeps the last of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (o *tail) Write(p []byte) (int, error) {
	const enough = 4000
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	o.text = o.text[max(0, len(o.text)-enough):]
	return len(p), nil
}

func (o *tail) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(bytes.TrimSpace(o.text))
}

// startServer starts program on a free port, and waits until it serves. An
// empty database stands for an embedded PostgreSQL.
func startServer(ctx context.Context, program, database string, speed float64, timeout time.Duration) (s *server, err error) {
	s = &server{key: rand.Text(), secret: rand.Text(), ended: make(chan struct{})}
	if s.dir, err = os.MkdirTemp("", "ckscale-lab-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(s.dir, 0o711); err != nil { // PostgreSQL runs as another user when we are root
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	s.cmd = exec.Command(program)
	s.cmd.Env = s.environment(database, speed, timeout)
	// By a pipe, so that a server which outlives us ends when it writes next.
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the server: %w", err), os.RemoveAll(s.dir))
	}
	go func() { s.err = s.cmd.Wait(); close(s.ended) }()
	if err := s.serving(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) addrFile() string { return filepath.Join(s.dir, "addr") }

// environment has nothing of our own but where programs and temporary files are.
func (s *server) environment(database string, speed float64, timeout time.Duration) []string {
	env := []string{
		"CKSCALE_ADDR=127.0.0.1:0", "CKSCALE_ADDR_FILE=" + s.addrFile(), "CKSCALE_DATA_DIR=" + filepath.Join(s.dir, "data"),
		"CKSCALE_ADMIN_API_KEY=" + s.key, "CKSCALE_ADMIN_SECRET_KEY=" + s.secret, "CKSCALE_DEMO=true", "DATABASE_URL=" + database,
		fmt.Sprintf("CKSCALE_SIM_SPEED=%g", speed), "CKSCALE_SCALE_TIMEOUT=" + timeout.String(),
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "PG_BINDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// serving waits for the address.
func (s *server) serving(ctx context.Context) error {
	const limit = 2 * time.Minute // of an initdb on a busy machine
	end := time.After(limit)
	for {
		addr, err := os.ReadFile(s.addrFile())
		if err == nil {
			s.url = "http://" + strings.TrimSpace(string(addr)) + "/client/api"
			return nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.ended:
			return fmt.Errorf("the server does not start:\n%s", &s.log)
		case <-end:
			return fmt.Errorf("the server does not serve within %s:\n%s", limit, &s.log)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stop ends the server and removes its data.
func (s *server) stop() error {
	var err error
	select {
	case <-s.ended:
	default:
		err = s.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		err = errors.Join(err, errors.New("the server did not end when it was told to"), s.cmd.Process.Kill())
		<-s.ended
	}
	if s.err != nil {
		err = errors.Join(err, fmt.Errorf("the server ended with %w:\n%s", s.err, &s.log))
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
