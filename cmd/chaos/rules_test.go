package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/cmd/internal/live"
	"ckscale/internal/cks"
	"ckscale/internal/jobs"
)

var noon = time.Date(2026, 11, 7, 12, 0, 0, 0, time.UTC)

// at is a time of the history, in seconds.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func member(id string) memberRow {
	role := cks.Worker
	if id == "c1" {
		role = cks.Control
	}
	return memberRow{id, role, cks.Member}
}

func members(ids ...string) (rows []memberRow) {
	for _, id := range ids {
		rows = append(rows, member(id))
	}
	return rows
}

// sound is a history of one cluster. Job grow adds w3: server a makes it and is
// killed, b makes it again and goes on. Meanwhile a request is refused. Then job
// remove takes w1 away, after a drain that failed once.
func sound() *evidence {
	e := &evidence{lease: 10 * time.Second, kills: []blow{{"a", at(2)}}, clusters: map[string][]clusterRow{}, vms: map[string][]vmRow{},
		jobs: map[string][]jobRow{}, records: map[string]jobRecord{}, again: map[string]string{}, cloud: map[string]live.World{}}
	seq := int64(0)
	next := func() int64 { seq++; return seq }
	cluster := func(t float64, state cks.State, size int, holder string, vms ...memberRow) {
		e.clusters["k"] = append(e.clusters["k"], clusterRow{next(), at(t), "k", state, size, holder, vms})
	}
	job := func(t float64, app, id, owner string, attempt int64, taken bool, step string, tries int, status cks.JobStatus) {
		e.jobs[id] = append(e.jobs[id], jobRow{next(), at(t), app, id, owner, attempt, taken, status, step, tries, ""})
	}
	call := func(t float64, app, operation, vm string) {
		e.calls = append(e.calls, callRow{next(), at(t), app, "k", operation, vm})
	}
	vm := func(t float64, id, job string, state cks.VMState, phase cks.Phase, removed bool) {
		e.vms[id] = append(e.vms[id], vmRow{next(), at(t), id, "k", job, member(id).Role, state, phase, removed})
	}
	for _, id := range []string{"c1", "w1", "w2"} {
		vm(-100, id, "", cks.VMRunning, cks.Member, false)
	}
	cluster(-99, cks.Running, 2, "", members("c1", "w1", "w2")...)

	job(0, "a", "grow", "", 0, false, "", 0, cks.JobPending)
	cluster(0.1, cks.Scaling, 2, "grow", members("c1", "w1", "w2")...)
	job(1, "a", "grow", "A", 1, false, "", 0, cks.JobPending)
	job(1.1, "a", "grow", "A", 1, false, "plan-capacity", 0, cks.JobPending)
	vm(1.2, "w3", "grow", cks.VMStopped, cks.Chosen, false)
	job(1.2, "a", "grow", "A", 1, false, "choose-vms", 0, cks.JobPending)
	call(1.3, "a", "vm.create", "w3")
	job(5, "b", "refused", "", 0, false, "", 0, cks.JobFailed)
	job(12, "b", "grow", "B", 2, true, "choose-vms", 0, cks.JobPending)
	call(12.1, "b", "vm.create", "w3")
	for _, step := range jobs.Steps(cks.ScaleUp)[2:] {
		job(13, "b", "grow", "B", 2, false, step, 0, cks.JobPending)
	}
	vm(14, "w3", "grow", cks.VMRunning, cks.Member, false)
	cluster(14, cks.Scaling, 3, "grow", members("c1", "w1", "w2", "w3")...)
	job(15, "b", "grow", "", 2, false, "detach-iso", 0, cks.JobSucceeded)
	cluster(15, cks.Running, 3, "", members("c1", "w1", "w2", "w3")...)

	job(20, "b", "remove", "", 0, false, "", 0, cks.JobPending)
	cluster(20, cks.Scaling, 3, "remove", members("c1", "w1", "w2", "w3")...)
	job(21, "b", "remove", "B", 1, false, "", 0, cks.JobPending)
	for _, step := range []string{"observe-vms", "choose-nodes", "next-node"} {
		job(21, "b", "remove", "B", 1, false, step, 0, cks.JobPending)
	}
	call(22, "b", "node.drain", "w1")
	job(23, "b", "remove", "", 1, false, "next-node", 1, cks.JobPending)
	job(24, "c", "remove", "C", 2, false, "next-node", 1, cks.JobPending)
	call(24, "c", "node.drain", "w1")
	job(25, "c", "remove", "C", 2, false, "drain", 0, cks.JobPending)
	call(25, "c", "node.delete", "w1")
	job(25, "c", "remove", "C", 2, false, "delete-node", 0, cks.JobPending)
	call(25, "c", "vm.destroy", "w1")
	call(25, "c", "node.delete", "")
	job(25, "c", "remove", "C", 2, false, "destroy-vm", 0, cks.JobPending)
	vm(26, "w1", "remove", cks.VMExpunging, cks.Leaving, true)
	cluster(26, cks.Scaling, 2, "remove", members("c1", "w2", "w3")...)
	job(26, "c", "remove", "C", 2, false, "record-removal", 0, cks.JobPending)
	job(27, "c", "remove", "", 2, false, "record-removal", 0, cks.JobSucceeded)
	cluster(27, cks.Running, 2, "", members("c1", "w2", "w3")...)

	e.records["grow"] = jobRecord{ID: "grow", Cluster: "k", Kind: cks.ScaleUp, Args: cks.Args{Size: 3}, Notes: cks.Notes{Before: 2}, Status: cks.JobSucceeded, Created: at(0)}
	e.records["refused"] = jobRecord{ID: "refused", Cluster: "k", Kind: cks.Nothing, Status: cks.JobFailed, Created: at(5),
		Text: "Kubernetes cluster k is in Scaling state and can not be scaled"}
	e.records["remove"] = jobRecord{ID: "remove", Cluster: "k", Kind: cks.RemoveNodes, Notes: cks.Notes{Before: 3}, Status: cks.JobSucceeded, Created: at(20)}
	three, five := 3, 5
	e.requests = []*request{
		{command: scale, cluster: "k", size: &three, outcome: accepted, job: "grow", told: succeeded("Running", 3, "c1", "w1", "w2", "w3")},
		{command: scale, cluster: "k", size: &five, outcome: accepted, job: "refused", told: failed(e.records["refused"].Text)},
		{command: scale, cluster: "k", nodes: []string{"w1"}, outcome: accepted, job: "remove", told: succeeded("Running", 2, "c1", "w2", "w3")},
		{command: scale, cluster: "k", size: &five, custom: "none", outcome: refused, status: 503},
	}
	for _, r := range e.requests[:3] {
		e.again[r.job] = string(r.told.raw)
	}
	w := live.World{VMs: []live.VM{{ID: "c1", Name: "c1"}, {ID: "w2", Name: "w2"}, {ID: "w3", Name: "w3"}}}
	for _, v := range w.VMs {
		w.Nodes = append(w.Nodes, live.Node{Name: v.Name, VMID: v.ID, Ready: live.Ready})
	}
	w.Calls = []live.WorldCalls{{Operation: "vm.create", VMID: "w3", Count: 2}, {Operation: "node.drain", VMID: "w1", Count: 2}}
	e.cloud["k"] = w
	return e
}

