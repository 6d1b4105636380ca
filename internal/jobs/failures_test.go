package jobs

import (
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// failure is something that goes wrong in a job, and what must be left then:
// before any scanner looks.
type failure struct {
	name   string
	kind   cks.Kind
	fault  string // operation=value
	limit  time.Duration
	text   string // is in the job's
	state  cks.State
	listed int // VMs; of 4
	size   int // of 3
	nodes  int // objects of the cluster's; of 4
}

// failures is the table of cks.md §5.9, as it ends here: nothing is left that
// nobody knows of, and size, list and cloud agree.
var failures = []failure{
	{"no room", cks.ScaleUp, "capacity=0", time.Minute,
		"Scaling failed for Kubernetes cluster : test in zone : zone1, insufficient capacity: 1 more VMs are wanted and 0 fit", cks.Running, 4, 3, 4},
	{"VM cannot be made", cks.ScaleUp, "vm.create=fail:out of addresses", time.Minute,
		"0 of 1 new nodes joined: Failed to start VM test-node-", cks.Alert, 4, 3, 4},
	{"VM cannot be started", cks.ScaleUp, "vm.start=fail:no host", time.Minute, ": no host", cks.Alert, 4, 3, 4},
	{"ISO cannot be attached", cks.ScaleUp, "iso.attach=fail:no such ISO", time.Minute,
		" in the Kubernetes cluster name: test: no such ISO", cks.Alert, 4, 3, 4},
	{"node does not join", cks.ScaleUp, "node.join=fail", 3 * time.Second,
		"as it does not have desired number of nodes in ready state", cks.Alert, 4, 3, 4},
	{"node is not drained", cks.RemoveNodes, "node.drain=fail:exit status 1", time.Minute,
		"Scaling failed for Kubernetes cluster test, failed to remove Kubernetes node: test-node-", cks.Alert, 4, 3, 4},
	{"node is not deleted", cks.RemoveNodes, "node.delete=fail:exit status 1", time.Minute,
		"failed to remove Kubernetes node: test-node-", cks.Alert, 4, 3, 4},
	{"VM is not destroyed", cks.ScaleDown, "vm.destroy=fail:storage is busy", time.Minute,
		"Scaling Kubernetes cluster test failed, unable to expunge VM 'test-node-", cks.Alert, 4, 3, 3},
	{"VM is not resized", cks.ChangeOffering, "vm.resize=fail:no host", time.Minute,
		"Scaling Kubernetes cluster : test failed, unable to scale cluster VM : test-node-", cks.Alert, 4, 3, 4},
	{"autoscaler is not deployed", cks.Autoscale, "autoscaler.set=fail:forbidden", time.Minute,
		"Failed to autoscale Kubernetes cluster: test : forbidden", cks.Running, 4, 3, 4},
	{"making a VM panics", cks.ScaleUp, "vm.create=panic", time.Minute, "panicked", cks.Alert, 4, 3, 4},
	{"draining panics", cks.RemoveNodes, "node.drain=panic", time.Minute, "panicked", cks.Alert, 4, 3, 4},
	{"resizing panics", cks.ChangeOffering, "vm.resize=panic", time.Minute, "panicked", cks.Alert, 4, 3, 4},
	{"deploying panics", cks.Autoscale, "autoscaler.set=panic", time.Minute, "panicked", cks.Running, 4, 3, 4},
}

// TestEveryFailureLeavesOrder: each failure ends the job with its text, and the
// cluster in Alert, or as it was when nothing had changed; never in Scaling. No
// VM and no node object is left over, and nothing is lost that still runs. Once
// the cloud works again, the same request succeeds.
//
// Keeps: §5.2/c, §5.2/unchanged, §5.2/5-failure, §5.4/4, §5.4/5-failure, §5.6/failure.
// Keeps: §5.9/unchanged, §5.9/create, §5.9/iso, §5.9/not-ready, §5.9/drain, §5.9/destroy.
// Keeps: §5.9/offering, §5.9/autoscaler, §5.9/exception, E2, E10, #14609, A28.
func TestEveryFailureLeavesOrder(t *testing.T) {
	t.Parallel()
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 3}, 100)
			args := map[cks.Kind]cks.Args{
				cks.ScaleUp: {Size: 4}, cks.ScaleDown: {Size: 2}, cks.RemoveNodes: {VMIDs: []string{b.workers()[2].ID}},
				cks.ChangeOffering: {Offerings: map[cks.Role]string{cks.Worker: b.big().ID}},
				cks.Autoscale:      {Autoscaling: &cks.Autoscaling{Enabled: true, Min: 1, Max: 3}},
			}[f.kind]
			operation, value, _ := strings.Cut(f.fault, "=")
			b.fault(cks.Fault{Operation: operation, Value: value})
			job := b.alone(b.askWithin(f.limit, f.kind, args))
			if job.Status != cks.JobFailed || !strings.Contains(job.ErrorText, f.text) {
				t.Errorf("status %d: %s", job.Status, job.ErrorText)
			}
			view := b.view()
			if c := view.Cluster; c.State != f.state || c.HeldBy != "" || c.Size != f.size || c.Autoscaling.Enabled || len(view.VMs) != f.listed {
				t.Errorf("%s, held by %q, size %d, %v, %d VMs", c.State, c.HeldBy, c.Size, c.Autoscaling, len(view.VMs))
			}
			if n := len(b.simulation().Nodes); n != f.nodes {
				t.Errorf("%d node objects", n)
			}
			b.consistent()
			b.fault(cks.Fault{Operation: operation, Value: "clear"})
			b.scan()
			if job = b.alone(b.ask(f.kind, args)); job.Status != cks.JobSucceeded {
				t.Errorf("asked again: %s", job.ErrorText)
			}
			b.consistent()
		})
	}
}
