package sim_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ckscale/internal/cks"
	"ckscale/internal/jobs"
	"ckscale/internal/sim"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

var (
	_ jobs.VMs   = (*sim.World)(nil)
	_ jobs.Nodes = (*sim.World)(nil)
	_ sim.Memory = (*store.Store)(nil)
)

// speed makes a boot last 16 ms and a join 40 ms.
const speed = 500

// patience ends a test that waits in vain.
const patience = 30 * time.Second

func newWorld(st *store.Store) *sim.World {
	return sim.New(st, sim.Config{Speed: speed, Changes: func(ctx context.Context) <-chan string {
		return st.Subscribe(ctx, store.TopicWorld)
	}})
}

// begin gives a test a context that ends, a database and a world on it.
func begin(t *testing.T) (context.Context, *store.Store, *sim.World) {
	t.Helper()
	t.Parallel()
	st := storetest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx, st, newWorld(st)
}

func spec(clusterID, id string) cks.MachineSpec {
	return cks.MachineSpec{ID: id, ClusterID: clusterID, Name: "Demo-Node-" + id, Role: cks.Worker, Cores: 2, MemoryMB: 2048}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition of the world.
func until(ctx context.Context, t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("in vain: %s", what)
		case <-tick.C:
		}
	}
}

// boot makes a machine that is about to join.
func boot(ctx context.Context, t *testing.T, w *sim.World, clusterID, id string) {
	t.Helper()
	must(t, w.Create(ctx, spec(clusterID, id)), w.Start(ctx, clusterID, id), w.AttachISO(ctx, clusterID, id))
}

// ready counts the Ready nodes of a cluster.
func ready(ctx context.Context, t *testing.T, w *sim.World, clusterID string) (n int) {
	t.Helper()
	nodes, err := w.Nodes(ctx, clusterID)
	must(t, err)
	for _, node := range nodes {
		if node.Ready == cks.NodeReady {
			n++
		}
	}
	return n
}

// due reports whether anything is going to happen by itself.
func due(ctx context.Context, t *testing.T, st *store.Store) bool {
	t.Helper()
	_, _, ok, err := st.NextDocument(ctx)
	must(t, err)
	return ok
}

func query(ctx context.Context, t *testing.T, w *sim.World, clusterID string) cks.Simulation {
	t.Helper()
	s, err := w.Query(ctx, clusterID)
	must(t, err)
	return s
}

// calls adds up how often an operation was asked.
func calls(s cks.Simulation, op string) (n int) {
	for _, c := range s.Calls {
		if c.Operation == op {
			n += c.Count
		}
	}
	return n
}

// Several servers share one world, and it survives them (design.md §6).
func TestWorldsOnOneDatabaseAgree(t *testing.T) {
	ctx, st, a := begin(t)
	b := newWorld(st)
	must(t, a.Adopt(ctx, []cks.MachineSpec{spec("k", "1"), spec("k", "2")}))
	must(t, b.Adopt(ctx, []cks.MachineSpec{spec("k", "1"), spec("k", "2")})) // again: nothing new
	must(t, a.Create(ctx, spec("k", "3")), b.Start(ctx, "k", "3"), a.AttachISO(ctx, "k", "3"))
	must(t, b.Stop(ctx, "k", "1", true), b.Resize(ctx, "k", "2", 8, 8192))
	must(t, a.SetAutoscaler(ctx, "k", cks.Autoscaling{Enabled: true, Min: 1, Max: 5}))
	settled := func() bool {
		return slices.ContainsFunc(query(ctx, t, b, "k").Nodes, func(n cks.SimulatedNode) bool { return n.Ready == cks.NodeUnknown }) &&
			ready(ctx, t, a, "k") == 2
	}
	until(ctx, t, "node 1 Unknown, 2 and 3 Ready", settled)
	seen := query(ctx, t, a, "")
	for name, w := range map[string]*sim.World{"the other": b, "a new one": newWorld(st)} {
		if diff := cmp.Diff(seen, query(ctx, t, w, "k")); diff != "" {
			t.Errorf("%s (-first +other):\n%s", name, diff)
		}
	}
	var pods int
	for _, n := range seen.Nodes {
		pods += n.Pods
	}
	if pods != 6 || len(seen.Machines) != 3 || len(seen.Autoscalers) != 1 || seen.Machines[1].Cores != 8 {
		t.Errorf("%+v", seen)
	}
}

