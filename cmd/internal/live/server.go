package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is a server of our own, with its data in a folder that goes with it.
type Server struct {
	URL string // of its API

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

// Start starts program on a free port, and waits until it serves. env has its
// settings but for the address and the data directory; of our own environment
// it gets only where programs and temporary files are. What it writes goes to
// log as well, unless that is nil.
func Start(ctx context.Context, program string, env []string, log io.Writer) (s *Server, err error) {
	s = &Server{ended: make(chan struct{})}
	if s.dir, err = os.MkdirTemp("", "ckscale-live-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(s.dir, 0o711); err != nil { // PostgreSQL runs as another user when we are root
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	s.cmd = exec.Command(program)
	s.cmd.Env = append(s.environment(), env...)
	// By a pipe, so that a server which outlives us ends when it writes next.
	var out io.Writer = &s.log
	if log != nil {
		out = io.MultiWriter(&s.log, log)
	}
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the server: %w", err), os.RemoveAll(s.dir))
	}
	go func() { s.err = s.cmd.Wait(); close(s.ended) }()
	if err := s.serving(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) addrFile() string { return filepath.Join(s.dir, "addr") }

func (s *Server) environment() []string {
	env := []string{"CKSCALE_ADDR=127.0.0.1:0", "CKSCALE_ADDR_FILE=" + s.addrFile(), "CKSCALE_DATA_DIR=" + filepath.Join(s.dir, "data")}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "PG_BINDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// serving waits for the address.
func (s *Server) serving(ctx context.Context) error {
	const limit = 2 * time.Minute // of an initdb on a busy machine
	end := time.After(limit)
	for {
		addr, err := os.ReadFile(s.addrFile())
		if err == nil {
			s.URL = "http://" + strings.TrimSpace(string(addr)) + "/client/api"
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

// Signal sends a signal to the server.
func (s *Server) Signal(sig syscall.Signal) error { return s.cmd.Process.Signal(sig) }

// Kill ends the server at once, as a crash does, and removes its data.
func (s *Server) Kill() error {
	err := s.cmd.Process.Kill()
	<-s.ended
	return errors.Join(err, os.RemoveAll(s.dir))
}

// Stop ends the server and removes its data. A server that did not end well is
// an error.
func (s *Server) Stop() error {
	var err error
	select {
	case <-s.ended:
	default:
		err = s.Signal(syscall.SIGTERM)
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
