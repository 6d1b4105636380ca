package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ckscale/internal/cks"
	"ckscale/internal/invariant"
)

// look sees all clusters as they are now.
func (p *player) look() error {
	var now []sight
	for i, id := range p.ids {
		view, err := p.st.View(p.ctx, id)
		if err != nil {
			return err
		}
		s := sight{view: view, machines: map[string]cks.Machine{}, ready: map[string]bool{}, calls: map[string]int{}}
		world, err := p.world.Query(p.ctx, id)
		if err != nil {
			return err
		}
		for _, m := range world.Machines {
			s.machines[m.ID] = m
		}
		for _, n := range world.Nodes {
			if n.Ready == cks.NodeReady {
				s.ready[n.VMID] = true
				s.readyNodes++
			}
		}
		for _, c := range world.Calls {
			s.calls[c.Operation+" "+c.VMID] = c.Count
		}
		for _, a := range world.Autoscalers {
			s.autoscaler = a.Autoscaling
		}
		if i < len(p.now) {
			for _, v := range without(p.now[i].members(), s.members()) {
				p.gone = v.ID
			}
		}
		now = append(now, s)
	}
	p.now = now
	return nil
}

// check looks, and complains of all that is not as it should be.
func (p *player) check() error {
	if err := p.look(); err != nil {
		return err
	}
	if err := p.checkJobs(); err != nil {
		return err
	}
	for _, s := range p.now {
		if state := s.view.Cluster.State; !state.Busy() && !slices.Contains(resting, state) {
			p.complain("a cluster is in a state that it cannot be in", "%s", state)
		}
		if s.view.Cluster.State.Busy() {
			continue
		}
		for _, v := range s.view.VMs {
			if v.Phase == cks.Chosen || v.Phase == cks.Leaving {
				p.complain("a VM is half-way for no job", "%s is %s", v.Name, v.Phase)
			}
			if v.Phase != cks.Doomed && s.machines[v.ID].ISOAttached && !p.stuck[s.view.Cluster.ID] {
				p.complain("the ISO is attached for no job", "to %s", v.Name)
			}
		}
	}
	return p.checkInvariants()
}

// expect is for scripts that are kept.
func (p *player) expect(a args) error {
	s := p.now[a.cluster()]
	is := map[string]string{
		"size": fmt.Sprint(s.view.Cluster.Size),
		"jobs": fmt.Sprint(p.counts["jobs ok"], "/", p.counts["jobs failed"]),
	}
	if got := string(s.view.Cluster.State); got != a["STATE"] {
		p.complain("not as expected", "%s, not %s", got, a["STATE"])
	}
	for name, got := range is {
		if a.has(name) && a[name] != strings.ReplaceAll(got, " ", "") {
			p.complain("not as expected", "%s is %s, not %s", name, got, a[name])
		}
	}
	return nil
}

var resting = []cks.State{cks.Running, cks.Alert, cks.Stopped, cks.Destroyed}

// checkInvariants holds what is seen against reports.md. A VM that is doomed is
// listed without being counted until a scan has destroyed it.
func (p *player) checkInvariants() error {
	live, _, err := p.st.Jobs(p.ctx, cks.JobFilter{}, "")
	if err != nil {
		return err
	}
	var facts invariant.Facts
	for _, j := range live {
		_, holds := cks.Requests[j.Kind]
		facts.Jobs = append(facts.Jobs, invariant.Job{ID: j.ID, ClusterID: j.ClusterID, Holds: holds, Remaining: j.Remaining})
	}
	for i, s := range p.now {
		c := invariant.Cluster{ID: s.view.Cluster.ID, Name: letter(i), State: s.view.Cluster.State, Size: s.view.Cluster.Size}
		doomed := map[string]bool{}
		for _, v := range s.view.VMs {
			if doomed[v.ID] = v.Phase == cks.Doomed; !doomed[v.ID] {
				c.VMs = append(c.VMs, invariant.VM{ID: v.ID, Name: v.Name, Worker: v.Role == cks.Worker})
			}
		}
		if !s.view.Cluster.Removed {
			facts.Clusters = append(facts.Clusters, c)
		}
		for _, m := range s.machines {
			if !doomed[m.ID] && (has(s.view.VMs, m.ID) || !p.stray[m.ID]) {
				facts.Cloud = append(facts.Cloud, invariant.Machine{ID: m.ID, Name: m.Name, ClusterID: m.ClusterID})
			}
		}
	}
	for _, broken := range facts.Broken() {
		p.complain(general(broken), "%s", broken)
	}
	return nil
}

