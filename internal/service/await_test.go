package service

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

// long is longer than any of these tests may take.
const long = 10 * time.Minute

// wakes runs what wakes those who wait, until the test ends or stop is called.
func (s scene) wakes() (stop func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error)
	go func() { ended <- s.WakeWaiting(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	s.Cleanup(stop)
	return stop
}

// awaits lets somebody wait for job, and returns once he does.
func (s scene) awaits(ctx context.Context, job cks.Job) <-chan error {
	s.Helper()
	got := make(chan error, 1)
	go func() {
		seen, err := s.AwaitJob(ctx, s.owner, job.ID, long)
		if err == nil && seen.Status == cks.JobPending {
			err = errPending
		}
		got <- err
	}()
	s.until("somebody waits", func() bool { return len(s.lobby.awaited()) > 0 })
	return got
}

var errPending = errors.New("the job has not ended")

func (s scene) until(what string, ok func() bool) {
	s.Helper()
	limit := time.After(time.Minute)
	for !ok() {
		select {
		case <-time.After(time.Millisecond):
		case <-limit:
			s.Fatalf("never: %s", what)
		}
	}
}

// Who waits is answered when the job ends, whoever ends it: this server (a),
// another one, from which it is heard (b), or one that cannot be heard, so that
// it is looked for (c). Nobody is left behind.
//
// Keeps: ours/wait, ours/wait-elsewhere.
func TestWaitEndsWithTheJob(t *testing.T) {
	t.Parallel()
	nothing := func(*store.Queries, cks.Job) error { return nil }
	for name, c := range map[string]struct {
		poll      time.Duration
		elsewhere bool
	}{
		"a, here": {poll: long}, "b, elsewhere": {long, true}, "c, unheard": {10 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, there := storetest.Two(t)
			s := sceneOn(t, here, running(2))
			s.lobby.poll = c.poll
			ender := s
			if c.elsewhere {
				ender.st = there
			}
			if c.elsewhere && c.poll == long {
				heard := s.st.Subscribe(t.Context(), store.TopicEnded)
				for _, st := range []*store.Store{s.st, ender.st} {
					go st.RunBus(t.Context(), nil) //nolint:errcheck // it has none
				}
				<-heard // it hears from now on
			}
			s.wakes()
			job := s.scale(cks.ScaleRequest{Size: new(int64(3))})
			first, second := s.awaits(t.Context(), job), s.awaits(t.Context(), job)
			ender.end(job, nothing)
			for _, got := range []<-chan error{first, second} {
				if err := <-got; err != nil {
					t.Error(err)
				}
			}
			if left := s.lobby.awaited(); len(left) > 0 {
				t.Errorf("somebody still waits for %v", left)
			}
		})
	}
}

// A job that ended after it was read and before anybody waited for it is found
// at once, not at the next look.
//
// Keeps: ours/wait.
func TestWaitMissesNoEnd(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	s.lobby.poll = long
	job := s.scale(cks.ScaleRequest{Size: new(int64(3))})
	s.end(job, func(*store.Queries, cks.Job) error { return nil })
	s.wakes()
	ended := s.lobby.enter(job.ID) // as AwaitJob does when it has read a live one
	defer s.lobby.leave(job.ID, ended)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the end was missed")
	}
}

// A wait that passes is answered with the job as it is then; one for a job that
// has ended is no wait, and errors are those of a request that does not wait.
//
// Keeps: ours/wait.
func TestWaitPasses(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	s.wakes()
	job := s.scale(cks.ScaleRequest{Size: new(int64(3))})
	begin := time.Now()
	if seen, err := s.AwaitJob(t.Context(), s.owner, job.ID, 50*time.Millisecond); err != nil || seen.Status != cks.JobPending || seen.ID != job.ID {
		t.Errorf("got %+v, %v", seen, err)
	}
	if took := time.Since(begin); took < 50*time.Millisecond {
		t.Errorf("it waited %s", took)
	}
	refused := s.scale(cks.ScaleRequest{Size: new(int64(99))})
	if seen, err := s.AwaitJob(t.Context(), s.owner, refused.ID, long); err != nil || seen.Status != cks.JobFailed {
		t.Errorf("got %+v, %v", seen, err)
	}
	_, err := s.AwaitJob(t.Context(), s.account("stranger", false), job.ID, long)
	coded(t, err, cks.Denied, "")
	_, err = s.AwaitJob(t.Context(), s.owner, s.view.Cluster.ID, long)
	coded(t, err, cks.UnknownID, "")
}

// When the server is told to stop, who waits is answered at once with what is
// known, and nobody waits any more.
//
// Keeps: ours/wait-shutdown.
func TestWaitEndsWithTheServer(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	stop := s.wakes()
	job := s.scale(cks.ScaleRequest{Size: new(int64(3))})
	got := s.awaits(t.Context(), job)
	stop()
	if err := <-got; !errors.Is(err, errPending) {
		t.Errorf("got %v", err)
	}
	if seen, err := s.AwaitJob(t.Context(), s.owner, job.ID, long); err != nil || seen.Status != cks.JobPending {
		t.Errorf("got %+v, %v", seen, err)
	}
}

// When the client goes away, nothing of its wait is left.
//
// Keeps: ours/wait-client.
func TestWaitEndsWithTheClient(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	s.wakes()
	job := s.scale(cks.ScaleRequest{Size: new(int64(3))})
	ctx, leave := context.WithCancel(t.Context())
	got := s.awaits(ctx, job)
	leave()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left := s.lobby.awaited(); len(left) > 0 {
		t.Errorf("somebody still waits for %v", left)
	}
}
