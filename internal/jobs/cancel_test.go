package jobs

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// cancel asks for the end of job, as its account does.
func (b *bench) cancel(job cks.Job) (done bool) {
	b.Helper()
	done, err := b.st.CancelJob(b.ctx, job.ID, b.view().Account.ID)
	b.must(err)
	return done
}

const cancelText = "cancelled by " + storetest.AccountName

// cancelled is what a cancel in a step ends in.
type cancelled struct {
	kind  cks.Kind
	step  string // the cancel comes while it acts
	ends  cks.JobStatus
	state cks.State
	sizes []int  // of 3 workers; a node may have joined meanwhile
	never string // operation that is not asked of the world any more
}

// cancels is a cancel in every step that acts on the world, of the kinds that
// change the size. What a step did is recorded, and a job that has no step left
// succeeds.
var cancels = []cancelled{
	{cks.ScaleUp, "plan-capacity", cks.JobFailed, cks.Alert, []int{3}, "vm.create"},
	{cks.ScaleUp, "create-and-start", cks.JobFailed, cks.Alert, []int{3}, "iso.attach"},
	{cks.ScaleUp, "attach-iso", cks.JobFailed, cks.Alert, []int{3, 4}, ""},
	{cks.ScaleUp, "wait-ready-count", cks.JobFailed, cks.Alert, []int{3, 4}, ""},
	{cks.ScaleUp, "wait-new-nodes", cks.JobFailed, cks.Alert, []int{4}, ""},
	{cks.ScaleUp, "detach-iso", cks.JobSucceeded, cks.Running, []int{4}, ""},

	{cks.ScaleDown, "observe-vms", cks.JobFailed, cks.Alert, []int{3}, "node.drain"},
	{cks.ScaleDown, "next-node", cks.JobFailed, cks.Alert, []int{3}, "node.drain"},
	{cks.ScaleDown, "drain", cks.JobFailed, cks.Alert, []int{3}, "node.delete"},
	{cks.ScaleDown, "delete-node", cks.JobFailed, cks.Alert, []int{3}, "vm.destroy"},
	{cks.ScaleDown, "destroy-vm", cks.JobFailed, cks.Alert, []int{2}, ""}, // one of the two is gone

	{cks.RemoveNodes, "observe-vms", cks.JobFailed, cks.Alert, []int{3}, "node.drain"},
	{cks.RemoveNodes, "next-node", cks.JobFailed, cks.Alert, []int{3}, "node.drain"},
	{cks.RemoveNodes, "drain", cks.JobFailed, cks.Alert, []int{3}, "node.delete"},
	{cks.RemoveNodes, "delete-node", cks.JobFailed, cks.Alert, []int{3}, "vm.destroy"},
	{cks.RemoveNodes, "destroy-vm", cks.JobSucceeded, cks.Running, []int{2}, ""}, // it was the only one
}

// cancelArgs is what the jobs of these tables are asked for.
func (b *bench) cancelArgs(kind cks.Kind) cks.Args {
	b.Helper()
	return map[cks.Kind]cks.Args{
		cks.ScaleUp: {Size: 4}, cks.ScaleDown: {Size: 1}, cks.RemoveNodes: {VMIDs: []string{b.workers()[1].ID}},
	}[kind]
}

// TestCancelInEveryStep: a job that is cancelled while a step acts ends at the
// next boundary as failed, with who it was, and the cluster is left in order:
// size, list and cloud agree, and the same request, asked again, succeeds.
//
// Keeps: ours/cancel, ours/cancel-boundary, ours/cancel-last.
func TestCancelInEveryStep(t *testing.T) {
	t.Parallel()
	for kind := range map[cks.Kind]bool{cks.ScaleUp: true, cks.ScaleDown: true, cks.RemoveNodes: true} {
		for _, s := range plans[kind].steps {
			if s.do != nil && !slices.ContainsFunc(cancels, func(c cancelled) bool { return c.kind == kind && c.step == s.name }) {
				t.Errorf("no cancel in step %s of %s", s.name, kind)
			}
		}
	}
	for _, c := range cancels {
		t.Run(string(c.kind)+"/"+c.step, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
			args := b.cancelArgs(c.kind)
			job := b.ask(c.kind, args)
			before := 0
			p := plans[c.kind]
			p.steps = slices.Clone(p.steps)
			i := slices.IndexFunc(p.steps, func(s step) bool { return s.name == c.step })
			act := p.steps[i].do
			p.steps[i].do = func(r *run, ctx context.Context) error {
				err := act(r, ctx)
				b.cancel(job)
				before = b.calls(c.never, "")
				return err
			}
			job = b.worked(job, p)
			b.endsCancelled(job, c)
			if n := b.calls(c.never, "") - before; c.never != "" && n > 0 {
				t.Errorf("%s was asked %d times after the cancel", c.never, n)
			}
			b.consistent()
			b.scan()
			if c.kind == cks.RemoveNodes && len(b.workers()) == 2 {
				return // it cannot be asked for again
			}
			if job = b.alone(b.ask(c.kind, args)); job.Status != cks.JobSucceeded {
				t.Errorf("asked again: %s", job.ErrorText)
			}
			b.consistent()
		})
	}
}

