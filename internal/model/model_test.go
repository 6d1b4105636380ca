package model

import (
	"cmp"
	"fmt"
	"slices"

	"ckscale/internal/cks"
)

// The model: what the requests promise, as pure functions of what can be seen.
// It says what must be so without saying how, and knows no plan and no step.

// maxSize is the most workers and control nodes of a cluster.
const maxSize = 10

// request is a scale request whose names are resolved.
type request struct {
	size        *int64
	nodeIDs     bool     // nodeids is sent
	vms         []cks.VM // that it names
	nobody      bool     // it names one that never was
	offering    *cks.Offering
	autoscaling *bool
	min, max    *int64
}

func (r request) resizes(v cks.ClusterView) bool {
	return r.size != nil && *r.size != int64(v.Cluster.Size)
}

func (r request) grows(v cks.ClusterView) bool {
	return r.size != nil && *r.size > int64(v.Cluster.Size)
}

func (r request) shrinks(v cks.ClusterView) bool {
	return r.nodeIDs || r.size != nil && *r.size < int64(v.Cluster.Size)
}

func (r request) newOffering(v cks.ClusterView) bool {
	return r.offering != nil && r.offering.ID != v.Cluster.DefaultOffering
}

func (r request) newAutoscaling(v cks.ClusterView) bool {
	is := v.Cluster.Autoscaling
	differs := func(given *int64, is int) bool { return given != nil && *given != int64(is) }
	return r.autoscaling != nil && (*r.autoscaling != is.Enabled || is.Enabled && (differs(r.min, is.Min) || differs(r.max, is.Max)))
}

func (r request) turnsOn() bool { return r.autoscaling != nil && *r.autoscaling }

// changes reports whether there is anything to do.
func (r request) changes(v cks.ClusterView) bool {
	return r.nodeIDs || r.resizes(v) || r.newOffering(v) || r.newAutoscaling(v)
}

// target is the size that the request leads to.
func (r request) target(v cks.ClusterView) int {
	switch {
	case r.nodeIDs:
		return v.Cluster.Size - len(r.vms)
	case r.size != nil:
		return int(*r.size)
	}
	return v.Cluster.Size
}

// named are the cluster's VMs that the request names and that are as wanted.
func (r request) named(v cks.ClusterView, wanted func(cks.VM) bool) int {
	n := 0
	for _, vm := range r.vms {
		if counted(v, vm) && wanted(vm) {
			n++
		}
	}
	return n
}

// reason is one thing that a request can be refused for.
type reason struct {
	text string // a part of what it is told
	is   func(v cks.ClusterView, r request) bool
}

