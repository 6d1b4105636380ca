package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// plain adds a plain VM of the cluster's owner, which runs.
func (b *bench) plain(name string) cks.VM {
	b.Helper()
	view, id := b.view(), uuid.NewString()
	b.must(b.st.AddPlainVM(b.ctx, store.NewPlainVM{
		ID: id, AccountID: view.Account.ID, ZoneID: view.Zone.ID, OfferingID: view.Cluster.DefaultOffering, TemplateID: view.Template.ID,
		Name: name, NetworkID: uuid.NewString(), NetworkName: "net",
	}))
	b.must(b.world.Create(b.ctx, cks.MachineSpec{ID: id, ClusterID: id, Name: name, Role: cks.Worker, Cores: 2, MemoryMB: 2048}))
	b.must(b.world.Start(b.ctx, id, id))
	b.until(name+" runs", func() bool { b.scanVM(id); return b.row(id).State == cks.VMRunning })
	return b.row(id)
}

func (b *bench) scanVM(id string) {
	b.Helper()
	b.must(NewScanner(b.st, b.world, b.world, ScanConfig{}).Scan(b.ctx, id))
}

func (b *bench) row(id string) cks.VM {
	b.Helper()
	v, err := b.st.VMByRef(b.ctx, id)
	b.must(err)
	return v
}

// external are the external nodes, oldest first.
func (b *bench) external() []cks.VM {
	b.Helper()
	return slices.DeleteFunc(b.view().VMs, func(v cks.VM) bool { return !v.External })
}

// askNodes records a job about external nodes, as the service does.
func (b *bench) askNodes(kind cks.Kind, timeout time.Duration, vms ...cks.VM) (job cks.Job) {
	b.Helper()
	var ids []string
	for _, v := range vms {
		ids = append(ids, v.ID)
	}
	b.must(b.st.InTx(b.ctx, func(q *store.Queries) error {
		view, err := q.View(b.ctx, b.id)
		if err != nil {
			return err
		}
		job, err = q.AddJob(b.ctx, store.NewJob{
			Command: "addNodesToKubernetesCluster", Kind: kind, AccountID: view.Account.ID, ClusterID: b.id,
			Notes: cks.Notes{Seen: view.Cluster.State, Before: view.Cluster.Size, Wanted: len(ids)}, Timeout: timeout,
		})
		if err == nil {
			err = q.HoldCluster(b.ctx, view.Cluster, job.ID, cks.Requests[kind])
		}
		if err != nil {
			return err
		}
		if kind == cks.AddNodes {
			return q.TakeIn(b.ctx, job, ids, "1.33.1", false)
		}
		return q.TakeOut(b.ctx, job, ids)
	}))
	return job
}

// askPlain records a job of a plain VM, as the service does.
func (b *bench) askPlain(kind cks.Kind, id string, phase cks.Phase) (job cks.Job) {
	b.Helper()
	b.must(b.st.InTx(b.ctx, func(q *store.Queries) (err error) {
		job, err = q.AddJob(b.ctx, store.NewJob{Command: "deployVirtualMachine", Kind: kind, AccountID: b.view().Account.ID, VMID: id, Timeout: time.Minute})
		if err != nil {
			return err
		}
		return q.ChoosePlain(b.ctx, job, phase)
	}))
	return job
}

// isNode checks that a VM is, or is not, an external node that is Ready.
func (b *bench) isNode(v cks.VM, want bool) {
	b.Helper()
	now, node := b.row(v.ID), cks.Node{}
	if node, _ = b.node(v); (node.Ready == cks.NodeReady) != want {
		b.Errorf("the node of %s is %+v", v.Name, node)
	}
	if !want && node.Name != "" {
		b.Errorf("the node object of %s is left", v.Name)
	}
	if now.External != want || (now.ClusterID == b.id) != want || now.Phase != cks.Member || now.Removed || now.AccountID == "" && !want {
		b.Errorf("%s is %+v", v.Name, now)
	}
}