// endsCancelled checks how job has ended, before any scanner looks.
func (b *bench) endsCancelled(job cks.Job, c cancelled) {
	b.Helper()
	if job.Status != c.ends || (c.ends == cks.JobFailed) != strings.Contains(job.ErrorText, cancelText) {
		b.Errorf("status %d, want %d: %s", job.Status, c.ends, job.ErrorText)
	}
	view := b.view()
	if size := view.Cluster.Size; view.Cluster.State != c.state || view.Cluster.HeldBy != "" || !slices.Contains(c.sizes, size) || len(view.VMs) != 1+size {
		b.Errorf("%s, held by %q, size %d, %d VMs; want %s, %v", view.Cluster.State, view.Cluster.HeldBy, size, len(view.VMs), c.state, c.sizes)
	}
}

// TestCancelAfterACrash: the runner dies in a step, after it has acted and
// before that is recorded; the job is cancelled, and another runner gives it up.
// The wish is neither lost nor done twice, and what the dead one did is counted.
//
// Keeps: ours/cancel-crash.
func TestCancelAfterACrash(t *testing.T) {
	t.Parallel()
	for _, kind := range []cks.Kind{cks.ScaleUp, cks.ScaleDown, cks.RemoveNodes} {
		for i, s := range plans[kind].steps {
			t.Run(string(kind)+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
				args := b.cancelArgs(kind)
				job := b.ask(kind, args)
				b.dieIn(i)
				if !b.cancel(job) || b.cancel(job) {
					t.Error("it is not cancelled once")
				}
				job = b.alone(job)
				last := kind == cks.RemoveNodes && s.name == "record-removal" // only that is left, and it is recorded
				if last != (job.Status == cks.JobSucceeded) || !last && !strings.Contains(job.ErrorText, cancelText) {
					t.Errorf("status %d: %s", job.Status, job.ErrorText)
				}
				if n := b.count(cks.EventJobCancel); n != 1 {
					t.Errorf("%d events tell of the cancel", n)
				}
				b.consistent()
				b.scan()
				if c := b.view().Cluster; kind != cks.RemoveNodes || c.Size == 3 {
					if job = b.alone(b.ask(kind, args)); job.Status != cks.JobSucceeded {
						t.Errorf("asked again: %s", job.ErrorText)
					}
				}
				b.consistent()
			})
		}
	}
}

// count is how many events there are of the type.
func (b *bench) count(kind cks.EventType) int {
	b.Helper()
	_, n, err := b.st.Events(b.ctx, cks.EventFilter{Type: string(kind)}, "")
	b.must(err)
	return n
}

// TestCancelBeforeTheStart: a job that nobody has begun has changed nothing, so
// the cluster is as it was.
//
// Keeps: ours/cancel-unchanged.
func TestCancelBeforeTheStart(t *testing.T) {
	t.Parallel()
	for _, state := range []cks.State{cks.Running, cks.Alert} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: state, Control: 1, Workers: 3}, 100)
			for _, kind := range []cks.Kind{cks.ScaleUp, cks.ScaleDown, cks.RemoveNodes} {
				job := b.ask(kind, b.cancelArgs(kind))
				b.cancel(job)
				b.endsCancelled(b.alone(job), cancelled{kind, "", cks.JobFailed, state, []int{3}, ""})
			}
			for _, c := range b.simulation().Calls {
				if !strings.HasSuffix(c.Operation, ".list") {
					t.Errorf("%s was asked of the world", c.Operation)
				}
			}
		})
	}
}