// particular is what differs between two runs of a script.
var particular = regexp.MustCompile(`(test|outside)-[a-z0-9-]+|[0-9a-f]{8}-[0-9a-f-]{27}|\d+`)

// general is a complaint without what is particular.
func general(text string) string { return particular.ReplaceAllString(text, "…") }

// lately is how many jobs are looked at after every action; at the end of a
// script it is all.
const lately = 4

// checkJobs sees what became of the jobs.
func (p *player) checkJobs() error {
	p.mu.Lock()
	acts := p.acts
	p.acts = nil
	p.mu.Unlock()
	for _, pr := range p.promises {
		for _, a := range acts {
			if p.ids[pr.cluster] == a.clusterID {
				pr.acts = append(pr.acts, a)
			}
		}
	}
	for i, t := range p.orders {
		if t.ended && i < len(p.orders)-lately && !p.last {
			continue
		}
		was := t.job
		job, err := p.st.Job(p.ctx, was.ID)
		if err != nil {
			return err
		}
		t.job = job
		switch {
		case t.ended && !same(was, job):
			p.complain("a finished job changed", "%+v, now %+v", was, job)
		case t.ended:
		case job.Status == cks.JobPending:
			p.checkLive(job)
		default:
			t.ended = true
			p.checkEnded(t)
		}
	}
	return nil
}

// same compares all of two finished jobs but the time that is left.
func same(a, b cks.Job) bool {
	return a.Status == b.Status && a.ErrorText == b.ErrorText && a.Step == b.Step && a.Attempt == b.Attempt &&
		a.Completed.Equal(b.Completed) && a.Server == b.Server && a.Failure == b.Failure
}

func (p *player) checkLive(job cks.Job) {
	pr := p.promises[job.ID]
	if pr == nil {
		return
	}
	now := p.now[pr.cluster]
	for id := range pr.down {
		if m, exists := now.machines[id]; exists && !m.State.Down() {
			delete(pr.down, id)
		}
	}
	for _, wrong := range append(pr.kept(now), pr.acted(now, job.Failure != "")...) {
		p.complain("live job: "+general(wrong), "%s: %s", job.Kind, wrong)
	}
}

func (p *player) checkEnded(t *tracked) {
	job := t.job
	if pr := p.promises[job.ID]; pr != nil {
		p.counts["jobs "+map[cks.JobStatus]string{cks.JobSucceeded: "ok", cks.JobFailed: "failed"}[job.Status]]++
		delete(p.promises, job.ID)
		for _, wrong := range pr.ended(job, p.now[pr.cluster]) {
			p.complain("ended job: "+general(wrong), "%s, status %d %q, excuses %q: %s", job.Kind, job.Status, job.ErrorText,
				strings.Join(pr.excuses, ", "), wrong)
		}
		return
	}
	if t.vm == nil {
		return // it had ended when it was recorded
	}
	m, exists := p.now[t.vm.cluster].machines[t.vm.id]
	switch {
	case t.vm.excused:
	case job.Status == cks.JobFailed:
		p.complain("a VM job failed for no reason", "%s: %s", job.Kind, job.ErrorText)
	case !exists, t.vm.start && m.State != cks.VMRunning, !t.vm.start && !m.State.Down():
		p.complain("a VM job did not do what it was for", "%s: the VM is %s", job.Kind, m.State)
	}
}
