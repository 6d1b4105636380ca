package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// vmJob is a job about the view's first VM.
func vmJob(v cks.ClusterView) store.NewJob {
	n := loose(v)
	n.Command, n.Kind, n.VMID = "stopVirtualMachine", cks.StopVM, v.VMs[0].ID
	return n
}

// A cluster, and a VM, has one live job at a time, however many are asked for
// at once; the transaction of one that is refused can go on.
func TestOneLiveJob(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	for name, n := range map[string]store.NewJob{"cluster": newJob(v), "VM": vmJob(v)} {
		t.Run(name, func(t *testing.T) {
			for _, err := range together(16, func(int) error {
				return st.InTx(t.Context(), func(q *store.Queries) error {
					_, err := q.AddJob(t.Context(), n)
					if cks.CodeOf(err) != cks.Conflict {
						return err
					}
					_, err = q.AddFailedJob(t.Context(), n, err.Error())
					return err
				})
			}) {
				ok(t, err)
			}
			live := read[int](t, st, `SELECT count(*) FROM jobs WHERE status = 0 AND kind = $1`, n.Kind)
			failed := read[int](t, st, `SELECT count(*) FROM jobs WHERE status = 2 AND kind = $1`, n.Kind)
			if live != 1 || failed != 15 {
				t.Errorf("%d live and %d refused jobs, want 1 and 15", live, failed)
			}
			first := must[[]cks.Job](t)(st.ClaimJobs(t.Context(), "tester", 1, time.Hour))[0]
			ok(t, st.FailJob(t.Context(), first, "done"))
			next := must[cks.Job](t)(st.AddJob(t.Context(), n))
			ok(t, st.FinishJob(t.Context(), claim(t, st, next.ID), cks.JobResult{Success: true}))
		})
	}
}

func TestTakenJobID(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	n := loose(v)
	n.ID = "7944a42f-fcf2-4f4e-932a-e7b59e0724b1"
	if j := must[cks.Job](t)(st.AddJob(t.Context(), n)); j.ID != n.ID {
		t.Errorf("id is %s", j.ID)
	}
	_, err := st.AddFailedJob(t.Context(), n, "x")
	wantCode(t, err, cks.Parameter)
	want := "UUID: 7944a42f-fcf2-4f4e-932a-e7b59e0724b1 already exists so can't create/update with custom id"
	if err.Error() != want {
		t.Errorf("text is %q", err)
	}
	n.ID = "seven"
	_, err = st.AddJob(t.Context(), n)
	wantCode(t, err, cks.Parameter)
}

func TestJobIsReadAsItWasAdded(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	n := newJob(v)
	n.Args = cks.Args{Size: 3, VMIDs: []string{v.VMs[0].ID}, Offerings: map[cks.Role]string{cks.Worker: "x\x00y"}}
	n.Notes = cks.Notes{Seen: cks.Alert, Before: 1}
	added := must[cks.Job](t)(st.AddJob(t.Context(), n))
	for _, ref := range []string{added.ID, strings.ToUpper(added.ID), "1"} {
		got := must[cks.Job](t)(st.Job(t.Context(), ref))
		got.Remaining = added.Remaining // counts down
		diff(t, added, got)
	}
	want := cks.Job{ID: added.ID, Seq: 1, Command: n.Command, Kind: n.Kind, Account: v.Account, ClusterID: v.Cluster.ID,
		Args: n.Args, Notes: n.Notes, Created: added.Created, Remaining: added.Remaining, StepTimes: map[string]cks.StepTime{}}
	want.Args.Offerings = map[cks.Role]string{cks.Worker: "x\uFFFDy"} // what jsonb cannot hold is replaced
	diff(t, want, added)
	if added.Remaining <= 59*time.Minute || added.Remaining > time.Hour {
		t.Errorf("%s remain of an hour", added.Remaining)
	}
	for _, ref := range []string{"", "99", "x", "00000000-0000-0000-0000-000000000000", "1\x00"} {
		_, err := st.Job(t.Context(), ref)
		wantCode(t, err, cks.NotFound)
	}
}

// A job that has ended is neither listed nor carried out (cks.md §2.5).
//
// Keeps: §2.5/unfinished.
func TestFinishedJobsNeverLive(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	must[cks.Job](t)(st.AddJob(t.Context(), loose(v)))
	failed := must[cks.Job](t)(st.AddFailedJob(t.Context(), newJob(v), "no\x00way\xff"))
	done := must[cks.Job](t)(st.AddDoneJob(t.Context(), newJob(v), cks.JobResult{Cluster: &v}))
	if failed.Status != cks.JobFailed || failed.ErrorText != "noway\uFFFD" || failed.Completed.IsZero() {
		t.Errorf("failed job is %+v", failed)
	}
	if done.Status != cks.JobSucceeded || done.Completed.IsZero() || done.Result == nil {
		t.Fatalf("done job is %+v", done)
	}
	diff(t, &cks.JobResult{Cluster: &v}, must[cks.Job](t)(st.Job(t.Context(), done.ID)).Result)
	list, total, err := st.Jobs(t.Context(), cks.JobFilter{}, "")
	ok(t, err)
	if total != 1 || len(list) != 1 || list[0].ClusterID != "" {
		t.Errorf("list shows %d of %d jobs", len(list), total)
	}
	if jobs := must[[]cks.Job](t)(st.ClaimJobs(t.Context(), "tester", 9, time.Hour)); len(jobs) != 1 {
		t.Errorf("claimed %d jobs", len(jobs))
	}
}

