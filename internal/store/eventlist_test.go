package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// history is a store with six events, named by their descriptions, a second
// apart: the newest of 12:00:05.
func history(t *testing.T) *store.Store {
	t.Helper()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{})
	admin := must[cks.Account](t)(st.EnsureAdmin(t.Context(), "admin-key", "admin-secret"))
	sql(t, st, `DELETE FROM events`)
	sql(t, st, `
		INSERT INTO events (id, type, level, state, description, caller_id, account_id, start_id, resource_type, resource_id, resource_name, created)
		SELECT (i || '0000000-0000-4000-8000-00000000000a')::uuid, type, level, state, 'event ' || i, $2, CASE WHEN i = 5 THEN $2::uuid ELSE $1 END,
			CASE WHEN i IN (1, 2) THEN '00000000-0000-4000-8000-00000000000a'::uuid END,
			CASE WHEN i < 4 THEN 'KubernetesCluster' END, CASE WHEN i < 4 THEN $3::uuid END, CASE WHEN i < 4 THEN 'test' END,
			timestamptz '2026-11-07 12:00:00.25Z' + i * interval '1 second'
		FROM (VALUES (0, 'KUBERNETES.CLUSTER.SCALE', 'INFO', 'Scheduled'), (1, 'KUBERNETES.CLUSTER.SCALE', 'INFO', 'Started'),
			(2, 'KUBERNETES.CLUSTER.SCALE', 'ERROR', 'Completed'), (3, 'KUBERNETES.CLUSTER.STATE', 'WARN', 'Completed'),
			(4, 'VM.STOP', 'INFO', 'Completed'), (5, 'VM.START', 'INFO', 'Completed')) e (i, type, level, state)`,
		v.Account.ID, admin.ID, v.Cluster.ID)
	return st
}

// Events are listed from the newest on, by whatever filter, and counted over
// all pages.
//
// Keeps: §1.10/events-list.
func TestEventsAreFiltered(t *testing.T) {
	t.Parallel()
	st := history(t)
	at := func(text string) time.Time {
		return must[time.Time](t)(time.Parse(time.RFC3339Nano, "2026-11-07T"+text+"Z"))
	}
	cluster := read[string](t, st, `SELECT id::text FROM clusters`)
	alice := must[cks.Account](t)(st.AccountByName(t.Context(), storetest.AccountName)).ID
	for name, tt := range map[string]struct {
		f       cks.EventFilter
		account string
		want    string
		total   int
	}{
		"all":                   {want: "543210", total: 6},
		"of an account":         {account: alice, want: "43210", total: 5},
		"of an account by name": {f: cks.EventFilter{Account: "admin"}, want: "5", total: 1},
		"by id":                 {f: cks.EventFilter{ID: "30000000-0000-4000-8000-00000000000A"}, want: "3", total: 1},
		"by parent":             {f: cks.EventFilter{StartID: "00000000-0000-4000-8000-00000000000a"}, want: "210", total: 3},
		"by type":               {f: cks.EventFilter{Type: "kubernetes.cluster.scale"}, want: "210", total: 3},
		"by part of a type":     {f: cks.EventFilter{Type: "KUBERNETES"}},
		"by level":              {f: cks.EventFilter{Level: "error"}, want: "2", total: 1},
		"by description":        {f: cks.EventFilter{Keyword: "EVENT 4"}, want: "4", total: 1},
		"by keyword of a type":  {f: cks.EventFilter{Keyword: "vm."}, want: "54", total: 2},
		"by keyword of a level": {f: cks.EventFilter{Keyword: "warn"}, want: "3", total: 1},
		"since":                 {f: cks.EventFilter{Since: at("12:00:04")}, want: "54", total: 2},
		"until, as it is shown": {f: cks.EventFilter{Until: at("12:00:01")}, want: "10", total: 2},
		"between":               {f: cks.EventFilter{Since: at("12:00:02"), Until: at("12:00:03")}, want: "32", total: 2},
		"by resource":           {f: cks.EventFilter{ResourceID: strings.ToUpper(cluster), ResourceType: "kubernetescluster"}, want: "3210", total: 4},
		"by another resource":   {f: cks.EventFilter{ResourceID: "nonsense"}},
		"by type of resource":   {f: cks.EventFilter{ResourceType: "VirtualMachine"}},
		"filters combine":       {f: cks.EventFilter{Type: "KUBERNETES.CLUSTER.SCALE", Level: "INFO"}, want: "10", total: 2},
		"first page":            {f: cks.EventFilter{Page: cks.Page{Number: 1, Size: 4}}, want: "5432", total: 6},
		"second page":           {f: cks.EventFilter{Page: cks.Page{Number: 2, Size: 4}}, want: "10", total: 6},
		"page past the end":     {f: cks.EventFilter{Page: cks.Page{Number: 3, Size: 4}}, total: 6},
	} {
		list, total, err := st.Events(t.Context(), tt.f, tt.account)
		ok(t, err)
		got := ""
		for _, e := range list {
			got += strings.TrimPrefix(e.Description, "event ")
		}
		if got != tt.want || total != tt.total {
			t.Errorf("%s: %q of %d, want %q of %d", name, got, total, tt.want, tt.total)
		}
	}
}

