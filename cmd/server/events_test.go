package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
)

// events are what listEvents shows, the oldest first, with the number of all.
func (c *client) events(params ...string) (list []answer) {
	c.Helper()
	a := c.call("listEvents", params...)
	list = a.list("event")
	if n, _ := a["count"].(float64); int(n) != len(list) && !slices.ContainsFunc(params, func(p string) bool { return strings.HasPrefix(p, "page=") }) {
		c.Errorf("listEvents %q counts %v and lists %d", params, a["count"], len(list))
	}
	slices.Reverse(list)
	return list
}

// TestEventsTellWhatHappened: a scale-up, a VM that is stopped, and what the
// scanner makes of it are told with who, what and when; by parent, resource,
// type, level, words, time and page; to the owner and to nobody else.
//
// Keeps: §1.10/events, §1.10/events-list, §1.10/events-visibility, A41.
func TestEventsTellWhatHappened(t *testing.T) {
	t.Parallel()
	c := newLab(t, nil)
	id, w := c.id(), c.workers()[0]
	of := "resourceid=" + id
	c.do("scaleKubernetesCluster", "id="+id, "size=3")
	c.do("stopVirtualMachine", "id="+w)
	c.inState("Alert")
	c.do("startVirtualMachine", "id="+w)
	c.inState("Running")

	told := c.events(of)
	var got []string
	for _, e := range told {
		got = append(got, e.text("type")+" "+e.text("state")+" "+e.text("level")+" by "+e.text("username"))
		if e.text("account") != "admin" || e.text("resourceid") != id || e.text("resourcetype") != "KubernetesCluster" ||
			e.text("resourcename") != "demo" || e.text("domain") != "ROOT" || e["archived"] != false {
			t.Errorf("%v", e)
		}
		if at, err := time.Parse("2006-01-02T15:04:05-0700", e.text("created")); err != nil || time.Since(at) > 10*time.Minute {
			t.Errorf("created %s: %v", e.text("created"), err)
		}
	}
	want := []string{
		"KUBERNETES.CLUSTER.CREATE Created INFO by admin",
		"KUBERNETES.CLUSTER.SCALE Scheduled INFO by admin",
		"KUBERNETES.CLUSTER.STATE Completed INFO by admin",
		"KUBERNETES.CLUSTER.SCALE Started INFO by admin",
		"KUBERNETES.CLUSTER.NODE.ADD Completed INFO by admin",
		"KUBERNETES.CLUSTER.STATE Completed INFO by admin",
		"KUBERNETES.CLUSTER.SCALE Completed INFO by admin",
		"KUBERNETES.CLUSTER.STATE Completed WARN by system",
		"KUBERNETES.CLUSTER.STATE Completed INFO by system",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("told %q\nwant %q", got, want)
	}
	scheduled := told[1].text("id")
	for i, e := range told[2:7] {
		if e.text("parentid") != scheduled {
			t.Errorf("parent of %s is %q", want[i+2], e.text("parentid"))
		}
	}
	for what, n := range map[string]int{
		"id=" + scheduled: 1, "startid=" + scheduled: 6, "type=KUBERNETES.CLUSTER.NODE.ADD": 1, "level=WARN": 1,
		"keyword=moved from Alert": 1, "resourcetype=VirtualMachine": 0, "enddate=2000-01-01": 0, "startdate=2000-01-01": 9,
	} {
		if list := c.events(of, what); len(list) != n {
			t.Errorf("%s: %d events, want %d", what, len(list), n)
		}
	}
	if page := c.call("listEvents", of, "page=2", "pagesize=4"); page["count"] != 9.0 || len(page.list("event")) != 4 ||
		page.list("event")[3].text("id") != scheduled {
		t.Errorf("second page: %v", page)
	}
	if vm := c.events("resourceid=" + w); len(vm) != 6 || vm[0].text("description") != "Stopping Instance: "+w || vm[0].text("resourcetype") != "VirtualMachine" {
		t.Errorf("of the VM: %v", vm)
	}
	if list := c.account("stranger").events("listall=true"); len(list) != 0 {
		t.Errorf("a stranger is told %v", list)
	}
	types := c.call("listEventTypes").list("eventtype")
	for _, e := range c.events("listall=true") {
		if !slices.ContainsFunc(types, func(a answer) bool { return a.text("name") == e.text("type") }) {
			t.Errorf("%s is not listed", e.text("type"))
		}
	}
	if len(types) != len(cks.EventTypes) {
		t.Errorf("%d types", len(types))
	}
	all := len(c.events("listall=true"))
	for _, k := range []keys{{"no-such-key", "x"}, {adminKeys.API, "wrong"}} { // nobody fills the table without a key
		if status, a := c.as(k).send("scaleKubernetesCluster", "id="+id, "size=9"); status != 401 {
			t.Errorf("%d %v", status, a)
		}
	}
	if n := len(c.events("listall=true")); n != all {
		t.Errorf("%d events more", n-all)
	}
}

// TestCancelledJobEnds: a scale-up whose node does not join is cancelled. It
// ends as failed with who it was, at once; the cluster comes back, and grows
// when it is asked again. A job that has ended, is nobody's, or somebody else's
// is refused.
//
// Keeps: ours/cancel, ours/cancel-access, ours/cancel-ended, ours/cancel-wakes.
func TestCancelledJobEnds(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	id, ann := "id="+l.id(), l.account("ann")
	l.simulate("node.join", "fail")
	job := l.start("scaleKubernetesCluster", id, "size=3")
	l.until("the job waits", 20*time.Second, func() bool {
		return slices.ContainsFunc(l.call("querySimulator").list("vm"), func(vm answer) bool { return vm["isoattached"] == true })
	})
	ann.denied("Account ann is not authorized to see job id="+jobNumber(l, job), "cancelAsyncJob", "jobid="+job)
	if a := l.call("cancelAsyncJob", "jobid="+job); len(a) != 1 || a["success"] != true {
		t.Errorf("answer: %v", a)
	}
	ended := l.ended(job)
	if text := ended.object("jobresult").text("errortext"); ended["jobstatus"] != 2.0 || ended["jobresultcode"] != 530.0 ||
		!strings.Contains(text, "0 of 1 new nodes joined: cancelled by admin") {
		t.Errorf("job: %v", ended)
	}
	l.inState("Running")
	if n := len(l.workers()); n != 2 {
		t.Errorf("%d workers", n)
	}
	for ref, want := range map[string]string{
		job:                                    "Unable to cancel job ID: " + job + ", it has ended already: jobstatus is 2 (failed)",
		"00000000-0000-4000-8000-000000000001": "entity does not exist",
		"":                                     "Invalid value provided for API arg: jobid",
	} {
		if status, a := l.send("cancelAsyncJob", "jobid="+ref); status != 431 || !strings.Contains(a.text("errortext"), want) {
			t.Errorf("%q: %d %v", ref, status, a)
		}
	}
	var told []string
	for _, e := range l.events("type=JOB.CANCEL", "listall=true") {
		told = append(told, e.text("username")+": "+e.text("description"))
	}
	want := []string{"ann: Error while cancelling job. Account ann is not authorized to see job id=" + jobNumber(l, job), "admin: Cancelling job ID: " + job}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	l.simulate("node.join", "clear")
	l.do("scaleKubernetesCluster", id, "size=3")
	l.consistent()
}

// jobNumber is the internal number of a job.
func jobNumber(l *lab, id string) string {
	l.Helper()
	return ask[string](l, connect(l, l.url), "SELECT seq::text FROM jobs WHERE id = $1", id)
}