// TestRunnerDiesInEveryStepOfNodes kills a runner inside every step of what is
// done with external nodes, as TestRunnerDiesInEveryStep does.
//
// Keeps: §4/external-nodes, A50, ours/nodes-crash.
func TestRunnerDiesInEveryStepOfNodes(t *testing.T) {
	t.Parallel()
	for _, kind := range []cks.Kind{cks.AddNodes, cks.RemoveExternal} {
		for i, s := range plans[kind].steps {
			t.Run(string(kind)+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, storetest.Spec{Workers: 1, External: 2}, 100)
				nodes, size := b.external(), 1
				if kind == cks.AddNodes {
					nodes, size = []cks.VM{b.plain("Box1"), b.plain("box2")}, 5
				}
				job := b.askNodes(kind, time.Minute, nodes...)
				dead := b.dieIn(i)
				b.run()
				if job = b.ended(job); job.Status != cks.JobSucceeded {
					t.Fatal(job.ErrorText)
				}
				if err := dead.step(b.ctx, step{name: s.name, db: s.db}); err == nil {
					t.Error("the dead runner could still record a step")
				}
				for _, v := range nodes {
					b.isNode(v, kind == cks.AddNodes)
					if n := b.calls("vm.destroy", v.ID) + b.calls("vm.stop", v.ID); n > 0 || b.row(v.ID).State != cks.VMRunning {
						t.Errorf("%s is %s", v.Name, b.row(v.ID).State)
					}
				}
				if c := b.view().Cluster; c.State != cks.Running || c.Size != size {
					t.Errorf("%s, size %d", c.State, c.Size)
				}
				b.consistent()
			})
		}
	}
}

// TestRunnerDiesInEveryStepOfVMs does the same to the plans of plain VMs: there
// is one VM, or none.
//
// Keeps: A50, ours/plain-crash.
func TestRunnerDiesInEveryStepOfVMs(t *testing.T) {
	t.Parallel()
	for _, kind := range []cks.Kind{cks.DeployVM, cks.DestroyVM} {
		for i, s := range plans[kind].steps {
			t.Run(string(kind)+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, storetest.Spec{Workers: 1}, 100)
				var id string
				phase := cks.Chosen
				if kind == cks.DeployVM {
					id = b.asked("box")
				} else {
					id, phase = b.plain("box").ID, cks.Leaving
				}
				job := b.askPlain(kind, id, phase)
				b.dieIn(i)
				b.run()
				if job = b.ended(job); job.Status != cks.JobSucceeded {
					t.Fatal(job.ErrorText)
				}
				v := b.row(id)
				if kind == cks.DeployVM && (v.State != cks.VMRunning || v.Phase != cks.Member || b.everywhere("vm.create") > 2) {
					t.Errorf("%+v, %d creates", v, b.everywhere("vm.create"))
				}
				if (kind == cks.DestroyVM) != v.Removed {
					t.Errorf("%+v", v)
				}
				b.consistent()
			})
		}
	}
}

// asked records a plain VM that is still to be made.
func (b *bench) asked(name string) string {
	b.Helper()
	view, id := b.view(), uuid.NewString()
	b.must(b.st.AddPlainVM(b.ctx, store.NewPlainVM{
		ID: id, AccountID: view.Account.ID, ZoneID: view.Zone.ID, OfferingID: view.Cluster.DefaultOffering, TemplateID: view.Template.ID,
		Name: name, NetworkID: uuid.NewString(), NetworkName: "net",
	}))
	return id
}

// everywhere is how often the operation was asked of the world, in any place.
func (b *bench) everywhere(operation string) (n int) {
	b.Helper()
	s, err := b.world.Query(b.ctx, "")
	b.must(err)
	for _, c := range s.Calls {
		if c.Operation == operation {
			n += c.Count
		}
	}
	return n
}

