package sim_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// A fault that strikes once strikes one of eight callers on two servers, and
// every call counts.
func TestCountedFaultStrikesSoOften(t *testing.T) {
	ctx, st, a := begin(t)
	b := newWorld(st)
	must(t, a.Create(ctx, spec("k", "1")))
	must(t, a.Configure(ctx, cks.Fault{Operation: "vm.start", Value: "fail:no power", Count: 1}))
	var struck atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := []*sim.World{a, b}[i%2].Start(ctx, "k", "1"); err != nil {
				struck.Add(1)
				if err.Error() != "no power" || cks.CodeOf(err) != cks.Internal {
					t.Errorf("error %q with code %s", err, cks.CodeOf(err))
				}
			}
		})
	}
	all.Wait()
	if n := calls(query(ctx, t, b, "k"), "vm.start"); struck.Load() != 1 || n != 8 {
		t.Errorf("struck %d times in %d calls", struck.Load(), n)
	}
}

// What each fault does to a call, and that it narrows and clears.
func TestFaults(t *testing.T) {
	ctx, _, w := begin(t)
	must(t, w.Create(ctx, spec("k", "1")), w.Create(ctx, spec("k", "2")))
	set := func(value, vmID string) {
		t.Helper()
		must(t, w.Configure(ctx, cks.Fault{Operation: "vm.start", Value: value, ClusterID: "K", VMID: vmID}))
	}
	set("fail", "")
	if err := w.Start(ctx, "k", "1"); err == nil || !strings.Contains(err.Error(), "vm.start") {
		t.Errorf("fail: %v", err)
	}
	set("clear", "")
	set("hang", "2")
	must(t, w.Start(ctx, "k", "1"))
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := w.Start(short, "k", "2"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hang: %v", err)
	}
	set("delay:50ms", "2")
	begun := time.Now()
	must(t, w.Start(ctx, "k", "2"))
	if time.Since(begun) < 50*time.Millisecond {
		t.Error("no delay")
	}
	set("panic", "2")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = w.Start(ctx, "k", "2")
	}()
	must(t, w.Configure(ctx, cks.Fault{Operation: "node.list", Value: "fail:api down"}))
	if _, err := w.Nodes(ctx, "k"); err == nil || err.Error() != "api down" {
		t.Errorf("node.list: %v", err)
	}
	if err := w.Configure(ctx, cks.Fault{Operation: "vm.start", Value: "explode"}); cks.CodeOf(err) != cks.Invalid {
		t.Errorf("a bad value: %v", err)
	}
}

