package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// Public reports about jobs and migrations (reports.md A.6).

// A job whose lease ran out and that ends at the same moment is not taken over,
// and one that has just been taken over is not ended by who had it before: the
// look and the write are one statement, whoever comes first.
//
// Keeps: A51.
func TestTakeoverAndEndExcludeEachOther(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	lapsed := func() cks.Job {
		j := claim(t, st, must[cks.Job](t)(st.AddJob(t.Context(), newJob(v))).ID)
		sql(t, st, `UPDATE jobs SET due = now() - interval '1 second' WHERE id = $1`, j.ID)
		return j
	}
	none := func(when string) {
		t.Helper()
		if jobs := must[[]cks.Job](t)(st.ClaimJobs(t.Context(), "rescuer", 9, time.Hour)); len(jobs) > 0 {
			t.Errorf("%s, it is taken over", when)
		}
	}

	ending := lapsed()
	ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
		err := q.FinishJob(t.Context(), ending, cks.JobResult{Success: true})
		none("while the job ends")
		return err
	}))
	none("when the job has ended")
	if j := must[cks.Job](t)(st.Job(t.Context(), ending.ID)); j.Status != cks.JobSucceeded || j.Server != "" || j.Attempt != ending.Attempt {
		t.Errorf("the ended job is %+v", j)
	}

	old := lapsed()
	late := make(chan error, 1)
	ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
		jobs, err := q.ClaimJobs(t.Context(), "rescuer", 9, time.Hour)
		if err == nil && len(jobs) != 1 {
			err = fmt.Errorf("took over %d jobs", len(jobs))
		}
		go func() { late <- st.FinishJob(t.Context(), old, cks.JobResult{Success: true}) }()
		waitBlocked(t, st, 1)
		return err
	}))
	wantErr(t, <-late, store.ErrLeaseLost)
	if j := must[cks.Job](t)(st.Job(t.Context(), old.ID)); j.Status != cks.JobPending || j.Server != "rescuer" || j.Attempt != old.Attempt+1 {
		t.Errorf("the job that was taken over is %+v", j)
	}
}

// Four servers start at once on an empty database, twenty times over: all of
// them come up.
//
// Keeps: A55.
func TestServersStartOnEmptyDatabases(t *testing.T) {
	t.Parallel()
	for range 20 {
		url := storetest.URL(t)
		for _, err := range together(4, func(int) error {
			if err := store.Migrate(t.Context(), url); err != nil {
				return err
			}
			st, err := store.Open(t.Context(), url)
			if err != nil {
				return err
			}
			defer st.Close()
			return second(st.Empty(t.Context()))
		}) {
			ok(t, err)
		}
		wantSchema(t, open(t, url), store.LatestVersion(), false)
	}
}

// A migration is pending while a server of the release before still runs. Of
// the four new ones that start at once one carries it out; the old one works
// before and after.
//
// Keeps: A55.
func TestPendingMigrationIsAppliedOnce(t *testing.T) {
	t.Parallel()
	url := migrated(t)
	st := open(t, url)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	ok(t, store.ForceVersion(t.Context(), url, store.LatestVersion()-1))
	sql(t, st, `CREATE TABLE steps (version bigint, dirty boolean);
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO steps VALUES (NEW.*); RETURN NULL; END $$;
		CREATE TRIGGER note AFTER INSERT ON schema_migrations FOR EACH ROW EXECUTE FUNCTION note()`)
	for _, err := range together(4, func(int) error { return store.Migrate(t.Context(), url) }) {
		ok(t, err)
	}
	wantSchema(t, st, store.LatestVersion(), false)
	want := fmt.Sprintf("%d true, %[1]d false", store.LatestVersion()) // begun and ended
	if got := read[string](t, st, `SELECT string_agg(version || ' ' || dirty, ', ') FROM steps`); got != want {
		t.Errorf("carried out: %s; want %s", got, want)
	}
	diff(t, v, must[cks.ClusterView](t)(st.View(t.Context(), v.Cluster.ID)))
}

// A migration that fails in the middle leaves none of its tables, says why, and
// says what to do; done, it goes through.
//
// Keeps: A55.
func TestFailedMigrationLeavesNothing(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	st := open(t, url)
	sql(t, st, `CREATE TABLE zones (id text)`) // somebody else's
	err := store.Migrate(t.Context(), url)
	if err == nil || !strings.Contains(err.Error(), "zones") {
		t.Errorf("error is %v", err)
	}
	if left := read[string](t, st, `SELECT coalesce(string_agg(relname, ', '), '') FROM pg_stat_user_tables
		WHERE relname NOT IN ('zones', 'schema_migrations')`); left != "" {
		t.Errorf("left behind: %s", left)
	}
	wantSchema(t, st, 1, true)
	if err := store.Migrate(t.Context(), url); err == nil || !strings.Contains(err.Error(), "force version 0 and migrate") {
		t.Errorf("the next start says %v", err)
	}
	sql(t, st, `DROP TABLE zones`)
	ok(t, store.ForceVersion(t.Context(), url, 0))
	ok(t, store.Migrate(t.Context(), url))
	wantSchema(t, st, store.LatestVersion(), false)
}
