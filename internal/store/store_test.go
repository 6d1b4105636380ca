package store_test

import (
	"context"
	"errors"
	"net"
	neturl "net/url"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// with adds a setting to a URL.
func with(t *testing.T, url, key, value string) string {
	t.Helper()
	u := must[*neturl.URL](t)(neturl.Parse(url))
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func TestTransactionIsAllOrNothing(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	undo := errors.New("undo")
	add := func(q *store.Queries) error {
		_, err := q.AddZone(t.Context(), cks.Zone{Name: "z"})
		return err
	}
	wantErr(t, st.InTx(t.Context(), func(q *store.Queries) error { return errors.Join(add(q), undo) }), undo)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		st.InTx(t.Context(), func(q *store.Queries) error { //nolint:errcheck // panics
			ok(t, add(q))
			panic("undo")
		})
	}()
	ctx, cancel := context.WithCancel(t.Context())
	wantErr(t, st.InTx(ctx, func(q *store.Queries) error { defer cancel(); return add(q) }), context.Canceled)
	if empty := must[bool](t)(st.Empty(t.Context())); !empty {
		t.Error("something of a transaction that did not commit is there")
	}
	if n := st.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are not given back", n)
	}
	ok(t, st.InTx(t.Context(), add))
	if empty := must[bool](t)(st.Empty(t.Context())); empty {
		t.Error("the transaction is lost")
	}
}

