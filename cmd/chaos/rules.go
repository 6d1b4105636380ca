package main

import (
	"fmt"
	"slices"
	"time"

	"ckscale/cmd/internal/live"
	"ckscale/internal/cks"
	"ckscale/internal/jobs"
)

// rule is something that must be so, whatever happened.
type rule struct {
	name  string
	check func(e *evidence, say func(cluster, job, format string, args ...any))
}

var rules = []rule{
	{"every accepted jobid exists and is finished", (*evidence).acceptedEnd},
	{"what was told of a job's end stays so", (*evidence).toldOnce},
	{"what was told is true", (*evidence).toldTruth},
	{"what was answered by an error was not accepted", (*evidence).errorsAcceptNothing},
	{"size and list agree in every commit, and change only under a hold", (*evidence).sizesAgree},
	{"a job makes as many VMs as it is to make", (*evidence).noVMTooMany},
	{"no step is recorded twice", (*evidence).stepsOnce},
	{"no call is made twice unless it was cut off or failed", (*evidence).callsOnce},
	{"only who has a job's lease acts for it", (*evidence).oneExecutor},
	{"what a killed server had begun goes on in time", (*evidence).resumedInTime},
	{"in the end the cloud is what is listed", (*evidence).cloudAgrees},
}

func (e *evidence) violations() []violation {
	var all []violation
	for _, r := range rules {
		r.check(e, func(cluster, job, format string, args ...any) {
			all = append(all, violation{r.name, cluster, job, fmt.Sprintf(format, args...)})
		})
	}
	return all
}

type say = func(cluster, job, format string, args ...any)

func (e *evidence) acceptedEnd(say say) {
	for _, r := range e.requests {
		if r.outcome != accepted {
			continue
		}
		switch j, ok := e.records[r.job]; {
		case !ok:
			say(r.cluster, r.job, "%s was accepted and its job does not exist", r)
		case j.Status == cks.JobPending:
			say(r.cluster, r.job, "%s was accepted and its job has not ended", r)
		case r.told == nil:
			say(r.cluster, r.job, "%s was accepted and its client never learnt the end: %s", r, r.text)
		}
	}
}

func (e *evidence) toldOnce(say say) {
	for _, r := range e.requests {
		if r.told != nil && e.again[r.job] != string(r.told.raw) {
			say(r.cluster, r.job, "told %s, now %s", r.told.raw, e.again[r.job])
		}
	}
}

func (e *evidence) errorsAcceptNothing(say say) {
	for _, r := range e.requests {
		if r.outcome != refused {
			continue
		}
		if _, ok := e.records[r.custom]; ok {
			say(r.cluster, r.custom, "%s was answered by %d %s, and there is such a job", r, r.status, r.text)
		}
	}
}

func (e *evidence) sizesAgree(say say) {
	for id, all := range e.clusters {
		for i, r := range all {
			if r.State != cks.Starting && r.workers() != r.Size {
				say(id, r.Holder, "size %d and %d workers at %s", r.Size, r.workers(), clock(r.At))
			}
			if i == 0 {
				continue
			}
			before := all[i-1]
			if before.Size != r.Size && (before.Holder == "" || r.Holder != before.Holder) {
				say(id, before.Holder, "size %d to %d at %s without a hold", before.Size, r.Size, clock(r.At))
			}
			if before.Holder != "" && r.Holder != "" && r.Holder != before.Holder {
				say(id, r.Holder, "it took the hold of %s at %s", before.Holder, clock(r.At))
			}
		}
	}
}

func (e *evidence) noVMTooMany(say say) {
	made := map[string]int{}
	for _, all := range e.vms {
		if first := all[0]; first.Phase == cks.Chosen {
			made[first.Job]++
		}
	}
	for id, n := range made {
		j := e.records[id]
		want := j.Args.Size - j.Notes.Before // a scale-up
		if j.Kind == cks.CreateCluster {
			want = j.Args.Size + 1 // and a control node
		}
		if n != want {
			say(j.Cluster, id, "%d VMs were chosen, %d are wanted", n, want)
		}
	}
}

// loops lead back to a step, to do those behind it for another VM.
var loops = map[string]string{"record-removal": "choose-nodes"}

func (e *evidence) stepsOnce(say say) {
	for id, all := range e.jobs {
		j := e.records[id]
		at, last := "", "" // last: of the plan that was given up
		undoing := false
		for _, r := range all {
			if r.Failure != "" && !undoing {
				undoing, at, last = true, "", at
			}
			if r.Step == at || undoing && at == "" && r.Step == last { // the end of a job writes its step once more
				continue
			}
			plan := jobs.Steps(j.Kind)
			if undoing {
				plan = jobs.UndoSteps(j.Kind)
			}
			if slices.Index(plan, r.Step) != slices.Index(plan, at)+1 && loops[at] != r.Step {
				say(j.Cluster, id, "step %q is recorded after %q at %s", r.Step, at, clock(r.At))
			}
			at = r.Step
		}
	}
}

// resumption is the going on of a job whose server was killed.
type resumption struct {
	job  string
	took time.Duration // from the kill; 0: it never went on
}

// resumptions are those of the jobs that killed servers had under way.
func (e *evidence) resumptions() []resumption {
	var list []resumption
	for _, kill := range e.kills {
		for id, all := range e.jobs {
			had := slices.IndexFunc(all, func(r jobRow) bool { return r.At.After(kill.at) && r.App != kill.app })
			last := had - 1
			if had < 0 {
				last = len(all) - 1
			}
			if last < 0 || all[last].Owner == "" || all[last].App != kill.app {
				continue
			}
			r := resumption{job: id}
			if had >= 0 {
				r.took = all[had].At.Sub(kill.at)
			}
			list = append(list, r)
		}
	}
	return list
}

// resumeLimit is beyond the lease, at whose end a job can be taken up.
const resumeLimit = 10 * time.Second

func (e *evidence) resumedInTime(say say) {
	for _, r := range e.resumptions() {
		cluster := e.records[r.job].Cluster
		switch {
		case r.took == 0:
			say(cluster, r.job, "its server was killed, and nobody took it up")
		case r.took > e.lease+resumeLimit:
			say(cluster, r.job, "its server was killed, and it was taken up after %s", r.took)
		}
	}
}

func (e *evidence) cloudAgrees(say say) {
	for id, w := range e.cloud {
		named := map[string]string{}
		for _, v := range w.VMs {
			if other := named[v.Name]; other != "" {
				say(id, "", "VMs %s and %s have one name, %s", other, v.ID, v.Name)
			}
			named[v.Name] = v.ID
			if v.ISO {
				say(id, "", "the ISO is still attached to %s", v.Name)
			}
			if n := w.NodeOf(v.ID); n.Ready != live.Ready {
				say(id, "", "%s runs, and its node is %q", v.Name, n.Ready)
			}
		}
		if len(w.Nodes) != len(w.VMs) {
			say(id, "", "%d VMs exist, with %d nodes", len(w.VMs), len(w.Nodes))
		}
		e.callsAreRecorded(id, w, say)
	}
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }
