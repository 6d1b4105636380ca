// Package embeddedpg runs a private PostgreSQL server from the binaries that
// are installed on the machine. It downloads nothing, listens on a Unix socket
// only, and never touches data that it cannot read.
//
// Layout of Config.Dir:
//
//	lock    held (flock) by the process that supervises the server
//	data/   PostgreSQL's data directory
//	sock/   its socket; only the owner of data may enter
package embeddedpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config says where and how a server runs.
type Config struct {
	Dir      string            // made if absent
	BinDir   string            // of postgres and initdb; "" = see FindBinaries
	Database string            // made if absent
	Log      io.Writer         // what PostgreSQL prints; nil = nowhere
	Settings map[string]string // of postgresql.conf, in addition to ours
}

// ErrInUse says that another process runs a server on the same folder.
var ErrInUse = errors.New("is in use by another server")

// Server is a running PostgreSQL. It is started again when it dies, and it
// ends when this process does, however that ends.
type Server struct {
	cfg  Config
	data string
	sock string
	bin  string
	cred *syscall.Credential // nil: PostgreSQL runs as we do
	lock *os.File
	log  *tail

	stopOnce sync.Once
	stop     chan struct{}
	ready    atomic.Bool // it has answered once
	done     chan struct{}
	fail     error // why it ended without being asked to; read after done
}

// URL is a connection URL for the database Config.Database of a server in dir,
// whether or not one runs there.
func URL(dir, database string) string {
	q := url.Values{"host": {filepath.Join(dir, "sock")}, "port": {port}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database, RawQuery: q.Encode()}
	return u.String()
}

// URL is the connection URL of the database.
func (s *Server) URL() string { return URL(s.cfg.Dir, s.cfg.Database) }

// Done is closed when the server has ended for good: after Stop, or because it
// kept dying; Stop then returns why.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop shuts the server down and waits for it. It returns nil unless the
// server had ended by itself. It may be called more than once.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() { close(s.stop) })
	<-s.done
	return s.fail
}

const (
	superuser = "postgres"
	port      = "5432" // names the socket; nothing listens on TCP
	// maxSocketPath is what fits into sockaddr_un with its terminating zero.
	maxSocketPath = 107
	// poll is the interval for what has no event to wait for.
	poll = 20 * time.Millisecond
)

// Start returns once the server answers and the database exists. ctx bounds
// the start only. It fails with ErrInUse when another process runs a server in
// the same folder, and says what to install when there is no PostgreSQL.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	cfg.Dir = dir
	s := &Server{
		cfg: cfg, data: filepath.Join(dir, "data"), sock: filepath.Join(dir, "sock"),
		log: &tail{to: cfg.Log}, stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		if s.lock != nil {
			return errors.Join(err, s.lock.Close())
		}
		return err
	}
	go s.supervise() // closes the lock
	if err := s.makeDatabase(ctx); err != nil {
		if ended := s.Stop(); ended != nil { // it died: that says more than the refused connection
			return ended
		}
		return err
	}
	s.ready.Store(true)
	return nil
}

// prepare does all that comes before the first start of postgres.
func (s *Server) prepare(ctx context.Context) (err error) {
	if path := filepath.Join(s.sock, ".s.PGSQL."+port); len(path) > maxSocketPath {
		return fmt.Errorf("the path %s is longer than the %d bytes that a Unix socket can have: choose a shorter folder",
			path, maxSocketPath)
	}
	if s.bin, err = FindBinaries(s.cfg.BinDir, s.data); err != nil {
		return err
	}
	if err = os.MkdirAll(s.cfg.Dir, 0o755); err != nil {
		return err
	}
	if err = s.takeLock(); err != nil {
		return err
	}
	if s.cred, err = runAs(s.data); err != nil {
		return err
	}
	if err = reachable(s.cfg.Dir, s.cred); err != nil {
		return err
	}
	if err = s.own(s.cfg.Dir, 0o755); err != nil {
		return err
	}
	if err = s.own(s.sock, 0o700); err != nil {
		return err
	}
	if err = s.endOld(ctx); err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(s.data, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return s.initdb(ctx)
	}
	return err
}

// takeLock keeps a second process out. The kernel drops the lock when we die.
func (s *Server) takeLock() error {
	lock, err := os.OpenFile(filepath.Join(s.cfg.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		s.lock = lock
		return nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrInUse
	}
	return errors.Join(fmt.Errorf("%s %w", s.cfg.Dir, err), lock.Close())
}

// own makes the folder path, of the user that PostgreSQL runs as.
func (s *Server) own(path string, mode os.FileMode) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	if s.cred == nil {
		return os.Chmod(path, mode)
	}
	return errors.Join(os.Chown(path, int(s.cred.Uid), int(s.cred.Gid)), os.Chmod(path, mode))
}

// makeDatabase waits until the server answers and makes sure of the database.
func (s *Server) makeDatabase(ctx context.Context) error {
	for {
		err := createDatabase(ctx, URL(s.cfg.Dir, "postgres"), s.cfg.Database)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer yet: %w", errors.Join(ctx.Err(), err))
		case <-s.done:
			return err
		case <-time.After(poll):
		}
	}
}

func createDatabase(ctx context.Context, admin, name string) (err error) {
	c, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	var there bool
	err = c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
	if err != nil || there {
		return err
	}
	_, err = c.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	return err
}
