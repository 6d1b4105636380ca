package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store/storetest"
)

// Public reports about the worker (reports.md A.4), each as its scenario says.

// altered is a world that a test alters.
type altered struct {
	*sim.World
	rooms  int                                                    // more than there are
	create func(*cks.MachineSpec)                                 // what comes out instead of what was asked for
	drain  func(ctx context.Context, timeout time.Duration) error // instead of a drain
}

func (s *altered) Room(ctx context.Context, cores, memoryMB int) (int, error) {
	n, err := s.World.Room(ctx, cores, memoryMB)
	return n + s.rooms, err
}

func (s *altered) Create(ctx context.Context, m cks.MachineSpec) error {
	if s.create != nil {
		s.create(&m)
	}
	return s.World.Create(ctx, m)
}

func (s *altered) Drain(ctx context.Context, clusterID, name string, timeout time.Duration) error {
	if s.drain != nil {
		return s.drain(ctx, timeout)
	}
	return s.World.Drain(ctx, clusterID, name, timeout)
}

// TestRoomForOneOfTwo: the plan finds room, somebody else takes it, and the
// cloud makes one VM of two. The job fails with the limit in its text, and no
// VM is left over.
//
// Keeps: A29.
func TestRoomForOneOfTwo(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "capacity", Value: "1"})
	w := &altered{World: b.world, rooms: 1}
	b.runOn(w, w)
	job := b.ended(b.ask(cks.ScaleUp, cks.Args{Size: 3}))
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "insufficient capacity") || !strings.Contains(job.ErrorText, "0 of 2 new nodes joined") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.inState(cks.Running)
	if size := b.view().Cluster.Size; size != 1 {
		t.Errorf("size %d", size)
	}
	b.consistent()
}

// TestNodeThatNeverRegistersIsNamed: the new VM runs and its node never
// registers. The job fails at its deadline, not before and not much later, and
// names the node; the cluster is in Alert.
//
// Keeps: A30, seed/timeout-alert.
func TestNodeThatNeverRegistersIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.fault(cks.Fault{Operation: "node.join", Value: "fail"})
	begin := time.Now()
	job := b.alone(b.askWithin(2*time.Second, cks.ScaleUp, cks.Args{Size: 3})) // no scanner repairs; half a minute is given at most
	if took := time.Since(begin); took < 2*time.Second {
		t.Errorf("given up after %s", took)
	}
	fresh := b.made()
	if len(fresh) != 1 || job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, fresh[0].NodeName()) {
		t.Errorf("status %d, made %v: %s", job.Status, fresh, job.ErrorText)
	}
	if state := b.view().Cluster.State; state != cks.Alert {
		t.Errorf("cluster is %s", state)
	}
	if b.calls("iso.attach", "") != 1 || b.calls("iso.detach", "") != 0 {
		t.Error("the ISO was not attached once, or was detached from a node that had not joined")
	}
	b.consistent()
}

// made are the VMs that were asked for since the test began, also those that
// are gone again.
func (b *bench) made() (vms []cks.VM) {
	b.Helper()
	for _, c := range b.simulation().Calls {
		if c.Operation == "vm.create" {
			v, err := b.st.VMByRef(b.ctx, c.VMID)
			b.must(err)
			vms = append(vms, v)
		}
	}
	return vms
}

// TestExternalNodeIsNeverPicked: beside an external node two workers are made
// and then removed again, the same ones; the external node is neither drained
// nor touched.
//
// Keeps: A31, seed/external-untouched.
func TestExternalNodeIsNeverPicked(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1, External: 1}, 100)
	d := &diary{World: b.world}
	b.runOn(d, d)
	before := ids(b.view().VMs)
	b.do(cks.ScaleUp, cks.Args{Size: 4})
	fresh := slices.DeleteFunc(b.workers(), func(v cks.VM) bool { return slices.Contains(before, v.ID) })
	if len(fresh) != 2 {
		t.Fatalf("%d workers were made", len(fresh))
	}
	b.do(cks.ScaleDown, cks.Args{Size: 2})
	if left := ids(b.view().VMs); !slices.Equal(left, before) {
		t.Errorf("left are %v of %v", left, before)
	}
	if len(d.lines) != 8 || !strings.HasPrefix(d.lines[0], "drain "+fresh[1].NodeName()) || !strings.HasPrefix(d.lines[4], "drain "+fresh[0].NodeName()) {
		t.Errorf("done: %q", d.lines)
	}
	external := b.view().VMs[2]
	b.set(external, cks.VMStopped) // not even when it is the only one that is down
	b.inState(cks.Alert)
	b.do(cks.ScaleUp, cks.Args{Size: 3})
	b.do(cks.ScaleDown, cks.Args{Size: 2})
	if left := ids(b.view().VMs); !slices.Equal(left, before) || len(d.lines) != 12 {
		t.Errorf("left are %v of %v; done: %q", left, before, d.lines)
	}
	b.consistent()
}

