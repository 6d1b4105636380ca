package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ckscale/cmd/internal/live"
)

// fleet is the servers on one database. Each has a place; who is killed there
// is followed by another process with another name.
type fleet struct {
	program, database, logs string
	settings                []string
	skewed                  bool // the program's clock can be set
	key, secret             string
	sealing                 string        // what the servers seal secrets with
	pool                    *pgxpool.Pool // for what the run itself asks

	mu     sync.Mutex
	places []*place
	kills  []blow
	pauses []blow
	wg     sync.WaitGroup // of those that are down, till they are up again
	failed error          // why one did not come up again
}

type place struct {
	app    string // what the database calls its process
	number int    // of that process in this place
	server *live.Server
	up     bool
}

// blow is what was done to a process, by the database's clock and in its favour:
// what is measured from it is never too short.
type blow struct {
	app string
	at  time.Time
}

// newFleet starts the servers, the first one alone: it fills the database.
func newFleet(ctx context.Context, o options, program, database string) (f *fleet, err error) {
	sealing := make([]byte, 32)
	rand.Read(sealing) //nolint:errcheck // it never fails
	f = &fleet{program: program, database: database, logs: o.logs, settings: o.settings, skewed: o.server == "",
		key: rand.Text(), secret: rand.Text(), sealing: hex.EncodeToString(sealing)}
	if f.pool, err = pgxpool.New(ctx, database); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.stop())
		}
	}()
	for i := range o.servers {
		f.places = append(f.places, &place{})
		if err := f.raise(ctx, i); err != nil {
			return nil, err
		}
		if i == 0 {
			if _, err := f.pool.Exec(ctx, recorder); err != nil {
				return nil, fmt.Errorf("install the recorder: %w", err)
			}
		}
	}
	return f, nil
}

// raise starts a server in a place.
func (f *fleet) raise(ctx context.Context, i int) error {
	p := f.places[i]
	number := p.number + 1
	app := fmt.Sprintf("chaos-%d.%d", i+1, number)
	env, err := f.environment(i, app)
	if err != nil {
		return err
	}
	var log io.Writer
	if f.logs != "" {
		file, err := os.Create(filepath.Join(f.logs, app+".log"))
		if err != nil {
			return err
		}
		log = file // for as long as we run
	}
	s, err := live.Start(ctx, f.program, env, log)
	if err != nil {
		return err
	}
	if err := f.checkClock(ctx, s, skews[i%len(skews)]); err != nil {
		return errors.Join(err, s.Stop())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p.app, p.number, p.server, p.up = app, number, s, true
	return nil
}

func (f *fleet) environment(i int, app string) ([]string, error) {
	u, err := url.Parse(f.database)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	query.Set("application_name", app)
	u.RawQuery = query.Encode()
	return append([]string{
		"DATABASE_URL=" + u.String(), "CKSCALE_ADMIN_API_KEY=" + f.key, "CKSCALE_ADMIN_SECRET_KEY=" + f.secret, "CKSCALE_DEMO=true",
		fmt.Sprintf("CKSCALE_ENCRYPTION_KEY=%x", sha256.Sum256([]byte(f.secret))), // one for all, whose data directories are their own
		skewVariable + "=" + skews[i%len(skews)].String(),
	}, f.settings...), nil
}

// checkClock makes sure that a server's clock is off as it is to be, by the date
// of its answers.
func (f *fleet) checkClock(ctx context.Context, s *live.Server, want time.Duration) error {
	if !f.skewed {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if off := time.Until(date) - want; err == nil && off.Abs() > time.Minute {
		err = fmt.Errorf("a clock that is to be off by %s is off by %s more", want, off)
	}
	return err
}

// addresses are those that clients know: of all places, whoever is up.
func (f *fleet) addresses() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, p := range f.places {
		all = append(all, p.server.URL)
	}
	return all
}

// now is the time by the database's clock.
func (f *fleet) now(ctx context.Context) (t time.Time, err error) {
	err = f.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&t)
	return t, err
}

// trouble kills and pauses servers until ctx ends. It leaves one alone, and
// begins with a kill: the shortest run has one.
func (f *fleet) trouble(ctx context.Context, choose *mathrand.Rand) error {
	for {
		wait, pick, what := between(choose, 2*time.Second, 5*time.Second), choose.Uint64(), choose.IntN(4)
		away := between(choose, 500*time.Millisecond, 2*time.Second)
		if !sleep(ctx, wait) {
			return nil
		}
		i, ok := f.victim(pick)
		if !ok {
			continue
		}
		strike := f.kill
		if what == 0 && len(f.kills) > 0 {
			strike, away = f.pause, pauseFor
		}
		if err := strike(context.WithoutCancel(ctx), i, away); err != nil {
			return err
		}
	}
}

// victim takes the place down that is meant, unless only one is up.
func (f *fleet) victim(pick uint64) (i int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var up []int
	for i, p := range f.places {
		if p.up {
			up = append(up, i)
		}
	}
	if len(up) < 2 {
		return 0, false
	}
	i = up[pick%uint64(len(up))]
	f.places[i].up = false
	return i, true
}

// kill ends a server at once, and starts another in its place after a while.
func (f *fleet) kill(ctx context.Context, i int, away time.Duration) error {
	p := f.places[i]
	at, err := f.now(ctx)
	if err != nil {
		return err
	}
	if err := p.server.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.app, err)
	}
	f.mu.Lock()
	f.kills = append(f.kills, blow{p.app, at})
	f.mu.Unlock()
	f.wg.Go(func() {
		sleep(ctx, away)
		f.fail(f.raise(ctx, i))
	})
	return nil
}

// pauseFor is longer than the lease.
const pauseFor = 13 * time.Second

// pause stops a server as a machine that stands still does: past its leases.
func (f *fleet) pause(ctx context.Context, i int, away time.Duration) error {
	p := f.places[i]
	at, err := f.now(ctx)
	if err != nil {
		return err
	}
	if err := p.server.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause %s: %w", p.app, err)
	}
	f.mu.Lock()
	f.pauses = append(f.pauses, blow{p.app, at})
	f.mu.Unlock()
	f.wg.Go(func() {
		sleep(ctx, away)
		f.fail(p.server.Signal(syscall.SIGCONT))
		f.mu.Lock()
		defer f.mu.Unlock()
		p.up = true
	})
	return nil
}

func (f *fleet) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = errors.Join(f.failed, err)
}

// whole waits until every place is up.
func (f *fleet) whole() error {
	f.wg.Wait()
	return f.failed
}

// stop ends what is up.
func (f *fleet) stop() error {
	err := f.whole()
	for _, p := range f.places {
		if p.server != nil && p.up {
			err = errors.Join(err, p.server.Stop())
		}
	}
	f.pool.Close()
	return err
}

// sleep reports false when ctx has ended before d was over.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func between(choose *mathrand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(choose.Int64N(int64(high-low)))
}