// Only a database that cannot be used now is cks.Unavailable.
func TestLostDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	t.Run("refused", func(t *testing.T) {
		l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
		address := l.Addr().String()
		ok(t, l.Close())
		_, err := store.Open(t.Context(), "postgres://"+address+"/x?sslmode=disable")
		wantCode(t, err, cks.Unavailable)
		e, _ := errors.AsType[*cks.CodedError](err)
		if e.Message != "database is not available" {
			t.Errorf("text is %q", e.Message)
		}
		wantCode(t, store.Migrate(t.Context(), "postgres://"+address+"/x?sslmode=disable"), cks.Unavailable)
	})
	t.Run("silent", func(t *testing.T) {
		l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0")) // accepts, and never answers
		defer l.Close()                                              //nolint:errcheck // ends the test
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := store.Open(ctx, "postgres://"+l.Addr().String()+"/x?sslmode=disable")
		wantCode(t, err, cks.Unavailable)
	})
	t.Run("terminated", func(t *testing.T) {
		st := storetest.New(t)
		err := st.InTx(t.Context(), func(q *store.Queries) error {
			if _, err := q.AddZone(t.Context(), cks.Zone{Name: "z"}); err != nil {
				return err
			}
			read[bool](t, st, `SELECT bool_and(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			_, err := q.AddZone(t.Context(), cks.Zone{Name: "y"})
			return err
		})
		wantCode(t, err, cks.Unavailable)
		ok(t, st.Ping(t.Context())) // on a new connection
	})
	t.Run("locked", func(t *testing.T) {
		st := open(t, with(t, migrated(t), "lock_timeout", "50ms"))
		v := storetest.Fixture(t, st, storetest.Spec{})
		tx, err := st.Pool().Begin(t.Context())
		ok(t, err)
		defer tx.Rollback(context.Background()) //nolint:errcheck // ends the test
		_, err = tx.Exec(t.Context(), `SELECT FROM clusters FOR UPDATE`)
		ok(t, err)
		wantCode(t, st.RecordSize(t.Context(), v.Cluster, 7), cks.Unavailable)
	})
	t.Run("slow", func(t *testing.T) {
		st := open(t, with(t, migrated(t), "statement_timeout", "50ms"))
		v := storetest.Fixture(t, st, storetest.Spec{})
		tx, err := st.Pool().Begin(t.Context())
		ok(t, err)
		defer tx.Rollback(context.Background()) //nolint:errcheck // ends the test
		_, err = tx.Exec(t.Context(), `SELECT FROM clusters FOR UPDATE`)
		ok(t, err)
		wantCode(t, st.RecordSize(t.Context(), v.Cluster, 7), cks.Unavailable)
	})
	t.Run("closed", func(t *testing.T) {
		st := open(t, migrated(t))
		st.Close()
		wantCode(t, st.Ping(t.Context()), cks.Unavailable)
	})
	t.Run("cancelled", func(t *testing.T) {
		st := storetest.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := st.Ping(ctx)
		wantErr(t, err, context.Canceled)
		wantCode(t, err, cks.Internal)
	})
	t.Run("wrong statement", func(t *testing.T) {
		st := open(t, storetest.URL(t)) // not migrated
		_, err := st.Template(t.Context())
		wantCode(t, err, cks.Internal)
	})
}

// migrated is the URL of a database of t's own that is migrated.
func migrated(t *testing.T) string {
	t.Helper()
	url := storetest.URL(t)
	ok(t, store.Migrate(t.Context(), url))
	return url
}

// No statement and no forgotten transaction holds a row for ever, unless the
// URL says so; and when all connections are taken, a caller waits as long as it
// wants, but not for ever.
//
// Keeps: A54.
func TestConnectionsHaveLimits(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	st := open(t, url)
	for setting, want := range map[string]string{"statement_timeout": "15s", "lock_timeout": "5s",
		"idle_in_transaction_session_timeout": "15s", "TimeZone": "UTC", "application_name": "ckscale"} {
		if got := read[string](t, st, `SELECT current_setting($1)`, setting); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
	if n := st.Stat().MaxConns(); n != 16 {
		t.Errorf("the pool has %d connections", n)
	}
	st = open(t, with(t, with(t, url, "statement_timeout", "7s"), "pool_max_conns", "1"))
	if got := read[string](t, st, `SELECT current_setting('statement_timeout')`); got != "7s" {
		t.Errorf("statement_timeout is %s", got)
	}
	ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		wantErr(t, st.Ping(ctx), context.DeadlineExceeded)
		st.SetPatience(50 * time.Millisecond)
		for what, ask := range map[string]func() error{
			"Ping": func() error { return st.Ping(t.Context()) },
			"one":  func() error { return second(st.Now(t.Context())) },
			"exec": func() error { return st.DropDoomed(t.Context(), "00000000-0000-4000-8000-000000000000") },
			"InTx": func() error { return st.InTx(t.Context(), func(*store.Queries) error { return nil }) },
		} {
			if err := ask(); cks.CodeOf(err) != cks.Unavailable {
				t.Errorf("%s without a free connection: %v", what, err)
			}
		}
		return nil
	}))
}

// A transaction pooler needs statements that are not prepared; the URL says so.
func TestWorksWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe", "describe_exec"} {
		t.Run(mode, func(t *testing.T) {
			st := open(t, with(t, migrated(t), "default_query_exec_mode", mode))
			v, j := scaling(t, st, storetest.Spec{Etcd: 1, Workers: 2})
			vms := choose(t, st, v, j, 2)
			ok(t, st.NodeJoined(t.Context(), j, vms[0].ID, true))
			ok(t, st.ChooseLeaving(t.Context(), j, []string{workers(v)[0].ID}))
			ok(t, st.ObserveVM(t.Context(), vms[0].ID, cks.Machine{State: cks.VMRunning, IPAddress: "10.0.0.1"}, time.Now()))
			ok(t, st.RecordAutoscaling(t.Context(), j, cks.Autoscaling{Enabled: true, Min: 1, Max: 2}))
			kept := must[map[string]bool](t)(st.KeepLeases(t.Context(), "tester", []cks.Job{j}, time.Hour))
			diff(t, map[string]bool{j.ID: true}, kept)
			ok(t, st.StepDone(t.Context(), j, "x", cks.Notes{Wanted: 1}))
			ok(t, st.ChangeDocument(t.Context(), "k", put(`{"n":1}`, time.Now())))
			ok(t, st.FreeCluster(t.Context(), j, cks.OperationSucceeded))
			ok(t, st.PutBack(t.Context(), j, time.Hour, true))
			must[cks.Job](t)(st.AddFailedJob(t.Context(), newJob(v), "x"))
			list, total, err := st.Views(t.Context(), cks.ClusterFilter{Keyword: "te", State: "Running"}, v.Account.ID)
			ok(t, err)
			if total != 1 || list[0].Cluster.Size != 3 {
				t.Errorf("list is %+v of %d", list, total)
			}
			_, total, err = st.VMViews(t.Context(), cks.VMFilter{IDs: []string{vms[0].ID}}, "")
			ok(t, err)
			if total != 1 {
				t.Errorf("%d VMs", total)
			}
		})
	}
}