// TestNodesThatDoNotJoinGoBack: of two VMs one joins, and stays; the other is
// again what it was. The cluster is Running (cks.md §4), and as the scanner
// finds it.
//
// Keeps: §4/external-nodes, ours/nodes-part.
func TestNodesThatDoNotJoinGoBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   cks.Fault
		timeout time.Duration
		joined  int
		why     string
	}{
		"one never joins":       {cks.Fault{Operation: "node.join", Value: "fail"}, 2 * time.Second, 1, "1 of 2 nodes joined: nodes never became ready: box2"},
		"no ISO":                {cks.Fault{Operation: "iso.attach", Value: "fail:no ISO"}, time.Minute, 1, "no ISO"},
		"one can not be moved":  {cks.Fault{Operation: "vm.move", Value: "fail:stuck", Count: 3}, time.Minute, 0, "0 of 2 nodes joined: Failed to add node box2: stuck"},
		"the nodes are unknown": {cks.Fault{Operation: "node.list", Value: "fail:no API", Count: 1 << 20}, time.Second, 0, "no API"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{Workers: 1}, 100)
			boxes := []cks.VM{b.plain("box1"), b.plain("box2")}
			if c.fault.Operation != "node.list" {
				c.fault.VMID = boxes[1].ID
			}
			b.fault(c.fault)
			b.run()
			job := b.ended(b.askNodes(cks.AddNodes, c.timeout, boxes...))
			if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, c.why) || !strings.Contains(job.ErrorText, "Not every node was added to the Kubernetes cluster : test") {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			b.fault(cks.Fault{Operation: c.fault.Operation, Value: "clear"})
			if name == "no ISO" { // that one of them got it is a matter of luck
				c.joined = b.view().Cluster.Size - 1
			}
			b.inState(cks.Running)
			if n := b.view().Cluster.Size; n != 1+c.joined {
				t.Errorf("size %d", n)
			}
			if c.joined == 0 {
				b.isNode(boxes[0], false)
			}
			b.isNode(boxes[1], false)
			b.consistent()
			job = b.askNodes(cks.AddNodes, time.Minute, boxes[1]) // as good as new
			if job = b.ended(job); job.Status != cks.JobSucceeded {
				t.Error(job.ErrorText)
			}
			b.isNode(boxes[1], true)
		})
	}
}

// TestNodeThatCannotGoBackCanBeRemoved: a VM that could not be taken out of the
// cluster again is a node that is listed and counted, until it is removed.
func TestNodeThatCannotGoBackCanBeRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{Workers: 1}, 100)
	box := b.plain("box")
	b.fault(cks.Fault{Operation: "vm.move", Value: "fail:stuck"})
	b.run()
	job := b.ended(b.askNodes(cks.AddNodes, time.Minute, box))
	if v := b.row(box.ID); job.Status != cks.JobFailed || v.Phase != cks.Member || !v.External || b.view().Cluster.Size != 2 {
		t.Errorf("status %d, size %d, %+v: %s", job.Status, b.view().Cluster.Size, v, job.ErrorText)
	}
	b.fault(cks.Fault{Operation: "vm.move", Value: "clear"})
	b.inState(cks.Alert) // as it never arrived
	if again := b.ended(b.askNodes(cks.RemoveExternal, time.Minute, box)); again.Status != cks.JobSucceeded {
		t.Error(again.ErrorText)
	}
	b.isNode(box, false)
	b.until("it is seen to run", func() bool { return b.row(box.ID).State == cks.VMRunning })
	b.inState(cks.Running)
	b.consistent()
}

