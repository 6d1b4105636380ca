package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// progress is how far job has come, and what it says.
func (b *bench) progress(job cks.Job) (steps []cks.JobStep, message string) {
	b.Helper()
	job, err := b.st.Job(b.ctx, job.ID)
	b.must(err)
	return job.Progress(Steps(job.Kind), UndoSteps(job.Kind))
}

// inOrder checks that each of the steps that have ended began when the one
// before it had ended.
func (b *bench) inOrder(steps []cks.JobStep) {
	b.Helper()
	var last time.Time
	for _, s := range steps {
		if s.State != cks.StepDone && s.State != cks.StepFailed {
			continue
		}
		if s.Started.IsZero() || s.Ended.Before(s.Started) || !last.IsZero() && !s.Started.Equal(last) {
			b.Errorf("%s from %s to %s, after %s", s.Name, s.Started, s.Ended, last)
		}
		last = s.Ended
	}
}

func stepList(steps []cks.JobStep) string {
	var list []string
	for _, s := range steps {
		list = append(list, fmt.Sprintf("%s=%s", s.Name, s.State))
	}
	return strings.Join(list, " ")
}

// A scale-up tells which step it is in and which nodes it waits for; when it has
// ended all steps have their times, in order.
//
// Keeps: ours/progress, ours/progress-message.
func TestScaleUpTellsItsProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	job := b.ask(cks.ScaleUp, cks.Args{Size: 3})
	if steps, message := b.progress(job); message != "waiting for a server to take it up" ||
		stepList(steps) != "plan-capacity=pending choose-vms=pending create-and-start=pending attach-iso=pending "+
			"wait-ready-count=pending wait-new-nodes=pending detach-iso=pending" {
		t.Errorf("before it is taken up: %q %s", message, stepList(steps))
	}
	b.fault(cks.Fault{Operation: "node.join", Value: "fail"})
	b.run()
	message := ""
	b.until("it waits for the nodes", func() bool {
		_, message = b.progress(job)
		return strings.HasPrefix(message, "0 of 2 new nodes are Ready; waiting for ")
	})
	steps, _ := b.progress(job)
	if got := stepList(steps); got != "plan-capacity=done choose-vms=done create-and-start=done attach-iso=done "+
		"wait-ready-count=current wait-new-nodes=pending detach-iso=pending" {
		t.Errorf("while it waits: %s", got)
	}
	b.inOrder(steps)
	if now := steps[4]; now.Started.Before(steps[3].Ended) || !now.Ended.IsZero() {
		t.Errorf("the current step: %+v", now)
	}
	for _, v := range b.workers()[1:] {
		if !strings.Contains(message, v.NodeName()) {
			t.Errorf("%q lacks %s", message, v.NodeName())
		}
	}
	b.fault(cks.Fault{Operation: "iso.detach", Value: "delay:500ms"})
	b.fault(cks.Fault{Operation: "node.join", Value: "clear"})
	b.until("it waits for nothing any more", func() bool { _, message = b.progress(job); return message == "step 7 of 7: detach-iso" })
	b.ended(job)
	steps, message = b.progress(job)
	if got := stepList(steps); message != "" || strings.Count(got, "=done") != len(steps) {
		t.Errorf("in the end: %q %s", message, got)
	}
	b.inOrder(steps)
}

// A removal goes through its steps once for every node, and tells which one goes
// and how many have gone. A try that failed is told with its reason.
//
// Keeps: ours/progress, ours/progress-message.
func TestRemovalTellsItsProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
	w := b.workers()
	b.cfg.MaxTries = 1000
	b.fault(cks.Fault{Operation: "vm.destroy", Value: "fail:no such host", VMID: w[1].ID})
	job := b.ask(cks.ScaleDown, cks.Args{Size: 1})
	b.run()
	message := ""
	b.until("the second one cannot be destroyed", func() bool {
		_, message = b.progress(job)
		return strings.HasPrefix(message, "destroy-vm failed, try ")
	})
	if !strings.Contains(message, "no such host") || strings.Contains(message, "\n") {
		t.Errorf("it says %q", message)
	}
	steps, _ := b.progress(job)
	if got := stepList(steps); got != "observe-vms=done choose-nodes=done next-node=done drain=done delete-node=done destroy-vm=current record-removal=pending" {
		t.Errorf("meanwhile: %s", got)
	}
	b.fault(cks.Fault{Operation: "vm.destroy", Value: "clear"})
	b.ended(job)
	steps, _ = b.progress(job)
	b.inOrder(steps[:2])
	b.inOrder(steps[2:]) // of the last round
}

// What is shown during a drain was recorded by the step before it.
//
// Keeps: ours/progress-message, ours/progress-free.
func TestDrainIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
	w := b.workers()
	b.fault(cks.Fault{Operation: "node.drain", Value: "delay:1s", VMID: w[1].ID})
	job := b.ask(cks.RemoveNodes, cks.Args{VMIDs: []string{w[1].ID, w[2].ID}})
	b.run()
	want := "1 of 2 nodes are removed; removing " + w[1].Name
	b.until(want, func() bool {
		steps, message := b.progress(job)
		return message == want && steps[3].Name == "drain" && steps[3].State == cks.StepCurrent
	})
	b.ended(job)
}

// A job that is given up shows the step that failed, that the rest was left
// out, and the steps that undid it.
//
// Keeps: ours/progress.
func TestFailureShowsItsStep(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "iso.attach", Value: "fail"})
	job := b.ask(cks.ScaleUp, cks.Args{Size: 2})
	b.run()
	b.ended(job)
	steps, message := b.progress(job)
	if got := stepList(steps); message != "" || got != "plan-capacity=done choose-vms=done create-and-start=done attach-iso=failed "+
		"wait-ready-count=skipped wait-new-nodes=skipped detach-iso=skipped keep-ready-drop-others=done" {
		t.Errorf("%q %s", message, got)
	}
	b.inOrder(steps)
	b.fault(cks.Fault{Operation: "iso.attach", Value: "clear"})
	b.inState(cks.Running)
	b.fault(cks.Fault{Operation: "capacity", Value: "0"})
	unchanged := b.ask(cks.ScaleUp, cks.Args{Size: 2})
	b.ended(unchanged)
	steps, _ = b.progress(unchanged)
	if got := stepList(steps); !strings.HasPrefix(got, "plan-capacity=failed choose-vms=skipped") || strings.Contains(got, "keep-") {
		t.Errorf("without a change: %s", got)
	}
}
