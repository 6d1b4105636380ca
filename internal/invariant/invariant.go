// Package invariant says what must be true of ckscale and its cloud after
// every scenario, whatever happened in it. It is made for tests.
package invariant

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store"
)

// Facts are what can be seen of the service and of its cloud at one moment.
type Facts struct {
	Clusters []Cluster
	VMs      []VM              // those in no cluster
	Jobs     []Job             // the unfinished ones
	Cloud    []Machine         // the VMs that exist
	Kubelets map[string]string // by VM id: the Kubernetes version of its node, where that is known
}

// Cluster is a cluster as it is listed.
type Cluster struct {
	ID, Name string
	State    cks.State
	Size     int
	VMs      []VM
}

// VM is a VM as it is listed.
type VM struct {
	ID, Name string
	Worker   bool   // an external one too
	Version  string // of Kubernetes
	Changing bool   // a job makes it, or takes it somewhere; false when what is seen of it does not tell
}

// Job is an unfinished job.
type Job struct {
	ID        string
	ClusterID string        // "" when what is seen of it does not tell
	VMID      string        // of a VM job
	Holds     bool          // whether its kind holds a cluster
	Remaining time.Duration // to its deadline
}

// Machine is a VM that exists in the cloud; ClusterID is empty of one in none.
type Machine struct{ ID, Name, ClusterID string }

// Margin is how long after its deadline a job may end: it undoes what it did.
const Margin = time.Minute

// Broken tells which of the invariants of reports.md, and of our own I5 and I6, the
// facts break; it is empty when all hold. I1 and I3 are about clusters without a live job; what a
// job could not destroy is listed without being counted, and is a breach until
// the scanner has destroyed it.
func (f Facts) Broken() []string {
	var broken []string
	say := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	busy, listed := 0, map[string]bool{}
	for _, c := range f.Clusters {
		live := f.holding(c.ID)
		if c.State.Busy() {
			busy++
		}
		if known := f.known(); known && c.State.Busy() != (live == 1) || live > 1 {
			say("I2: cluster %s is %s with %d live jobs", c.Name, c.State, live)
		}
		workers := 0
		for _, v := range c.VMs {
			listed[v.ID] = true
			if v.Worker {
				workers++
			}
		}
		if !c.State.Busy() && live == 0 && workers != c.Size {
			say("I1: the size of %s is %d and %d workers are listed", c.Name, c.Size, workers)
		}
	}
	if all := f.holders(); busy != all {
		say("I2: %d clusters are busy and %d jobs hold one", busy, all)
	}
	for _, text := range f.outdated() {
		say("I5: %s", text)
	}
	for _, v := range f.VMs {
		listed[v.ID] = true
	}
	for _, text := range f.left() {
		say("I6: %s", text)
	}
	for _, text := range f.unlike(listed) {
		say("I3: %s", text)
	}
	for _, j := range f.Jobs {
		if j.Remaining < -Margin {
			say("I4: job %s should have ended %s ago", j.ID, -j.Remaining)
		}
	}
	return broken
}

// unlike compares the cloud with the lists.
func (f Facts) unlike(listed map[string]bool) (texts []string) {
	exists := map[string]bool{}
	for _, m := range f.Cloud {
		if exists[m.ID] && f.quiet(m.ClusterID) {
			texts = append(texts, fmt.Sprintf("VM %s is in two places", m.Name))
		}
		exists[m.ID] = true
		if f.quiet(m.ClusterID) && !f.changing(m.ID) && !listed[m.ID] {
			texts = append(texts, fmt.Sprintf("VM %s exists and is not listed", m.Name))
		}
	}
	for _, c := range f.Clusters {
		for _, v := range c.VMs {
			if f.quiet(c.ID) && !exists[v.ID] {
				texts = append(texts, fmt.Sprintf("VM %s is listed and does not exist", v.Name))
			}
		}
	}
	for _, v := range f.VMs {
		if !f.changing(v.ID) && !exists[v.ID] {
			texts = append(texts, fmt.Sprintf("VM %s is listed and does not exist", v.Name))
		}
	}
	return texts
}

