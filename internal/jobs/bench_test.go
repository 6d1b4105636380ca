package jobs

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/invariant"
	"ckscale/internal/sim"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

var (
	_ VMs   = (*sim.World)(nil)
	_ Nodes = (*sim.World)(nil)
)

// bench is one cluster in a simulated world on a database of its own.
type bench struct {
	*testing.T
	ctx   context.Context
	st    *store.Store
	world *sim.World
	id    string // of the cluster
	cfg   Config // its limits are long: the machine may be busy; a test that means to reach one shortens it
	stop  func() // ends what run started

	unsettled bool // the test leaves behind what no server can bring in order
}

// newBench makes the cluster of spec, its machines running. Nothing acts yet.
// When the test has ended, the scenario is settled.
func newBench(t *testing.T, spec storetest.Spec, speed float64) *bench {
	t.Helper()
	st := storetest.New(t)
	view := storetest.Fixture(t, st, spec)
	ctx, cancel := context.WithCancel(t.Context())
	b := &bench{T: t, ctx: ctx, st: st, id: view.Cluster.ID, stop: cancel}
	b.world = sim.New(st, sim.Config{Speed: speed, Changes: func(ctx context.Context) <-chan string {
		return st.Subscribe(ctx, store.TopicWorld)
	}})
	var specs []cks.MachineSpec
	for _, v := range view.VMs {
		specs = append(specs, cks.MachineSpec{ID: v.ID, ClusterID: b.id, Name: v.Name, Role: v.Role, Cores: v.Cores, MemoryMB: v.MemoryMB, Version: v.NodeVersion})
	}
	b.must(b.world.Adopt(ctx, specs))
	b.cfg = Config{
		Lease: 2 * time.Second, Poll: 50 * time.Millisecond, ReadyPoll: 100 * time.Millisecond, RetryWait: 20 * time.Millisecond,
		DrainTimeout: 20 * time.Second, CallTimeout: 2 * time.Second, Grace: 2 * time.Second, Log: testLog(),
	}
	t.Cleanup(b.settles)
	return b
}