// cks.md §2.5
//
// Keeps: §2.5/order, §2.5/startdate, §2.5/managementserverid, §2.5/keyword, §2.5/account, §2.5/paging.
func TestUnfinishedJobsAreListed(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	other := must[cks.Account](t)(st.AddAccount(t.Context(), "bob", "bob-key", "s", false))
	a := must[cks.Job](t)(st.AddJob(t.Context(), newJob(v)))
	b := must[cks.Job](t)(st.AddJob(t.Context(), vmJob(v)))
	n := loose(v)
	n.AccountID = other.ID
	c := must[cks.Job](t)(st.AddJob(t.Context(), n))
	a = claim(t, st, a.ID)
	sql(t, st, `UPDATE jobs SET created = now() - interval '1 hour' WHERE id = $1`, b.ID)

	for name, tt := range map[string]struct {
		f       cks.JobFilter
		account string
		want    []string
		total   int
	}{
		"all":             {cks.JobFilter{}, "", []string{a.ID, b.ID, c.ID}, 3},
		"one account":     {cks.JobFilter{}, other.ID, []string{c.ID}, 1},
		"account by name": {cks.JobFilter{Account: "bob"}, "", []string{c.ID}, 1},
		"both, unlike":    {cks.JobFilter{Account: "bob"}, v.Account.ID, nil, 0},
		"keyword":         {cks.JobFilter{Keyword: "user.VM."}, "", []string{b.ID}, 1},
		"no such class":   {cks.JobFilter{Keyword: "\x00\xff"}, "", nil, 0},
		"class":           {cks.JobFilter{Keyword: "ScaleKubernetesClusterCmd"}, "", []string{a.ID, c.ID}, 2},
		"server":          {cks.JobFilter{Server: "tester"}, "", []string{a.ID}, 1},
		"since":           {cks.JobFilter{Since: time.Now().Add(-time.Minute)}, "", []string{a.ID, c.ID}, 2},
		"page 2 of 2":     {cks.JobFilter{Page: cks.Page{Number: 2, Size: 2}}, "", []string{c.ID}, 3},
	} {
		list, total, err := st.Jobs(t.Context(), tt.f, tt.account)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, j := range list {
			got = append(got, j.ID)
		}
		if !slices.Equal(got, tt.want) || total != tt.total {
			t.Errorf("%s: %v of %d, want %v of %d", name, got, total, tt.want, tt.total)
		}
	}
}

// A57
//
// Keeps: §2.3/errortext.
// Keeps: A57.
func TestErrorTextIsCleaned(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	long := strings.Repeat("é", 4000)
	for in, want := range map[string]string{
		"plain":                           "plain",
		"":                                "",
		"a\x00b":                          "ab",
		"\x1b[31mred\x1b[0m":              "[31mred[0m",
		"two\nlines\ttab\r\n":             "two\nlinestab",
		"bad \xff\xfe utf8":               "bad \uFFFD utf8",
		"\u0085next\u009bline":            "nextline",
		long:                              long,
		long + "x":                        strings.Repeat("é", 3999) + "…",
		strings.Repeat("\x00", 1<<20):     "",
		strings.Repeat("ab\x00\xff", 1e5): strings.Repeat("ab\uFFFD", 1333) + "…",
		strings.Repeat("日本", 1<<19):       strings.Repeat("日本", 1999) + "日…",
	} {
		if got := store.Clean(in); got != want {
			t.Errorf("%.20q… (%d bytes) became %.60q… (%d bytes)", in, len(in), got, len(got))
		}
		j := claim(t, st, must[cks.Job](t)(st.AddJob(t.Context(), loose(v))).ID)
		ok(t, st.GiveUp(t.Context(), j, "drain", in, false))
		if got := must[cks.Job](t)(st.Job(t.Context(), j.ID)).Failure; got != want && want != "" || got == "" {
			t.Errorf("failure is %.60q", got)
		}
		ok(t, st.FailJob(t.Context(), j, in))
		if got := must[cks.Job](t)(st.Job(t.Context(), j.ID)).ErrorText; got != want {
			t.Errorf("error text is %.60q", got)
		}
	}
}

// A job that was added is taken up at once, not when somebody looks.
//
// Keeps: §1.11/pending.
// Keeps: A53.
func TestAddedJobWakesTheRunnersAfterTheCommit(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	jobs := st.Subscribe(t.Context(), store.TopicJobs)
	undo := errors.New("undo")
	err := st.InTx(t.Context(), func(q *store.Queries) error {
		if _, err := q.AddJob(t.Context(), loose(v)); err != nil {
			return err
		}
		return undo
	})
	wantErr(t, err, undo)
	silent(t, jobs)
	ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
		_, err := q.AddJob(t.Context(), loose(v))
		silent(t, jobs)
		return err
	}))
	eventually(t, jobs, "")
}
