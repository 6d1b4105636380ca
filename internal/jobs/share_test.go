package jobs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// askVM records a job for a VM as the service does.
func (b *bench) askVM(kind cks.Kind, v cks.VM) cks.Job {
	b.Helper()
	job, err := b.st.AddJob(b.ctx, store.NewJob{
		Command: "stopVirtualMachine", Kind: kind, AccountID: b.view().Account.ID, VMID: v.ID, Timeout: time.Minute})
	b.must(err)
	return job
}

// TestHangingClusterLeavesWorkersToOthers: as many jobs of one cluster hang as
// there are workers, and another cluster is scaled meanwhile (design.md §4.10).
// None of those that had to wait is lost.
func TestHangingClusterLeavesWorkersToOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 4}, 100)
	b.cfg.Workers, b.cfg.PerCluster, b.cfg.CallTimeout = 4, 2, time.Minute
	cloud := &slow{VMs: b.world, goOn: make(chan struct{})}
	var hanging []cks.Job
	for _, v := range b.workers() {
		hanging = append(hanging, b.askVM(cks.StopVM, v))
	}
	b.runOn(cloud, b.world)
	b.until("two of them hang", func() bool { return cloud.asked.Load() == 2 })
	b.id = b.another()
	b.do(cks.ScaleUp, cks.Args{Size: 2})
	if n := cloud.asked.Load(); n != 2 {
		t.Errorf("%d calls of one cluster are under way, and it may have 2", n)
	}
	close(cloud.goOn)
	for _, job := range hanging {
		if job = b.ended(job); job.Status != cks.JobSucceeded {
			t.Error(job.ErrorText)
		}
	}
}

// slow is a cloud that keeps every stop of a VM waiting, and counts them.
type slow struct {
	VMs
	asked atomic.Int32
	goOn  chan struct{}
}

func (s *slow) Stop(ctx context.Context, clusterID, vmID string, forced bool) error {
	s.asked.Add(1)
	select {
	case <-s.goOn:
	case <-ctx.Done():
	}
	return s.VMs.Stop(ctx, clusterID, vmID, forced)
}

// another makes one more cluster, with machines, and returns its id.
func (b *bench) another() string {
	b.Helper()
	view := storetest.Fixture(b, b.st, storetest.Spec{State: cks.Running, Control: 1, Workers: 1})
	var specs []cks.MachineSpec
	for _, v := range view.VMs {
		specs = append(specs, cks.MachineSpec{ID: v.ID, ClusterID: view.Cluster.ID, Name: v.Name, Role: v.Role, Cores: v.Cores, MemoryMB: v.MemoryMB})
	}
	b.must(b.world.Adopt(b.ctx, specs))
	return view.Cluster.ID
}

// standstill is a cloud that keeps every list of VMs waiting, and counts them.
type standstill struct {
	VMs
	mu   sync.Mutex
	now  int
	most int
	goOn chan struct{}
}

func (c *standstill) Machines(ctx context.Context, _ string) ([]cks.Machine, error) {
	c.mu.Lock()
	c.now++
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now--
	}()
	select {
	case <-c.goOn:
	case <-ctx.Done():
	}
	return nil, fmt.Errorf("not now")
}

// TestScansAtOnceAreBounded: all clusters are to be looked at, and only so many
// are at once.
func TestScansAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.unsettled = true // the other clusters have no VMs
	template := b.view().Cluster
	template.ID, template.State = "", cks.Stopped
	for i := range maxScans + 10 {
		template.Name = fmt.Sprintf("c%d", i)
		_, err := b.st.AddCluster(b.ctx, template)
		b.must(err)
	}
	c := &standstill{VMs: b.world, goOn: make(chan struct{})}
	s := NewScanner(b.st, c, b.world, ScanConfig{Interval: time.Hour, CallTimeout: time.Minute, Log: testLog()})
	s.scanAll(b.ctx)
	count := func() int { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
	b.until("the places are taken", func() bool { return count() == maxScans })
	close(c.goOn)
	s.wg.Wait()
	if c.most > maxScans {
		t.Errorf("%d at once", c.most)
	}
}

// TestHangingVMsLeaveWorkersToOthers: VMs in no cluster do not wait for each
// other, however many of them hang.
func TestHangingVMsLeaveWorkersToOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.PerCluster, b.cfg.CallTimeout = 1, time.Minute
	var boxes []cks.VM
	for i := range 3 {
		boxes = append(boxes, b.plain(fmt.Sprintf("box%d", i)))
	}
	cloud := &slow{VMs: b.world, goOn: make(chan struct{})}
	var hanging []cks.Job
	for _, v := range boxes {
		hanging = append(hanging, b.askVM(cks.StopVM, v))
	}
	b.runOn(cloud, b.world)
	b.until("all are under way", func() bool { return cloud.asked.Load() == 3 })
	close(cloud.goOn)
	for _, job := range hanging {
		if job = b.ended(job); job.Status != cks.JobSucceeded {
			t.Error(job.ErrorText)
		}
	}
}
