package jobs

import (
	"context"
	"sync"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// lease is our right to act on a job. The database decides who has it; this is
// the holder's own, never later, idea of when it ends, for a process that was
// paused or cut off from the database: it must not act on the world any more.
// The lease is lost by itself then, so that a call which is under way is given
// up: it would be somebody else's.
type lease struct {
	job  cks.Job
	span time.Duration
	end  *time.Timer

	mu     sync.Mutex
	until  time.Time
	lost   bool
	cancel context.CancelCauseFunc
}

func newLease(j cks.Job, from time.Time, span time.Duration) *lease {
	l := &lease{job: j, span: span, until: from.Add(span)}
	l.end = time.AfterFunc(time.Until(l.until), l.runOut)
	return l
}

// onLost sets what is called when the lease is lost.
func (l *lease) onLost(cancel context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = cancel
}

// check fails with store.ErrLeaseLost once the lease may have run out.
func (l *lease) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost || !time.Now().Before(l.until) {
		return store.ErrLeaseLost
	}
	return nil
}

// renewed notes that the database renewed the lease when asked at from.
func (l *lease) renewed(from time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = from.Add(l.span)
	l.end.Reset(time.Until(l.until))
}

// runOut loses the lease, unless it has been renewed meanwhile.
func (l *lease) runOut() {
	if l.check() != nil {
		l.lose()
	}
}

func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = true
	if l.cancel != nil {
		l.cancel(store.ErrLeaseLost)
	}
}

// keepLeases renews the leases of the jobs in flight, all in one statement, at
// a third of their span, and ends the runs of those that are lost.
func (r *Runner) keepLeases(ctx context.Context) {
	tick := time.NewTicker(r.cfg.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.renew(ctx)
		}
	}
}

func (r *Runner) renew(ctx context.Context) {
	r.mu.Lock()
	leases := make([]*lease, 0, len(r.leases))
	jobs := make([]cks.Job, 0, len(r.leases))
	for _, l := range r.leases {
		leases, jobs = append(leases, l), append(jobs, l.job)
	}
	r.mu.Unlock()
	if len(jobs) == 0 {
		return
	}
	from := time.Now()
	limited, cancel := context.WithTimeout(ctx, r.cfg.Lease/3)
	defer cancel()
	kept, err := r.store.KeepLeases(limited, r.owner, jobs, r.cfg.Lease)
	if err != nil {
		if ctx.Err() == nil {
			r.cfg.Log.WarnContext(ctx, "cannot renew leases", "jobs", len(jobs), "err", err)
		}
		for _, l := range leases { // perhaps the next tick can; a lease that ran out is not ours
			if l.check() != nil {
				l.lose()
			}
		}
		return
	}
	for _, l := range leases {
		if kept[l.job.ID] {
			l.renewed(from)
		} else if r.current(l) {
			l.lose()
		}
	}
}

// current reports whether l is still in flight: a job that ended between the
// look and the renewal has no lease to keep.
func (r *Runner) current(l *lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leases[l.job.ID] == l
}
