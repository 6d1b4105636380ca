package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// Public reports about many requests at once (reports.md A.5, A.6), through
// HTTP on whole servers.

// clusters makes n clusters at once, in the database at url and in the simulated
// cloud, beside running servers.
func clusters(t testing.TB, url string, n int, spec storetest.Spec) []cks.ClusterView {
	t.Helper()
	st, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var views []cks.ClusterView
	var specs []cks.MachineSpec
	for range n {
		view := storetest.Fixture(t, st, storetest.Spec{State: cks.Created, Control: spec.Control, Workers: spec.Workers})
		for _, v := range view.VMs {
			specs = append(specs, cks.MachineSpec{ID: v.ID, ClusterID: v.ClusterID, Name: v.Name, Role: v.Role, Cores: v.Cores, MemoryMB: v.MemoryMB})
		}
		views = append(views, view)
	}
	if err := sim.New(st, sim.Config{}).Adopt(t.Context(), specs); err != nil { // before any scanner may miss them
		t.Fatal(err)
	}
	db := connect(t, url)
	if _, err := db.Exec(t.Context(), "UPDATE clusters SET state = 'Running', version = version + 1 WHERE state = 'Created'"); err != nil {
		t.Fatal(err)
	}
	return views
}

// Of two servers each gets a request to remove one node of the same cluster of
// four, at the same moment, fifty times. Only one can hold the cluster; a
// refused one says why. What is left is what was not named, or not removed.
//
// Keeps: A44, seed/both-validated, seed/no-window.
func TestTwoRemovalsOnTwoServers(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SIM_SPEED": "20", "CKSCALE_DEMO": "false"})
	other := launch(t, map[string]string{"DATABASE_URL": l.url, "CKSCALE_DATA_DIR": l.server.env["CKSCALE_DATA_DIR"], "CKSCALE_SIM_SPEED": "20",
		"CKSCALE_ADMIN_API_KEY": adminKeys.API, "CKSCALE_ADMIN_SECRET_KEY": adminKeys.Secret})
	servers := []*client{l.client, {t, apiURL(other.serving(t)), adminKeys}}
	const rounds = 50
	type round struct {
		view    cks.ClusterView
		workers []string
		jobs    [2]string
	}
	var all []*round
	for _, view := range clusters(t, l.url, rounds, storetest.Spec{Control: 1, Workers: 4}) {
		r := &round{view: view}
		for _, v := range view.VMs[1:] {
			r.workers = append(r.workers, v.ID)
		}
		all = append(all, r)
	}
	for _, r := range all {
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i, c := range servers {
			wg.Go(func() {
				<-start
				r.jobs[i] = c.start("scaleKubernetesCluster", "id="+r.view.Cluster.ID, "nodeids="+r.workers[2+i])
			})
		}
		close(start)
		wg.Wait()
		live := 0
		for _, job := range r.jobs { // none comes to life again: both live now would have been live at once
			if l.call("queryAsyncJobResult", "jobid="+job)["jobstatus"] == 0.0 {
				live++
			}
		}
		if live > 1 {
			t.Errorf("%d jobs of one cluster are live", live)
		}
	}
	refused := 0
	for _, r := range all {
		want := slices.Clone(r.workers)
		for i, id := range r.jobs {
			job := l.ended(id)
			if job["jobstatus"] == 1.0 {
				want = slices.DeleteFunc(want, func(vm string) bool { return vm == r.workers[2+i] })
				continue
			}
			refused++
			if text := job.object("jobresult").text("errortext"); text != "Kubernetes cluster test is in Scaling state and can not be scaled" {
				t.Errorf("refused with %q", text)
			}
		}
		cluster := l.byID(r.view.Cluster.ID)
		var left []string
		for _, vm := range cluster.list("virtualmachines")[1:] {
			left = append(left, vm.text("id"))
		}
		if cluster["size"] != float64(len(want)) || !slices.Equal(left, want) {
			t.Errorf("size %v with %v, want %v", cluster["size"], left, want)
		}
	}
	if refused == 0 {
		t.Error("no two requests met")
	}
	t.Logf("%d of %d rounds met", refused, rounds)
	l.consistent()
}

