package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// A claim takes the due jobs and those whose lease ran out, and no others.
//
// Keeps: A51.
func TestClaimTakesWhatIsDue(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	add := func(set string) string {
		id := must[cks.Job](t)(st.AddJob(t.Context(), loose(v))).ID
		sql(t, st, `UPDATE jobs SET `+set+` WHERE id = $1`, id)
		return id
	}
	due := add(`due = now() - interval '1 second'`)
	lapsed := add(`due = now() - interval '2 seconds', owner = 'dead', attempt = 6, tries = 2, step = 'x'`)
	late := add(`due = now() - interval '3 seconds', deadline = now() - interval '1 hour'`)
	add(`due = now() + interval '1 hour'`)
	add(`due = now() + interval '1 hour', owner = 'alive', attempt = 1`)
	add(`due = now() - interval '1 hour', status = 2, completed = now(), error_text = ''`)

	first := must[[]cks.Job](t)(st.ClaimJobs(t.Context(), "me", 1, time.Hour))
	if len(first) != 1 || first[0].ID != late || first[0].Remaining > -59*time.Minute {
		t.Fatalf("claimed %+v, want the one that waited longest, expired", first)
	}
	jobs := must[[]cks.Job](t)(st.ClaimJobs(t.Context(), "me", 10, time.Hour))
	if len(jobs) != 2 || jobs[0].ID != due || jobs[1].ID != lapsed {
		t.Fatalf("claimed %+v, want the due and the lapsed one", jobs)
	}
	if j := jobs[0]; j.Attempt != 1 || j.Server != "me" || j.Account != v.Account {
		t.Errorf("the due job is %+v", j)
	}
	if j := jobs[1]; j.Attempt != 7 || j.Server != "me" || j.Tries != 2 || j.Step != "x" {
		t.Errorf("the lapsed job is %+v", j)
	}
	if jobs = must[[]cks.Job](t)(st.ClaimJobs(t.Context(), "me", 10, time.Hour)); len(jobs) != 0 {
		t.Errorf("claimed %+v again", jobs)
	}
}

// Owners that claim at the same time get different jobs.
//
// Keeps: A51.
func TestClaimersShareWithoutOverlap(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	const n = 120
	for range n {
		must[cks.Job](t)(st.AddJob(t.Context(), loose(v)))
	}
	owners := []string{"a", "b", "c", "d"}
	claims := make([][]string, len(owners))
	for _, err := range together(len(owners), func(i int) error {
		for {
			jobs, err := st.ClaimJobs(t.Context(), owners[i], 7, time.Hour)
			if err != nil || len(jobs) == 0 {
				return err
			}
			if len(jobs) > 7 {
				return errors.New("more jobs than asked for")
			}
			for _, j := range jobs {
				claims[i] = append(claims[i], j.ID)
			}
		}
	}) {
		ok(t, err)
	}
	all := slices.Sorted(slices.Values(slices.Concat(claims...)))
	if len(all) != n || len(slices.Compact(all)) != n {
		t.Errorf("%d claims of %d jobs", len(all), n)
	}
}