// reasons are all of them (cks.md §3). A request that none applies to must be
// accepted; which one is told of several that apply is left open.
var reasons = []reason{
	{"state and can not be scaled", func(v cks.ClusterView, _ request) bool { return v.Cluster.State.Busy() }},
	{"Autoscaling can not be passed along", func(_ cks.ClusterView, r request) bool { return r.turnsOn() && (r.size != nil || r.nodeIDs) }},
	{"requires minsize and maxsize", func(_ cks.ClusterView, r request) bool { return r.turnsOn() && (r.min == nil || r.max == nil) }},
	{"Minsize must be", func(_ cks.ClusterView, r request) bool { return r.turnsOn() && r.min != nil && *r.min < 1 }},
	{"Maxsize must be greater", func(_ cks.ClusterView, r request) bool {
		return r.turnsOn() && r.min != nil && r.max != nil && *r.max <= *r.min
	}},
	{"Maximum cluster size", func(v cks.ClusterView, r request) bool {
		over := func(n *int64) bool { return n != nil && *n+int64(v.Cluster.ControlNodes) > maxSize }
		return r.turnsOn() && over(r.max) || r.resizes(v) && over(r.size)
	}},
	{"can not be passed along with clustersize", func(_ cks.ClusterView, r request) bool {
		return r.nodeIDs && (r.size != nil || r.offering != nil)
	}},
	{"Invalid node ids", func(v cks.ClusterView, r request) bool {
		if !r.nodeIDs {
			return false
		}
		seen := map[string]bool{}
		for _, vm := range r.vms {
			if seen[vm.ID] || !counted(v, vm) {
				return true
			}
			seen[vm.ID] = true
		}
		return len(r.vms) == 0
	}},
	{"Can not remove all control nodes", func(v cks.ClusterView, r request) bool {
		return r.named(v, isRole(cks.Control)) >= v.Cluster.ControlNodes
	}},
	{"Can not remove all nodes", func(v cks.ClusterView, r request) bool {
		return r.nodeIDs && count(v.VMs, isExternal) == 0 && r.named(v, cks.VM.OwnWorker) >= v.Cluster.Size
	}},
	{"is a control node", func(v cks.ClusterView, r request) bool { return r.named(v, isRole(cks.Control)) > 0 }},
	{"is an etcd node", func(v cks.ClusterView, r request) bool { return r.named(v, isRole(cks.Etcd)) > 0 }},
	{"is an external node", func(v cks.ClusterView, r request) bool { return r.named(v, isExternal) > 0 }},
	{"cannot be scaled for size", func(v cks.ClusterView, r request) bool { return r.resizes(v) && *r.size < 1 }},
	{"of its nodes are external", func(v cks.ClusterView, r request) bool {
		return r.resizes(v) && *r.size < int64(count(v.VMs, isExternal))
	}},
	{"offers lesser resources", func(v cks.ClusterView, r request) bool {
		return v.Cluster.State == cks.Running && r.newOffering(v) && r.offering.Cores < v.Offerings[v.Cluster.DefaultOffering].Cores
	}},
	{"is in Stopped state", func(v cks.ClusterView, r request) bool {
		return v.Cluster.State == cks.Stopped && (r.nodeIDs || r.resizes(v) || r.newAutoscaling(v))
	}},

	// What the seed allows and refuses in Alert.
	{"Recover the cluster before", inAlert(func(v cks.ClusterView, r request) bool { return r.newOffering(v) || r.newAutoscaling(v) })},
	{"the request does neither", inAlert(func(v cks.ClusterView, r request) bool { return !r.nodeIDs && !r.resizes(v) })},
	{"only worker nodes can be removed", inAlert(func(v cks.ClusterView, r request) bool {
		return r.named(v, func(vm cks.VM) bool { return !vm.OwnWorker() }) > 0
	})},
	{"control or etcd node VM is down", inAlert(func(v cks.ClusterView, _ request) bool {
		return count(v.VMs, func(vm cks.VM) bool { return vm.Role != cks.Worker && vm.State.Down() }) > 0
	})},
	{"first control node VM is not running", inAlert(func(v cks.ClusterView, _ request) bool {
		i := slices.IndexFunc(v.VMs, isRole(cks.Control))
		return v.VMs[i].State != cks.VMRunning
	})},
	{"remove or recover them before", inAlert(func(v cks.ClusterView, _ request) bool { return len(v.VMs) != v.Cluster.Nodes() })},
	{"none of its worker node VMs is down", inAlert(func(v cks.ClusterView, _ request) bool {
		return count(v.VMs, func(vm cks.VM) bool { return vm.OwnWorker() && vm.Phase == cks.Member && vm.State.Down() }) == 0
	})},
}

func inAlert(is func(cks.ClusterView, request) bool) func(cks.ClusterView, request) bool {
	return func(v cks.ClusterView, r request) bool { return v.Cluster.State == cks.Alert && is(v, r) }
}

// refusals are the texts that the request may be refused with.
func (r request) refusals(v cks.ClusterView) []string {
	var texts []string
	for _, why := range reasons {
		if why.is(v, r) {
			texts = append(texts, why.text)
		}
	}
	return texts
}

// promise is a live job that holds a cluster, and what is known of its life.
type promise struct {
	cluster int
	req     request
	before  sight           // when it was accepted
	excuses []string        // why it may fail; without one it must succeed
	down    map[string]bool // VMs that have been down all the time
	touched map[string]bool // VMs that somebody else did something to
	blind   bool            // its view of the nodes may be taken from it
	acts    []act           // what it did
}

// kept says what is not so whatever became of the job: nothing was lost or
// added that it was not asked for, and only within its bounds (I1).
func (p promise) kept(now sight) (wrong []string) {
	say := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	lost, added := without(p.before.members(), now.members()), without(now.members(), p.before.members())
	size, was, target := now.view.Cluster.Size, p.before.view.Cluster.Size, p.req.target(p.before.view)
	if size != was-len(lost)+len(added) {
		say("size went from %d to %d, with %d nodes lost and %d added", was, size, len(lost), len(added))
	}
	if size < min(was, target) || size > max(was, target) {
		say("size is %d; it was %d and %d was asked for", size, was, target)
	}
	for _, v := range lost {
		switch {
		case !p.req.shrinks(p.before.view), !v.OwnWorker(), p.req.nodeIDs && !has(p.req.vms, v.ID):
			say("%s is lost", v.Name)
		}
	}
	for _, v := range added {
		if !p.req.grows(p.before.view) || !v.OwnWorker() {
			say("%s is added", v.Name)
		}
	}
	if made := p.made(now); made > max(0, target-was) {
		say("%d VMs were made for %d slots", made, max(0, target-was))
	}
	return wrong
}

// made is how many VMs were asked for since the job was accepted.
func (p promise) made(now sight) int {
	n := 0
	for call := range now.calls {
		if _, before := p.before.calls[call]; !before && operationOf(call) == "vm.create" {
			n++
		}
	}
	return n
}

