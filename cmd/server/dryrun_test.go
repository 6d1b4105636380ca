package main

import (
	"slices"
	"testing"
)

// A dry run over HTTP shows what the request then does: the steps, the sizes,
// and the nodes that go, of which one that is down is not drained. It changes
// nothing, and a refusal has the words and the code of the failed job.
//
// Keeps: ours/dry-run, ours/dry-run-order, ours/dry-run-same.
func TestDryRunShowsWhatWouldBeDone(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SIM_SPEED": "20"})
	l.do("scaleKubernetesCluster", "id="+l.id(), "size=3")
	down := l.workers()[0]
	l.do("stopVirtualMachine", "id="+down)
	l.inState("Alert")
	db := connect(t, l.url)
	jobs := func() int { return ask[int](t, db, "SELECT count(*) FROM jobs") }
	events := func() int { return ask[int](t, db, "SELECT count(*) FROM events") }
	before, made, told := l.everything(db), jobs(), events()

	plan := l.call("scaleKubernetesCluster", "id="+l.id(), "size=1", "dryrun=true").object("dryrun")
	refusal := l.call("scaleKubernetesCluster", "id="+l.id(), "size=0", "dryrun=true").object("dryrun")
	if status, a := l.send("scaleKubernetesCluster", "id=00000000-0000-4000-8000-000000000000", "size=1", "dryrun=true"); status != 431 {
		t.Errorf("an unknown cluster gives %d %v", status, a)
	}

	same(t, before, l.everything(db))
	if jobs() != made || events() != told {
		t.Errorf("%d jobs and %d events were made", jobs()-made, events()-told)
	}
	if size := plan.object("size"); plan["accepted"] != true || plan.text("kind") != "scale-down" || size["from"] != 3.0 || size["to"] != 1.0 {
		t.Errorf("got %v", plan)
	}
	if steps := plan["steps"].([]any); !slices.Contains(steps, any("drain")) {
		t.Errorf("the steps are %v", steps)
	}
	newest := l.workers()[2]
	nodes := plan.list("nodestoremove")
	if len(nodes) != 2 || nodes[0].text("id") != down || nodes[0]["drained"] != false || nodes[1].text("id") != newest || nodes[1]["drained"] != true {
		t.Fatalf("the nodes are %v", nodes)
	}
	why := refusal.object("refusal")
	if refusal["accepted"] != false || why["errorcode"] != 530.0 {
		t.Errorf("got %v", refusal)
	}
	l.refused(why.text("errortext"), "scaleKubernetesCluster", "id="+l.id(), "size=0")

	stays := l.workers()[1]
	l.do("scaleKubernetesCluster", "id="+l.id(), "size=1")
	if left := l.workers(); !slices.Equal(left, []string{stays}) {
		t.Errorf("%v are left, want %s", left, stays)
	}
	if drained := l.callsOf("node.drain"); drained[down] > 0 || drained[newest] == 0 {
		t.Errorf("drained were %v", drained)
	}
}