func succeeded(state string, size int, vms ...string) *told {
	t := &told{raw: json.RawMessage(state)}
	t.Status = live.Succeeded
	t.Result.Cluster = live.Cluster{ID: "k", State: state, Size: size}
	for _, id := range vms {
		t.Result.Cluster.VMs = append(t.Result.Cluster.VMs, live.VM{ID: id})
	}
	return t
}

func failed(text string) *told {
	t := &told{raw: json.RawMessage("failed")}
	t.Status, t.Result.ErrorText = live.Failed, text
	return t
}

// change gives a record other values.
func (e *evidence) change(job string, to func(*jobRecord)) {
	r := e.records[job]
	to(&r)
	e.records[job] = r
}

// Beside a job of a VM, a job of its cluster acts on the VM too: each call is
// counted for the one that makes such calls.
func TestCallsBelongToTheJobThatMakesThem(t *testing.T) {
	t.Parallel()
	e := sound()
	e.records["start"] = jobRecord{ID: "start", VM: "w3", Kind: cks.StartVM}
	all := []execution{{job: "start", app: "b", from: 1, to: 9}, {job: "grow", app: "b", from: 1, to: 9}}
	for operation, want := range map[string]string{"vm.start": "start", "vm.stop": "start", "node.uncordon": "grow", "vm.create": "grow"} {
		if x, ok := e.executionOf(callRow{Seq: 5, App: "b", Cluster: "k", Operation: operation, VM: "w3"}, all); !ok || x.job != want {
			t.Errorf("%s is of job %q, want %s", operation, x.job, want)
		}
	}
}

