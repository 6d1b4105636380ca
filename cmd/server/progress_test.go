package main

import (
	"strings"
	"testing"
	"time"
)

// states are the states of a job's steps.
func (a answer) states() string {
	var all []string
	for _, s := range a.list("steps") {
		all = append(all, s.text("state"))
	}
	return strings.Join(all, " ")
}

// A job that waits says for what, wherever it is shown, and which of its steps
// it is in, since when; one that has ended shows when each step was done.
//
// Keeps: ours/progress, ours/progress-message.
func TestJobsTellTheirProgress(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_SIM_SPEED": "50"})
	job, release := c.held(3)
	var seen answer
	c.until("it says what it waits for", time.Minute, func() bool {
		seen = c.call("queryAsyncJobResult", "jobid="+job)
		return strings.HasPrefix(seen.text("message"), "0 of 1 new nodes are Ready; waiting for demo-node-")
	})
	if got := seen.states(); got != "done done done done current pending pending" {
		t.Errorf("the steps are %s", got)
	}
	if now := seen.list("steps")[4]; now.text("name") != "wait-ready-count" || now.text("started") < seen.text("created") || now.text("ended") != "" {
		t.Errorf("the current step is %v", now)
	}
	listed := c.call("listAsyncJobs").list("asyncjobs")
	if len(listed) != 1 || listed[0].text("message") != seen.text("message") || listed[0].states() != seen.states() {
		t.Errorf("listed are %v", listed)
	}
	release()
	ended := c.ended(job)
	if got := ended.states(); got != "done done done done done done done" || ended.text("message") != "" {
		t.Errorf("in the end: %s, %q", got, ended.text("message"))
	}
	last := seen.text("created")
	for _, s := range ended.list("steps") {
		if s.text("started") < last || s.text("ended") < s.text("started") || s.text("ended") > ended.text("completed") {
			t.Errorf("a step after %s: %v", last, s)
		}
		last = s.text("ended")
	}
}
