package main

import (
	"math"
	"slices"

	"ckscale/cmd/internal/live"
	"ckscale/internal/cks"
)

// execution is the time in which a process had the lease of a job, from its
// claim until it gave the job back, ended it, or lost it.
type execution struct {
	job, app  string
	attempt   int64
	from, to  int64 // by seq; to is not in it
	disturbed bool  // it was cut off, or a step failed: what it did last may be done again
}

// executions are those of a job, one after the other.
func executions(all []jobRow) []execution {
	var list []execution
	open := false
	var tries int
	var failure string
	for _, r := range all {
		claim := len(list) == 0 && r.Attempt > 0 || len(list) > 0 && r.Attempt > list[len(list)-1].attempt
		if open && (claim || r.Owner == "") {
			last := &list[len(list)-1]
			last.to = r.Seq
			last.disturbed = r.Taken || r.Tries > tries || r.Failure != failure
			open = false
		}
		if claim {
			list = append(list, execution{job: r.Job, app: r.App, attempt: r.Attempt, from: r.Seq, to: math.MaxInt64})
			open = true
			failure = r.Failure
		}
		tries = r.Tries
	}
	return list
}

// executionsOf are those of the jobs of a cluster and of its VMs.
func (e *evidence) executionsOf(cluster string) []execution {
	var list []execution
	for id, j := range e.records {
		if j.Cluster == cluster || j.VM != "" && e.clusterOf(j.VM) == cluster {
			list = append(list, executions(e.jobs[id])...)
		}
	}
	return list
}

func (e *evidence) clusterOf(vm string) string {
	if rows := e.vms[vm]; len(rows) > 0 {
		return rows[0].Cluster
	}
	return ""
}

// executionOf returns the execution that a call belongs to. Jobs of a VM do no
// more than start and stop it; one may run beside a job of the VM's cluster.
func (e *evidence) executionOf(c callRow, all []execution) (execution, bool) {
	i := slices.IndexFunc(all, func(x execution) bool {
		j := e.records[x.job]
		return x.app == c.App && x.from <= c.Seq && c.Seq < x.to && (j.VM == "" || j.VM == c.VM && (c.Operation == "vm.start" || c.Operation == "vm.stop"))
	})
	if i < 0 {
		return execution{}, false
	}
	return all[i], true
}

// oneExecutor: every call is made by the process that has the lease of a job
// of the cluster or of the VM at that moment. Scanners make two kinds of calls
// without: they destroy what jobs have left behind.
func (e *evidence) oneExecutor(say say) {
	for cluster, calls := range by(e.calls, func(c callRow) string { return c.Cluster }) {
		all := e.executionsOf(cluster)
		for _, c := range calls {
			if _, ok := e.executionOf(c, all); !ok && !e.swept(c) {
				say(cluster, "", "%s calls %s of VM %q at %s, and has no lease", c.App, c.Operation, c.VM, clock(c.At))
			}
		}
	}
}

// swept reports whether a call may be a scanner's.
func (e *evidence) swept(c callRow) bool {
	if c.Operation != "vm.destroy" && c.Operation != "node.delete" {
		return false
	}
	return c.VM == "" || slices.ContainsFunc(e.vms[c.VM], func(r vmRow) bool {
		return r.Seq < c.Seq && (r.Phase == cks.Doomed || r.Removed)
	})
}

// mayRepeat says how often one execution makes a call of a VM, where that is not
// once: a VM may be started and stopped again by others meanwhile; a node is
// deleted before its VM is destroyed and, in case it came back, after that.
var mayRepeat = map[string]int{"vm.start": math.MaxInt, "vm.stop": math.MaxInt, "node.delete": 2}

// callsOnce: a job makes a call of a VM once, and again only if the execution
// that made it was disturbed. A call about a node that is gone names no VM.
func (e *evidence) callsOnce(say say) {
	type key struct{ job, operation, vm string }
	for cluster, calls := range by(e.calls, func(c callRow) string { return c.Cluster }) {
		all := e.executionsOf(cluster)
		made := map[key]map[execution]int{}
		for _, c := range calls {
			x, ok := e.executionOf(c, all)
			if !ok || c.VM == "" || mayRepeat[c.Operation] == math.MaxInt {
				continue
			}
			k := key{x.job, c.Operation, c.VM}
			if made[k] == nil {
				made[k] = map[execution]int{}
			}
			for other := range made[k] {
				if other != x && !other.disturbed {
					say(cluster, x.job, "%s of VM %s at %s, and attempt %d had made it undisturbed", c.Operation, c.VM, clock(c.At), other.attempt)
				}
			}
			if made[k][x]++; made[k][x] > max(1, mayRepeat[c.Operation]) {
				say(cluster, x.job, "%s of VM %s at %s, the %d. time in one attempt", c.Operation, c.VM, clock(c.At), made[k][x])
			}
		}
	}
}

// callsAreRecorded checks the record of calls against what the cloud counted.
func (e *evidence) callsAreRecorded(cluster string, w live.World, say say) {
	recorded := map[string]int{}
	for _, c := range e.calls {
		if c.Cluster == cluster {
			recorded[c.Operation+" "+c.VM]++
		}
	}
	for _, c := range w.Calls {
		if n := recorded[c.Operation+" "+c.VMID]; n != c.Count {
			say(cluster, "", "the cloud counted %d calls of %s of VM %q, %d are recorded", c.Count, c.Operation, c.VMID, n)
		}
	}
}