// Each breach is told by its rule, and nothing is told of what is sound.
func TestBreachesAreTold(t *testing.T) {
	t.Parallel()
	for _, v := range sound().violations() {
		t.Errorf("sound, but %+v", v)
	}
	for want, spoil := range map[string]func(e *evidence){
		"size=3] was accepted and its job does not exist":                 func(e *evidence) { delete(e.records, "grow") },
		"was accepted and its job has not ended":                          func(e *evidence) { e.change("grow", func(r *jobRecord) { r.Status = cks.JobPending }) },
		"its client never learnt the end":                                 func(e *evidence) { e.requests[0].told = nil },
		"told Running, now gone":                                          func(e *evidence) { e.again["grow"] = "gone" },
		"told status 1, recorded is 2":                                    func(e *evidence) { e.change("grow", func(r *jobRecord) { r.Status = cks.JobFailed }) },
		"it ended as":                                                     func(e *evidence) { e.requests[0].told.Result.Cluster.Size = 4 },
		"told success with size 3":                                        func(e *evidence) { *e.requests[0].size = 4 },
		"told success with VM w2 still there":                             func(e *evidence) { e.requests[2].nodes = []string{"w2"} },
		"[w9] were to go, [w1] went":                                      func(e *evidence) { e.requests[2].nodes = []string{"w9"} },
		"which was not so":                                                func(e *evidence) { e.clusters["k"] = slices.Delete(e.clusters["k"], 1, 2) },
		"which nothing justifies":                                         func(e *evidence) { e.refuse("because") },
		"and there is such a job":                                         func(e *evidence) { e.requests[3].custom = "grow" },
		"size 3 and 2 workers":                                            func(e *evidence) { e.clusters["k"][2].VMs = members("c1", "w1", "w2") },
		"size 3 to 2 at 12:00:26.000 without a hold":                      func(e *evidence) { e.clusters["k"][4].Holder, e.clusters["k"][5].Holder = "", "" },
		"it took the hold of grow":                                        func(e *evidence) { e.clusters["k"][2].Holder = "other" },
		"1 VMs were chosen, 2 are wanted":                                 func(e *evidence) { e.change("grow", func(r *jobRecord) { r.Args.Size = 4 }) },
		`step "detach-iso" is recorded after "wait-ready-count"`:          func(e *evidence) { e.jobs["grow"] = slices.Delete(e.jobs["grow"], 8, 9) },
		"vm.create of VM w3 at 12:00:12.100, and attempt 1 had made it":   func(e *evidence) { e.jobs["grow"][4].Taken = false },
		"node.drain of VM w1 at 12:00:24.000, and attempt 1 had made it":  func(e *evidence) { e.jobs["remove"][5].Tries = 0 },
		"vm.destroy of VM w1 at 12:00:25.000, the 2. time in one attempt": func(e *evidence) { e.calls = append(e.calls, e.calls[5]) },
		`a calls vm.create of VM "w3" at 12:00:12.100, and has no lease`:  func(e *evidence) { e.calls[1].App = "a" },
		"the cloud counted 3 calls":                                       func(e *evidence) { e.cloud["k"].Calls[0].Count = 3 },
		"its server was killed, and it was taken up after 30s":            func(e *evidence) { e.kills[0].at = at(-18) },
		"its server was killed, and nobody took it up":                    func(e *evidence) { e.jobs["grow"] = e.jobs["grow"][:4] },
		"have one name":                                                   func(e *evidence) { e.cloud["k"].VMs[1].Name = "w3" },
		"the ISO is still attached to w2":                                 func(e *evidence) { e.cloud["k"].VMs[1].ISO = true },
		`w2 runs, and its node is "False"`:                                func(e *evidence) { e.cloud["k"].Nodes[1].Ready = "False" },
		"3 VMs exist, with 2 nodes":                                       func(e *evidence) { w := e.cloud["k"]; w.Nodes = w.Nodes[:2]; e.cloud["k"] = w },
		"told of a cluster that never was so":                             func(e *evidence) { e.nothing("Alert", 2) },
		"told success with the VM in Running":                             func(e *evidence) { e.stopped("Running", cks.VMStopped) },
		"told success with the VM in Stopped":                             func(e *evidence) { e.stopped("Stopped", cks.VMRunning) },
		"told that a VM in Starting needs nothing": func(e *evidence) {
			e.stopped("Starting", cks.VMStarting)
			e.jobs["stop"] = e.jobs["stop"][1:]
			e.vms["w2"] = append(e.vms["w2"], vmRow{1003, at(29.5), "w2", "k", "", cks.Worker, cks.VMStopped, cks.Member, false})
		},
		"told \"VM w2 does not exist any more\", which was not so": func(e *evidence) { e.defied("VM w2 does not exist any more") },
		"on its way from stopping\", which was not so":             func(e *evidence) { e.defied("VM w2 is in Error state; it was on its way from stopping") },
		"is still in Running state\", which was not so or has not lasted": func(e *evidence) { // there is time left
			e.defied("VM w2 is still in Running state")
			e.change("stop", func(r *jobRecord) { r.Deadline = at(31) })
		},
		"is still in Stopping state\", which was not so or has not lasted": func(e *evidence) { e.defied("VM w2 is still in Stopping state") },
		"which nothing explains":          func(e *evidence) { e.defied("because") },
		"nobody's fault but the server's": func(e *evidence) { e.fail("grow", "internal error in step choose-vms") },
		"size went from 2 to 3":           func(e *evidence) { e.fail("grow", ", 0 of 1 new nodes joined: because") },
		"nothing was changed, and size went": func(e *evidence) {
			e.fail("grow", "because")
			e.change("grow", func(r *jobRecord) { r.Unchanged = true })
		},
	} {
		e := sound()
		spoil(e)
		var all []string
		for _, v := range e.violations() {
			all = append(all, v.text)
		}
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("want %q, got %q", want, all)
		}
	}
}