// An event shows who did it and whose it is, and comes back as it was written.
func TestEventIsShownWhole(t *testing.T) {
	t.Parallel()
	st := history(t)
	e := must[cks.AuditEvent](t)(st.EventByRef(t.Context(), "20000000-0000-4000-8000-00000000000a"))
	again := must[cks.AuditEvent](t)(st.EventByRef(t.Context(), read[string](t, st, `SELECT seq::text FROM events WHERE description = 'event 2'`)))
	diff(t, e, again)
	diff(t, cks.AuditEvent{
		ID: "20000000-0000-4000-8000-00000000000a", Seq: e.Seq, Type: cks.EventClusterScale, Level: cks.LevelError, State: cks.Completed,
		Description: "event 2", Username: "admin", Account: must[cks.Account](t)(st.AccountByName(t.Context(), storetest.AccountName)),
		ParentID: "00000000-0000-4000-8000-00000000000a", ResourceType: "KubernetesCluster",
		ResourceID: read[string](t, st, `SELECT id::text FROM clusters`), ResourceName: "test", Created: e.Created,
	}, e)
	if !e.Created.Equal(time.Date(2026, 11, 7, 12, 0, 2, 25e7, time.UTC)) {
		t.Errorf("created %s", e.Created)
	}
	_, err := st.EventByRef(t.Context(), "90000000-0000-4000-8000-00000000000a")
	wantCode(t, err, cks.NotFound)
}

// Old events are deleted a few at a time, the oldest first, and no young one;
// what another server is deleting is left to it.
//
// Keeps: §1.10/events-purge.
func TestOldEventsArePurged(t *testing.T) {
	t.Parallel()
	st := history(t)
	sql(t, st, `UPDATE events SET created = now() - interval '1 hour' + seq * interval '1 second' WHERE description < 'event 4'`)
	sql(t, st, `UPDATE events SET created = now() WHERE description >= 'event 4'`)
	left := func() string {
		return read[string](t, st, `SELECT string_agg(right(description, 1), '' ORDER BY seq) FROM events`)
	}
	tx, err := st.Pool().Begin(t.Context())
	ok(t, err)
	defer tx.Rollback(context.Background()) //nolint:errcheck // it is over by then, unless the test fails
	_, err = tx.Exec(t.Context(), `SELECT FROM events WHERE description = 'event 0' FOR UPDATE`)
	ok(t, err)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second) // it waits for nobody
	defer stop()
	for _, step := range []struct {
		n    int64
		left string
	}{{2, "0345"}, {1, "045"}, {0, "045"}} {
		if n := must[int64](t)(st.PurgeEvents(ctx, time.Minute, 2)); n != step.n || left() != step.left {
			t.Errorf("%d were deleted, left is %s; want %d, %s", n, left(), step.n, step.left)
		}
	}
	ok(t, tx.Rollback(t.Context()))
	if n := must[int64](t)(st.PurgeEvents(t.Context(), time.Minute, 2)); n != 1 || left() != "45" {
		t.Errorf("%d were deleted, left is %s", n, left())
	}
}

// What is listed of many events costs what it shows: the lists that clients and
// the purge ask for go through no table.
func TestEventListsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	st := history(t)
	v := read[string](t, st, `SELECT id::text FROM clusters`)
	sql(t, st, `INSERT INTO events (type, level, state, description, account_id, resource_type, resource_id, created)
		SELECT 'X', 'INFO', 'Completed', 'x', account_id, 'KubernetesCluster', gen_random_uuid(), now() FROM events, generate_series(1, 5000) WHERE description = 'event 0'`)
	sql(t, st, `ANALYZE events`)
	for what, ask := range map[string]func(*store.Queries) error{
		"by resource": func(q *store.Queries) error {
			_, _, err := q.Events(t.Context(), cks.EventFilter{ResourceID: v}, "")
			return err
		},
		"by parent": func(q *store.Queries) error {
			_, _, err := q.Events(t.Context(), cks.EventFilter{StartID: "00000000-0000-4000-8000-00000000000a"}, "")
			return err
		},
		"since": func(q *store.Queries) error {
			_, _, err := q.Events(t.Context(), cks.EventFilter{Since: time.Now().Add(time.Hour)}, "")
			return err
		},
		"by id": func(q *store.Queries) error {
			return second(q.EventByRef(t.Context(), "20000000-0000-4000-8000-00000000000a"))
		},
		"purge": func(q *store.Queries) error { return second(q.PurgeEvents(t.Context(), 1e5*time.Hour, 100)) },
	} {
		ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
			before := must[int64](t)(q.RowsPassed(t.Context(), "events"))
			err := ask(q)
			if n := must[int64](t)(q.RowsPassed(t.Context(), "events")) - before; n > 0 {
				t.Errorf("%s passed %d rows", what, n)
			}
			return err
		}))
	}
}
