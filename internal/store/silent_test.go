package store_test

import (
	"bytes"
	"context"
	"net"
	neturl "net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// wire is a network between a store and its database that can fall silent:
// connections stay open, and nothing comes through any more.
type wire struct {
	silent chan struct{}
	cut    sync.Once
	hush   []byte // it falls silent when this comes by
}

// wired returns the URL of the database at url behind a wire.
func wired(t *testing.T, url, hush string) (string, *wire) {
	t.Helper()
	cfg := must[*pgconn.Config](t)(pgconn.ParseConfig(url))
	network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // ends the test
	w := &wire{silent: make(chan struct{}), hush: []byte(hush)}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial(network, address)
			if err != nil {
				near.Close() //nolint:errcheck // the store sees it
				continue
			}
			go w.carry(near, far)
			go w.carry(far, near)
		}
	}()
	u := must[*neturl.URL](t)(neturl.Parse(url))
	u.Host = l.Addr().String()
	q := u.Query()
	q.Del("host")
	q.Del("port")
	u.RawQuery = q.Encode()
	return u.String(), w
}

func (w *wire) carry(to, from net.Conn) {
	buf := make([]byte, 1<<12)
	for {
		n, err := from.Read(buf)
		if len(w.hush) > 0 && bytes.Contains(buf[:n], w.hush) {
			w.fallSilent()
		}
		select {
		case <-w.silent:
			return
		default:
		}
		if err == nil {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			to.Close()   //nolint:errcheck // both ends go
			from.Close() //nolint:errcheck //
			return
		}
	}
}

func (w *wire) fallSilent() { w.cut.Do(func() { close(w.silent) }) }

// A database that falls silent in the middle of a statement is not waited for
// without end: the caller hears that it is not available.
func TestSilentDatabaseIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	url := migrated(t)
	for what, ask := range map[string]func(st *store.Store, silence func()) error{
		"a statement": func(st *store.Store, silence func()) error {
			ok(t, st.Ping(t.Context())) // its connection is not tried again for a second
			silence()
			return second(st.Now(t.Context()))
		},
		"a statement in a transaction": func(st *store.Store, silence func()) error {
			return st.InTx(t.Context(), func(q *store.Queries) error {
				silence()
				return second(q.Now(t.Context()))
			})
		},
		"a commit": func(st *store.Store, silence func()) error {
			return st.InTx(t.Context(), func(*store.Queries) error { silence(); return nil })
		},
		"a begin": func(st *store.Store, silence func()) error {
			ok(t, st.Ping(t.Context()))
			silence()
			return st.InTx(t.Context(), func(*store.Queries) error { return nil })
		},
		"a ping": func(st *store.Store, silence func()) error {
			ok(t, st.Ping(t.Context()))
			silence()
			return st.Ping(t.Context())
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			through, w := wired(t, url, "")
			st := open(t, through)
			st.SetLimit(100 * time.Millisecond)
			begin := time.Now()
			wantCode(t, ask(st, w.fallSilent), cks.Unavailable)
			if took := time.Since(begin); took > 9*time.Second { // what a connection is waited for
				t.Errorf("it took %s", took)
			}
		})
	}
}

// Nor is it waited for at the end.
func TestCloseDoesNotWaitForASilentDatabase(t *testing.T) {
	t.Parallel()
	through, w := wired(t, storetest.URL(t), "")
	st := must[*store.Store](t)(store.Open(t.Context(), through))
	stuck := make(chan error, 1)
	w.fallSilent()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { stuck <- second(st.Now(ctx)) }()
	waitFor(t, "the statement", func() bool { return st.Stat().AcquiredConns() == 1 })
	begin := time.Now()
	st.Close()
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
	cancel()
	wantErr(t, <-stuck, context.Canceled)
}

// A database that falls silent just when the listener begins does not keep it
// from trying again.
func TestListenerIsNotStuckInItsBeginning(t *testing.T) {
	t.Parallel()
	through, _ := wired(t, storetest.URL(t), "LISTEN")
	st := must[*store.Store](t)(store.Open(t.Context(), through))
	ctx, cancel := context.WithCancel(t.Context())
	reports, ended := make(chan error, 100), make(chan error)
	go func() { ended <- st.RunBus(ctx, func(err error) { reports <- err }) }()
	select {
	case err := <-reports:
		wantCode(t, err, cks.Unavailable)
	case <-time.After(20 * time.Second):
		t.Error("it still waits")
	}
	cancel()
	ok(t, <-ended)
	st.Close()
}

// A listener that is cut each time it has come back does not come back faster
// and faster: servers whose connections something keeps ending do not spin.
func TestListenerThatIsCutAgainAndAgainWaits(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	var reports atomic.Int64
	ended := make(chan error)
	go func() { ended <- st.RunBus(ctx, func(error) { reports.Add(1) }) }()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		sql(t, st, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
	}
	cancel()
	ok(t, <-ended)
	if n := reports.Load(); n < 1 || n > 10 { // after 50, 100, 200, 400, 800 and 1600 ms
		t.Errorf("it came back %d times in 3 s", n)
	}
}