// refuse lets the refused request be refused with another text.
func (e *evidence) refuse(text string) {
	e.change("refused", func(r *jobRecord) { r.Text = text })
	e.requests[1].told.Result.ErrorText = text
}

// fail lets a job have failed with text.
func (e *evidence) fail(job, text string) {
	e.change(job, func(r *jobRecord) { r.Status, r.Text = cks.JobFailed, text })
	e.requests[0].told = failed(text)
}

// nothing lets the refused request have succeeded with nothing to do, and be
// told of such a cluster.
func (e *evidence) nothing(state string, size int) {
	e.change("refused", func(r *jobRecord) { r.Status = cks.JobSucceeded })
	e.requests[1].told = succeeded(state, size, "c1", "w1", "w2")
}

// stopped adds a job that stopped w2, as it was told and as it was.
func (e *evidence) stopped(told string, was cks.VMState) {
	e.jobs["stop"] = []jobRow{{Seq: 1000, At: at(29), App: "c", Job: "stop"}, {Seq: 1001, At: at(30), App: "c", Job: "stop", Status: cks.JobSucceeded}}
	e.records["stop"] = jobRecord{ID: "stop", VM: "w2", Kind: cks.StopVM, Status: cks.JobSucceeded, Created: at(29)}
	e.vms["w2"] = append(e.vms["w2"], vmRow{1002, at(28), "w2", "k", "", cks.Worker, was, cks.Member, false})
	end := succeeded("", 0)
	end.Result.VM.State = told
	e.requests = append(e.requests, &request{command: "stopVirtualMachine", cluster: "k", vm: "w2", outcome: accepted, job: "stop", told: end})
}

