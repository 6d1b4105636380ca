package service

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// AwaitJob is Job, asked when the job has ended, or when wait has passed. It
// holds no connection to the database meanwhile. When the server is told to stop
// it answers at once with what it knows, and when ctx ends with that error.
func (s *Service) AwaitJob(ctx context.Context, caller cks.Account, jobID string, wait time.Duration) (cks.Job, error) {
	job, err := s.Job(ctx, caller, jobID)
	if err != nil || job.Status != cks.JobPending {
		return job, err
	}
	ended := s.lobby.enter(job.ID)
	defer s.lobby.leave(job.ID, ended)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.lobby.closed:
		return job, nil
	case <-ctx.Done():
		return cks.Job{}, ctx.Err()
	case <-ended:
	case <-timer.C:
	}
	return s.Job(ctx, caller, job.ID)
}

// WakeWaiting tells those who wait for jobs that these have ended, until ctx
// ends; from then on nobody waits. It hears of the end of a job from the server
// that ended it. For what it cannot hear (the bus is down, a pooler is between,
// the other server is of an older release), and for a job that ended just before
// somebody began to wait, it looks: one statement for all who wait.
func (s *Service) WakeWaiting(ctx context.Context) error {
	defer close(s.lobby.closed)
	ended := s.store.Subscribe(ctx, store.TopicEnded)
	tick := time.NewTicker(s.lobby.poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case id := <-ended:
			if id != "" {
				s.lobby.wake(id)
				continue
			}
		case <-s.lobby.entered:
		case <-tick.C:
		}
		if ids := s.lobby.awaited(); len(ids) > 0 {
			ids, err := s.store.EndedJobs(ctx, ids)
			if err != nil {
				continue // the next look tells; who has waited long enough asks for himself
			}
			s.lobby.wake(ids...)
		}
	}
}

// lobby is where requests wait for jobs to end.
type lobby struct {
	poll    time.Duration // between two looks
	entered chan struct{} // somebody has begun to wait
	closed  chan struct{} // nobody waits any more

	mu      sync.Mutex
	waiting map[string]map[chan struct{}]bool // by job
}

func newLobby() *lobby {
	return &lobby{
		poll:    time.Second,
		entered: make(chan struct{}, 1),
		closed:  make(chan struct{}),
		waiting: map[string]map[chan struct{}]bool{},
	}
}

// enter returns what is closed when the job has ended. leave is to follow.
func (l *lobby) enter(jobID string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	ended := make(chan struct{})
	if l.waiting[jobID] == nil {
		l.waiting[jobID] = map[chan struct{}]bool{}
	}
	l.waiting[jobID][ended] = true
	select {
	case l.entered <- struct{}{}:
	default:
	}
	return ended
}

func (l *lobby) leave(jobID string, ended chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting[jobID], ended)
	if len(l.waiting[jobID]) == 0 {
		delete(l.waiting, jobID)
	}
}

// awaited are the jobs that somebody waits for.
func (l *lobby) awaited() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.waiting))
}

func (l *lobby) wake(jobIDs ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range jobIDs {
		for ended := range l.waiting[id] {
			close(ended)
		}
		delete(l.waiting, id)
	}
}
