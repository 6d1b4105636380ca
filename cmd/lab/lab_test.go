package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ckscale/cmd/internal/live"
	"ckscale/internal/store/storetest"
)

var programs string // folder of what is built

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ckscale-lab-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// built is the server, built once.
var built = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programs, "server")
	return program, live.Build(context.Background(), program)
})

func serverProgram(t *testing.T) string {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// Every scenario of the seed's report passes, and so does what that report does
// not cover. The report has them all, in the file as on standard output, and
// says nothing about where it was made.
func TestEveryScenarioPasses(t *testing.T) {
	t.Parallel()
	from := func(name string) int { return slices.IndexFunc(seed, func(s scenario) bool { return s.name == name }) }
	followUp, covered := from("Follow-up"), from("Timeout")
	var group sync.WaitGroup // not t.Parallel, which the number of cores bounds: they mostly wait
	defer group.Wait()
	for name, part := range map[string]struct {
		scenarios []scenario
		timeout   time.Duration
		report    []string
	}{
		"window": {seed[:followUp], time.Minute, []string{
			"worker 1=Unknown worker 2=True                       | ISO on: new worker  <- the early match: 4 nodes Ready, 4 expected\n",
			"worker 1=Unknown worker 2=Unknown new worker=True    | ISO on: (none)\n", " API returned success\n",
			"worker-2   NotReady   <none>          v1.33.1\nworker-3   Ready      <none>          v1.33.1    <- new\n",
		}},
		"covered": {seed[followUp:covered], time.Minute, []string{
			"S5a      Kubernetes cluster cluster-a" + notOffering + "\n", "S5b      Kubernetes cluster cluster-a" + notOffering + "\n",
			"S5c      Kubernetes cluster cluster-a" + neither + "\n", "S5d      Kubernetes cluster cluster-a" + onlyWorkers + "\n",
			"S5e      Kubernetes cluster cluster-a" + controlDown + "\n",
		}},
		"not covered": {seed[covered:], 5 * time.Second, []string{
			"Timeout  Scaling failed for Kubernetes cluster : cluster-a, 0 of 1 new nodes joined: nodes never became ready: <new worker>\n",
			"Unknown  Kubernetes cluster cluster-a" + noneDown + "\n",
		}},
	} {
		run := func(t *testing.T) {
			report := passes(t, part.scenarios, part.timeout)
			has(t, report, part.report...)
			has(t, report, fmt.Sprintf("%d of %[1]d scenarios pass.", len(part.scenarios)), "at speed 25 ", "3 control nodes and 2 workers, Kubernetes v1.33.1")
			for _, s := range part.scenarios {
				has(t, report, "| "+s.name+" | "+s.what+" | pass")
			}
			for _, where := range []string{os.TempDir(), "127.0.0.1", "localhost"} {
				if strings.Contains(report, where) {
					t.Errorf("the report names %s", where)
				}
			}
		}
		group.Go(func() { t.Run(name, run) })
	}
}

// passes runs the scenarios on a server of their own, and returns the report.
func passes(t *testing.T, scenarios []scenario, timeout time.Duration) string {
	t.Helper()
	var out strings.Builder
	o := options{
		server: serverProgram(t), database: storetest.URL(t), speed: 25, timeout: timeout, scenarios: scenarios,
		output: filepath.Join(t.TempDir(), "lab.md"), stdout: &out, progress: t.Output(),
	}
	if err := run(t.Context(), o); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	written, err := os.ReadFile(o.output)
	if err != nil || string(written) != out.String() {
		t.Errorf("the file has another report, %v:\n%s", err, written)
	}
	return out.String()
}

func has(t *testing.T, report string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(report, part) {
			t.Errorf("no %q in\n%s", part, report)
		}
	}
}