// defied adds a job that could not stop w2.
func (e *evidence) defied(text string) {
	e.stopped("", cks.VMRunning)
	e.change("stop", func(r *jobRecord) { r.Status, r.Text = cks.JobFailed, text })
	e.requests[len(e.requests)-1].told = failed(text)
}

// Every text with which the checks of a scale request refuse what clients of a
// run ask for is known, and stands only on what was so.
func TestRefusalsStandOnWhatWas(t *testing.T) {
	t.Parallel()
	size := func(n int) *request { return &request{size: &n} }
	alert := func(g *ground) { g.clusters[0].State = cks.Alert }
	for text, c := range map[string]struct {
		request *request
		so, not func(g *ground)
	}{
		"Kubernetes cluster k is in Scaling state and can not be scaled": {size(1), func(g *ground) { g.clusters[0].State = cks.Scaling }, alert},
		"Kubernetes cluster k is in Alert state; only its size can be changed or nodes removed. Recover the cluster before changing its service offering or autoscaling": {
			&request{offering: "o"}, alert, func(*ground) {}},
		"Kubernetes cluster k is in Alert state; only its size can be changed or nodes removed, and the request does neither": {size(1), alert, func(g *ground) { alert(g); g.clusters[0].Size = 2 }},
		"Kubernetes cluster k is in Alert state and a control or etcd node VM is down; recover the control plane before scaling the cluster": {
			size(1), func(g *ground) { alert(g); g.vms["c1"][0].State = cks.VMStopped }, alert},
		"Kubernetes cluster k is in Alert state and its first control node VM is not running; start it before scaling the cluster": {
			size(1), func(g *ground) { alert(g); g.vms["c1"][0].State = cks.VMUnknown }, alert},
		"Kubernetes cluster k is in Alert state and has 3 VMs for 2 nodes; remove or recover them before scaling the cluster": {
			size(1), func(g *ground) { alert(g); g.vms["w1"][0].Phase = cks.Doomed }, alert},
		"Kubernetes cluster k is in Alert state but none of its worker node VMs is down; scaling will not recover it": {
			size(1), alert, func(g *ground) { alert(g); g.vms["w1"][0].State = cks.VMStopped }},
		"Kubernetes cluster : k is in Stopped state":                                                      {size(2), func(g *ground) { g.clusters[0].State = cks.Stopped }, alert},
		"Invalid node ids":                                                                                {&request{nodes: []string{"w1"}}, func(g *ground) { g.vms["w1"][0].Removed = true }, func(*ground) {}},
		"Can not remove all nodes from a cluster":                                                         {&request{nodes: []string{"w1"}}, nil, func(g *ground) { g.clusters[0].VMs = members("w1", "w2") }},
		"Kubernetes cluster : k cannot be scaled for size, 0":                                             {size(0), nil, func(g *ground) { *g.request.size = 1 }},
		"Maximum cluster size can not exceed 10. Please contact your administrator":                       {size(99), nil, func(g *ground) { *g.request.size = 9 }},
		"Kubernetes cluster cannot be scaled down for service offering. Service offering : a offers less": {&request{offering: "o"}, nil, alert},
		"Instance w1 is in Starting state and can not be started":                                         {&request{vm: "w1"}, func(g *ground) { g.vms["w1"][0].State = cks.VMStarting }, func(*ground) {}},
		"another job is in progress for VM w1":                                                            {&request{vm: "w1"}, nil, func(g *ground) { g.request.vm = "w2" }},
	} {
		for _, try := range []struct {
			set  func(*ground)
			want bool
		}{{c.so, true}, {c.not, false}} {
			r := *c.request
			if r.size != nil {
				n := *r.size
				r.size = &n
			}
			g := ground{request: &r, clusters: []clusterRow{{State: cks.Running, Size: 1, VMs: members("c1", "w1")}}, vms: map[string][]vmRow{
				"c1": {{Role: cks.Control, State: cks.VMRunning, Phase: cks.Member}}, "w1": {{Role: cks.Worker, State: cks.VMRunning, Phase: cks.Member}}}}
			if try.set != nil {
				try.set(&g)
			}
			if known, got := g.justified(text); !known || got != try.want {
				t.Errorf("%s: known %t, justified %t, want %t", text, known, got, try.want)
			}
		}
	}
}
