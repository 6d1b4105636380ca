// Package store is the only package that speaks SQL.
//
// Rows are locked in one order everywhere: a job before its cluster, a cluster
// before its VMs. Times are the database's clock.
package store

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"ckscale/internal/secretbox"
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
	limit time.Duration  // how long a statement is waited for
	key   *secretbox.Key // of the store; see UseKey
	wakes []announcement // to be published after the commit
}

// Store is Queries on a pool, and the one place where a transaction begins.
type Store struct {
	*Queries
	pool     *pgxpool.Pool
	bus      *bus
	direct   *pgx.ConnConfig // what RunBus listens on; nil: as the pool, if that leads to no pooler
	patience time.Duration   // how long a caller waits for a connection at most
}

// New returns a Store on pool. The caller closes the Store, not the pool.
func New(pool *pgxpool.Pool) *Store {
	s := &Store{pool: pool, bus: newBus(), patience: 10 * time.Second}
	s.Queries = &Queries{store: s, limit: statementLimit, key: new(secretbox.Key)}
	return s
}

// statementLimit is a little more than the database's own limit, so that it
// means a database that is silent, or a pooler that keeps its limits from it.
const statementLimit = 20 * time.Second

// maxConns is the size of the pool when the URL does not say pool_max_conns.
const maxConns = 16

// settings are the server settings of every connection of the pool. The URL may
// set others.
var settings = map[string]string{
	"application_name": "ckscale",
	"timezone":         "UTC",
}

// limits are settings as well: no statement and no forgotten transaction can
// hold a row for ever.
var limits = map[string]string{
	"statement_timeout":                   "15s",
	"lock_timeout":                        "5s",
	"idle_in_transaction_session_timeout": "15s",
}

// Open connects to the database at url, through a transaction pooler if one is
// between. It fails with cks.Unavailable when no server answers.
func Open(ctx context.Context, url string) (*Store, error) {
	cfg, err := parse(url)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = maxConns
	}
	given := cfg.ConnConfig.RuntimeParams
	cfg.ConnConfig.RuntimeParams = merged(limits, settings, given)
	if err := adapt(ctx, cfg.ConnConfig, given, strings.Contains(url, "default_query_exec_mode")); err != nil {
		return nil, translate(err)
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

// parse reads a URL. By way of pgxpool's parser, which takes its own settings
// out of it.
func parse(url string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err) // pgx leaves the password out
	}
	if !strings.Contains(url, "connect_timeout") {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	return cfg, nil
}

// merged is all of the maps in one; the later ones win.
func merged(all ...map[string]string) map[string]string {
	one := map[string]string{}
	for _, m := range all {
		maps.Copy(one, m)
	}
	return one
}

// ListenOn makes RunBus listen at url instead of where the pool leads: at the
// database itself, when a pooler is between. It is to be called before RunBus.
func (s *Store) ListenOn(url string) error {
	cfg, err := parse(url)
	if err != nil {
		return err
	}
	cfg.ConnConfig.RuntimeParams = merged(settings, cfg.ConnConfig.RuntimeParams)
	s.direct = cfg.ConnConfig
	return nil
}

// closeTime is how long Close waits for connections that are in use.
const closeTime = 5 * time.Second

// Close closes all connections once they are given back, and waits for that,
// for a while: a statement that a dead network never answers keeps its own.
func (s *Store) Close() {
	closed := make(chan struct{})
	go func() { s.pool.Close(); close(closed) }()
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}

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
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
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
	q := &Queries{limit: s.limit, key: s.key}
	tx, err := q.begin(ctx, c)
	if err != nil {
		return translate(err)
	}
	defer rollback(ctx, tx)
	q.conn = tx
	if err := fn(q); err != nil {
		return err
	}
	if err := q.commit(ctx, tx); err != nil {
		return translate(err)
	}
	for _, w := range q.wakes {
		s.Publish(w.topic, w.payload)
	}
	return nil
}

func (q *Queries) begin(ctx context.Context, c *pgxpool.Conn) (pgx.Tx, error) {
	ctx, cancel := context.WithTimeout(ctx, q.limit)
	defer cancel()
	return c.Begin(ctx)
}

func (q *Queries) commit(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(ctx, q.limit)
	defer cancel()
	return tx.Commit(ctx)
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