// outdated compares the versions of the nodes of Running clusters with those
// that are listed. In Alert they may differ until the scanner has looked.
func (f Facts) outdated() (texts []string) {
	for _, c := range f.Clusters {
		for _, v := range c.VMs {
			if is := f.Kubelets[v.ID]; c.State == cks.Running && f.quiet(c.ID) && is != "" && !cks.SameVersion(is, v.Version) {
				texts = append(texts, fmt.Sprintf("node %s has version %s and is listed with %q", v.Name, is, v.Version))
			}
		}
	}
	return texts
}

// left are the VMs that wait for a job which is not there any more: nothing could
// be done with them.
func (f Facts) left() (texts []string) {
	check := func(c string, vms []VM) {
		for _, v := range vms {
			if v.Changing && f.quiet(c) && !f.changing(v.ID) {
				texts = append(texts, fmt.Sprintf("VM %s waits for a job that has ended", v.Name))
			}
		}
	}
	check("", f.VMs)
	for _, c := range f.Clusters {
		check(c.ID, c.VMs)
	}
	return texts
}

// changing tells whether a job of its own works on the VM.
func (f Facts) changing(id string) bool {
	return slices.ContainsFunc(f.Jobs, func(j Job) bool { return j.VMID == id })
}

// quiet tells whether no job works on the cluster. One that is not listed is
// quiet: whatever exists of it was left behind.
func (f Facts) quiet(id string) bool {
	for _, c := range f.Clusters {
		if c.ID == id && c.State.Busy() {
			return false
		}
	}
	return f.holding(id) == 0
}

func (f Facts) holding(id string) int {
	n := 0
	for _, j := range f.Jobs {
		if j.Holds && j.ClusterID == id {
			n++
		}
	}
	return n
}

func (f Facts) holders() int {
	n := 0
	for _, j := range f.Jobs {
		if j.Holds {
			n++
		}
	}
	return n
}

// known tells whether every job shows its cluster.
func (f Facts) known() bool {
	for _, j := range f.Jobs {
		if j.Holds && j.ClusterID == "" {
			return false
		}
	}
	return true
}

// Gather sees the service from within, through its store.
func Gather(ctx context.Context, st *store.Store, world *sim.World) (Facts, error) {
	var f Facts
	views, _, err := st.Views(ctx, cks.ClusterFilter{ListAll: true}, "")
	if err != nil {
		return f, err
	}
	for _, v := range views {
		c := Cluster{ID: v.Cluster.ID, Name: v.Cluster.Name, State: v.Cluster.State, Size: v.Cluster.Size}
		for _, vm := range v.VMs {
			c.VMs = append(c.VMs, VM{ID: vm.ID, Name: vm.Name, Worker: vm.Role == cks.Worker, Version: vm.NodeVersion, Changing: changes(vm)})
		}
		f.Clusters = append(f.Clusters, c)
	}
	vms, _, err := st.VMViews(ctx, cks.VMFilter{ListAll: true, Page: cks.Page{Size: -1}}, "")
	if err != nil {
		return f, err
	}
	for _, v := range vms {
		if v.VM.ClusterID == "" {
			f.VMs = append(f.VMs, VM{ID: v.VM.ID, Name: v.VM.Name, Changing: changes(v.VM)})
		}
	}
	jobs, _, err := st.Jobs(ctx, cks.JobFilter{ListAll: true}, "")
	if err != nil {
		return f, err
	}
	for _, j := range jobs {
		_, holds := cks.Requests[j.Kind]
		f.Jobs = append(f.Jobs, Job{ID: j.ID, ClusterID: j.ClusterID, VMID: j.VMID, Holds: holds, Remaining: j.Remaining})
	}
	s, err := world.Query(ctx, "")
	if err != nil {
		return f, err
	}
	f.Kubelets = map[string]string{}
	for _, n := range s.Nodes {
		f.Kubelets[n.VMID] = n.Version
	}
	for _, m := range s.Machines {
		f.Cloud = append(f.Cloud, Machine{m.ID, m.Name, m.ClusterID})
	}
	return f, nil
}

// changes tells whether a VM waits for a job. One that is doomed waits for the
// scanner.
func changes(v cks.VM) bool { return v.Phase == cks.Chosen || v.Phase == cks.Leaving }
