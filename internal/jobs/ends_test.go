package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// Public reports about the ends of jobs and about the scanner (reports.md A.4-A.6).

// other adds one more cluster to b's database and makes its machines.
func (b *bench) other(spec storetest.Spec) string {
	b.Helper()
	view := storetest.Fixture(b, b.st, spec)
	b.adopted(view.VMs...)
	return view.Cluster.ID
}

// TestPanicIsOfOneJob: a call that panics for good fails its job, and the job
// of another cluster succeeds meanwhile.
//
// Keeps: A28.
func TestPanicIsOfOneJob(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"vm.start", "iso.attach"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
			hurt, well := b.id, b.other(storetest.Spec{State: cks.Running, Control: 1, Workers: 2})
			b.fault(cks.Fault{Operation: operation, Value: "panic", ClusterID: hurt})
			bad := b.ask(cks.ScaleUp, cks.Args{Size: 3})
			b.id = well
			good := b.alone(b.ask(cks.ScaleUp, cks.Args{Size: 3}))
			if bad = b.alone(bad); bad.Status != cks.JobFailed || good.Status != cks.JobSucceeded {
				t.Errorf("status %d and %d: %s%s", bad.Status, good.Status, bad.ErrorText, good.ErrorText)
			}
			if b.id = hurt; b.view().Cluster.State != cks.Alert {
				t.Errorf("cluster is %s", b.view().Cluster.State)
			}
			b.consistent()
		})
	}
}

// worked works b's only job by a plan of the test's own until it has ended.
func (b *bench) worked(job cks.Job, p plan) cks.Job {
	b.Helper()
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	b.until("the job ended", func() bool {
		jobs, err := r.claimJobs(b.ctx, 1)
		b.must(err)
		for _, c := range jobs {
			if err := (&run{Runner: r, job: c.job, plan: p, claimed: c.at, lease: c.lease, log: testLog()}).work(b.ctx); err != nil {
				b.must(b.st.ReleaseLeases(b.ctx)) // as the passing of time would
			}
		}
		job, err = b.st.Job(b.ctx, job.ID)
		b.must(err)
		return job.Status != cks.JobPending
	})
	return job
}

// TestPanicInAStepFailsTheJob: a step of ours that panics is tried three times.
//
// Keeps: A28.
func TestPanicInAStepFailsTheJob(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	times := 0
	p := plans[cks.ScaleDown]
	p.steps = append([]step{{name: "boom", do: func(*run, context.Context) error { times++; panic("boom") }}}, p.steps...)
	job := b.worked(b.ask(cks.ScaleDown, cks.Args{Size: 1}), p)
	if job.Status != cks.JobFailed || times != 3 {
		t.Errorf("status %d after %d tries: %s", job.Status, times, job.ErrorText)
	}
	if s := b.view().Cluster.State; s != cks.Alert {
		t.Errorf("cluster is %s", s)
	}
}

// TestEndThatCannotBeWritten: a database that refuses the final write a few
// times is asked again, so that the job ends as it went; one that refuses it
// for good fails the job, and the cluster does not stay in Scaling. A worker
// that has joined is counted either way.
//
// Keeps: A28.
func TestEndThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for refusals, want := range map[int]cks.JobStatus{1: cks.JobSucceeded, 2: cks.JobSucceeded, 1 << 30: cks.JobFailed} {
		t.Run(fmt.Sprint(refusals), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
			p := plans[cks.ScaleUp]
			tries := 0
			p.result = func(r *run, ctx context.Context, q *store.Queries) (cks.JobResult, error) {
				if tries++; tries <= refusals {
					return cks.JobResult{}, errors.New("value too long (SQLSTATE 22001)")
				}
				return clusterResult(r, ctx, q)
			}
			job := b.worked(b.ask(cks.ScaleUp, cks.Args{Size: 2}), p)
			if job.Status != want || strings.Contains(job.ErrorText, "SQLSTATE") {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			state := map[cks.JobStatus]cks.State{cks.JobSucceeded: cks.Running, cks.JobFailed: cks.Alert}[want]
			if c := b.view().Cluster; c.State != state || c.Size != 2 {
				t.Errorf("%s, size %d", c.State, c.Size)
			}
			b.consistent()
		})
	}
}

// finishing is a world in which the last call of a scale-up waits for the test.
type finishing struct {
	*sim.World
	begun, goOn chan struct{}
	once        sync.Once
}

func (f *finishing) DetachISO(ctx context.Context, clusterID, vmID string) error {
	f.once.Do(func() {
		close(f.begun)
		select {
		case <-f.goOn:
		case <-ctx.Done():
		}
	})
	return f.World.DetachISO(context.WithoutCancel(ctx), clusterID, vmID)
}

