package model

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ckscale/internal/jobs"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// arena is a database on which scripts are played, one after the other: what
// one leaves behind, it deletes at its end.
type arena struct {
	testing.TB
	url  string
	st   *store.Store
	ends []func()
}

// newArena makes a database that lasts until close.
func newArena(t testing.TB) *arena {
	a := &arena{TB: t}
	a.url = storetest.URL(a)
	if err := store.Migrate(context.Background(), a.url); err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(context.Background(), a.url)
	if err != nil {
		t.Fatal(err)
	}
	a.st = st
	a.Cleanup(st.Close)
	return a
}

// Cleanup waits for close instead of the end of the test: a long test uses many
// databases.
func (a *arena) Cleanup(f func()) { a.ends = append(a.ends, f) }

func (a *arena) close() {
	for len(a.ends) > 0 {
		last := len(a.ends) - 1
		end := a.ends[last]
		a.ends = a.ends[:last]
		end()
	}
}

// connect gives a life its own way to the database.
func (a *arena) connect(ctx context.Context, l *life) (*store.Store, error) {
	cfg, err := pgxpool.ParseConfig(a.url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns, cfg.ConnConfig.Tracer = 4, l
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return store.New(pool), nil
}

// deadline lets that of all live jobs pass. Jobs that wait wake at theirs.
func (a *arena) deadline(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, a.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it has done its work
	_, err = conn.Exec(ctx, `
		UPDATE jobs SET deadline = now(), due = CASE WHEN owner IS NULL THEN least(due, now()) ELSE due END
		WHERE status = 0`)
	return err
}

// limits are a runner's: what waits is woken by the script, a failed step is
// tried again at once, and no limit of a call is reached by a machine that is
// merely busy.
var limits = jobs.Config{
	Lease: 10 * time.Minute, ReadyPoll: time.Hour, RetryWait: time.Nanosecond,
	DrainTimeout: 20 * time.Second, CallTimeout: 20 * time.Second,
}

// server is a process with a runner.
type server struct {
	*life
	st     *store.Store
	runner *jobs.Runner
	ended  chan error // its pass
}

// serve starts a server that lives as l says.
func (p *player) serve(l *life) (*server, error) {
	st, err := p.arena.connect(p.ctx, l)
	if err != nil {
		return nil, err
	}
	world := cloud{World: p.world, life: l, p: p, jobs: true}
	return &server{life: l, st: st, runner: jobs.NewRunner(st, world, world, limits), ended: make(chan error, 1)}, nil
}

// mostRuns is more than any pass needs.
const mostRuns = 500

// pass works jobs until none is due. A server that was held up until its lease
// had run out takes no other job: the world is closed to it.
func (s *server) pass(ctx context.Context) error {
	for range mostRuns {
		if some, err := s.runner.RunOnce(ctx); err != nil || !some || s.expired() {
			return err
		}
	}
	return errRestless
}