// TestCancelWakesTheWait: a job that waits for a node that will not come, or to
// try again what failed, ends when it is cancelled, long before it would have
// looked again.
//
// Keeps: ours/cancel-wakes.
func TestCancelWakesTheWait(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]cks.Fault{
		"for a node":   {Operation: "node.join", Value: "fail"},
		"to try again": {Operation: "vm.create", Value: "fail", Count: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
			b.cfg.ReadyPoll, b.cfg.RetryWait = time.Hour, time.Hour
			b.fault(f)
			b.run()
			job := b.askWithin(2*time.Hour, cks.ScaleUp, cks.Args{Size: 2})
			b.until("the job waits", func() bool {
				j, err := b.st.Job(b.ctx, job.ID)
				b.must(err)
				return j.Server == "" && (j.Step == "attach-iso" || j.Tries == 1)
			})
			b.cancel(job)
			if job = b.ended(job); job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, "0 of 1 new nodes joined: "+cancelText) {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			b.inState(cks.Running)
			if n := len(b.workers()); n != 1 || b.calls("vm.create", "") != 1 {
				t.Errorf("%d workers, %d creates", n, b.calls("vm.create", ""))
			}
			b.consistent()
		})
	}
}

// TestFailedStepOfACancelledJobIsNotTriedAgain: the step that is under way when
// the cancel comes fails; the job is given up at once, for the cancel.
func TestFailedStepOfACancelledJobIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.cfg.RetryWait = time.Hour
	job := b.ask(cks.RemoveNodes, b.cancelArgs(cks.RemoveNodes))
	w := &altered{World: b.world, drain: func(context.Context, time.Duration) error {
		b.cancel(job)
		return cks.Errorf(cks.Unavailable, "connection reset")
	}}
	b.runOn(w, w)
	if job = b.ended(job); job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, cancelText) {
		t.Errorf("status %d: %s", job.Status, job.ErrorText)
	}
	if n := b.calls("node.uncordon", ""); n != 1 || len(b.workers()) != 2 {
		t.Errorf("%d uncordons, %d workers", n, len(b.workers()))
	}
}

// TestCancelDuringUndo: a job that is being given up already ends with its own
// text.
//
// Keeps: ours/cancel-undo.
func TestCancelDuringUndo(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	b.fault(cks.Fault{Operation: "iso.attach", Value: "fail:no such ISO"})
	job := b.ask(cks.ScaleUp, cks.Args{Size: 3})
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	b.until("the job is given up", func() bool {
		b.once(r)
		j, err := b.st.Job(b.ctx, job.ID)
		b.must(err)
		return j.Failure != ""
	})
	if b.cancel(job) {
		t.Error("it was cancelled")
	}
	if job = b.alone(job); !strings.Contains(job.ErrorText, "no such ISO") || strings.Contains(job.ErrorText, "cancelled") {
		t.Error(job.ErrorText)
	}
	if n := b.count(cks.EventJobCancel); n != 0 {
		t.Errorf("%d events tell of a cancel", n)
	}
}

// TestCancelOfOtherJobs: a create ends as one that fails, in Error and with no
// VM; a change of offerings keeps what was changed; a VM's job leaves the VM to
// the scanner.
func TestCancelOfOtherJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	cancelIn := func(job cks.Job, name string) cks.Job {
		p := plans[job.Kind]
		p.steps = slices.Clone(p.steps)
		i := slices.IndexFunc(p.steps, func(s step) bool { return s.name == name })
		act := p.steps[i].do
		p.steps[i].do = func(r *run, ctx context.Context) error {
			b.cancel(job)
			return act(r, ctx)
		}
		if job = b.worked(job, p); job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, cancelText) {
			t.Errorf("%s: status %d: %s", job.Kind, job.Status, job.ErrorText)
		}
		return job
	}
	cancelIn(b.ask(cks.ChangeOffering, cks.Args{Offerings: map[cks.Role]string{cks.Worker: b.big().ID}}), "check-vms")
	b.scan()
	cancelIn(b.askVM(cks.StopVM, b.workers()[0]), "stop-vm")
	b.id = cancelIn(b.create(), "attach-iso").ClusterID
	if view := b.view(); view.Cluster.State != cks.Error || len(view.VMs) != 0 {
		t.Errorf("%s with %d VMs", view.Cluster.State, len(view.VMs))
	}
}

// TestUnknownJobIsNotSpunByACancel: a job of a newer release, which this server
// leaves to others, is woken by its cancel once, and then looked at no more
// often than before.
func TestUnknownJobIsNotSpunByACancel(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.unsettled = true // no server here knows the job
	b.cfg.Poll = time.Hour
	job := b.askVM("of a newer release", b.workers()[0])
	r := NewRunner(b.st, b.world, b.world, b.cfg)
	b.once(r)
	b.cancel(job)
	for _, want := range []bool{true, false} {
		if looked, err := r.RunOnce(b.ctx); err != nil || looked != want {
			t.Errorf("looked at: %t, %v", looked, err)
		}
	}
}
