package jobs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// How new nodes are planned and made (cks.md §5.2).

// big adds an offering that is larger than what the cluster's VMs have.
func (b *bench) big() cks.Offering {
	b.Helper()
	o, err := b.st.AddOffering(b.ctx, cks.Offering{Name: "big", DisplayText: "big", Cores: 8, SpeedMHz: 2000, MemoryMB: 16384})
	b.must(err)
	return o
}

// TestCapacityIsPlannedForNewVMsOnly: with room for one VM a cluster of five
// grows by one, in Alert as in Running; upstream planned the whole cluster
// again for one in Alert.
//
// Keeps: §5.2/c-new-only.
// Keeps: seed/capacity.
func TestCapacityIsPlannedForNewVMsOnly(t *testing.T) {
	t.Parallel()
	for _, state := range []cks.State{cks.Running, cks.Alert} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: state, Control: 3, Workers: 2}, 100)
			if state == cks.Alert {
				b.set(b.workers()[0], cks.VMStopped)
			}
			b.fault(cks.Fault{Operation: "capacity", Value: "1"})
			b.run()
			b.do(cks.ScaleUp, cks.Args{Size: 3})
			b.consistent()
		})
	}
}

// planner is a cloud that remembers for what size of VM room was asked, and
// what was made.
type planner struct {
	*sim.World
	mu   sync.Mutex
	seen map[string]bool
}

func (w *planner) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[text] = true
}

func (w *planner) Room(ctx context.Context, cores, memoryMB int) (int, error) {
	w.note(fmt.Sprintf("room for %d cores, %d MB", cores, memoryMB))
	return w.World.Room(ctx, cores, memoryMB)
}

func (w *planner) Create(ctx context.Context, m cks.MachineSpec) error {
	w.note(fmt.Sprintf("%s of %d cores, %d MB", m.Role, m.Cores, m.MemoryMB))
	return w.World.Create(ctx, m)
}

// TestNewWorkersGetTheWorkersOffering: capacity is planned with it and the VM
// is made and recorded with it, not with the cluster's default.
//
// Keeps: §5.2/c-offering, §5.2/2-offering, E8, D4.
func TestNewWorkersGetTheWorkersOffering(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	big := b.big()
	w := &planner{World: b.world, seen: map[string]bool{}}
	b.runOn(w, w)
	b.do(cks.ChangeOffering, cks.Args{Offerings: map[cks.Role]string{cks.Worker: big.ID}})
	b.do(cks.ScaleUp, cks.Args{Size: 2})
	for _, text := range []string{"room for 8 cores, 16384 MB", "worker of 8 cores, 16384 MB"} {
		if !w.seen[text] {
			t.Errorf("no %s; seen: %v", text, w.seen)
		}
	}
	if len(w.seen) != 2 {
		t.Errorf("seen: %v", w.seen)
	}
	if fresh := b.workers()[1]; fresh.OfferingID != big.ID || fresh.Cores != 8 {
		t.Errorf("recorded: %+v", fresh)
	}
	b.consistent()
}

// crowd is a cloud in which the first four VMs are made only when all of them
// are being made.
type crowd struct {
	*sim.World
	now, most atomic.Int32
	four      chan struct{}
	once      sync.Once
}

func (w *crowd) Create(ctx context.Context, m cks.MachineSpec) error {
	n := w.now.Add(1)
	defer w.now.Add(-1)
	for most := w.most.Load(); n > most && !w.most.CompareAndSwap(most, n); most = w.most.Load() {
	}
	if n == 4 {
		w.once.Do(func() { close(w.four) })
	}
	select {
	case <-w.four:
	case <-ctx.Done():
		return ctx.Err()
	}
	return w.World.Create(ctx, m)
}

// TestFourVMsAreMadeAtOnce, and no more, so that one large request does not
// take the cloud for itself. Upstream makes one after the other.
//
// Keeps: §5.2/2-at-once.
func TestFourVMsAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	w := &crowd{World: b.world, four: make(chan struct{})}
	b.runOn(w, w)
	b.do(cks.ScaleUp, cks.Args{Size: 8})
	if most := w.most.Load(); most != 4 {
		t.Errorf("%d at once", most)
	}
	b.consistent()
}