// TestStopInTheLastStep: the runner is told to stop while the last step is in
// flight. A step that returns within the grace period ends the job for good;
// one that does not leaves it to another runner, at once and with no try lost.
//
// Keeps: A52.
func TestStopInTheLastStep(t *testing.T) {
	t.Parallel()
	for name, returns := range map[string]bool{"within the grace period": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
			b.cfg.Lease, b.cfg.Grace, b.cfg.CallTimeout = time.Minute, time.Minute, time.Minute
			if !returns {
				b.cfg.Grace = 100 * time.Millisecond
			}
			f := &finishing{World: b.world, begun: make(chan struct{}), goOn: make(chan struct{})}
			ctx, stop := context.WithCancel(b.ctx)
			r := NewRunner(b.st, f, f, b.cfg)
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			job := b.ask(cks.ScaleUp, cks.Args{Size: 2})
			<-f.begun
			stop()
			b.until("the runner knows", r.isStopping)
			if returns {
				close(f.goOn)
			}
			b.must(<-ended)
			job, err := b.st.Job(b.ctx, job.ID)
			b.must(err)
			if c := b.view().Cluster; returns && (job.Status != cks.JobSucceeded || c.State != cks.Running || c.Size != 2) {
				t.Errorf("status %d after step %q, cluster %s, size %d", job.Status, job.Step, c.State, c.Size)
			}
			if !returns && (job.Status != cks.JobPending || job.Server != "" || job.Tries != 0) {
				t.Errorf("status %d, owner %q, %d tries", job.Status, job.Server, job.Tries)
			}
			if job = b.alone(job); job.Status != cks.JobSucceeded {
				t.Error(job.ErrorText)
			}
			b.consistent()
		})
	}
}

// TestStopDuringTheWait: a runner that is stopped while its job waits for the
// new nodes leaves it to be claimed, and another one ends it.
//
// Keeps: A52.
func TestStopDuringTheWait(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.Lease = time.Minute
	b.fault(cks.Fault{Operation: "node.join", Value: "fail"})
	ctx, stop := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- NewRunner(b.st, b.world, b.world, b.cfg).Run(ctx) }()
	job := b.ask(cks.ScaleUp, cks.Args{Size: 2})
	b.until("the job waits", func() bool {
		j, err := b.st.Job(b.ctx, job.ID)
		b.must(err)
		return j.Step == "attach-iso"
	})
	stop()
	b.must(<-ended)
	if j, err := b.st.Job(b.ctx, job.ID); err != nil || j.Server != "" || j.Status != cks.JobPending || j.Tries != 0 {
		t.Errorf("owner %q, status %d, %d tries, %v", j.Server, j.Status, j.Tries, err)
	}
	b.fault(cks.Fault{Operation: "node.join", Value: "clear"})
	if job = b.alone(job); job.Status != cks.JobSucceeded {
		t.Error(job.ErrorText)
	}
}

// TestScanOfBeforeAJobIsNoVerdictAfterIt: the scanner saw the cloud, paused,
// and a whole scaling went by. What it saw says nothing about the cluster as it
// is now, neither the worker that was down nor the one that was not there.
//
// Keeps: A48.
func TestScanOfBeforeAJobIsNoVerdictAfterIt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind cks.Kind
		size int
		down bool
	}{{cks.ScaleUp, 3, false}, {cks.ScaleDown, 1, true}} {
		t.Run(string(tc.kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
			if tc.down {
				b.set(b.workers()[0], cks.VMStopped)
			}
			p := pausing{b.world, make(chan struct{}), make(chan struct{})}
			done := make(chan error)
			go func() { done <- NewScanner(b.st, p, b.world, ScanConfig{CallTimeout: time.Minute}).Scan(b.ctx, b.id) }()
			<-p.read
			job := b.alone(b.ask(tc.kind, cks.Args{Size: tc.size}))
			close(p.goOn)
			b.must(<-done)
			if got := b.view().Cluster.State; got != cks.Running || job.Status != cks.JobSucceeded {
				t.Errorf("cluster is %s; %s", got, job.ErrorText)
			}
			for _, v := range b.view().VMs {
				if v.State != cks.VMRunning {
					t.Errorf("%s is recorded as %s", v.Name, v.State)
				}
			}
			b.scan()
			if got := b.view().Cluster.State; got != cks.Running {
				t.Errorf("the next scan makes it %s", got)
			}
		})
	}
}

// record is a log that a test can read.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

