package service

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// replicas are services on pools of their own that share one database.
func replicas(t *testing.T, n int, spec storetest.Spec) ([]*Service, scene) {
	t.Helper()
	url := storetest.URL(t)
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	var services []*Service
	for range n {
		st := must(store.Open(t.Context(), url))(t)
		t.Cleanup(st.Close)
		services = append(services, New(st, nil, settings))
	}
	st := services[0].store
	view := storetest.Fixture(t, st, spec)
	return services, scene{T: t, Service: services[0], st: st, view: view, owner: view.Account}
}

// atOnce runs n calls that start together.
func atOnce(n int, call func(i int) (cks.Job, error)) ([]cks.Job, error) {
	jobs, errs := make([]cks.Job, n), make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			jobs[i], errs[i] = call(i)
		})
	}
	close(start)
	wg.Wait()
	return jobs, errors.Join(errs...)
}

// spec/cks.md §11.10, A44: of requests validated together one holds the
// cluster; the others are refused with the state that it has now.
//
// Keeps: §3.6/validated, §4/conditional.
// Keeps: §1.10/one-at-a-time.
// Keeps: §5.1/5, §11/10, #14609.
// Keeps: A44, seed/both-validated.
func TestOneOfSixteenRequestsHolds(t *testing.T) {
	t.Parallel()
	const requests = 16
	for _, n := range []int{1, 2} {
		t.Run(number64(int64(n))+" replicas", func(t *testing.T) {
			t.Parallel()
			services, s := replicas(t, n, running(4))
			w := s.workers()
			jobs, err := atOnce(requests, func(i int) (cks.Job, error) {
				req := cks.ScaleRequest{Cluster: s.view.Cluster.ID, Size: new(int64(5 + i%4))}
				if i%2 == 1 {
					req.Size, req.NodeIDs = nil, []string{w[i%4].ID}
				}
				return services[i%n].Scale(t.Context(), s.owner, req)
			})
			if err != nil {
				t.Fatal(err)
			}
			winner := slices.IndexFunc(jobs, func(j cks.Job) bool { return j.Status == cks.JobPending })
			if winner < 0 {
				t.Fatalf("nobody won: %+v", jobs)
			}
			for i, job := range jobs {
				if i != winner {
					s.refused(job, notScalable(s.view.Cluster, cks.Scaling))
				}
			}
			if c := s.now().Cluster; c.State != cks.Scaling || c.HeldBy != jobs[winner].ID {
				t.Errorf("cluster is %s, held by %q, want %s", c.State, c.HeldBy, jobs[winner].ID)
			}
			if live := s.live(); len(live) != 1 || live[0].ID != jobs[winner].ID {
				t.Errorf("live jobs: %+v", live)
			}
		})
	}
}

// Deleting races like scaling does.
func TestScaleAndDeleteDoNotBothHold(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	jobs, err := atOnce(8, func(i int) (cks.Job, error) {
		if i%2 == 0 {
			return s.DeleteCluster(t.Context(), s.owner, s.view.Cluster.ID, "")
		}
		return s.Scale(t.Context(), s.owner, cks.ScaleRequest{Cluster: s.view.Cluster.ID, Size: new(int64(3))})
	})
	if err != nil {
		t.Fatal(err)
	}
	live := s.live()
	if len(live) != 1 || s.now().Cluster.HeldBy != live[0].ID {
		t.Fatalf("live jobs: %+v", live)
	}
	for _, job := range jobs {
		if (job.Status == cks.JobPending) != (job.ID == live[0].ID) {
			t.Errorf("job %s has status %d", job.ID, job.Status)
		}
	}
}

// judge judges as Scale does; between the reading and the writing comes
// meanwhile.
func (s scene) judge(meanwhile func(cks.Cluster)) func(q *store.Queries) (cks.Job, error) {
	return func(q *store.Queries) (cks.Job, error) {
		c, err := q.ClusterByRef(s.Context(), s.view.Cluster.ID)
		if err != nil {
			return cks.Job{}, err
		}
		meanwhile(c)
		job := s.jobFor(s.owner, "scaleKubernetesCluster", "", c)
		job.Kind = cks.ScaleUp
		return hold(s.Context(), q, c, job)
	}
}

// turn moves the cluster between Running and Alert, as the scanner does.
func (s scene) turn(c cks.Cluster) {
	s.Helper()
	event := map[cks.State]cks.Event{cks.Running: cks.FaultsDetected, cks.Alert: cks.OperationSucceeded}[c.State]
	if moved, err := s.st.MoveCluster(s.Context(), c, event); err != nil || !moved {
		s.Errorf("the scanner could not move the cluster: %v", err)
	}
}

