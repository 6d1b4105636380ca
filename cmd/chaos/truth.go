package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ckscale/cmd/internal/live"
	"ckscale/internal/cks"
)

// toldTruth: what a client was told of a job's end is what was so.
func (e *evidence) toldTruth(say say) {
	for _, r := range e.requests {
		j, ok := e.records[r.job]
		if r.told == nil || !ok {
			continue // other rules
		}
		if int(j.Status) != r.told.Status {
			say(r.cluster, r.job, "%s: told status %d, recorded is %d", r, r.told.Status, j.Status)
			continue
		}
		if text := e.untrue(r, j); text != "" {
			say(r.cluster, r.job, "%s: %s", r, text)
		}
	}
}

// untrue says what was not so; "" if all was.
func (e *evidence) untrue(r *request, j jobRecord) string {
	_, held := cks.Requests[j.Kind]
	switch {
	case r.told.Status == live.Failed && r.told.Result.ErrorText != j.Text:
		return fmt.Sprintf("told %q, recorded is %q", r.told.Result.ErrorText, j.Text)
	case r.told.Status == live.Failed && e.endedAtOnce(r.job):
		return e.unjustified(r, j)
	case r.vm != "":
		return e.untrueOfVM(r, j)
	case held:
		return e.untrueOfHold(r, j)
	}
	return e.untrueOfNothing(r, j)
}

// endedAtOnce reports whether a job had ended when it was made: it was refused,
// or there was nothing to do.
func (e *evidence) endedAtOnce(job string) bool { return len(e.jobs[job]) == 1 }

// untrueOfNothing is about a request with nothing to do: the cluster was as it
// was told when it was judged.
func (e *evidence) untrueOfNothing(r *request, j jobRecord) string {
	for _, was := range e.clusterDuring(r.cluster, e.judged(j)) {
		if same(r.told.Result.Cluster, was) {
			return e.missed(r, was)
		}
	}
	return fmt.Sprintf("told of a cluster that never was so: %+v", r.told.Result.Cluster)
}

func same(told live.Cluster, was clusterRow) bool {
	var ids []string
	for _, v := range told.VMs {
		ids = append(ids, v.ID)
	}
	return told.Size == was.Size && told.State == string(was.State) && slices.Equal(ids, was.ids())
}

// missed says what of the request is not so in a cluster of which success was
// told.
func (e *evidence) missed(r *request, now clusterRow) string {
	if r.size != nil && now.Size != *r.size {
		return fmt.Sprintf("told success with size %d", now.Size)
	}
	for _, id := range r.nodes {
		if now.has(id) {
			return fmt.Sprintf("told success with VM %s still there", id)
		}
	}
	return ""
}

// heldBy returns the cluster as it was taken, before and in the hold, and as it
// was given back.
func (e *evidence) heldBy(cluster, job string) (begin, end clusterRow, ok bool) {
	all := e.clusters[cluster]
	i := slices.IndexFunc(all, func(r clusterRow) bool { return r.Holder == job })
	if i < 0 {
		return begin, end, false
	}
	n := slices.IndexFunc(all[i:], func(r clusterRow) bool { return r.Holder != job })
	if n < 0 {
		return begin, end, false
	}
	return all[i], all[i+n], true
}

// untrueOfHold is about a job that held the cluster: it was told as it was when
// the hold ended, and what has changed in the hold is what was told.
func (e *evidence) untrueOfHold(r *request, j jobRecord) string {
	begin, end, ok := e.heldBy(r.cluster, r.job)
	if !ok {
		return "it never held the cluster, or holds it for ever"
	}
	if r.told.Status == live.Failed {
		return untrueOfFailure(j, begin, end)
	}
	if !same(r.told.Result.Cluster, end) {
		return fmt.Sprintf("told %+v, it ended as %+v", r.told.Result.Cluster, end)
	}
	if text := e.missed(r, end); text != "" {
		return text
	}
	gone := slices.DeleteFunc(begin.ids(), end.has)
	come := slices.DeleteFunc(end.ids(), begin.has)
	switch {
	case r.nodes != nil && !slices.Equal(sorted(gone), sorted(r.nodes)):
		return fmt.Sprintf("%v were to go, %v went", r.nodes, gone)
	case len(come) > 0 && len(gone) > 0:
		return fmt.Sprintf("%v came and %v went", come, gone)
	case r.command == scale && len(come)-len(gone) != end.Size-begin.Size:
		return fmt.Sprintf("from size %d to %d %v came and %v went", begin.Size, end.Size, come, gone)
	}
	return ""
}

