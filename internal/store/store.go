// Package store is the only package that speaks SQL.
//
// Rows are locked in one order everywhere: a job before its cluster, a cluster
// before its VMs. Times are the database's clock.
package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// conn is what Queries needs of a pool or of a transaction.
type conn interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	Query(context.Context, string, ...any) (pgx.Rows, error)
}

// Queries are the statements, on a pool or in a transaction. Methods that need
// several statements make a transaction of their own on a pool.
type Queries struct {
	conn  conn           // of a transaction; on a pool each statement takes one
	store *Store         // nil inside a transaction
	wakes []announcement // to be published after the commit
}

// Store is Queries on a pool, and the one place where a transaction begins.
type Store struct {
	*Queries
	pool     *pgxpool.Pool
	bus      *bus
	patience time.Duration // how long a caller waits for a connection at most
}

// New returns a Store on pool. The caller closes the Store, not the pool.
func New(pool *pgxpool.Pool) *Store {
	s := &Store{pool: pool, bus: newBus(), patience: 10 * time.Second}
	s.Queries = &Queries{store: s}
	return s
}

// maxConns is the size of the pool when the URL does not say pool_max_conns.
const maxConns = 16

// limits are the server settings of every connection of the pool, so that no
// statement and no forgotten transaction can hold a row for ever. The URL may
// set others.
var limits = map[string]string{
	"application_name":                    "ckscale",
	"timezone":                            "UTC",
	"statement_timeout":                   "15s",
	"lock_timeout":                        "5s",
	"idle_in_transaction_session_timeout": "15s",
}

// Open connects to the database at url. It fails with cks.Unavailable when no
// server answers.
func Open(ctx context.Context, url string) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err) // pgx leaves the password out
	}
	if !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = maxConns
	}
	if !strings.Contains(url, "connect_timeout") {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	for name, value := range limits {
		if _, given := cfg.ConnConfig.RuntimeParams[name]; !given {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("database pool: %w", err)
	}
	s := New(pool)
	if err := s.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// Close waits until all connections are given back, and closes them.
func (s *Store) Close() { s.pool.Close() }

// acquire takes a connection from the pool. It fails with cks.Unavailable when
// none gets free in time: a pool that is used up is an error, no standstill
// (A54).
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	c, err := s.pool.Acquire(ctx)
	return c, translate(err)
}

// Ping asks the database for an answer.
func (s *Store) Ping(ctx context.Context) error {
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	return translate(c.Ping(ctx))
}

// Stat returns the pool's numbers.
func (s *Store) Stat() *pgxpool.Stat { return s.pool.Stat() }

// InTx runs fn in one transaction: all of it commits, or none. After the
// commit it publishes what fn asked for by Wake. An error of fn comes back as
// it is.
func (s *Store) InTx(ctx context.Context, fn func(*Queries) error) error {
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	tx, err := c.Begin(ctx)
	if err != nil {
		return translate(err)
	}
	defer rollback(ctx, tx)
	q := &Queries{conn: tx}
	if err := fn(q); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return translate(err)
	}
	for _, w := range q.wakes {
		s.Publish(w.topic, w.payload)
	}
	return nil
}

// rollback does nothing after a commit. It works when ctx has ended, so that
// the connection can be used again.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	tx.Rollback(ctx) //nolint:errcheck // a failed rollback closes the connection
}

// inTx runs fn in the transaction that q is in, or in a new one.
func (q *Queries) inTx(ctx context.Context, fn func(*Queries) error) error {
	if q.store == nil {
		return fn(q)
	}
	return q.store.InTx(ctx, fn)
}

// Wake publishes after the commit of the transaction that q is in; outside of
// one, at once.
func (q *Queries) Wake(t Topic, payload string) {
	if q.store != nil {
		q.store.Publish(t, payload)
		return
	}
	q.wakes = append(q.wakes, announcement{t, payload})
}
