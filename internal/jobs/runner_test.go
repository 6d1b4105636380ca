package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// TestRunnerDiesInEveryStep kills a runner inside every step of every plan,
// after the step has acted and before that is recorded, and expects the same
// end as without (A50).
//
// Keeps: §5.9/restart, §6/4-destroying.
// Keeps: A50.
func TestRunnerDiesInEveryStep(t *testing.T) {
	t.Parallel()
	for kind, args := range map[cks.Kind]func(b *bench) cks.Args{
		cks.ScaleUp:     func(*bench) cks.Args { return cks.Args{Size: 4} },
		cks.ScaleDown:   func(*bench) cks.Args { return cks.Args{Size: 1} },
		cks.RemoveNodes: func(b *bench) cks.Args { return cks.Args{VMIDs: []string{b.workers()[0].ID, b.workers()[1].ID}} },
		cks.ChangeOffering: func(b *bench) cks.Args {
			big, err := b.st.AddOffering(b.ctx, cks.Offering{Name: "big", DisplayText: "big", Cores: 8, SpeedMHz: 2000, MemoryMB: 16384})
			b.must(err)
			return cks.Args{Offerings: map[cks.Role]string{cks.Worker: big.ID}}
		},
		cks.Autoscale:      func(*bench) cks.Args { return cks.Args{Autoscaling: &cks.Autoscaling{Enabled: true, Min: 1, Max: 5}} },
		cks.DeleteCluster:  func(*bench) cks.Args { return cks.Args{} },
		cks.StartCluster:   (*bench).stopped,
		cks.StopCluster:    func(*bench) cks.Args { return cks.Args{} },
		cks.UpgradeCluster: (*bench).newer,
	} {
		for i, s := range plans[kind].steps {
			t.Run(string(kind)+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				from := cks.Running
				if kind == cks.StartCluster {
					from = cks.Stopped
				}
				b := newBench(t, storetest.Spec{State: from, Control: 1, Workers: 3}, 100)
				job := b.ask(kind, args(b))
				dead := b.dieIn(i)
				b.run()
				if job = b.ended(job); job.Status != cks.JobSucceeded {
					t.Fatal(job.ErrorText)
				}
				if err := dead.step(b.ctx, step{name: s.name, db: s.db}); err == nil {
					t.Error("the dead runner could still record a step")
				}
				b.consistent()
				if kind == cks.ScaleUp && (len(b.workers()) != 4 || b.calls("vm.create", "") > 2) {
					t.Errorf("%d workers, %d creates", len(b.workers()), b.calls("vm.create", ""))
				}
				if (kind == cks.ScaleDown || kind == cks.RemoveNodes) && len(b.workers()) != 1 {
					t.Errorf("%d workers", len(b.workers()))
				}
				b.livedOn(kind)
			})
		}
	}
}

// dieIn works the only job up to step i, does what step i does to the world,
// and dies: its lease runs out.
func (b *bench) dieIn(i int) *run {
	b.Helper()
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	var at *run
	b.until("the job is in its step", func() bool {
		if at == nil {
			jobs, err := r.claimJobs(b.ctx, 1)
			b.must(err)
			if len(jobs) == 0 {
				return false
			}
			at = &run{Runner: r, job: jobs[0].job, plan: plans[jobs[0].job.Kind], claimed: jobs[0].at, lease: jobs[0].lease, log: testLog()}
		}
		at.lease.renewed(time.Now())
		n, err := after(at.plan.steps, at.job.Step)
		b.must(err)
		s := at.plan.steps[n]
		if n < i {
			err = at.step(b.ctx, s)
		} else if s.do != nil {
			err = s.do(at, b.ctx)
		}
		if errors.As(err, new(notYet)) {
			return false
		}
		b.must(err)
		return n == i
	})
	b.must(b.st.ReleaseLeases(b.ctx)) // as the passing of time would
	return at
}

// TestPausedRunnerDoesNotAct: a process that was stopped past its lease does
// nothing to the world when it goes on, though the database has not told it.
func TestPausedRunnerDoesNotAct(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.ask(cks.ScaleUp, cks.Args{Size: 2})
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	jobs, err := r.claimJobs(b.ctx, 1)
	b.must(err)
	jobs[0].lease.renewed(time.Now().Add(-b.cfg.Lease)) // as long ago as a lease
	asked := false
	at := &run{Runner: r, job: jobs[0].job, lease: jobs[0].lease}
	err = at.call(b.ctx, "act", time.Second, func(context.Context) error { asked = true; return nil })
	if !errors.Is(err, store.ErrLeaseLost) || asked {
		t.Errorf("err %v, asked %v", err, asked)
	}
}

// TestLongStepKeepsItsLease: a step longer than the lease is not taken over.
func TestLongStepKeepsItsLease(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.Lease = 1500 * time.Millisecond
	b.cfg.CallTimeout = 20 * time.Second
	b.fault(cks.Fault{Operation: "vm.create", Value: "delay:4s"})
	b.run()
	b.run2()
	b.do(cks.ScaleUp, cks.Args{Size: 2})
	if n := b.calls("vm.create", ""); n != 1 {
		t.Errorf("%d creates", n)
	}
}

// run2 starts one more runner.
func (b *bench) run2() {
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	done := make(chan struct{})
	go func() { defer close(done); r.Run(b.ctx) }()
	b.Cleanup(func() { b.stop(); <-done })
}

// TestStopHandsOver: at shutdown a job in a hanging step is handed back at
// once, with no try lost, and another runner ends it (A52).
//
// Keeps: A52.
func TestStopHandsOver(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.Lease, b.cfg.Grace = time.Minute, 100*time.Millisecond
	b.cfg.CallTimeout = 30 * time.Second
	b.fault(cks.Fault{Operation: "vm.create", Value: "hang", Count: 1})
	ctx, stop := context.WithCancel(b.ctx)
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	job := b.ask(cks.ScaleUp, cks.Args{Size: 2})
	b.until("the step hangs", func() bool { return b.calls("vm.create", "") == 1 })
	stop()
	b.must(<-ended)
	j, err := b.st.Job(b.ctx, job.ID)
	b.must(err)
	if j.Server != "" || j.Tries != 0 || j.Step != "choose-vms" {
		t.Errorf("owner %q, %d tries, step %q", j.Server, j.Tries, j.Step)
	}
	b.run()
	if job = b.ended(job); job.Status != cks.JobSucceeded {
		t.Error(job.ErrorText)
	}
	b.consistent()
}

// TestUnknownStepDoesNotStartOver: a checkpoint that the plan lacks is an
// error.
func TestUnknownStepDoesNotStartOver(t *testing.T) {
	t.Parallel()
	if _, err := after(grow, "gone"); err == nil {
		t.Error("started over")
	}
}

// TestStepNamesAreUnique: a name is a checkpoint.
func TestStepNamesAreUnique(t *testing.T) {
	t.Parallel()
	for kind, p := range plans {
		for _, steps := range [][]step{p.steps, p.undo} {
			seen := map[string]bool{}
			for _, s := range steps {
				if seen[s.name] {
					t.Errorf("%s has two steps %s", kind, s.name)
				}
				seen[s.name] = true
				if _, err := after(steps, s.back); err != nil {
					t.Errorf("%s: %s goes back to %s", kind, s.name, s.back)
				}
			}
		}
	}
}
