package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// listenerPID is the backend of the bus of the only running RunBus.
const listenerPID = `SELECT coalesce(max(pid), 0) FROM pg_stat_activity
	WHERE datname = current_database() AND query LIKE 'LISTEN%'`

// running starts the bus of st, and waits until it hears.
func running(t *testing.T, st *store.Store) {
	t.Helper()
	heard := st.Subscribe(t.Context(), store.TopicWorld)
	runBus(t, st)
	eventually(t, heard, "") // it has missed what came before
}

// second is another server on st's database.
func replica(t *testing.T, st *store.Store) *store.Store {
	t.Helper()
	other, _ := traced(t, st)
	return other
}

func TestAnnouncementsAreHeardHereAtOnce(t *testing.T) {
	t.Parallel()
	st := storetest.New(t) // no bus runs
	a, b := st.Subscribe(t.Context(), store.TopicWorld), st.Subscribe(t.Context(), store.TopicWorld)
	jobs := st.Subscribe(t.Context(), store.TopicJobs)
	st.Publish(store.TopicWorld, "x")
	for _, ch := range []<-chan string{a, b} {
		if got := <-ch; got != "x" {
			t.Errorf("heard %q", got)
		}
	}
	silent(t, jobs)
}

func TestAnnouncementsReachOtherServers(t *testing.T) {
	t.Parallel()
	here := storetest.New(t)
	there := replica(t, here)
	running(t, there)
	running(t, here)
	world, jobs := there.Subscribe(t.Context(), store.TopicWorld), there.Subscribe(t.Context(), store.TopicJobs)
	mine := here.Subscribe(t.Context(), store.TopicWorld)

	here.Publish(store.TopicWorld, "one")
	eventually(t, world, "one")
	here.Publish(store.TopicJobs, "")
	eventually(t, jobs, "")
	eventually(t, mine, "one")
	here.Publish(store.TopicWorld, "two")
	eventually(t, world, "two")
	eventually(t, mine, "two")
	silent(t, mine) // its own come once
	sql(t, here, `SELECT pg_notify('ckscale_world', 'typed by hand')`)
	eventually(t, world, "")
	here.Publish(store.TopicWorld, strings.Repeat("long", 5000))
	eventually(t, world, "")
}

// A56: the listener's connection drops; it comes back, and whoever listened is
// told that something may be missing.
//
// Keeps: A56.
func TestListenerComesBack(t *testing.T) {
	t.Parallel()
	here := storetest.New(t)
	there := replica(t, here)
	running(t, there)
	// The other server only announces: on no connection of its own that
	// could be taken for the listener.
	world := there.Subscribe(t.Context(), store.TopicWorld)
	for i := range 3 {
		pid := 0
		waitFor(t, "the listener", func() bool { pid = read[int](t, here, listenerPID); return pid != 0 })
		if !read[bool](t, here, `SELECT pg_terminate_backend($1, 10000)`, pid) {
			t.Fatal("the listener is still connected")
		}
		eventually(t, world, "")
		sql(t, here, `SELECT pg_notify('ckscale_world', '{"from":"x","payloads":["`+fmt.Sprint(i)+`"]}')`)
		eventually(t, world, fmt.Sprint(i))
	}
}

func TestSlowSubscriberMissesNothingUnknowingly(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ch := st.Subscribe(t.Context(), store.TopicWorld)
	for i := range 3*store.Buffered + 1 {
		st.Publish(store.TopicWorld, fmt.Sprint(i)) // never blocks
	}
	var got []string
	for len(ch) > 0 {
		got = append(got, <-ch)
	}
	if !slices.Contains(got, "") {
		t.Errorf("%d were lost without a word", 3*store.Buffered+1-len(got))
	}
	if last := got[len(got)-1]; last != "" && last != fmt.Sprint(3*store.Buffered) {
		t.Errorf("the last is %q", last)
	}
}

func TestSubscriptionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	ch := st.Subscribe(ctx, store.TopicWorld)
	cancel()
	for range ch {
		t.Error("something came")
	}
	st.Publish(store.TopicWorld, "x") // to nobody
}

// NOTIFY takes a lock on the whole database: many announcements become few.
func TestAnnouncementsAreCoalesced(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	conn := must[*pgx.Conn](t)(pgx.ConnectConfig(t.Context(), st.Pool().Config().ConnConfig))
	defer conn.Close(context.Background()) //nolint:errcheck // ends the test
	_, err := conn.Exec(t.Context(), `LISTEN ckscale_jobs`)
	ok(t, err)
	running(t, st)
	start := time.Now()
	end, tick := time.After(400*time.Millisecond), time.NewTicker(500*time.Microsecond)
	defer tick.Stop()
	published := 0
	for publishing := true; publishing; {
		select {
		case <-tick.C:
			st.Publish(store.TopicJobs, "")
			published++
		case <-end:
			publishing = false
		}
	}
	st.Publish(store.TopicWorld, "last")
	spent := time.Since(start)
	heard := 0
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := conn.WaitForNotification(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		ok(t, err)
		heard++
	}
	if most := int(spent/(10*time.Millisecond)) + 3; heard < 1 || heard > most {
		t.Errorf("%d announcements in %s became %d, want 1 to %d", published, spent, heard, most)
	}
}

// What a transaction announces is heard after its commit, and not at all when
// it is rolled back.
//
// Keeps: A53.
func TestWakeWaitsForTheCommit(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ch := st.Subscribe(t.Context(), store.TopicWorld)
	undo := errors.New("undo")
	wantErr(t, st.InTx(t.Context(), func(q *store.Queries) error {
		q.Wake(store.TopicWorld, "undone")
		return undo
	}), undo)
	ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
		q.Wake(store.TopicWorld, "done")
		silent(t, ch)
		return nil
	}))
	if got := <-ch; got != "done" {
		t.Errorf("heard %q", got)
	}
	st.Wake(store.TopicWorld, "outside")
	if got := <-ch; got != "outside" {
		t.Errorf("heard %q", got)
	}
}

// A bus without a database goes on trying, says so, and ends when asked.
func TestBusReportsTrouble(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	cfg := st.Pool().Config()
	name := cfg.ConnConfig.Database
	ctx, cancel := context.WithCancel(t.Context())
	reports, done := make(chan error, 100), make(chan error)
	go func() {
		done <- st.RunBus(ctx, func(err error) {
			select {
			case reports <- err:
			default:
			}
		})
	}()
	waitFor(t, "the listener", func() bool { return read[int](t, st, listenerPID) != 0 })
	admin := cfg.ConnConfig.Copy()
	admin.Database = "postgres"
	conn := must[*pgx.Conn](t)(pgx.ConnectConfig(t.Context(), admin))
	defer conn.Close(context.Background()) //nolint:errcheck // ends the test
	for _, text := range []string{
		"ALTER DATABASE " + name + " ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '" + name + "'",
	} {
		_, err := conn.Exec(t.Context(), text)
		ok(t, err)
	}
	for range 3 {
		if err := <-reports; err == nil {
			t.Error("reported nothing")
		}
	}
	cancel()
	ok(t, <-done)
}
