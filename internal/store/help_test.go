package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// must fails t when err is not nil, and returns v.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

func wantCode(t *testing.T, err error, want cks.Code) {
	t.Helper()
	if err == nil || cks.CodeOf(err) != want {
		t.Fatalf("error is %v, want one with code %s", err, want)
	}
}

// sql runs a statement that the store does not have.
func sql(t *testing.T, st *store.Store, text string, args ...any) {
	t.Helper()
	if _, err := st.Pool().Exec(t.Context(), text, args...); err != nil {
		t.Fatal(err)
	}
}

// read returns the single value of a query that the store does not have.
func read[T any](t *testing.T, st *store.Store, text string, args ...any) (v T) {
	t.Helper()
	if err := st.Pool().QueryRow(t.Context(), text, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// waitFor waits until done.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("still waiting: %s", what)
		}
	}
}

// waitBlocked waits until n connections of the database wait for a lock.
func waitBlocked(t *testing.T, st *store.Store, n int) {
	t.Helper()
	waitFor(t, "a statement to be blocked", func() bool {
		return read[int](t, st, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`) >= n
	})
}

// together calls fn n times at once and returns what came of it.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// newJob is a job of the view's account about its cluster.
func newJob(v cks.ClusterView) store.NewJob {
	return store.NewJob{Command: "scaleKubernetesCluster", Kind: cks.ScaleUp, AccountID: v.Account.ID,
		ClusterID: v.Cluster.ID, Timeout: time.Hour}
}

// loose is a job of the view's account about no cluster.
func loose(v cks.ClusterView) store.NewJob {
	n := newJob(v)
	n.ClusterID = ""
	return n
}

// scaling is a cluster in Scaling, and the job that holds it, claimed.
func scaling(t *testing.T, st *store.Store, s storetest.Spec) (cks.ClusterView, cks.Job) {
	t.Helper()
	s.State = cks.Scaling
	v := storetest.Fixture(t, st, s)
	return v, claim(t, st, v.Cluster.HeldBy)
}

// claim claims one job, whatever else is due.
func claim(t *testing.T, st *store.Store, id string) cks.Job {
	t.Helper()
	sql(t, st, `UPDATE jobs SET due = now() - interval '1 day' WHERE id = $1`, id)
	jobs := must[[]cks.Job](t)(st.ClaimJobs(t.Context(), "tester", 1, time.Hour))
	if len(jobs) != 1 || jobs[0].ID != id {
		t.Fatalf("claimed %v, want job %s", jobs, id)
	}
	return jobs[0]
}

func cluster(t *testing.T, st *store.Store, v cks.ClusterView) cks.Cluster {
	t.Helper()
	return must[cks.Cluster](t)(st.ClusterByRef(t.Context(), v.Cluster.ID))
}

func vm(t *testing.T, st *store.Store, id string) cks.VM {
	t.Helper()
	return must[cks.VM](t)(st.VMByRef(t.Context(), id))
}

// ofRole returns the view's VMs of a role, own or external.
func ofRole(v cks.ClusterView, role cks.Role, external bool) (out []cks.VM) {
	for _, vm := range v.VMs {
		if vm.Role == role && vm.External == external {
			out = append(out, vm)
		}
	}
	return out
}

func workers(v cks.ClusterView) []cks.VM { return ofRole(v, cks.Worker, false) }

// wantNode is what scaling up asks for.
func wantNode(v cks.ClusterView, n int) []store.NewVM {
	want := make([]store.NewVM, n)
	for i := range want {
		want[i] = store.NewVM{Role: cks.Worker, OfferingID: v.Cluster.DefaultOffering, Prefix: "test-node", NodeVersion: "1.33.1"}
	}
	return want
}

// choose lets j choose n new workers.
func choose(t *testing.T, st *store.Store, v cks.ClusterView, j cks.Job, n int) []cks.VM {
	t.Helper()
	return must[[]cks.VM](t)(st.ChooseNew(t.Context(), j, wantNode(v, n)))
}

// eventually receives from ch until want comes.
func eventually(t *testing.T, ch <-chan string, want string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case got, open := <-ch:
			if !open {
				t.Fatal("the subscription ended")
			}
			if got == want {
				return
			}
		case <-limit:
			t.Fatalf("%q never came", want)
		}
	}
}

// silent fails when something is in ch.
func silent(t *testing.T, ch <-chan string) {
	t.Helper()
	select {
	case got := <-ch:
		t.Fatalf("%q came", got)
	default:
	}
}

// runBus runs the bus of st until t ends.
func runBus(t *testing.T, st *store.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- st.RunBus(ctx, func(err error) { t.Log(err) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