// partly is what is told of a scale-up of which only a part has come.
var partly = regexp.MustCompile(`, (\d+) of (\d+) new nodes joined: `)

func untrueOfFailure(j jobRecord, begin, end clusterRow) string {
	if m := partly.FindStringSubmatch(j.Text); m != nil {
		if n, err := strconv.Atoi(m[1]); err != nil || end.Size-begin.Size != n {
			return fmt.Sprintf("told %q, size went from %d to %d", j.Text, begin.Size, end.Size)
		}
	}
	grew := j.Kind == cks.ScaleUp
	switch {
	case j.Unchanged && end.Size != begin.Size:
		return fmt.Sprintf("nothing was changed, and size went from %d to %d", begin.Size, end.Size)
	case !grew && end.Size > begin.Size || grew && end.Size < begin.Size:
		return fmt.Sprintf("size went from %d to %d", begin.Size, end.Size)
	case strings.Contains(j.Text, "internal error in step"):
		return fmt.Sprintf("failed with %q, which is nobody's fault but the server's", j.Text)
	case end.State != cks.Alert && end.State != cks.Running:
		return fmt.Sprintf("the cluster was left %s", end.State)
	}
	return ""
}

// What is told of a job of a VM that failed.
var (
	vmElsewhere = regexp.MustCompile(`^VM \S+ is in (\w+) state; it was on its way from `)
	vmLate      = regexp.MustCompile(`^VM \S+ is still in (\w+) state$`)
	vmGone      = regexp.MustCompile(`^VM \S+ does not exist any more$`)
	vmDefies    = regexp.MustCompile(`^(Failed to (start|stop) VM \S+|cannot list the VMs of the cluster): `)
)

// untrueOfVM is about a job of a VM. The state that was told was the VM's when
// the job ended; after a success it had also been as it was asked for, though
// others may have changed it since.
func (e *evidence) untrueOfVM(r *request, j jobRecord) string {
	all := e.jobs[r.job]
	end := all[len(all)-1].At
	last := span{end.Add(-margin), end.Add(margin)}
	whole := span{all[0].At.Add(-margin), end.Add(margin)}
	was := func(when span, so func(vmRow) bool) bool { return slices.ContainsFunc(e.vmDuring(r.vm, when), so) }
	in := func(state string) func(vmRow) bool { return func(v vmRow) bool { return string(v.State) == state } }
	wanted := in(string(cks.VMRunning))
	if r.command == "stopVirtualMachine" {
		wanted = func(v vmRow) bool { return v.State.Down() }
	}
	told := r.told.Result.VM.State
	words, late := vmElsewhere.FindStringSubmatch(j.Text), vmLate.FindStringSubmatch(j.Text)
	switch {
	case r.told.Status == live.Succeeded && (!was(whole, wanted) || !was(last, in(told))):
		return fmt.Sprintf("told success with the VM in %s", told)
	case r.told.Status == live.Succeeded && e.endedAtOnce(r.job) && !wanted(vmRow{State: cks.VMState(told)}):
		return fmt.Sprintf("told that a VM in %s needs nothing", told)
	case r.told.Status == live.Succeeded, vmDefies.MatchString(j.Text): // as the cloud was told to
	case words != nil && !was(last, in(words[1])):
		return fmt.Sprintf("told %q, which was not so", j.Text)
	case words != nil:
	case late != nil && (end.Before(j.Deadline) || !was(last, in(late[1]))):
		return fmt.Sprintf("told %q, which was not so or has not lasted", j.Text)
	case late != nil:
	case vmGone.MatchString(j.Text) && !was(last, func(v vmRow) bool { return v.Removed }):
		return fmt.Sprintf("told %q, which was not so", j.Text)
	case vmGone.MatchString(j.Text):
	default:
		return fmt.Sprintf("failed with %q, which nothing explains", j.Text)
	}
	return ""
}

func sorted(ids []string) []string { return slices.Sorted(slices.Values(ids)) }
