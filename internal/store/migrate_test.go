package store_test

import (
	"context"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

func open(t *testing.T, url string) *store.Store {
	t.Helper()
	st := must[*store.Store](t)(store.Open(t.Context(), url))
	t.Cleanup(st.Close)
	return st
}

func wantSchema(t *testing.T, st *store.Store, version int, dirty bool) {
	t.Helper()
	v, d, err := st.SchemaVersion(t.Context())
	ok(t, err)
	if v != version || d != dirty {
		t.Errorf("schema is %d, dirty %t; want %d, %t", v, d, version, dirty)
	}
}

// Several servers that start on an empty database migrate it once.
//
// Keeps: A55.
func TestServersMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	st := open(t, url)
	wantSchema(t, st, 0, false)
	for _, err := range together(4, func(int) error { return store.Migrate(t.Context(), url) }) {
		ok(t, err)
	}
	wantSchema(t, st, store.LatestVersion(), false)
	if empty := must[bool](t)(st.Empty(t.Context())); !empty {
		t.Error("the database is not empty")
	}
	ok(t, store.Migrate(t.Context(), url))
	storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	if empty := must[bool](t)(st.Empty(t.Context())); empty {
		t.Error("the database is empty")
	}
}

// A migration that was cut off can be run again, whatever it had done.
//
// Keeps: A55.
func TestMigrationCutOffCanBeRunAgain(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	ok(t, store.Migrate(t.Context(), url+""))
	st := open(t, url)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	sql(t, st, `UPDATE schema_migrations SET version = 1, dirty = true`)
	wantSchema(t, st, 1, true)
	if err := store.Migrate(t.Context(), url); err == nil {
		t.Fatal("a dirty database was migrated")
	}
	ok(t, store.ForceVersion(t.Context(), url, 0))
	wantSchema(t, st, 0, false)
	ok(t, store.Migrate(t.Context(), url))
	wantSchema(t, st, store.LatestVersion(), false)
	diff(t, v, must[cks.ClusterView](t)(st.View(t.Context(), v.Cluster.ID)))
}

// An older server leaves a newer schema alone.
func TestNewerSchemaIsLeftAlone(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	ok(t, store.Migrate(t.Context(), url))
	st := open(t, url)
	sql(t, st, `UPDATE schema_migrations SET version = 9999`)
	ok(t, store.Migrate(t.Context(), url))
	wantSchema(t, st, 9999, false)
}

func TestMigrateEndsWithItsContext(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	ok(t, store.Migrate(t.Context(), url))
	st := open(t, url)
	sql(t, st, `UPDATE schema_migrations SET version = 1`)
	tx, err := st.Pool().Begin(t.Context())
	ok(t, err)
	defer tx.Rollback(context.Background()) //nolint:errcheck // ends the test
	_, err = tx.Exec(t.Context(), `LOCK TABLE schema_migrations`)
	ok(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	wantErr(t, store.Migrate(ctx, url), context.DeadlineExceeded)
}

// Settings of the pool in the URL are none of the server's.
func TestMigrateTakesPoolSettings(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	ok(t, store.Migrate(t.Context(), with(t, url, "pool_max_conns", "3")))
	st := open(t, with(t, url, "pool_max_conns", "3"))
	if n := st.Stat().MaxConns(); n != 3 {
		t.Errorf("the pool has %d connections", n)
	}
}