// TestRemovalThatFailsKeepsNodes: a node whose pods a disruption budget keeps
// stays, and takes pods again. One whose node object is gone already is no node
// any more, whatever else fails, as soon as its VM can be moved.
//
// Keeps: §4/external-nodes, ours/nodes-removed.
func TestRemovalThatFailsKeepsNodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault cks.Fault
		kept  bool
	}{
		"budget":        {cks.Fault{Operation: "node.drain", Value: "budget"}, true},
		"delete":        {cks.Fault{Operation: "node.delete", Value: "fail:no"}, true},
		"move":          {cks.Fault{Operation: "vm.move", Value: "fail:no", Count: 3}, false},
		"move for good": {cks.Fault{Operation: "vm.move", Value: "fail:no"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{Workers: 1, External: 1}, 100)
			b.cfg.DrainTimeout = time.Second
			box := b.external()[0]
			b.fault(c.fault)
			b.run()
			job := b.ended(b.askNodes(cks.RemoveExternal, time.Minute, box))
			if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "test") {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			b.inState(cks.Running)
			switch name {
			case "move":
				b.isNode(box, false)
				return
			case "move for good":
				if v := b.row(box.ID); v.Phase != cks.Member || b.view().Cluster.Size != 2 {
					t.Errorf("%+v", v)
				}
			default:
				b.isNode(box, true)
			}
			b.consistent()
			b.fault(cks.Fault{Operation: c.fault.Operation, Value: "clear"})
			if job = b.ended(b.askNodes(cks.RemoveExternal, time.Minute, box)); job.Status != cks.JobSucceeded {
				t.Error(job.ErrorText)
			}
			b.isNode(box, false)
			b.consistent()
		})
	}
}

// TestVanishedExternalNodeIsRemoved: of a VM that does not exist any more
// nothing goes back, and its node is counted off.
func TestVanishedExternalNodeIsRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{Workers: 1, External: 1}, 100)
	box := b.external()[0]
	b.must(b.world.Destroy(b.ctx, b.id, box.ID))
	b.run()
	if job := b.ended(b.askNodes(cks.RemoveExternal, time.Minute, box)); job.Status != cks.JobSucceeded {
		t.Error(job.ErrorText)
	}
	if v := b.row(box.ID); !v.Removed || b.view().Cluster.Size != 1 {
		t.Errorf("size %d, %+v", b.view().Cluster.Size, v)
	}
	b.consistent()
}

// TestDeletedClusterGivesNodesBack: external nodes are their owner's.
//
// Keeps: ours/nodes-deleted.
func TestDeletedClusterGivesNodesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{Workers: 1, External: 1}, 100)
	box := b.external()[0]
	b.run()
	b.do(cks.DeleteCluster, cks.Args{})
	b.until("it is seen to run", func() bool {
		v := b.row(box.ID)
		return v.State == cks.VMRunning && v.ClusterID == "" && !v.Removed && v.AccountID != ""
	})
	if n := b.calls("vm.destroy", box.ID); n != 0 {
		t.Error("it was destroyed")
	}
	b.consistent()
}

// TestFailedDeploymentLeavesNothing: neither a VM nor a row; what can not be
// destroyed now, the scanner destroys.
//
// Keeps: ours/plain-crash.
func TestFailedDeploymentLeavesNothing(t *testing.T) {
	t.Parallel()
	for fault, why := range map[string]string{
		"vm.create=fail:no host":   "Failed to create VM box: no host",
		"vm.start=fail:no power":   "Failed to start VM box: no power",
		"vm.create=panic":          "Failed to create VM box: the call panicked",
		"capacity=0":               "Unable to create a deployment for VM box: insufficient capacity",
		"vm.destroy=fail:stubborn": "Failed to start VM box: no power",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{Workers: 1}, 100)
			operation, value, _ := strings.Cut(fault, "=")
			b.fault(cks.Fault{Operation: operation, Value: value})
			if operation == "vm.destroy" {
				b.fault(cks.Fault{Operation: "vm.start", Value: "fail:no power"})
			}
			b.run()
			id := b.asked("box")
			job := b.ended(b.askPlain(cks.DeployVM, id, cks.Chosen))
			if job.Status != cks.JobFailed || job.ErrorText != why {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			if operation == "vm.destroy" {
				if v := b.row(id); v.Removed || v.Phase != cks.Doomed {
					t.Errorf("%+v", v)
				}
				b.fault(cks.Fault{Operation: "vm.destroy", Value: "clear"})
				b.until("it is destroyed", func() bool { return b.row(id).Removed })
			}
			if v := b.row(id); !v.Removed {
				t.Errorf("%+v", v)
			}
			if n, _, _, err := b.st.Usage(b.ctx, b.view().Account.ID); err != nil || n != 2 {
				t.Errorf("the account uses %d VMs: %v", n, err)
			}
			b.consistent()
		})
	}
}