// A scenario that does not come out as the seed says is a fail, with what
// happened, and the run ends with an error. The others have their chance all
// the same. This is on a server that runs already, which is left as it was.
func TestFailureIsReported(t *testing.T) {
	t.Parallel()
	s, err := live.Start(t.Context(), serverProgram(t), settings("key", "secret", storetest.URL(t), 50, time.Minute), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	room := func(value string) func(*trial, context.Context) error {
		return func(t *trial, ctx context.Context) error { return t.Simulate(ctx, "capacity", value) }
	}
	var out strings.Builder
	late := 0
	o := options{url: s.URL, key: "key", secret: "secret", speed: 50, stdout: &out, progress: t.Output(), scenarios: []scenario{
		{name: "full", workers: 2, run: room("0")},
		{name: "S2", workers: 2, run: (*trial).scaleUpInAlert},
		{name: "more", workers: 3, run: (*trial).scaleUp},
		{name: "room", workers: 2, run: room("9")},
		{name: "S5c", workers: 2, run: (*trial).refuseSameSize}, // in Running it is accepted
		{name: "drained", workers: 2, drains: 1, run: func(*trial, context.Context) error { return nil }},
		{name: "Timeout", workers: 2, run: (*trial).neverReady},
		{name: "late", workers: 2, run: func(t *trial, _ context.Context) error {
			if late++; late < maxTries {
				return errMissed
			}
			return nil
		}},
		{name: "too late", workers: 2, run: func(*trial, context.Context) error { return errMissed }},
		{name: "S1", workers: 2, run: (*trial).alert},
		{name: "orphan", workers: 2, run: func(t *trial, ctx context.Context) error {
			return t.Simulate(ctx, "node.forget", "", "vmid="+t.before.Workers()[0].ID)
		}},
	}}
	if err := run(t.Context(), o); err == nil || err.Error() != "4 of 11 scenarios pass, 6 fail, 1 not run" {
		t.Errorf("the run ended with %v", err)
	}
	has(t, out.String(), "**Result: 4 of 11 scenarios pass, 6 fail, 1 not run.**",
		"| S2 |  | fail: the scale-up failed: Scaling failed for Kubernetes cluster : cluster-a in zone : zone1, insufficient capacity: 1 more VMs are wanted and 0 fit | ",
		"| more |  | fail: cannot prepare: scaleKubernetesCluster: the job failed: ", "| S5c |  | fail: size=2 was accepted | ",
		"| drained |  | fail: the cloud saw 0 drains, not 1 | ", "| Timeout |  | not run: ", "* Timeout: not run: ",
		"| late |  | pass (try 5: the lab was too late before) | ", "| too late |  | fail: missed | ", "| S1 |  | pass | ",
		"| orphan |  | fail: 5 VMs are listed; 5 exist, with 4 nodes | ")
	list, err := live.Call[struct{ Count int }](t.Context(), live.NewClient(s.URL, "key", "secret"), "listKubernetesClusters")
	if err != nil || list.Count != 1 { // the demo's
		t.Errorf("%d clusters are left, %v", list.Count, err)
	}
}

// Where a run cannot begin, it says why, and there is no report.
func TestRunThatCannotBegin(t *testing.T) {
	t.Parallel()
	s, err := live.Start(t.Context(), serverProgram(t), settings("key", "secret", storetest.URL(t), 50, time.Minute), nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]options{
		"answered by 401":  {url: s.URL, key: "key", secret: "wrong", speed: 50},
		"needed with -url": {url: s.URL, key: "key", secret: "secret"},
		"start the server": {server: filepath.Join(programs, "none")},
		"of the form":      {server: serverProgram(t), database: "elsewhere"},
	} {
		var out strings.Builder
		o.stdout, o.progress = &out, io.Discard
		if err := run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("want %s: the run ended with %v\n%s", want, err, &out)
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// An ISO that goes before its node is Ready strands the node: the failure of
// the seed's first run must not pass unseen, whatever the job says.
func TestEarlyDetachIsSeen(t *testing.T) {
	t.Parallel()
	old := vm{ID: "1", Name: "a-node-1", State: "Running"}
	fresh := vm{ID: "2", Name: "a-node-2", State: "Running"}
	attached := fresh
	attached.ISO = true
	as := func(v vm, ready string) node { return node{Name: v.Name, VMID: v.ID, Ready: ready} }
	stale := world{VMs: []vm{{ID: "1", Name: "a-node-1", State: "Stopped"}, attached}, Nodes: []node{as(old, live.Ready)}}
	for name, c := range map[string]struct {
		then  world
		wrong bool
	}{
		"the node had not joined":    {world{VMs: []vm{old, fresh}, Nodes: []node{as(old, live.Ready)}}, true},
		"the node was not Ready yet": {world{VMs: []vm{old, fresh}, Nodes: []node{as(old, live.Ready), as(fresh, "False")}}, true},
		"the node was Ready":         {world{VMs: []vm{old, fresh}, Nodes: []node{as(old, live.Ready), as(fresh, live.Ready)}}, false},
		"the VM went as well":        {world{VMs: []vm{old}, Nodes: []node{as(old, live.Ready)}}, false},
		"the ISO is still attached":  {stale, false},
	} {
		w := newWatch(cluster{VMs: []vm{old}})
		if err := w.look(stale); err != nil || !w.early || w.matched == 0 {
			t.Errorf("%s: the early match was not seen: %+v, %v", name, w, err)
		}
		if err := w.look(c.then); (err != nil) != c.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}