// A row that somebody has locked keeps no claimer and no scanner waiting.
func TestLockedRowsAreSkipped(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	free := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	locked := must[cks.Job](t)(st.AddJob(t.Context(), newJob(v)))
	other := must[cks.Job](t)(st.AddJob(t.Context(), newJob(free)))
	tx, err := st.Pool().Begin(t.Context())
	ok(t, err)
	defer tx.Rollback(context.Background()) //nolint:errcheck // ends the test
	_, err = tx.Exec(t.Context(), `SELECT FROM jobs WHERE id = $1 FOR UPDATE`, locked.ID)
	ok(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM clusters WHERE id = $1 FOR UPDATE`, v.Cluster.ID)
	ok(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	jobs := must[[]cks.Job](t)(st.ClaimJobs(ctx, "me", 10, time.Hour))
	if len(jobs) != 1 || jobs[0].ID != other.ID {
		t.Errorf("claimed %d jobs", len(jobs))
	}
	if ids := must[[]string](t)(st.ClustersToScan(ctx, 10, time.Hour)); !slices.Equal(ids, []string{free.Cluster.ID}) {
		t.Errorf("%d clusters to scan", len(ids))
	}
}

// Nothing is written for a job by who does not execute it any more: each way to
// write, against each way to lose the lease.
//
// Keeps: A51.
func TestLateWritesAreFenced(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	ctx := t.Context()
	writes := map[string]func(j cks.Job) error{
		"StepDone":  func(j cks.Job) error { return st.StepDone(ctx, j, "late", cks.Notes{Wanted: 9}) },
		"AtStep":    func(j cks.Job) error { return st.AtStep(ctx, j, "late", cks.Notes{Wanted: 9}) },
		"PutBack":   func(j cks.Job) error { return st.PutBack(ctx, j, time.Minute, true) },
		"GiveUp":    func(j cks.Job) error { return st.GiveUp(ctx, j, "drain", "late", true) },
		"FinishJob": func(j cks.Job) error { return st.FinishJob(ctx, j, cks.JobResult{Success: true}) },
		"FailJob":   func(j cks.Job) error { return st.FailJob(ctx, j, "late") },
		"KeepLeases": func(j cks.Job) error {
			kept, err := st.KeepLeases(ctx, "tester", []cks.Job{j}, 24*time.Hour)
			if err == nil && !kept[j.ID] {
				err = store.ErrLeaseLost
			}
			return err
		},
	}
	losses := map[string]func(j cks.Job) error{
		"claimed by another": func(j cks.Job) error {
			sql(t, st, `UPDATE jobs SET due = now() - interval '1 day' WHERE id = $1`, j.ID)
			_, err := st.ClaimJobs(ctx, "another", 1, time.Hour)
			return err
		},
		"claimed again": func(j cks.Job) error { claim(t, st, j.ID); return nil },
		"put back":      func(j cks.Job) error { return st.PutBack(ctx, j, time.Hour, false) },
		"finished":      func(j cks.Job) error { return st.FinishJob(ctx, j, cks.JobResult{Success: true}) },
		"failed":        func(j cks.Job) error { return st.FailJob(ctx, j, "over") },
	}
	for how, lose := range losses {
		for what, write := range writes {
			j := claim(t, st, must[cks.Job](t)(st.AddJob(ctx, loose(v))).ID)
			ok(t, lose(j))
			row := `SELECT to_jsonb(jobs)::text FROM jobs WHERE id = $1`
			before := read[string](t, st, row, j.ID)
			if err := write(j); !errors.Is(err, store.ErrLeaseLost) {
				t.Errorf("%s after it was %s: %v, want ErrLeaseLost", what, how, err)
			}
			if after := read[string](t, st, row, j.ID); after != before {
				t.Errorf("%s after it was %s changed the job from %s to %s", what, how, before, after)
			}
			sql(t, st, `UPDATE jobs SET due = now() + interval '1 year' WHERE id = $1`, j.ID) // out of the way
		}
	}
}

func TestLeasesAreKeptByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	mine := claim(t, st, must[cks.Job](t)(st.AddJob(t.Context(), loose(v))).ID)
	taken := claim(t, st, must[cks.Job](t)(st.AddJob(t.Context(), loose(v))).ID)
	other := claim(t, st, must[cks.Job](t)(st.AddJob(t.Context(), loose(v))).ID)
	sql(t, st, `UPDATE jobs SET owner = 'other' WHERE id = $1`, other.ID)
	taken.Attempt--

	kept := must[map[string]bool](t)(st.KeepLeases(t.Context(), "tester", []cks.Job{mine, taken, other}, 48*time.Hour))
	diff(t, map[string]bool{mine.ID: true}, kept)
	for id, want := range map[string]bool{mine.ID: true, taken.ID: false, other.ID: false} {
		if got := read[bool](t, st, `SELECT due > now() + interval '47 hours' FROM jobs WHERE id = $1`, id); got != want {
			t.Errorf("lease longer: %t, want %t", got, want)
		}
	}
	if kept = must[map[string]bool](t)(st.KeepLeases(t.Context(), "tester", nil, time.Hour)); len(kept) != 0 {
		t.Errorf("kept %v of nothing", kept)
	}
}

func TestCourseOfAJob(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	id := must[cks.Job](t)(st.AddJob(ctx, newJob(v))).ID
	var j cks.Job
	check := func(what string, want cks.Job) {
		t.Helper()
		got := must[cks.Job](t)(st.Job(ctx, id))
		if got.Step != want.Step || got.Tries != want.Tries || got.Server != want.Server || got.Failure != want.Failure ||
			got.Unchanged != want.Unchanged || got.Attempt != want.Attempt || got.Notes.Wanted != want.Notes.Wanted {
			t.Errorf("%s: %+v", what, got)
		}
	}
	j = claim(t, st, id)
	ok(t, st.PutBack(ctx, j, time.Hour, true))
	check("put back", cks.Job{Tries: 1, Attempt: 1})
	j = claim(t, st, id)
	ok(t, st.PutBack(ctx, j, time.Hour, true))
	j = claim(t, st, id)
	ok(t, st.PutBack(ctx, j, time.Hour, false))
	check("put back twice more", cks.Job{Tries: 2, Attempt: 3})
	j = claim(t, st, id)
	ok(t, st.StepDone(ctx, j, "one", cks.Notes{Wanted: 4}))
	check("a step", cks.Job{Step: "one", Server: "tester", Attempt: 4, Notes: cks.Notes{Wanted: 4}})
	ok(t, st.PutBack(ctx, j, time.Hour, true))
	j = claim(t, st, id)
	ok(t, st.GiveUp(ctx, j, "drain", "why", true))
	check("given up", cks.Job{Server: "tester", Failure: "why", Unchanged: true, Attempt: 5, Notes: cks.Notes{Wanted: 4}})
	ok(t, st.FinishJob(ctx, j, cks.JobResult{Success: true}))
	got := must[cks.Job](t)(st.Job(ctx, id))
	if got.Status != cks.JobSucceeded || got.Server != "" || got.Completed.Before(got.Created) || !got.Result.Success {
		t.Errorf("finished: %+v", got)
	}
}

func TestNextDue(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	next := func() (time.Duration, bool) {
		t.Helper()
		d, some, err := st.NextDue(t.Context())
		ok(t, err)
		return d, some
	}
	must[cks.Job](t)(st.AddFailedJob(t.Context(), newJob(v), "x"))
	if _, some := next(); some {
		t.Error("a finished job is due")
	}
	j := must[cks.Job](t)(st.AddJob(t.Context(), newJob(v)))
	if d, some := next(); !some || d != 0 {
		t.Errorf("due in %s, %t", d, some)
	}
	ok(t, st.PutBack(t.Context(), claim(t, st, j.ID), time.Minute, false))
	if d, some := next(); !some || d > time.Minute || d < 50*time.Second {
		t.Errorf("due in %s, %t", d, some)
	}
}

// What a scan and a look at a job ask costs the same however many clusters and
// jobs there are: no table is gone through.
func TestScanDoesNotGoThroughTables(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 2})
	j := must[cks.Job](t)(st.AddJob(t.Context(), newJob(v)))
	sql(t, st, `INSERT INTO clusters (name, account_id, zone_id, control_nodes, size, state)
		SELECT 'c' || i, $1, $2, 1, 2, 'Running' FROM generate_series(1, 4000) i`, v.Account.ID, v.Zone.ID)
	sql(t, st, `INSERT INTO vms (cluster_id, name, role, offering_id, state, phase)
		SELECT id, name || '-' || i, 'worker', $1, 'Running', 'member' FROM clusters, generate_series(1, 2) i`, v.Cluster.DefaultOffering)
	sql(t, st, `INSERT INTO jobs (command, kind, account_id, cluster_id, deadline, due)
		SELECT 'x', 'scale-up', $1, id, now(), now() + interval '1 hour' FROM clusters WHERE id <> $2`, v.Account.ID, v.Cluster.ID)
	sql(t, st, `ANALYZE clusters, vms, jobs`)
	for what, ask := range map[string]func(*store.Queries) error{
		"WakeCluster":    func(q *store.Queries) error { return second(q.WakeCluster(t.Context(), v.Cluster.ID)) },
		"View":           func(q *store.Queries) error { return second(q.View(t.Context(), v.Cluster.ID)) },
		"VMs":            func(q *store.Queries) error { return second(q.VMs(t.Context(), v.Cluster.ID)) },
		"VMByRef":        func(q *store.Queries) error { return second(q.VMByRef(t.Context(), v.VMs[0].ID)) },
		"JobVMs":         func(q *store.Queries) error { return second(q.JobVMs(t.Context(), j.ID)) },
		"Job":            func(q *store.Queries) error { return second(q.Job(t.Context(), j.ID)) },
		"ClaimJobs":      func(q *store.Queries) error { return second(q.ClaimJobs(t.Context(), "me", 1, time.Minute)) },
		"ClustersToScan": func(q *store.Queries) error { return second(q.ClustersToScan(t.Context(), 1, time.Minute)) },
		"NextDue":        func(q *store.Queries) error { _, _, err := q.NextDue(t.Context()); return err },
	} {
		ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
			before := must[int64](t)(q.RowsPassed(t.Context()))
			err := ask(q)
			if n := must[int64](t)(q.RowsPassed(t.Context())) - before; n > 0 {
				t.Errorf("%s passed %d rows", what, n)
			}
			return err
		}))
	}
}

// An event wakes the job that waits for it, and one that is just looking looks
// again; one that has failed and backs off, or that is nobody's business, stays.
func TestWakeCluster(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	dueNow := func(id string) bool {
		return read[bool](t, st, `SELECT owner IS NULL AND due <= now() FROM jobs WHERE id = $1`, id)
	}
	waiting := func(failed bool, n func(cks.ClusterView) store.NewJob) (cks.ClusterView, string) {
		v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
		id := must[cks.Job](t)(st.AddJob(ctx, n(v))).ID
		ok(t, st.PutBack(ctx, claim(t, st, id), time.Hour, failed))
		return v, id
	}
	v, id := waiting(false, newJob)
	other, otherID := waiting(false, vmJob)
	backing, backingID := waiting(true, newJob)

	topic := st.Subscribe(ctx, store.TopicJobs)
	if !must[bool](t)(st.WakeCluster(ctx, v.Cluster.ID)) || !dueNow(id) || dueNow(otherID) {
		t.Error("the job is not due, or another one is")
	}
	eventually(t, topic, "")
	if must[bool](t)(st.WakeCluster(ctx, v.Cluster.ID)) {
		t.Error("a job that is due already was woken")
	}
	if !must[bool](t)(st.WakeCluster(ctx, other.Cluster.ID)) || !dueNow(otherID) {
		t.Error("the job of a VM is not due")
	}
	if must[bool](t)(st.WakeCluster(ctx, backing.Cluster.ID)) || dueNow(backingID) {
		t.Error("a job that backs off was woken")
	}

	j := claim(t, st, id)
	ok(t, second(st.WakeCluster(ctx, v.Cluster.ID)))
	if read[bool](t, st, `SELECT due <= now() FROM jobs WHERE id = $1`, id) {
		t.Error("a job that is being executed can be claimed")
	}
	if must[bool](t)(st.WakeCluster(ctx, v.Cluster.ID)) {
		t.Error("a job that will look again was woken once more")
	}
	ok(t, st.PutBack(ctx, j, time.Hour, false))
	if !dueNow(id) {
		t.Error("what happened while the job looked is lost")
	}
	j = claim(t, st, id)
	ok(t, st.PutBack(ctx, j, time.Hour, false))
	if dueNow(id) {
		t.Error("an old event wakes the job again")
	}
	j = claim(t, st, id)
	ok(t, second(st.WakeCluster(ctx, v.Cluster.ID)))
	ok(t, st.PutBack(ctx, j, time.Hour, true))
	if dueNow(id) {
		t.Error("an event cut a failed step's wait short")
	}
	j = claim(t, st, id)
	ok(t, st.PutBack(ctx, j, time.Hour, false)) // the next try got as far as waiting
	if !must[bool](t)(st.WakeCluster(ctx, v.Cluster.ID)) || !dueNow(id) {
		t.Error("a wait after a failed try was not woken")
	}
	j = claim(t, st, id)
	ok(t, second(st.WakeCluster(ctx, v.Cluster.ID)))
	ok(t, st.PutBack(ctx, j, time.Hour, false))
	if !dueNow(id) {
		t.Error("what happened while the job looked after a failed try is lost")
	}
	j = claim(t, st, id)
	sql(t, st, `UPDATE jobs SET due = now() - interval '1 second' WHERE id = $1`, id) // the lease runs out
	ok(t, second(st.WakeCluster(ctx, v.Cluster.ID)))
	ok(t, st.PutBack(ctx, j, time.Hour, false))
	if !dueNow(id) {
		t.Error("what happened after the lease ran out is lost")
	}
	j = claim(t, st, id)
	ok(t, st.StepDone(ctx, j, "x", cks.Notes{}))
	ok(t, st.FailJob(ctx, j, "over"))
	if must[bool](t)(st.WakeCluster(ctx, v.Cluster.ID)) {
		t.Error("a finished job was woken")
	}
	must[cks.Job](t)(st.AddJob(ctx, newJob(v)))
	if must[bool](t)(st.WakeCluster(ctx, v.Cluster.ID)) {
		t.Error("a job that nobody has claimed yet was woken")
	}
}

// A job that ends while it is woken stays as it ended.
//
// Keeps: A51.
func TestWakeIsTooLateForAJobThatEnds(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	j := claim(t, st, must[cks.Job](t)(st.AddJob(t.Context(), newJob(v))).ID)
	type answer struct {
		woken bool
		err   error
	}
	late := make(chan answer, 1)
	ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
		if err := q.FailJob(t.Context(), j, "over"); err != nil {
			return err
		}
		go func() {
			woken, err := st.WakeCluster(t.Context(), v.Cluster.ID)
			late <- answer{woken, err}
		}()
		waitBlocked(t, st, 1)
		return nil
	}))
	if got := <-late; got.woken || got.err != nil {
		t.Errorf("woken: %t, %v", got.woken, got.err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestReleasedLeasesCanBeClaimedAtOnce(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	old := claim(t, st, must[cks.Job](t)(st.AddJob(t.Context(), newJob(v))).ID)
	over := must[cks.Job](t)(st.AddFailedJob(t.Context(), newJob(v), "x"))
	row := func() string { return read[string](t, st, `SELECT xmin::text FROM jobs WHERE id = $1`, over.ID) }
	before := row()
	ok(t, st.ReleaseLeases(t.Context()))
	jobs := must[[]cks.Job](t)(st.ClaimJobs(t.Context(), "new", 10, time.Hour))
	if len(jobs) != 1 || jobs[0].ID != old.ID || jobs[0].Attempt != old.Attempt+1 {
		t.Errorf("claimed %+v", jobs)
	}
	if row() != before {
		t.Error("the finished job was written")
	}
}