// A request whose cluster changes under it is judged by what the cluster is
// now, and nothing stays of the first try.
//
// Keeps: §3.6/judged-again.
// Keeps: seed/changed-state, A48.
func TestLostRaceIsJudgedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	var seen []cks.State
	job, err := s.record(t.Context(), judgements, s.judge(func(c cks.Cluster) {
		if seen = append(seen, c.State); len(seen) == 1 {
			s.turn(c)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if want := []cks.State{cks.Running, cks.Alert}; !slices.Equal(seen, want) {
		t.Errorf("judged on %v, want %v", seen, want)
	}
	if live := s.live(); len(live) != 1 || live[0].ID != job.ID || job.Notes.Seen != cks.Alert {
		t.Errorf("live jobs: %+v, recorded %+v", live, job)
	}
}

// However often the cluster changes, the client gets an answer.
//
// Keeps: §3.6/judged-again.
// Keeps: seed/changed-state.
func TestRaceThatIsAlwaysLostIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	tries := 0
	job, err := s.record(t.Context(), judgements, s.judge(func(c cks.Cluster) {
		tries++
		s.turn(c)
	}))
	s.refused(must(job, err)(t), "Kubernetes cluster "+s.view.Cluster.Name+" changed since the request was validated")
	if tries != judgements {
		t.Errorf("judged %d times, want %d", tries, judgements)
	}
	if live, c := s.live(), s.now().Cluster; len(live) > 0 || c.State.Busy() {
		t.Errorf("cluster is %s with live jobs %+v", c.State, live)
	}
}

// A53: job and hold are one commit: when the hold fails there is no job, and
// when the transaction dies there is neither, nor is any runner told.
//
// Keeps: §3.6/validated.
// Keeps: A53, seed/no-window.
func TestJobAndHoldAreOneCommit(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	id := uuid.NewString()
	told := s.st.Subscribe(t.Context(), store.TopicJobs)
	dies := errors.New("the server dies")
	for name, judge := range map[string]func(q *store.Queries) (cks.Job, error){
		"the hold fails": func(q *store.Queries) (cks.Job, error) {
			stale := s.view.Cluster
			stale.Version--
			job := s.jobFor(s.owner, "scaleKubernetesCluster", id, stale)
			job.Kind = cks.ScaleUp
			return hold(t.Context(), q, stale, job)
		},
		"it dies before the commit": func(q *store.Queries) (cks.Job, error) {
			job := s.jobFor(s.owner, "scaleKubernetesCluster", id, s.view.Cluster)
			job.Kind = cks.ScaleUp
			if _, err := hold(t.Context(), q, s.view.Cluster, job); err != nil {
				return cks.Job{}, err
			}
			return cks.Job{}, dies
		},
	} {
		err := s.st.InTx(t.Context(), func(q *store.Queries) error {
			_, err := judge(q)
			return err
		})
		if err == nil {
			t.Fatalf("%s: it went well", name)
		}
		if c := s.now().Cluster; c.State != cks.Running || c.HeldBy != "" {
			t.Errorf("%s: cluster is %s, held by %q", name, c.State, c.HeldBy)
		}
		if _, err := s.st.Job(t.Context(), id); cks.CodeOf(err) != cks.NotFound {
			t.Errorf("%s: reading the job: %v", name, err)
		}
		if jobs := must(s.st.ClaimJobs(t.Context(), uuid.NewString(), 10, time.Minute))(t); len(jobs) > 0 {
			t.Errorf("%s: a runner gets %+v", name, jobs)
		}
		select {
		case <-told:
			t.Errorf("%s: runners are told", name)
		default:
		}
	}
}

// An error that is no refusal is no job: the client must not take our own
// trouble for an answer.
//
// Keeps: §3/own-trouble.
func TestOwnFailureIsNoRefusal(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	ours := errors.New("ours")
	_, err := s.record(t.Context(), judgements, func(q *store.Queries) (cks.Job, error) {
		return refuse(t.Context(), q, s.jobFor(s.owner, "scaleKubernetesCluster", "", s.view.Cluster), ours)
	})
	if !errors.Is(err, ours) {
		t.Fatalf("error is %v", err)
	}
}

// What needs no job is recorded only on the cluster that was judged.
func TestRecordOfAChangedClusterIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t, storetest.Spec{State: cks.Created, Control: 1, Workers: 1})
	stale := s.view.Cluster
	stale.Version--
	job := s.jobFor(s.owner, "scaleKubernetesCluster", "", stale)
	job.Kind, job.Args = cks.RecordSize, cks.Args{Size: 4}
	err := s.st.InTx(t.Context(), func(q *store.Queries) error {
		_, err := recordOnly(t.Context(), q, stale, job)
		return err
	})
	if _, lost := errors.AsType[*lostRace](err); !lost {
		t.Fatalf("error is %v", err)
	}
	if c := s.now().Cluster; c.Size != 1 || c.Version != s.view.Cluster.Version {
		t.Errorf("cluster is %+v", c)
	}
}
