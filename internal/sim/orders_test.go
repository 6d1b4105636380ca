package sim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
)

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
	drained := make(chan error, 1)
	go func() { drained <- w.Drain(ended, "k", "demo-node-1", patience) }()
	until(ctx, t, "drain under way", func() bool { return calls(query(ctx, t, w, "k"), "node.drain") == 5 })
	cancel()
	if err := <-drained; !errors.Is(err, context.Canceled) {
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
