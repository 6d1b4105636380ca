package store_test

import (
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// When each step began and ended is recorded with it, by the database's clock:
// the first begins when the job is claimed first, the next when the one before
// it has ended, whoever claims the job meanwhile. Standing at a step again
// changes no time. What a job says of itself is kept with every step, and while
// it waits.
//
// Keeps: ours/progress, ours/progress-free.
func TestStepsHaveTimes(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	id := must[cks.Job](t)(st.AddJob(ctx, newJob(v))).ID
	now := func() cks.Job { t.Helper(); return must[cks.Job](t)(st.Job(ctx, id)) }
	if j := now(); !j.StepSince.IsZero() || len(j.StepTimes) > 0 || j.Message != "" {
		t.Fatalf("a new job has %+v", j)
	}
	sql(t, st, `UPDATE jobs SET created = created - interval '1 hour'`)
	first := must[time.Time](t)(st.Now(ctx))
	j := claim(t, st, id)
	began := now().StepSince
	if began.Before(first) || !j.StepSince.Equal(began) {
		t.Errorf("claimed after %s, began %s", first, began)
	}
	j.Message = "waits for x\x00"
	ok(t, st.PutBack(ctx, j, time.Hour, false))
	if j := now(); j.Message != "waits for x" || !j.StepSince.Equal(began) {
		t.Errorf("while it waits: %+v", j)
	}
	j = claim(t, st, id)
	j.Message = ""
	ok(t, st.StepDone(ctx, j, "one", cks.Notes{}))
	one := now()
	if got := one.StepTimes["one"]; !got.Started.Equal(began) || got.Ended.Before(began) || got.Failed || !one.StepSince.Equal(got.Ended) || one.Message != "" {
		t.Errorf("after a step: %+v", one)
	}
	j.Message = "goes on"
	ok(t, st.StepDone(ctx, j, "two", cks.Notes{}))
	two := now()
	if got := two.StepTimes["two"]; !got.Started.Equal(one.StepSince) || got.Ended.Before(got.Started) || two.StepTimes["one"] != one.StepTimes["one"] || two.Message != "goes on" {
		t.Errorf("after two: %+v", two)
	}
	ok(t, st.AtStep(ctx, j, "one", cks.Notes{}))
	back := now()
	diff(t, two.StepTimes, back.StepTimes)
	if back.Step != "one" || !back.StepSince.Equal(two.StepSince) {
		t.Errorf("back at one: %+v", back)
	}
	ok(t, st.GiveUp(ctx, j, "three", "why", false))
	given := now()
	if got := given.StepTimes["three"]; !got.Failed || !got.Started.Equal(two.StepSince) || !given.StepSince.Equal(got.Ended) {
		t.Errorf("given up: %+v", given)
	}
	ok(t, st.FailJob(ctx, j, "why"))
	diff(t, given.StepTimes, now().StepTimes)
}
