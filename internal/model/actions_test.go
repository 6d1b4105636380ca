package model

import (
	"slices"
	"strconv"
	"strings"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// nobody is the id of a VM that never was.
const nobody = "00000000-0000-4000-8000-000000000000"

// request reads the parameters of a scale request, as they are judged and as
// they are sent.
func (p *player) request(a args) (req request, send cks.ScaleRequest, err error) {
	number := func(name string) *int64 {
		if !a.has(name) {
			return nil
		}
		n, _ := strconv.ParseInt(a[name], 10, 64) // the form has seen to it
		return &n
	}
	req = request{size: number("size"), min: number("min"), max: number("max"), nodeIDs: a.has("nodeids")}
	send = cks.ScaleRequest{Cluster: p.ids[a.cluster()], Size: req.size, MinSize: req.min, MaxSize: req.max}
	if req.nodeIDs {
		send.NodeIDs = []string{}
	}
	for _, word := range strings.FieldsFunc(a["nodeids"], func(r rune) bool { return r == ',' }) {
		if word == "nobody" {
			req.nobody = true
			send.NodeIDs = append(send.NodeIDs, nobody)
			continue
		}
		v, err := p.vm(a.cluster(), word)
		if err != nil {
			return req, send, err
		}
		req.vms, send.NodeIDs = append(req.vms, v), append(send.NodeIDs, strings.ToUpper(v.ID))
	}
	if a.has("offering") {
		o := p.offers[a["offering"]]
		req.offering, send.OfferingID = &o, &o.ID
	}
	if a.has("autoscaling") {
		on := a["autoscaling"] == "on"
		req.autoscaling, send.Autoscaling = &on, &on
	}
	if req.size == nil && !req.nodeIDs && req.offering == nil && req.autoscaling == nil {
		return req, send, errSkipped
	}
	return req, send, nil
}

func (p *player) scale(a args) error {
	req, send, err := p.request(a)
	if err != nil {
		return err
	}
	job, err := p.service(p.st).Scale(p.ctx, p.account, send)
	p.judge(a.cluster(), req, job, err, req.expected(p.now[a.cluster()].view))
	return nil
}

// asking is a request that stands still before it writes what it has judged.
type asking struct {
	*life
	cluster  int
	req      request
	st       *store.Store
	version  int64
	expected outcome
	answered chan struct{}
	job      cks.Job
	err      error
}

// slow sends a request that takes its time between its judgement and its
// commit, until resume.
func (p *player) slow(a args) error {
	if p.waiting != nil {
		return errSkipped
	}
	req, send, err := p.request(a)
	if err != nil {
		return err
	}
	view := p.now[a.cluster()].view
	w := &asking{life: newLife(beforeJob, 1), cluster: a.cluster(), req: req, version: view.Cluster.Version,
		expected: req.expected(view), answered: make(chan struct{})}
	if w.st, err = p.arena.connect(p.ctx, w.life); err != nil {
		return err
	}
	go func() {
		w.job, w.err = p.service(w.st).Scale(p.ctx, p.account, send)
		close(w.answered)
	}()
	select {
	case <-w.held:
		p.waiting = w
	case <-w.answered: // it is refused without being recorded
		w.st.Close()
		p.judge(w.cluster, w.req, w.job, w.err, w.expected)
	}
	return nil
}

// resume lets the slow request go on. What it was told may be by what it saw,
// but it can be accepted only by what is so now.
func (p *player) resume(args) error {
	w := p.waiting
	if w == nil {
		return p.resumeScan()
	}
	p.waiting = nil
	w.wake()
	<-w.answered
	w.st.Close()
	for i, v := range w.req.vms {
		var err error
		if w.req.vms[i], err = p.st.VMByRef(p.ctx, v.ID); err != nil {
			return err
		}
	}
	view := p.now[w.cluster].view
	now := w.req.expected(view)
	switch {
	case w.err == nil && w.job.Status == cks.JobPending && w.version != view.Cluster.Version:
		p.judge(w.cluster, w.req, w.job, w.err, now)
	case w.expected.met(w.job, w.err):
		p.judge(w.cluster, w.req, w.job, w.err, w.expected)
	default:
		p.judge(w.cluster, w.req, w.job, w.err, now)
	}
	return nil
}

// outcome is how a request must be answered.
type outcome struct {
	unknown  bool     // an id names nothing
	refusals []string // one of these
	nothing  bool     // it is so already
}

func (r request) expected(v cks.ClusterView) outcome {
	return outcome{r.nobody, r.refusals(v), !r.changes(v)}
}

func (o outcome) met(job cks.Job, err error) bool {
	switch {
	case o.unknown:
		return cks.CodeOf(err) == cks.UnknownID
	case err != nil:
		return false
	case len(o.refusals) > 0:
		return job.Status == cks.JobFailed && slices.ContainsFunc(o.refusals, func(text string) bool { return strings.Contains(job.ErrorText, text) })
	case o.nothing:
		return job.Status == cks.JobSucceeded
	}
	return job.Status == cks.JobPending
}

func (o outcome) String() string {
	switch {
	case o.unknown:
		return "an error that an id names nothing"
	case len(o.refusals) > 0:
		return "a refusal with " + strings.Join(o.refusals, " or ")
	case o.nothing:
		return "success at once"
	}
	return "a job"
}

// judge holds the answer to a request against what is expected, and notes what
// its job promises.
func (p *player) judge(cluster int, req request, job cks.Job, err error, want outcome) {
	if !want.met(job, err) {
		p.complain("a request was answered wrongly", "status %d %q, error %v; expected %s", job.Status, job.ErrorText, err, want)
	}
	if err != nil {
		return
	}
	p.orders = append(p.orders, &tracked{job: job})
	p.counts["answered: "+map[cks.JobStatus]string{cks.JobPending: "accepted", cks.JobFailed: "refused", cks.JobSucceeded: "nothing to do"}[job.Status]]++
	if job.Status != cks.JobPending {
		return
	}
	before := p.now[cluster]
	pr := &promise{cluster: cluster, req: req, before: before, down: map[string]bool{}, touched: map[string]bool{}, blind: p.strikes["node.list"] > 0}
	excuse := func(is bool, why string) {
		if is {
			pr.excuses = append(pr.excuses, why)
		}
	}
	excuse(p.strikesNow() > patience, "faults were set")
	excuse(p.limited, "the hosts were full")
	for _, v := range before.view.VMs {
		m, exists := before.machines[v.ID]
		if !exists || m.State.Down() {
			pr.down[v.ID] = true
		}
		excuse(exists && !m.State.Down() && !running(m.State), "a VM was on its way")
		excuse(!exists && req.newOffering(before.view), "a VM does not exist")
	}
	p.promises[job.ID] = pr
	p.stick()
	for _, t := range p.orders {
		if t.vm == nil || t.ended || t.vm.cluster != cluster {
			continue
		}
		t.vm.excused, pr.touched[t.vm.id] = true, true
		delete(pr.down, t.vm.id)
		excuse(true, "a VM was being switched")
	}
}

// vmPromise is a live job that starts or stops a VM.
type vmPromise struct {
	cluster int
	id      string
	start   bool
	excused bool // somebody else acts on the VM
}

func (p *player) startVM(a args) error { return p.power(a, true) }
func (p *player) stopVM(a args) error  { return p.power(a, false) }

func (p *player) power(a args, start bool) error {
	v, err := p.vm(a.cluster(), a["VM"])
	if err != nil {
		return err
	}
	command, already, from, refusal := p.service(p.st).StopVM, []cks.VMState{cks.VMStopped, cks.VMShutdown},
		[]cks.VMState{cks.VMRunning, cks.VMUnknown}, "can not be stopped"
	if start {
		command, already, from, refusal = p.service(p.st).StartVM, []cks.VMState{cks.VMRunning}, []cks.VMState{cks.VMStopped, cks.VMShutdown}, "can not be started"
	}
	job, err := command(p.ctx, p.account, cks.VMRequest{VM: v.ID, Forced: a.has("forced")})
	want := outcome{nothing: !v.Removed && slices.Contains(already, v.State)}
	busy := slices.ContainsFunc(p.orders, func(t *tracked) bool { return t.vm != nil && t.vm.id == v.ID && !t.ended })
	switch {
	case want.nothing:
	case v.Removed || !slices.Contains(from, v.State):
		want.refusals = []string{refusal}
	case busy:
		want.refusals = []string{"another job is in progress"}
	}
	if !want.met(job, err) {
		p.complain("a VM request was answered wrongly", "status %d %q, error %v; expected %s", job.Status, job.ErrorText, err, want)
	}
	if err != nil {
		return nil
	}
	t := &tracked{job: job}
	if job.Status == cks.JobPending {
		p.touch(a.cluster(), v, "is switched by command")
		live := slices.ContainsFunc(p.live(), func(pr *promise) bool { return pr.cluster == a.cluster() })
		t.vm = &vmPromise{a.cluster(), v.ID, start, live || p.strikesNow() > patience || p.now[a.cluster()].machines[v.ID].State != v.State}
	}
	p.orders = append(p.orders, t)
	return nil
}

func (p *player) live() (list []*promise) {
	for _, pr := range p.promises {
		list = append(list, pr)
	}
	return list
}