func ids(vms []cks.VM) (all []string) {
	for _, v := range vms {
		all = append(all, v.ID)
	}
	return all
}

// TestScaleDownAmongOtherNodes: whatever other kinds of nodes a cluster has,
// and in whatever order its VMs' rows are, one worker goes, the newest.
//
// Keeps: A32, seed/newest-next.
func TestScaleDownAmongOtherNodes(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.cfg.CallTimeout = 20 * time.Second // a call that is cut off is made again
	type shape struct{ control, etcd, external, own int }
	jobs := map[shape]cks.Job{}
	left := map[shape][]string{}
	like := b.view().Cluster
	for _, control := range []int{1, 3} {
		for _, etcd := range []int{0, 3} {
			for _, s := range []shape{{control, etcd, 0, 3}, {control, etcd, 1, 3}, {control, etcd, 1, 2}} {
				c := like
				c.ID, c.Name = "", fmt.Sprintf("shuffled-%+v", s)
				c.ControlNodes, c.EtcdNodes, c.Size = s.control, s.etcd, s.own+s.external
				c, err := b.st.AddCluster(b.ctx, c)
				b.must(err)
				b.id = c.ID
				vms := b.shuffled(c, s.external)
				own := slices.DeleteFunc(slices.Clone(vms), func(v cks.VM) bool { return !v.OwnWorker() })
				newest := slices.MaxFunc(own, func(a, b cks.VM) int { return int(a.Seq - b.Seq) })
				left[s] = slices.DeleteFunc(ids(vms), func(id string) bool { return id == newest.ID })
				jobs[s] = b.ask(cks.ScaleDown, cks.Args{Size: c.Size - 1})
			}
		}
	}
	b.run()
	for s, job := range jobs {
		job = b.ended(job)
		b.id = job.ClusterID
		if view := b.view(); job.Status != cks.JobSucceeded || !slices.Equal(ids(view.VMs), left[s]) || view.Cluster.Size != s.own+s.external-1 {
			t.Errorf("%+v: %s, size %d, left are %v of %v", s, job.ErrorText, view.Cluster.Size, ids(view.VMs), left[s])
		}
		if n := b.calls("vm.destroy", ""); n != 1 {
			t.Errorf("%+v: %d VMs were destroyed", s, n)
		}
	}
	b.consistent()
}

// shuffled gives c its VMs, all running, in rows of any order.
func (b *bench) shuffled(c cks.Cluster, external int) (vms []cks.VM) {
	b.Helper()
	for i := range c.Nodes() {
		v := cks.VM{ClusterID: c.ID, Name: fmt.Sprintf("s%d-%d", c.Seq, i), OfferingID: c.DefaultOffering, State: cks.VMRunning, Role: cks.Worker}
		switch {
		case i < c.EtcdNodes:
			v.Role = cks.Etcd
		case i < c.EtcdNodes+c.ControlNodes:
			v.Role = cks.Control
		case i < c.EtcdNodes+c.ControlNodes+external:
			v.External = true
		}
		vms = append(vms, v)
	}
	rand.Shuffle(len(vms), func(i, j int) { vms[i], vms[j] = vms[j], vms[i] })
	for i, v := range vms {
		var err error
		vms[i], err = b.st.AddVM(b.ctx, v)
		b.must(err)
	}
	b.adopted(vms...)
	return vms
}

// adopted makes machines that run for the rows of VMs.
func (b *bench) adopted(vms ...cks.VM) {
	b.Helper()
	var specs []cks.MachineSpec
	for _, v := range vms {
		specs = append(specs, cks.MachineSpec{ID: v.ID, ClusterID: v.ClusterID, Name: v.Name, Role: v.Role, Cores: v.Cores, MemoryMB: v.MemoryMB})
	}
	b.must(b.world.Adopt(b.ctx, specs))
}

// TestCapitalsOfTheCloudAreNoOtherName: a cloud that gives a new VM's host name
// in capitals does not keep its node from being found, when it joins and when it
// goes.
//
// Keeps: A35, seed/lower-case.
func TestCapitalsOfTheCloudAreNoOtherName(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	w := &altered{World: b.world, create: func(m *cks.MachineSpec) { m.Name = strings.ToUpper(m.Name) }}
	b.runOn(w, w)
	b.do(cks.ScaleUp, cks.Args{Size: 2})
	fresh := b.workers()[1]
	if m := b.simulation().Machines[2]; m.ID != fresh.ID || m.Name != strings.ToUpper(fresh.Name) {
		t.Fatalf("the VM is called %s", m.Name)
	}
	b.do(cks.ScaleDown, cks.Args{Size: 1})
	if _, there := b.node(fresh); there || b.calls("node.drain", fresh.ID) != 1 {
		t.Error("its node is still there, or was not drained")
	}
	b.consistent()
}