// One cluster grows from 1 to 20 workers while five others, whose names begin
// alike for as long as names of VMs can tell, grow as well: every VM and every
// node has a name and an id of its own.
//
// Keeps: A49.
func TestManyVMsAtOnceHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_MAX_SIZE": "30"})
	alike := strings.Repeat("same-name-", 5)
	names := []string{"large"}
	for i := range 5 {
		names = append(names, alike+fmt.Sprint(i))
	}
	ids := c.create(names...)
	sizes := []float64{20, 3, 3, 3, 3, 3}
	jobs := make([]string, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() { jobs[i] = c.start("scaleKubernetesCluster", "id="+id, fmt.Sprintf("size=%.0f", sizes[i])) })
	}
	wg.Wait()
	vms := map[string]bool{}
	total := 0
	for i, job := range jobs {
		v := c.ended(job).object("jobresult").object("kubernetescluster")
		if v["size"] != sizes[i] || len(v.list("virtualmachines")) != int(sizes[i])+1 {
			t.Errorf("%s: size %v, %d VMs", v.text("name"), v["size"], len(v.list("virtualmachines")))
		}
		nodes := map[string]bool{}
		for _, n := range c.call("querySimulator", "clusterid="+ids[i]).list("node") {
			nodes[n.text("name")], nodes[n.text("vmid")] = true, true
		}
		for _, vm := range v.list("virtualmachines") {
			if i > 0 && !strings.HasPrefix(vm.text("name"), alike[:43]) {
				t.Errorf("%s is called %s", v.text("name"), vm.text("name"))
			}
			if !nodes[vm.text("name")] || !nodes[vm.text("id")] {
				t.Errorf("VM %s has no node", vm.text("name"))
			}
			vms[vm.text("name")], vms[vm.text("id")] = true, true
			total++
		}
		if len(nodes) != 2*len(v.list("virtualmachines")) {
			t.Errorf("%s: %d names and ids of nodes", v.text("name"), len(nodes))
		}
	}
	if len(vms) != 2*total || total != 20+5*3+6 {
		t.Errorf("%d names and ids of %d VMs", len(vms), total)
	}
	c.consistent()
}

// With a pool of four connections twelve clusters are scaled at once, by calls
// to the cloud that take seconds, while 200 clients poll. All jobs end, and
// polls are answered throughout.
//
// Keeps: A54.
func TestSmallPoolServesEveryone(t *testing.T) {
	t.Parallel()
	database := storetest.URL(t)
	small, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := small.Query()
	query.Set("pool_max_conns", "4")
	small.RawQuery = query.Encode()
	l := newLab(t, map[string]string{"DATABASE_URL": small.String(), "CKSCALE_DEMO": "false"})
	jobs := make([]string, 12)
	views := clusters(t, database, len(jobs), storetest.Spec{Control: 1, Workers: 2})
	l.simulate("vm.create", "delay:12s")
	l.simulate("vm.start", "delay:12s")
	for i, view := range views {
		jobs[i] = l.start("scaleKubernetesCluster", "id="+view.Cluster.ID, "size=3")
	}
	var polls, late, slowest atomic.Int64
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			tick := time.NewTicker(4*time.Second + time.Duration(i)*10*time.Millisecond) // not all at the same time
			defer tick.Stop()
			for end := time.Now().Add(50 * time.Second); time.Now().Before(end); <-tick.C {
				begin := time.Now()
				job := l.call("queryAsyncJobResult", "jobid="+jobs[i%len(jobs)])
				took := time.Since(begin)
				polls.Add(1)
				if took > 9*time.Second { // a connection that is held across a call is missing for longer
					late.Add(1)
				}
				slowest.Store(max(slowest.Load(), int64(took)))
				if job["jobstatus"] != 0.0 {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, id := range jobs {
		if job := l.ended(id); job["jobstatus"] != 1.0 {
			t.Errorf("job %v", job)
		}
	}
	t.Logf("%d polls, the slowest took %s", polls.Load(), time.Duration(slowest.Load()))
	if n := polls.Load(); late.Load()*20 > n {
		t.Errorf("%d of %d polls took more than 9 s, the slowest %s", late.Load(), n, time.Duration(slowest.Load()))
	}
	l.consistent()
}

// A server that is told to stop either records a request or refuses it: every
// jobid that a client gets meanwhile names a job, which the next server ends.
//
// Keeps: A52.
func TestRequestsDuringShutdownAreRecordedOrRefused(t *testing.T) {
	t.Parallel()
	env := childEnv(t, map[string]string{"CKSCALE_LEASE": longLease})
	server := spawn(t, env)
	c := server.client()
	fresh := clusters(t, env["DATABASE_URL"], 4, storetest.Spec{Control: 1, Workers: 1})
	c.simulate("vm.create", "delay:6s", "count=1") // keeps the server that long
	given := []string{c.start("scaleKubernetesCluster", "id="+c.id(), "size=3")}
	c.until("the call is under way", 20*time.Second, func() bool { return c.calls("vm.create") == 1 })
	refused := false
	for i := 0; !refused; i++ {
		if i == 2 {
			server.tell(syscall.SIGTERM)
		}
		status, a := c.send("scaleKubernetesCluster", "id="+fresh[i%len(fresh)].Cluster.ID, "size=2")
		switch {
		case status == http.StatusOK && a.text("jobid") != "":
			given = append(given, a.text("jobid"))
		case status == http.StatusServiceUnavailable && strings.Contains(a.text("errortext"), "Can not accept new jobs"):
			refused = true
		default:
			t.Fatalf("%d %v", status, a)
		}
	}
	server.gone(stepGrace + requestGrace + 20*time.Second)
	other := spawn(t, env).client()
	for i, id := range given {
		if ended := other.ended(id); i < 3 && ended["jobstatus"] != 1.0 {
			t.Errorf("job %v", ended)
		}
	}
	other.consistent()
}