func operationOf(call string) string {
	var operation, vm string
	fmt.Sscan(call, &operation, &vm)
	return operation
}

// done says what is not so though the job has succeeded.
func (p promise) done(now sight) (wrong []string) {
	say := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	c, target := now.view.Cluster, p.req.target(p.before.view)
	if c.Size != target {
		say("size is %d, %d was asked for", c.Size, target)
	}
	for _, v := range without(now.members(), p.before.members()) {
		if !now.ready[v.ID] && !p.touched[v.ID] {
			say("new node %s is not Ready", v.Name)
		}
	}
	if o := p.req.offering; o != nil && p.req.newOffering(p.before.view) {
		if c.DefaultOffering != o.ID {
			say("the offering is not recorded")
		}
		for _, v := range now.members() {
			if m, exists := now.machines[v.ID]; v.External {
				continue // scaling never acts on it
			} else if v.OfferingID != o.ID || exists && m.Cores != o.Cores {
				say("%s does not have the offering", v.Name)
			}
		}
	}
	if p.req.newAutoscaling(p.before.view) {
		want := cks.Autoscaling{}
		if *p.req.autoscaling {
			want = cks.Autoscaling{Enabled: true, Min: int(*p.req.min), Max: int(*p.req.max)}
		}
		if c.Autoscaling != want || now.autoscaler != want {
			say("autoscaling is %v and deployed as %v, asked for was %v", c.Autoscaling, now.autoscaler, want)
		}
	}
	return append(wrong, p.order(now)...)
}

// order says which nodes went though others had to go first: those that are
// down, then the newest (seed). It can be told while nobody interferes.
func (p promise) order(now sight) (wrong []string) {
	if p.req.nodeIDs || !p.req.shrinks(p.before.view) || len(p.touched) > 0 {
		return nil
	}
	down := func(v cks.VM) int {
		if p.before.machines[v.ID].State.Down() {
			return 0
		}
		return 1
	}
	own := slices.DeleteFunc(p.before.members(), func(v cks.VM) bool { return !v.OwnWorker() })
	slices.SortFunc(own, func(a, b cks.VM) int { return cmp.Or(down(a)-down(b), cmp.Compare(b.Seq, a.Seq)) })
	for _, v := range own[:min(len(own), p.before.view.Cluster.Size-p.req.target(p.before.view))] {
		if now.member(v.ID) {
			wrong = append(wrong, fmt.Sprintf("%s is still there, others went", v.Name))
		}
	}
	return wrong
}

// acted says what of what the job did it should not have done. given is whether
// the job has been given up.
func (p promise) acted(now sight, given bool) (wrong []string) {
	say := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	drained := map[string]bool{}
	for _, a := range p.acts {
		own := !p.before.member(a.vmID)
		switch {
		case a.operation == "node.drain":
			drained[a.vmID] = true
			if a.state.Down() {
				say("the node of a VM that is %s was drained", a.state)
			}
		case p.touched[a.vmID]:
		case a.operation == "iso.detach" && own && !a.ready && !given:
			say("the ISO was taken out before the node had joined")
		case a.operation == "vm.destroy" && own && a.ready && running(a.state) && !p.blind:
			say("a new node that is Ready was destroyed")
		case a.operation == "node.delete" && !own && a.ready && running(a.state) && !drained[a.vmID]:
			say("a node that runs was deleted and had not been drained")
		}
	}
	for id := range p.down {
		drains := "node.drain " + id
		if now.calls[drains] > p.before.calls[drains] {
			say("a VM that was down all the time was drained")
		}
	}
	return wrong
}

// ended says what is wrong with the end of a job, and of a promise.
func (p promise) ended(job cks.Job, now sight) (wrong []string) {
	state, was := now.view.Cluster.State, p.before.view.Cluster.State
	wrong = append(p.kept(now), p.acted(now, job.Status == cks.JobFailed)...)
	if job.Status == cks.JobFailed {
		if len(p.excuses) == 0 {
			wrong = append(wrong, "it failed for no reason: "+job.ErrorText)
		}
		if state != cks.Alert && state != was {
			wrong = append(wrong, fmt.Sprintf("it failed, and the cluster is %s", state))
		}
		if !p.req.newAutoscaling(p.before.view) && now.view.Cluster.Autoscaling != p.before.view.Cluster.Autoscaling {
			wrong = append(wrong, "autoscaling changed")
		}
		return wrong
	}
	want := cks.Running
	if was == cks.Stopped {
		want = cks.Stopped
	}
	if state != want {
		wrong = append(wrong, fmt.Sprintf("it succeeded, and the cluster is %s", state))
	}
	if c := job.Result.Cluster.Cluster; c.State != want || c.Size != p.req.target(p.before.view) {
		wrong = append(wrong, fmt.Sprintf("its result shows %s with size %d", c.State, c.Size))
	}
	return append(wrong, p.done(now)...)
}