// A call meets faults without waiting for the lock that all clusters share.
func TestFaultsDoNotSerialiseClusters(t *testing.T) {
	ctx, st, w := begin(t)
	must(t, w.Create(ctx, spec("k", "1")))
	must(t, w.Configure(ctx, cks.Fault{Operation: "vm.start", Value: "delay:1ms"}))
	locked, release := make(chan struct{}), make(chan struct{})
	var holder sync.WaitGroup
	holder.Go(func() {
		once := sync.OnceFunc(func() { close(locked) })
		err := st.ChangeDocument(ctx, "simulator", func(doc []byte, _ time.Time) ([]byte, time.Time, error) {
			once()
			<-release
			return doc, time.Time{}, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-locked
	err := w.Start(ctx, "k", "1")
	close(release)
	holder.Wait()
	must(t, err)
}

// Of two nodes that are about to join, a fault that strikes once keeps one out,
// for every server the same, until it is cleared.
func TestCountedJoinFaultKeepsOneOut(t *testing.T) {
	ctx, st, a := begin(t)
	b := newWorld(st)
	must(t, a.Configure(ctx, cks.Fault{Operation: "node.join", Value: "fail", Count: 1}))
	boot(ctx, t, a, "k", "1")
	boot(ctx, t, b, "k", "2")
	running, stop := context.WithCancel(ctx)
	var servers sync.WaitGroup
	for _, w := range []*sim.World{a, b} {
		servers.Go(func() { _ = w.Run(running) })
	}
	until(ctx, t, "one node Ready and nothing due", func() bool {
		return !due(ctx, t, st) && ready(ctx, t, a, "k") == 1
	})
	if n := ready(ctx, t, b, "k"); n != 1 {
		t.Errorf("%d nodes on the other server", n)
	}
	must(t, b.Configure(ctx, cks.Fault{Operation: "node.join", Value: "clear"}))
	until(ctx, t, "both Ready", func() bool { return ready(ctx, t, a, "k") == 2 })
	stop()
	servers.Wait()
}

// "n more VMs fit" is exact for callers at the same time, frees with Destroy,
// and does not concern a machine that exists.
func TestCapacity(t *testing.T) {
	ctx, _, w := begin(t)
	must(t, w.Create(ctx, spec("k", "old")))
	room := func(want int) {
		t.Helper()
		if n, err := w.Room(ctx, 1, 1); err != nil || n != want {
			t.Errorf("room for %d, want %d (%v)", n, want, err)
		}
	}
	room(63)
	must(t, w.Configure(ctx, cks.Fault{Operation: "capacity", Value: "1"}))
	room(1)
	var made sync.Map
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			id := fmt.Sprint(i)
			switch err := w.Create(ctx, spec("k", id)); {
			case err == nil:
				made.Store(id, true)
			case cks.CodeOf(err) != cks.Failed || !strings.Contains(err.Error(), "insufficient capacity"):
				t.Errorf("error %v", err)
			}
		})
	}
	all.Wait()
	var ids []string
	made.Range(func(id, _ any) bool { ids = append(ids, id.(string)); return true })
	if len(ids) != 1 {
		t.Fatalf("made: %v", ids)
	}
	room(0)
	must(t, w.Create(ctx, spec("k", ids[0]))) // again
	must(t, w.Destroy(ctx, "k", ids[0]))
	if err := w.Destroy(ctx, "k", ids[0]); cks.CodeOf(err) != cks.NotFound {
		t.Errorf("destroyed twice: %v", err)
	}
	room(1)
	must(t, w.Configure(ctx, cks.Fault{Operation: "capacity", Value: "clear"}))
	room(63)
}

// A Destroy that died before it gave the place back is repeated, and does.
func TestRepeatedDestroyGivesThePlaceBack(t *testing.T) {
	ctx, st, w := begin(t)
	must(t, w.Create(ctx, spec("k", "1")))
	must(t, st.ChangeDocument(ctx, "k", func([]byte, time.Time) ([]byte, time.Time, error) { return nil, time.Time{}, nil }))
	if err := w.Destroy(ctx, "k", "1"); cks.CodeOf(err) != cks.NotFound {
		t.Errorf("error %v", err)
	}
	if n, err := w.Room(ctx, 1, 1); err != nil || n != 64 {
		t.Errorf("room for %d (%v)", n, err)
	}
}

// Where nobody counts places there is always room, until an order limits it;
// machines from before then still exist.
func TestCapacityWithoutLimit(t *testing.T) {
	ctx, st, _ := begin(t)
	w := sim.New(st, sim.Config{Capacity: -1})
	must(t, w.Create(ctx, spec("k", "1")))
	if n, err := w.Room(ctx, 1, 1); err != nil || n < 1_000_000 {
		t.Errorf("room for %d (%v)", n, err)
	}
	must(t, w.Configure(ctx, cks.Fault{Operation: "capacity", Value: "0"}))
	if n, err := w.Room(ctx, 1, 1); err != nil || n != 0 {
		t.Errorf("room for %d (%v)", n, err)
	}
	if err := w.Create(ctx, spec("k", "2")); cks.CodeOf(err) != cks.Failed {
		t.Errorf("on full hosts: %v", err)
	}
	must(t, w.Create(ctx, spec("k", "1"))) // exists
}

// A drain that nobody confirms, or that a budget forbids, fails at its timeout
// and says why; each of its calls counts.
func TestDrainTimesOut(t *testing.T) {
	ctx, _, w := begin(t)
	must(t, w.Adopt(ctx, []cks.MachineSpec{spec("k", "1"), spec("k", "2"), spec("k", "3")}))
	const short = time.Second
	must(t, w.Stop(ctx, "k", "1", true))
	if err := w.Drain(ctx, "k", "demo-node-1", short); err == nil || !strings.Contains(err.Error(), "demo-node-1 timed out") {
		t.Errorf("down: %v", err)
	}
	must(t, w.Configure(ctx, cks.Fault{Operation: "node.drain", Value: "budget", VMID: "2", Count: 1}))
	if err := w.Drain(ctx, "k", "demo-node-2", short); err == nil || !strings.Contains(err.Error(), "disruption budget") {
		t.Errorf("budget: %v", err)
	}
	must(t, w.Uncordon(ctx, "k", "demo-node-2"))
	must(t, w.Drain(ctx, "k", "demo-node-3", patience))
	if err := w.Drain(ctx, "k", "nobody", patience); cks.CodeOf(err) != cks.NotFound {
		t.Errorf("absent: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := w.Drain(ended, "k", "demo-node-1", patience); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	s := query(ctx, t, w, "k")
	pods := map[string]int{}
	for _, n := range s.Nodes {
		pods[n.VMID] = n.Pods
	}
	// The pods of 3 went to 2, as 1 was Unknown and cordoned by then.
	if diff := cmp.Diff(map[string]int{"1": 3, "2": 6, "3": 0}, pods); diff != "" || calls(s, "node.drain") != 5 {
		t.Errorf("%d drains, pods (-want +got):\n%s", calls(s, "node.drain"), diff)
	}
}

// A drain that hangs goes on once the node can confirm again.
func TestDrainGoesOnWhenTheNodeRecovers(t *testing.T) {
	ctx, _, w := begin(t)
	must(t, w.Adopt(ctx, []cks.MachineSpec{spec("k", "1"), spec("k", "2")}))
	must(t, w.Configure(ctx, cks.Fault{Operation: "node.set", Value: "NotReady", VMID: "1"}))
	done := make(chan error, 1)
	go func() { done <- w.Drain(ctx, "k", "demo-node-1", patience) }()
	until(ctx, t, "drain under way", func() bool { return calls(query(ctx, t, w, "k"), "node.drain") == 1 })
	must(t, w.Configure(ctx, cks.Fault{Operation: "node.set", Value: "Ready", VMID: "1"}))
	must(t, <-done)
}

// Orders that change the world behind the service's back (design.md §6).
func TestInterference(t *testing.T) {
	ctx, _, w := begin(t)
	must(t, w.Adopt(ctx, []cks.MachineSpec{spec("other", "9"), spec("k", "a1"), spec("k", "a2")}))
	must(t, w.Configure(ctx, cks.Fault{Operation: "vm.set", Value: "Migrating", VMID: "A1"}))
	must(t, w.Configure(ctx, cks.Fault{Operation: "node.forget", VMID: "a2", ClusterID: "k"}))
	s := query(ctx, t, w, "K")
	if len(s.Machines) != 2 || s.Machines[0].State != cks.VMMigrating || len(s.Nodes) != 1 || s.Nodes[0].VMID != "a1" {
		t.Errorf("%+v", s)
	}
	for _, f := range []cks.Fault{
		{Operation: "vm.set", Value: "Running"},
		{Operation: "vm.set", Value: "Running", VMID: "nobody"},
		{Operation: "vm.set", Value: "Running", VMID: "9", ClusterID: "k"},
		{Operation: "node.forget", VMID: "a2"},
		{Operation: "node.set", Value: "Ready", VMID: "a2"},
	} {
		if err := w.Configure(ctx, f); cks.CodeOf(err) != cks.Invalid {
			t.Errorf("%+v: %v", f, err)
		}
	}
	must(t, w.Delete(ctx, "k", "demo-node-a1"))
	if err := w.Delete(ctx, "k", "demo-node-a1"); cks.CodeOf(err) != cks.NotFound {
		t.Errorf("deleted twice: %v", err)
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
