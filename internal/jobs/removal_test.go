package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store/storetest"
)

// Which workers go, and how (cks.md §5.3, §5.4).

// TestOnlyOwnWorkersComeAndGo: whatever other nodes there are, a scale-down by
// one takes exactly the newest own worker, after a drain, and a scale-up by one
// makes one more; control, etcd and external nodes are not touched. Upstream
// counted positions wrongly with three control nodes, and lowered the size
// without removing anything where there were external ones.
//
// Keeps: §5.3/candidates, §5.3/newest-first, §5.2/6-etcd, E3, E6, A31, A32.
func TestOnlyOwnWorkersComeAndGo(t *testing.T) {
	t.Parallel()
	for _, control := range []int{1, 3} {
		for _, etcd := range []int{0, 3} {
			for _, external := range []int{0, 1} {
				spec := storetest.Spec{State: cks.Running, Control: control, Etcd: etcd, Workers: 3, External: external}
				t.Run(fmt.Sprintf("%d control, %d etcd, %d external", control, etcd, external), func(t *testing.T) {
					t.Parallel()
					b := newBench(t, spec, 100)
					b.run()
					before, w := b.view(), b.workers()
					b.do(cks.ScaleDown, cks.Args{Size: 2 + external})
					left := slices.DeleteFunc(slices.Clone(before.VMs), func(v cks.VM) bool { return v.ID == w[2].ID })
					b.hasVMs(left)
					if b.calls("node.drain", w[2].ID) != 1 || b.calls("node.drain", "") != 1 || b.calls("vm.destroy", "") != 1 {
						t.Errorf("calls: %v", b.simulation().Calls)
					}
					b.do(cks.ScaleUp, cks.Args{Size: 3 + external})
					now := b.view()
					b.hasVMs(append(left, now.VMs[len(now.VMs)-1]))
					if got := b.workers(); len(got) != 3 || b.calls("node.drain", "") != 1 || b.calls("vm.destroy", "") != 1 {
						t.Errorf("%d workers; calls: %v", len(got), b.simulation().Calls)
					}
					b.consistent()
				})
			}
		}
	}
}

// hasVMs checks that the cluster has exactly these VMs.
func (b *bench) hasVMs(want []cks.VM) {
	b.Helper()
	ids := func(vms []cks.VM) (list []string) {
		for _, v := range vms {
			list = append(list, v.ID)
		}
		slices.Sort(list)
		return list
	}
	if got := ids(b.view().VMs); !slices.Equal(got, ids(want)) {
		b.Errorf("VMs %v, want %v", got, ids(want))
	}
}

// diary is a world that keeps what was done to its nodes and VMs, in order.
type diary struct {
	*sim.World
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) Drain(ctx context.Context, clusterID, name string, timeout time.Duration) error {
	d.write("drain %s within %s", name, timeout)
	return d.World.Drain(ctx, clusterID, name, timeout)
}

func (d *diary) Delete(ctx context.Context, clusterID, name string) error {
	d.write("delete %s", name)
	return d.World.Delete(ctx, clusterID, name)
}

func (d *diary) Destroy(ctx context.Context, clusterID, vmID string) error {
	d.write("destroy %s", vmID)
	return d.World.Destroy(ctx, clusterID, vmID)
}

// TestNodeIsDrainedDeletedDestroyed in this order, by its name in lower case
// however the VM's is written, and the drain has its limit. The object is
// deleted once more when the VM can make no new one.
//
// Keeps: §5.4/1-lower-case, §5.4/1-timeout, §5.4/2, §5.4/5, #14611, A35.
func TestNodeIsDrainedDeletedDestroyed(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	v := b.join("Prod-Node-00000D", false)
	d := &diary{World: b.world}
	b.runOn(d, d)
	b.do(cks.RemoveNodes, cks.Args{VMIDs: []string{v.ID}})
	want := []string{"drain prod-node-00000d within 20s", "delete prod-node-00000d", "destroy " + v.ID, "delete prod-node-00000d"}
	if !slices.Equal(d.lines, want) {
		t.Errorf("%q, want %q", d.lines, want)
	}
	if _, there := b.node(v); there {
		t.Error("the node object is still there")
	}
	b.consistent()
}

// TestNamedWorkersGoDownFirstThenNewest: in whatever order nodeids names them.
// Each that is gone is counted off, though the next one cannot go.
//
// Keeps: §5.4/order, §5.4/6, §5.1/3, E1.
func TestNamedWorkersGoDownFirstThenNewest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		down        int // index of a worker that is down; -1 = none
		gone, stuck int
	}{
		{"both run", -1, 2, 0},
		{"the older is down", 0, 0, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
			b.cfg.DrainTimeout = 5 * time.Second
			w := b.workers()
			b.fault(cks.Fault{Operation: "node.drain", Value: "fail:no", VMID: w[tc.stuck].ID})
			if tc.down >= 0 {
				b.set(w[tc.down], cks.VMStopped)
			}
			job := b.alone(b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{w[0].ID, w[2].ID}}))
			if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, w[tc.stuck].NodeName()) {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			want := slices.Delete(slices.Clone(w), tc.gone, tc.gone+1)
			if got := b.workers(); len(got) != 2 || got[0].ID != want[0].ID || got[1].ID != want[1].ID {
				t.Errorf("left: %v", got)
			}
			if size := b.view().Cluster.Size; size != 2 {
				t.Errorf("size %d", size)
			}
			b.consistent()
		})
	}
}

// TestNodeOfADownVMIsDeletedUndrained, with the same three tries as a drain
// has, and the same text.
//
// Keeps: §5.4/down, §5.4/3-delete, §5.4/4.
func TestNodeOfADownVMIsDeletedUndrained(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]cks.JobStatus{2: cks.JobSucceeded, 3: cks.JobFailed} {
		t.Run(fmt.Sprint(failures), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Alert, Control: 1, Workers: 2}, 100)
			w := b.workers()[0]
			b.set(w, cks.VMStopped)
			b.fault(cks.Fault{Operation: "node.delete", Value: "fail:exit status 1", Count: failures})
			job := b.alone(b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{w.ID}}))
			if job.Status != want {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			if n := b.calls("node.drain", ""); n != 0 {
				t.Errorf("%d drains", n)
			}
			if want == cks.JobSucceeded {
				return
			}
			text := "Scaling failed for Kubernetes cluster test, failed to remove Kubernetes node: " + w.NodeName() + " running on VM : " + w.Name + ": exit status 1"
			if job.ErrorText != text {
				t.Errorf("%s\nwant %s", job.ErrorText, text)
			}
			if n := b.calls("node.delete", w.ID); n != 3 {
				t.Errorf("%d tries", n)
			}
			if n := b.calls("vm.destroy", ""); n != 0 || b.view().Cluster.State != cks.Alert || len(b.workers()) != 2 {
				t.Errorf("%d VMs destroyed, %s with %d workers", n, b.view().Cluster.State, len(b.workers()))
			}
		})
	}
}