func testLog() *slog.Logger {
	if os.Getenv("CKSCALE_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// run starts the world, a runner and a scanner until the test ends or b.stop.
func (b *bench) run() *Runner {
	b.Helper()
	return b.runOn(b.world, b.world)
}

// runOn is run with a runner that sees another world than the scanner does.
func (b *bench) runOn(vms VMs, nodes Nodes) *Runner {
	b.Helper()
	runner, end := b.start(vms, nodes)
	b.Cleanup(end)
	return runner
}

// start is runOn until end is called.
func (b *bench) start(vms VMs, nodes Nodes) (runner *Runner, end func()) {
	runner = NewRunner(b.st, vms, nodes, b.cfg)
	scanner := NewScanner(b.st, b.world, b.world, ScanConfig{Interval: 500 * time.Millisecond, CallTimeout: time.Second, Log: testLog()})
	var wg sync.WaitGroup
	wg.Go(func() { b.st.RunBus(b.ctx, func(error) {}) })
	wg.Go(func() { b.world.Run(b.ctx) })
	wg.Go(func() { runner.Run(b.ctx) })
	wg.Go(func() { scanner.Run(b.ctx) })
	return runner, func() { b.stop(); wg.Wait() }
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// ask records a job as the service does: again, when the cluster changed
// meanwhile.
func (b *bench) ask(kind cks.Kind, args cks.Args) cks.Job {
	b.Helper()
	return b.askWithin(time.Minute, kind, args)
}

func (b *bench) askWithin(timeout time.Duration, kind cks.Kind, args cks.Args) (job cks.Job) {
	b.Helper()
	b.until("the cluster is held", func() bool {
		err := b.st.InTx(b.ctx, func(q *store.Queries) error {
			view, err := q.View(b.ctx, b.id)
			if err != nil {
				return err
			}
			job, err = q.AddJob(b.ctx, store.NewJob{
				Command: "scaleKubernetesCluster", Kind: kind, AccountID: view.Account.ID, ClusterID: b.id, Args: args,
				Notes: cks.Notes{Seen: view.Cluster.State, Before: view.Cluster.Size}, Timeout: timeout,
			})
			if err != nil {
				return err
			}
			return q.HoldCluster(b.ctx, view.Cluster, job.ID, cks.Requests[kind])
		})
		if cks.CodeOf(err) == cks.Conflict && !b.view().Cluster.State.Busy() {
			return false
		}
		b.must(err)
		return true
	})
	return job
}

// ended waits until the job has ended.
func (b *bench) ended(job cks.Job) cks.Job {
	b.Helper()
	b.until("job "+string(job.Kind)+" ended", func() bool {
		var err error
		job, err = b.st.Job(b.ctx, job.ID)
		b.must(err)
		return job.Status != cks.JobPending
	})
	return job
}

// do asks, waits and fails the test unless the job succeeds.
func (b *bench) do(kind cks.Kind, args cks.Args) cks.Job {
	b.Helper()
	job := b.ended(b.ask(kind, args))
	if job.Status != cks.JobSucceeded {
		b.Fatalf("%s failed: %s", kind, job.ErrorText)
	}
	return job
}

// until waits for a condition, which is looked at often.
func (b *bench) until(what string, ok func() bool) {
	b.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			b.Fatalf("never: %s", what)
		}
	}
}

func (b *bench) view() cks.ClusterView {
	b.Helper()
	view, err := b.st.View(b.ctx, b.id)
	b.must(err)
	return view
}

func (b *bench) inState(s cks.State) {
	b.Helper()
	b.until("cluster in "+string(s), func() bool { return b.view().Cluster.State == s })
}

func (b *bench) workers() []cks.VM {
	b.Helper()
	return slices.DeleteFunc(b.view().VMs, func(v cks.VM) bool { return !v.OwnWorker() })
}

// set puts a VM into a state behind the service's back.
func (b *bench) set(v cks.VM, s cks.VMState) {
	b.Helper()
	b.fault(cks.Fault{Operation: "vm.set", Value: string(s), VMID: v.ID})
}

func (b *bench) fault(f cks.Fault) {
	b.Helper()
	b.must(b.world.Configure(b.ctx, f))
}

// calls is how often the operation was asked of the world for a VM, or for
// all ("").
func (b *bench) calls(operation, vmID string) int {
	b.Helper()
	n := 0
	for _, c := range b.simulation().Calls {
		if c.Operation == operation && (vmID == "" || c.VMID == vmID) {
			n += c.Count
		}
	}
	return n
}

func (b *bench) simulation() cks.Simulation {
	b.Helper()
	s, err := b.world.Query(b.ctx, b.id)
	b.must(err)
	return s
}

func (b *bench) node(v cks.VM) (cks.Node, bool) {
	b.Helper()
	nodes, err := b.world.Nodes(b.ctx, b.id)
	b.must(err)
	i := slices.IndexFunc(nodes, func(n cks.Node) bool { return n.Name == v.NodeName() })
	if i < 0 {
		return cks.Node{}, false
	}
	return nodes[i], true
}

// consistent checks the invariants, once no job is live, and that the ISO is
// out.
func (b *bench) consistent() {
	b.Helper()
	facts, err := invariant.Gather(b.ctx, b.st, b.world)
	b.must(err)
	for _, broken := range facts.Broken() {
		b.Error(broken)
	}
	if len(facts.Jobs) > 0 {
		b.Errorf("jobs are live: %+v", facts.Jobs)
	}
	for _, m := range b.simulation().Machines {
		if m.ISOAttached {
			b.Errorf("the ISO is still attached to %s", m.Name)
		}
	}
}

// settles ends a scenario as a repaired cloud and another server would: the
// faults are cleared, the leases of the dead run out, and every job must end,
// with all invariants kept and everything told.
func (b *bench) settles() {
	if b.Failed() || b.unsettled {
		return
	}
	b.ctx, b.stop = context.WithCancel(context.WithoutCancel(b.ctx))
	for _, operation := range sim.Clearable() {
		b.fault(cks.Fault{Operation: operation, Value: "clear"})
	}
	b.must(b.st.ReleaseLeases(b.ctx))
	defer b.toldTruly() // when nobody acts any more
	_, end := b.start(b.world, b.world)
	defer end()
	var broken []string
	defer func() {
		if b.Failed() {
			b.Log("broken: ", broken)
		}
	}()
	b.until("every job has ended and the invariants hold", func() bool {
		facts, err := invariant.Gather(b.ctx, b.st, b.world)
		b.must(err)
		broken = facts.Broken()
		return len(facts.Jobs) == 0 && len(broken) == 0
	})
}