// TestVMThatDoesNotComeUpFailsTheScaleUp: one that ends in Error, at once; one
// that only takes too long, at the deadline. It is destroyed either way.
//
// Keeps: §5.2/2-running.
func TestVMThatDoesNotComeUpFailsTheScaleUp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		limit      time.Duration
		set        cks.VMState // once it is Starting; "" = nothing
	}{
		{"Error", ": it is in Error state", time.Minute, cks.VMError},
		{"still Starting", ": not running in time", time.Second, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 1) // it boots for 8 s
			job := b.askWithin(tc.limit, cks.ScaleUp, cks.Args{Size: 2})
			r := NewRunner(b.st, b.world, b.world, b.cfg)
			var fresh cks.VM
			b.until("the VM is Starting", func() bool {
				_, err := r.RunOnce(b.ctx)
				b.must(err)
				if w := b.workers(); len(w) == 2 {
					fresh = w[1]
				}
				return fresh.State == cks.VMStarting
			})
			if tc.set != "" {
				b.set(fresh, tc.set)
			}
			job = b.alone(job)
			want := "Scaling failed for Kubernetes cluster : test, 0 of 1 new nodes joined: Failed to start VM " + fresh.Name + " in the Kubernetes cluster : test" + tc.text
			if job.Status != cks.JobFailed || job.ErrorText != want {
				t.Errorf("status %d: %s\nwant %s", job.Status, job.ErrorText, want)
			}
			if c := b.view().Cluster; c.State != cks.Alert || c.Size != 1 {
				t.Errorf("%s, size %d", c.State, c.Size)
			}
			b.consistent()
		})
	}
}

// TestRunnerDiesWhileCreating kills a runner inside every step of a cluster's
// creation: another one ends it, and no cluster stays in Starting. Upstream
// looks after such clusters once, ten minutes after a restart.
//
// Keeps: §6/4-starting.
func TestRunnerDiesWhileCreating(t *testing.T) {
	t.Parallel()
	for i, s := range plans[cks.CreateCluster].steps {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
			job := b.create()
			b.id = job.ClusterID
			b.dieIn(i)
			b.run()
			if job = b.ended(job); job.Status != cks.JobSucceeded {
				t.Fatal(job.ErrorText)
			}
			if view := b.view(); view.Cluster.State != cks.Running || view.Cluster.Size != 2 || len(view.VMs) != 4 {
				t.Errorf("%s, size %d, %d VMs", view.Cluster.State, view.Cluster.Size, len(view.VMs))
			}
			b.consistent()
		})
	}
}

// TestFewerVMsThanNodesChangesNothing: a cluster whose record says more nodes
// than it has VMs is refused before anything is touched, whatever is asked.
//
// Keeps: §5.2/d, §5.3/pre-checks, §5.5/pre-check.
func TestFewerVMsThanNodesChangesNothing(t *testing.T) {
	t.Parallel()
	const size, other = "Scaling failed for Kubernetes cluster : test, it is in unstable state as not enough existing VM instances found",
		"Scaling Kubernetes cluster : test failed, it is in unstable state as not enough existing VM instances found!"
	for kind, want := range map[cks.Kind]string{cks.ScaleUp: size, cks.ScaleDown: size, cks.RemoveNodes: size, cks.ChangeOffering: other} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
			args := map[cks.Kind]cks.Args{
				cks.ScaleUp: {Size: 4}, cks.ScaleDown: {Size: 1}, cks.RemoveNodes: {VMIDs: []string{b.workers()[0].ID}},
				cks.ChangeOffering: {Offerings: map[cks.Role]string{cks.Worker: b.big().ID}},
			}[kind]
			b.must(b.st.RecordSize(b.ctx, b.view().Cluster, 3))
			if job := b.alone(b.ask(kind, args)); job.Status != cks.JobFailed || job.ErrorText != want {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			if s := b.view().Cluster.State; s != cks.Running {
				t.Errorf("cluster is %s", s)
			}
			for _, op := range []string{"vm.create", "vm.resize", "node.drain", "node.delete", "vm.destroy"} {
				if n := b.calls(op, ""); n != 0 {
					t.Errorf("%d times %s", n, op)
				}
			}
			b.must(b.st.RecordSize(b.ctx, b.view().Cluster, 2)) // as it should be
		})
	}
}

// join adds a worker with this name to b's cluster, which runs and is Ready.
func (b *bench) join(name string, external bool) cks.VM {
	b.Helper()
	view := b.view()
	var vm cks.VM
	b.must(b.st.InTx(b.ctx, func(q *store.Queries) (err error) {
		vm, err = q.AddVM(b.ctx, cks.VM{ClusterID: b.id, Name: name, Role: cks.Worker, External: external,
			OfferingID: view.Cluster.DefaultOffering, State: cks.VMRunning, NodeVersion: "1.33.1"})
		if err != nil {
			return err
		}
		return q.RecordSize(b.ctx, view.Cluster, view.Cluster.Size+1)
	}))
	b.must(b.world.Adopt(b.ctx, []cks.MachineSpec{{ID: vm.ID, ClusterID: b.id, Name: name, Role: cks.Worker, Cores: vm.Cores, MemoryMB: vm.MemoryMB}}))
	return vm
}
