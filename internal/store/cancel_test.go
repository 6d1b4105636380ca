package store_test

import (
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// A job that waits is due at once when it is cancelled, also one that backs off
// after a failed try, and the runners are told. Who it was is kept, and that it
// was the first who asked.
func TestCancelWakesAWaitingJob(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	bob := must[cks.Account](t)(st.AddAccount(ctx, "bob", "bob-key", "bob-secret", false))
	for _, failedTry := range []bool{false, true} {
		v, j := scaling(t, st, storetest.Spec{})
		ok(t, st.PutBack(ctx, j, time.Hour, failedTry))
		if by := must[string](t)(st.CancelledBy(ctx, j.ID)); by != "" {
			t.Errorf("cancelled by %s before anybody did", by)
		}
		topic := st.Subscribe(ctx, store.TopicJobs)
		if !must[bool](t)(st.CancelJob(ctx, j.ID, v.Account.ID)) {
			t.Error("the job is not cancelled")
		}
		eventually(t, topic, "")
		if !read[bool](t, st, `SELECT owner IS NULL AND due <= now() AND cancelled <= now() FROM jobs WHERE id = $1`, j.ID) {
			t.Error("the job is not due")
		}
		if must[bool](t)(st.CancelJob(ctx, j.ID, bob.ID)) {
			t.Error("it was cancelled twice")
		}
		if by := must[string](t)(st.CancelledBy(ctx, j.ID)); by != storetest.AccountName {
			t.Errorf("cancelled by %q", by)
		}
	}
}

// A job that is being executed stays with its owner, and does not wait when it
// is put back: neither for an event nor after a failed try, as it will not be
// tried again. One that is being undone backs off as it would.
func TestCancelledJobDoesNotWait(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	for _, failedTry := range []bool{false, true} {
		v, j := scaling(t, st, storetest.Spec{})
		if !must[bool](t)(st.CancelJob(ctx, j.ID, v.Account.ID)) {
			t.Error("the job is not cancelled")
		}
		if read[bool](t, st, `SELECT due <= now() OR owner IS NULL FROM jobs WHERE id = $1`, j.ID) {
			t.Error("a job that is being executed can be claimed")
		}
		ok(t, st.PutBack(ctx, j, time.Hour, failedTry))
		if !read[bool](t, st, `SELECT due <= now() FROM jobs WHERE id = $1`, j.ID) {
			t.Errorf("it waits (failed try: %t)", failedTry)
		}
		j = claim(t, st, j.ID)
		ok(t, st.GiveUp(ctx, j, "drain", "cancelled by alice", false))
		ok(t, st.PutBack(ctx, j, time.Hour, true))
		if read[bool](t, st, `SELECT due <= now() FROM jobs WHERE id = $1`, j.ID) {
			t.Error("what undoes it does not back off")
		}
	}
}

// A job that has ended, or is being given up, is not cancelled, and nothing is
// recorded.
func TestCancelComesTooLate(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	v, ending := scaling(t, st, storetest.Spec{})
	ok(t, st.GiveUp(ctx, ending, "drain", "no room", false))
	failed := must[cks.Job](t)(st.AddFailedJob(ctx, newJob(v), "x"))
	done := must[cks.Job](t)(st.AddDoneJob(ctx, newJob(v), cks.JobResult{Success: true}))
	before := kept(t, st)
	for _, id := range []string{ending.ID, failed.ID, done.ID} {
		if must[bool](t)(st.CancelJob(ctx, id, v.Account.ID)) {
			t.Error("it was cancelled")
		}
	}
	diff(t, before, kept(t, st))
}

// Of a cancel and the end of the job at the same time, one comes first: the job
// is not cancelled after it has ended.
func TestCancelOrEnd(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	for range 20 {
		v := storetest.Fixture(t, st, storetest.Spec{})
		j := claim(t, st, must[cks.Job](t)(st.AddJob(t.Context(), newJob(v))).ID)
		done := false
		for _, err := range together(2, func(i int) (err error) {
			if i == 0 {
				return st.FailJob(t.Context(), j, "x")
			}
			done, err = st.CancelJob(t.Context(), j.ID, v.Account.ID)
			return err
		}) {
			ok(t, err)
		}
		if done != read[bool](t, st, `SELECT cancelled IS NOT NULL AND cancelled <= completed FROM jobs WHERE id = $1`, j.ID) {
			t.Fatalf("cancelled: %t, and it was after the end", done)
		}
	}
}