// TestForbiddenEvictionIsBounded: every eviction is answered 429. Three drains
// are given 60 s each, no more; then the job fails, and the worker is as it was.
//
// Keeps: A36.
func TestForbiddenEvictionIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
	b.cfg.DrainTimeout = time.Minute
	v := b.workers()[2]
	var limits []time.Duration
	w := &altered{World: b.world, drain: func(ctx context.Context, timeout time.Duration) error {
		end, limited := ctx.Deadline()
		if left := time.Until(end); !limited || left > timeout+b.cfg.CallTimeout {
			t.Errorf("the call may last %s", left)
		}
		limits = append(limits, timeout)
		return errors.New("429 Cannot evict pod as it would violate the pod's disruption budget")
	}}
	job := b.aloneOn(w, w, b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{v.ID}}))
	if want := []time.Duration{time.Minute, time.Minute, time.Minute}; !slices.Equal(limits, want) {
		t.Errorf("drains of %v, want %v", limits, want)
	}
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, v.NodeName()) || !strings.Contains(job.ErrorText, "429") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	if view := b.view(); view.Cluster.State != cks.Alert || len(b.workers()) != 3 || b.calls("vm.destroy", "") != 0 {
		t.Errorf("%s with %d workers, %d destroyed", view.Cluster.State, len(b.workers()), b.calls("vm.destroy", ""))
	}
	b.consistent()
}

// TestExpungedWorkerIsRemoved: somebody else expunged a worker's VM. In Alert
// it is removed by name or by size, and that there is nothing to destroy is no
// error.
//
// Keeps: A40.
func TestExpungedWorkerIsRemoved(t *testing.T) {
	t.Parallel()
	for _, fate := range []cks.VMState{cks.VMExpunging, cks.VMDestroyed, "gone"} {
		for _, kind := range []cks.Kind{cks.RemoveNodes, cks.ScaleDown} {
			t.Run(fmt.Sprintf("%s, %s", fate, kind), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
				b.run()
				w := b.workers()
				if fate == "gone" {
					b.must(b.world.Destroy(b.ctx, b.id, w[1].ID))
				} else {
					b.set(w[1], fate)
				}
				b.inState(cks.Alert)
				args := cks.Args{VMIDs: []string{w[1].ID}}
				if kind == cks.ScaleDown {
					args = cks.Args{Size: 1}
				}
				c := b.do(kind, args).Result.Cluster.Cluster
				if left := b.workers(); c.State != cks.Running || c.Size != 1 || len(left) != 1 || left[0].ID != w[0].ID {
					t.Errorf("%s, size %d, left %v", c.State, c.Size, ids(left))
				}
				if n := b.calls("node.drain", ""); n != 0 {
					t.Errorf("%d drains", n)
				}
				b.inState(cks.Running)
				b.consistent()
			})
		}
	}
}

// TestOddBytesDoNotKeepAJobFromFailing: a drain fails with a NUL, colours, bytes
// that are no text and 1 MB of words. The job ends as failed, with a text that
// can be shown, and the cluster is in Alert.
//
// Keeps: A57.
func TestOddBytesDoNotKeepAJobFromFailing(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	odd := "error: \x00\x1b[31mcannot\x1b[0m evict \xff\xfe\xc3( " + strings.Repeat("words and words ", 1<<16)
	w := &altered{World: b.world, drain: func(context.Context, time.Duration) error { return errors.New(odd) }}
	job := b.aloneOn(w, w, b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{b.workers()[1].ID}}))
	if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "evict \uFFFD") || !strings.Contains(job.ErrorText, "words and words") {
		t.Errorf("status %d: %.300q", job.Status, job.ErrorText)
	}
	if n := utf8.RuneCountInString(job.ErrorText); n > 4000 || !utf8.ValidString(job.ErrorText) || strings.ContainsAny(job.ErrorText, "\x00\x1b") {
		t.Errorf("%d characters: %.300q", n, job.ErrorText)
	}
	if doc, err := json.Marshal(job.ErrorText); err != nil || !json.Valid(doc) {
		t.Errorf("it cannot be written: %v", err)
	}
	if state := b.view().Cluster.State; state != cks.Alert {
		t.Errorf("cluster is %s", state)
	}
	b.consistent()
}