// Looking computes; it does not write.
func TestReadsDoNotWrite(t *testing.T) {
	ctx, st, w := begin(t)
	boot(ctx, t, w, "k", "1")
	before, _, err := st.ReadDocument(ctx, "k")
	must(t, err)
	until(ctx, t, "node Ready", func() bool { return ready(ctx, t, w, "k") == 1 })
	query(ctx, t, w, "")
	after, _, err := st.ReadDocument(ctx, "k")
	must(t, err)
	if string(before) != string(after) {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// Run lets timed events happen, and watchers hear of each without asking: the
// boot's end, the registration, the first Ready.
func TestRunTellsWatchers(t *testing.T) {
	ctx, st, w := begin(t)
	running, stop := context.WithCancel(ctx)
	var servers sync.WaitGroup
	for _, w := range []*sim.World{w, newWorld(st)} { // two servers
		servers.Go(func() {
			if err := w.Run(running); err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
	watching, unwatch := context.WithCancel(ctx)
	vms, nodes := w.WatchVMs(watching), w.WatchNodes(watching)
	boot(ctx, t, w, "k", "1")
	told := func(watch <-chan string, what string, holds func() bool) {
		for id := range watch {
			if id != "k" && id != "" {
				t.Errorf("told of %q", id)
			}
			if holds() {
				return
			}
		}
		t.Errorf("nobody told: %s", what)
	}
	told(vms, "Running", func() bool {
		all, err := w.Machines(ctx, "k")
		must(t, err)
		return all[0].State == cks.VMRunning
	})
	told(nodes, "Ready", func() bool { return ready(ctx, t, w, "k") == 1 })
	unwatch()
	for range vms { // closed once its context has ended
	}
	until(ctx, t, "nothing due", func() bool { return !due(ctx, t, st) })
	stop()
	servers.Wait()
}

// One id is one machine, and takes one place, however often it is created.
func TestConcurrentCreatesMakeOneMachine(t *testing.T) {
	ctx, st, a := begin(t)
	b := newWorld(st)
	before, err := a.Room(ctx, 2, 2048)
	must(t, err)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := []*sim.World{a, b}[i%2].Create(ctx, spec("k", "1")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	after, err := a.Room(ctx, 2, 2048)
	must(t, err)
	s := query(ctx, t, b, "k")
	if len(s.Machines) != 1 || before-after != 1 || calls(s, "vm.create") != 8 {
		t.Errorf("%d machines, room %d and then %d, %d calls", len(s.Machines), before, after, calls(s, "vm.create"))
	}
}

// A call that changes nothing tells nobody: a watcher that asks again at every
// change must come to rest.
func TestCallsThatChangeNothingTellNobody(t *testing.T) {
	ctx, _, w := begin(t)
	must(t, w.Adopt(ctx, []cks.MachineSpec{spec("k", "1"), spec("last", "2")}))
	must(t, w.Configure(ctx, cks.Fault{Operation: "vm.stop", Value: "fail"}))
	watch := w.WatchVMs(ctx)
	must(t, w.Start(ctx, "k", "1"), w.DetachISO(ctx, "k", "1"), w.Create(ctx, spec("k", "1")))
	_ = w.Stop(ctx, "k", "1", true)
	must(t, w.AttachISO(ctx, "last", "2"))
	if id := <-watch; id != "last" {
		t.Errorf("told of %q", id)
	}
}

// Run outlives trouble with the database, and goes on after it.
func TestRunGoesOnAfterTrouble(t *testing.T) {
	ctx, st, w := begin(t)
	boot(ctx, t, w, "k", "1")
	mem := &troubled{Memory: st, left: 2}
	patient := sim.New(mem, sim.Config{Speed: speed, Log: slog.New(slog.DiscardHandler)})
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- patient.Run(running) }()
	until(ctx, t, "nothing due", func() bool { return !due(ctx, t, st) })
	stop()
	must(t, <-done)
}

// troubled is a Memory that fails a few times.
type troubled struct {
	sim.Memory
	left int
}

func (m *troubled) NextDocument(ctx context.Context) (string, time.Duration, bool, error) {
	if m.left > 0 {
		m.left--
		return "", 0, false, errors.New("connection lost")
	}
	return m.Memory.NextDocument(ctx)
}