// lines are the log's lines that have all of the words.
func (r *record) lines(words ...string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(r.text.String()) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			n++
		}
	}
	return n
}

// TestOnePassJudgesEveryCluster: of three clusters the first cannot be looked
// up, the second has a stopped worker, the third is well again. In one pass the
// first is logged and left alone, and the others are moved; each move is logged.
//
// Keeps: A41, A42.
func TestOnePassJudgesEveryCluster(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 1)
	lost := b.id
	alert := b.other(storetest.Spec{State: cks.Running, Control: 1, Workers: 2})
	well := b.other(storetest.Spec{State: cks.Alert, Control: 1, Workers: 2})
	off := b.other(storetest.Spec{State: cks.Alert, Control: 1, Workers: 2})
	b.fault(cks.Fault{Operation: "vm.list", Value: "fail:no route to host", ClusterID: lost})
	b.id = alert
	b.set(b.workers()[0], cks.VMStopped)
	b.id = off
	for _, v := range b.view().VMs {
		b.set(v, cks.VMStopped)
	}
	log := &record{}
	s := NewScanner(b.st, b.world, b.world, ScanConfig{Log: slog.New(slog.NewTextHandler(log, nil))})
	s.scanDue(b.ctx)
	s.wg.Wait()
	for id, want := range map[string]cks.State{lost: cks.Running, alert: cks.Alert, well: cks.Running, off: cks.Stopped} {
		b.id = id
		if got := b.view().Cluster.State; got != want {
			t.Errorf("a cluster is %s, want %s", got, want)
		}
		if n := log.lines("cluster moved", id); (n == 1) != (id != lost) {
			t.Errorf("%d moves to %s are logged", n, want)
		}
	}
	if n := log.lines("scan failed", lost, "no route to host"); n != 1 {
		t.Errorf("the failure is logged %d times", n)
	}
}

// TestNoConnectionIsHeldAcrossACall: while a call to the cloud or to Kubernetes
// hangs, its job has no connection of the pool.
//
// Keeps: A54.
func TestNoConnectionIsHeldAcrossACall(t *testing.T) {
	t.Parallel()
	for operation, kind := range map[string]cks.Kind{
		"vm.create": cks.ScaleUp, "vm.start": cks.ScaleUp, "iso.attach": cks.ScaleUp, "iso.detach": cks.ScaleUp,
		"node.drain": cks.ScaleDown, "node.delete": cks.ScaleDown, "vm.destroy": cks.ScaleDown,
	} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
			b.cfg.CallTimeout, b.cfg.DrainTimeout, b.cfg.Grace = time.Minute, time.Minute, time.Millisecond
			b.fault(cks.Fault{Operation: operation, Value: "hang", Count: 1})
			job := b.ask(kind, cks.Args{Size: map[cks.Kind]int{cks.ScaleUp: 3, cks.ScaleDown: 1}[kind]})
			ctx, cut := context.WithCancel(b.ctx)
			ended := make(chan error, 1)
			go func() { ended <- NewRunner(b.st, b.world, b.world, b.cfg).Run(ctx) }()
			b.until("the call hangs", func() bool { return b.calls(operation, "") > 0 })
			b.until("no connection is in use", func() bool { return b.st.Stat().AcquiredConns() == 0 })
			cut()
			b.must(<-ended)
			if job = b.alone(job); job.Status != cks.JobSucceeded {
				t.Error(job.ErrorText)
			}
		})
	}
}

// TestJobsAreFoundByPolling: a runner that hears nothing, since no bus runs,
// finds a job that another server added.
//
// Keeps: A56.
func TestJobsAreFoundByPolling(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	var stores []*store.Store
	for range 2 {
		st, err := store.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(st.Close)
		stores = append(stores, st)
	}
	ctx, stop := context.WithCancel(t.Context())
	world := sim.New(stores[0], sim.Config{Speed: 100})
	there := &bench{T: t, ctx: ctx, st: stores[1], world: world, id: storetest.Fixture(t, stores[1], storetest.Spec{Workers: 1}).Cluster.ID}
	there.adopted(there.view().VMs...)
	ended := make(chan error, 1)
	go func() {
		ended <- NewRunner(stores[0], world, world, Config{Poll: 50 * time.Millisecond, ReadyPoll: 50 * time.Millisecond}).Run(ctx)
	}()
	for range 3 {
		for _, args := range []struct {
			kind cks.Kind
			size int
		}{{cks.ScaleUp, 2}, {cks.ScaleDown, 1}} {
			there.do(args.kind, cks.Args{Size: args.size})
		}
	}
	stop()
	there.must(<-ended)
}
