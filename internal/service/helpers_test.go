package service

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

var settings = Settings{MaxSize: 10, ScaleTimeout: time.Hour, StartTimeout: time.Hour, UpgradeTimeout: time.Hour, EndpointURL: "https://api.example.test/client/api", ServerID: uuid.NewString()}

// scene is a service on a database of its own with one cluster in it.
type scene struct {
	*testing.T
	*Service
	st    *store.Store
	view  cks.ClusterView
	owner cks.Account // of the cluster
}

func newScene(t *testing.T, spec storetest.Spec) scene {
	t.Helper()
	return sceneOn(t, storetest.New(t), spec)
}

func sceneOn(t *testing.T, st *store.Store, spec storetest.Spec) scene {
	t.Helper()
	view := storetest.Fixture(t, st, spec)
	return scene{T: t, Service: New(st, nil, settings), st: st, view: view, owner: view.Account}
}

// in is the same scene for a subtest.
func (s scene) in(t *testing.T) scene {
	s.T = t
	return s
}

func running(workers int) storetest.Spec {
	return storetest.Spec{State: cks.Running, Control: 1, Workers: workers}
}

// account adds an account.
func (s scene) account(name string, admin bool) cks.Account {
	s.Helper()
	a, err := s.st.AddAccount(s.Context(), name, "key-of-"+name, "secret-of-"+name, admin)
	return must(a, err)(s)
}

// now is the cluster as it is recorded now.
func (s scene) now() cks.ClusterView {
	s.Helper()
	v, err := s.st.View(s.Context(), s.view.Cluster.ID)
	return must(v, err)(s)
}

// live are the unfinished jobs.
func (s scene) live() []cks.Job {
	s.Helper()
	jobs, _, err := s.st.Jobs(s.Context(), cks.JobFilter{}, "")
	return must(jobs, err)(s)
}

// scale sends req for the scene's cluster as its owner.
func (s scene) scale(req cks.ScaleRequest) cks.Job {
	s.Helper()
	req.Cluster = s.view.Cluster.ID
	job, err := s.Scale(s.Context(), s.owner, req)
	return must(job, err)(s)
}

// workers are the cluster's own workers, the oldest first.
func (s scene) workers() []cks.VM {
	s.Helper()
	var own []cks.VM
	for _, v := range s.now().VMs {
		if v.OwnWorker() {
			own = append(own, v)
		}
	}
	return own
}

// end carries job out the way a runner does: it claims it, does what work
// records, and ends it with the cluster.
func (s scene) end(job cks.Job, work func(q *store.Queries, j cks.Job) error) {
	s.Helper()
	claimed, err := s.st.ClaimJobs(s.Context(), uuid.NewString(), 100, time.Minute)
	for _, j := range must(claimed, err)(s) {
		if j.ID != job.ID {
			continue
		}
		err = s.st.InTx(s.Context(), func(q *store.Queries) error {
			if err := work(q, j); err != nil {
				return err
			}
			if err := q.FreeCluster(s.Context(), j, cks.OperationSucceeded); err != nil {
				return err
			}
			return q.FinishJob(s.Context(), j, cks.JobResult{Success: true})
		})
		if err != nil {
			s.Fatal(err)
		}
		return
	}
	s.Fatalf("job %s could not be claimed", job.ID)
}

// leave makes job remove the named VMs.
func (s scene) leave(vms ...cks.VM) func(q *store.Queries, j cks.Job) error {
	return func(q *store.Queries, j cks.Job) error {
		for _, v := range vms {
			if err := q.NodeRemoved(s.Context(), j, v.ID); err != nil {
				return err
			}
		}
		return nil
	}
}

// join makes job add n workers.
func (s scene) join(n int) func(q *store.Queries, j cks.Job) error {
	return func(q *store.Queries, j cks.Job) error {
		want := make([]store.NewVM, n)
		for i := range want {
			want[i] = store.NewVM{Role: cks.Worker, OfferingID: s.view.Cluster.OfferingFor(cks.Worker), Prefix: "joined-node"}
		}
		vms, err := q.ChooseNew(s.Context(), j, want)
		if err != nil {
			return err
		}
		for _, v := range vms {
			if err := q.NodeJoined(s.Context(), j, v.ID, true); err != nil {
				return err
			}
		}
		return nil
	}
}

// must returns v, or ends the test with err.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refused fails the test unless job has failed already with text.
func (s scene) refused(job cks.Job, text string) {
	s.Helper()
	stored, err := s.st.Job(s.Context(), job.ID)
	if err != nil {
		s.Fatalf("the job is not recorded: %v", err)
	}
	if stored.Status != cks.JobFailed || stored.ErrorText != text || stored.Completed.IsZero() {
		s.Fatalf("job has status %d and text %q, want a failed one with %q", stored.Status, stored.ErrorText, text)
	}
}

// coded fails the test unless err has the code and, if not empty, the text.
func coded(t testing.TB, err error, code cks.Code, text string) {
	t.Helper()
	if err == nil || cks.CodeOf(err) != code {
		t.Fatalf("error is %v, want code %s", err, code)
	}
	if text != "" && err.Error() != text {
		t.Fatalf("error is %q, want %q", err, text)
	}
}

// number64 writes an internal number.
func number64(n int64) string { return strconv.FormatInt(n, 10) }

func unknownText(param, value string) string { return cks.UnknownEntity(param, value).Message }

func notScalable(c cks.Cluster, state cks.State) string {
	return fmt.Sprintf("Kubernetes cluster %s is in %s state and can not be scaled", c.Name, state)
}
