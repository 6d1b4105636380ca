// Package jobs carries out recorded jobs, step by step, and keeps the recorded
// state of clusters true to the world.
package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// Config is how a Runner works. Fields that are zero get their defaults.
type Config struct {
	Workers      int           // jobs acted on at once; 64
	PerCluster   int           // of which one cluster can have as many; 4
	Lease        time.Duration // 10 s
	Poll         time.Duration // how often to look for due jobs when nothing wakes the runner; 1 s
	ReadyPoll    time.Duration // how often a wait looks again when no change wakes it; 15 s (cks.md §5.2)
	DrainTimeout time.Duration // per attempt; 60 s
	CallTimeout  time.Duration // limit of every other call to the world; 30 s
	RetryWait    time.Duration // between tries of a step; 30 s (cks.md §7 D2)
	MaxTries     int           // 3
	Grace        time.Duration // how long steps may go on after a stop was asked for; 20 s
	Log          *slog.Logger
	Registerer   prometheus.Registerer // nil = no metrics
}

func (c Config) withDefaults() Config {
	defaults := []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.Lease, 10 * time.Second}, {&c.Poll, time.Second}, {&c.ReadyPoll, 15 * time.Second},
		{&c.DrainTimeout, time.Minute}, {&c.CallTimeout, 30 * time.Second},
		{&c.RetryWait, 30 * time.Second}, {&c.Grace, 20 * time.Second},
	}
	for _, d := range defaults {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Workers == 0 {
		c.Workers = 64
	}
	if c.PerCluster == 0 {
		c.PerCluster = 4
	}
	if c.MaxTries == 0 {
		c.MaxTries = 3
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Runner claims due jobs and works them. Any number of runners, in any number
// of processes, share the jobs of one database.
type Runner struct {
	store   *store.Store
	vms     VMs
	nodes   Nodes
	cfg     Config
	metrics *metrics
	owner   string // a random id: a process that comes back is another owner
	shares  shares

	mu       sync.Mutex
	leases   map[string]*lease // by job id, of the jobs in flight
	stopping bool
	freed    chan struct{}
	wg       sync.WaitGroup
}

// NewRunner returns a Runner that does nothing until Run or RunOnce.
func NewRunner(st *store.Store, vms VMs, nodes Nodes, cfg Config) *Runner {
	return &Runner{
		store: st, vms: vms, nodes: nodes, cfg: cfg.withDefaults(), metrics: newMetrics(cfg.Registerer),
		owner: uuid.NewString(), leases: map[string]*lease{}, freed: make(chan struct{}, 1),
		shares: shares{most: cfg.withDefaults().PerCluster, taken: map[string]int{}},
	}
}

// Owner is the id under which the runner holds leases.
func (r *Runner) Owner() string { return r.owner }

// Run works jobs until ctx ends. Then it claims no more, lets the steps in
// flight end within the grace period, and hands the rest back, so that another
// runner goes on at once.
func (r *Runner) Run(ctx context.Context) error {
	wake := r.store.Subscribe(ctx, store.TopicJobs)
	work, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	keeping, stopKeeping := context.WithCancel(work)
	defer stopKeeping()
	go r.keepLeases(keeping)
	for ctx.Err() == nil {
		pause := r.cfg.Poll // also when jobs are due that cannot be claimed: that is no reason to hurry
		if err := r.claim(ctx, work); err == nil {
			pause = r.untilDue(ctx)
		} else if ctx.Err() == nil {
			r.cfg.Log.ErrorContext(ctx, "cannot claim jobs", "err", err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case _, open := <-wake:
			if !open {
				wake = nil
			}
		case <-r.freed:
		case <-timer.C:
		}
		timer.Stop()
	}
	return r.stop(abort)
}

// claim takes as many due jobs as there are free workers and starts them.
func (r *Runner) claim(ctx, work context.Context) error {
	for {
		free := r.cfg.Workers - r.inFlight()
		if free <= 0 {
			return nil
		}
		jobs, err := r.claimJobs(ctx, free)
		if err != nil {
			return err
		}
		for _, c := range jobs {
			r.wg.Go(func() {
				if err := r.work(work, c); err != nil {
					r.cfg.Log.ErrorContext(work, "cannot record how a job went; its lease will run out", "job", c.job.ID, "err", err)
				}
				select {
				case r.freed <- struct{}{}:
				default:
				}
			})
		}
		if len(jobs) < free {
			return nil
		}
	}
}

// claimedJob is a job with the lease that we have on it.
type claimedJob struct {
	job   cks.Job
	at    time.Time
	lease *lease
}

// claimGrace is how long a claim may go on after a stop was asked for.
const claimGrace = 3 * time.Second

// claimJobs is not cut off by a stop at once: what the database has given us
// would stay ours until the lease ends, without our knowing (A52).
func (r *Runner) claimJobs(ctx context.Context, n int) ([]claimedJob, error) {
	stop := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(stop, func() { time.AfterFunc(claimGrace, cancel) })()
	at := time.Now() // before the claim: our end of the lease is never later than the database's
	jobs, err := r.store.ClaimJobs(ctx, r.owner, n, r.cfg.Lease)
	if err != nil {
		return nil, err
	}
	claimed := make([]claimedJob, len(jobs))
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, j := range jobs {
		if old := r.leases[j.ID]; old != nil {
			old.lose() // it ran out, and the run under it does not know yet
		}
		claimed[i] = claimedJob{j, at, newLease(j, at, r.cfg.Lease)}
		r.leases[j.ID] = claimed[i].lease
	}
	return claimed, nil
}

// RunOnce claims one due job and works it until it ends or waits. It reports
// whether there was one.
func (r *Runner) RunOnce(ctx context.Context) (bool, error) {
	jobs, err := r.claimJobs(ctx, 1)
	if err != nil || len(jobs) == 0 {
		return false, err
	}
	keeping, stop := context.WithCancel(ctx)
	defer stop()
	go r.keepLeases(keeping)
	return true, r.work(ctx, jobs[0])
}

func (r *Runner) work(ctx context.Context, c claimedJob) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.lease.onLost(cancel)
	defer c.lease.end.Stop()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.leases[c.job.ID] == c.lease {
			delete(r.leases, c.job.ID)
		}
	}()
	cluster, err := r.placeOf(ctx, c.job)
	if err != nil {
		return err
	}
	if !r.shares.take(cluster) {
		if err := r.store.PutBack(ctx, c.job, r.cfg.Poll, false); !errors.Is(err, store.ErrLeaseLost) {
			return err
		}
		return nil
	}
	defer r.shares.give(cluster)
	log := r.cfg.Log.With("job", c.job.ID, "kind", c.job.Kind, "cluster", c.job.ClusterID)
	return (&run{Runner: r, job: c.job, plan: plans[c.job.Kind], claimed: c.at, lease: c.lease, log: log}).work(ctx)
}

// untilDue is how long to sleep when nothing wakes us.
func (r *Runner) untilDue(ctx context.Context) time.Duration {
	if r.inFlight() >= r.cfg.Workers {
		return r.cfg.Poll // a worker that gets free wakes us
	}
	d, ok, err := r.store.NextDue(ctx)
	if err != nil || !ok {
		return r.cfg.Poll
	}
	return min(max(d, 5*time.Millisecond), r.cfg.Poll)
}

// stop waits for the steps in flight, first patiently, then with their calls
// cancelled, and at last hands back what a hanging call still holds.
func (r *Runner) stop(abort func()) error {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
	ended := make(chan struct{})
	go func() { r.wg.Wait(); close(ended) }()
	for _, patience := range []time.Duration{r.cfg.Grace, time.Second} {
		timer := time.NewTimer(patience)
		select {
		case <-ended:
			timer.Stop()
			return nil
		case <-timer.C:
			abort()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, l := range r.leases {
		if err := r.store.PutBack(ctx, l.job, 0, false); err != nil && !errors.Is(err, store.ErrLeaseLost) {
			errs = append(errs, err)
		}
		l.lose()
	}
	return errors.Join(errs...)
}

func (r *Runner) inFlight() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.leases)
}

func (r *Runner) isStopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopping
}