// TestFailedDestructionKeepsTheVM: it can be asked for again.
func TestFailedDestructionKeepsTheVM(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{Workers: 1}, 100)
	box := b.plain("box")
	b.fault(cks.Fault{Operation: "vm.destroy", Value: "fail:stubborn", Count: 3})
	b.run()
	job := b.ended(b.askPlain(cks.DestroyVM, box.ID, cks.Leaving))
	if v := b.row(box.ID); job.Status != cks.JobFailed || job.ErrorText != "Failed to destroy VM box: stubborn" || v.Phase != cks.Member || v.Removed {
		t.Errorf("status %d: %s; %+v", job.Status, job.ErrorText, v)
	}
	if job = b.ended(b.askPlain(cks.DestroyVM, box.ID, cks.Leaving)); job.Status != cks.JobSucceeded || !b.row(box.ID).Removed {
		t.Error(job.ErrorText)
	}
	b.consistent()
}

// TestCancelledAdditionGoesBack: the VM is again what it was.
func TestCancelledAdditionGoesBack(t *testing.T) {
	t.Parallel()
	for i, s := range plans[cks.AddNodes].steps[:3] {
		t.Run(fmt.Sprint(i, " ", s.name), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{Workers: 1}, 100)
			box := b.plain("box")
			b.fault(cks.Fault{Operation: "node.join", Value: "fail"})
			job := b.askNodes(cks.AddNodes, time.Minute, box)
			if i > 0 {
				b.dieIn(i - 1)
			}
			if !b.cancel(job) {
				t.Error("it is not cancelled")
			}
			b.run()
			if job = b.ended(job); job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, cancelText) {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			b.isNode(box, false)
			b.inState(cks.Running)
			b.consistent()
		})
	}
}

// TestExternalNodeThatCameBackIsDeleted: TestNodeThatCameBackIsDeleted for an
// external node, whose VM runs on.
//
// Keeps: §4/external-nodes.
func TestExternalNodeThatCameBackIsDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1, External: 1}, 100)
	b.cfg.CallTimeout = 20 * time.Second
	v := b.external()[0]
	b.set(v, cks.VMStopped)
	again := &restarting{World: b.world, b: b}
	b.runOn(again, again)
	job := b.ended(b.askNodes(cks.RemoveExternal, time.Minute, v))
	if job.Status != cks.JobSucceeded {
		t.Error(job.ErrorText)
	}
	b.isNode(v, false)
	b.consistent()
}

// TestExternalNodeThatIsOutIsNotKept: the removal is cancelled when the VM is out
// already and the node that came back cannot be deleted at once. It is ended.
//
// Keeps: §4/external-nodes.
func TestExternalNodeThatIsOutIsNotKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1, External: 1}, 100)
	b.cfg.CallTimeout = 20 * time.Second
	v := b.external()[0]
	b.set(v, cks.VMStopped)
	job := b.askNodes(cks.RemoveExternal, time.Minute, v)
	again := &restarting{World: b.world, b: b}
	again.after = func() {
		b.fault(cks.Fault{Operation: "node.delete", Value: "fail:busy", Count: 1, VMID: v.ID})
	}
	moving := &cancelling{World: b.world, b: b, job: job}
	b.runOn(moving, again)
	if job = b.ended(job); job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "cancelled by") {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	b.isNode(v, false)
	b.consistent()
}

// cancelling is a cloud in which the job is cancelled while a VM moves.
type cancelling struct {
	*sim.World
	b   *bench
	job cks.Job
}

func (w *cancelling) Move(ctx context.Context, vmID, from, to string) error {
	err := w.World.Move(ctx, vmID, from, to)
	_, failed := w.b.st.CancelJob(ctx, w.job.ID, w.job.Account.ID)
	return errors.Join(err, failed)
}
