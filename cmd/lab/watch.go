package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ckscale/cmd/internal/live"
)

// watch is what was seen of a scale-up, by looking at the simulated cloud
// until the job had ended.
type watch struct {
	before []vm // the workers that were there
	begin  time.Time
	lines  []line
	// When it was first seen, after begin: as many nodes Ready as VMs are up,
	// with the ISO attached; the new node Ready; the ISO out; the job ended.
	// Zero: never.
	matched, ready, detached, ended time.Duration
	early                           bool // the count was met though the new node was not Ready

	stale  string        // the VM that was stopped at the beginning; "" = none
	silent time.Duration // when its node was first seen Unknown; zero: never
	fresh  vm            // the new one
	job    live.Job
	last   world
}

// line is a line of the timeline.
type line struct {
	after time.Duration
	text  string
	note  string
}

// newWatch starts a timeline for c, to which a scale-up has yet to be sent.
func newWatch(c cluster) *watch {
	return &watch{before: c.Workers(), begin: time.Now()}
}

// say adds a line about what the lab does.
func (w *watch) say(format string, args ...any) {
	w.lines = append(w.lines, line{after: time.Since(w.begin), text: fmt.Sprintf(format, args...)})
}

// place is where a worker stands among those that were there, from 0; the new
// one is behind them.
func (w *watch) place(vmID string) int {
	if i := slices.IndexFunc(w.before, func(v vm) bool { return v.ID == vmID }); i >= 0 {
		return i
	}
	return len(w.before)
}

// label is a worker's name in the report.
func (w *watch) label(vmID string) string {
	if i := w.place(vmID); i < len(w.before) {
		return fmt.Sprintf("worker %d", i+1)
	}
	return "new worker"
}

// follow samples until the job has ended.
func (w *watch) follow(ctx context.Context, l *lab, jobID string) error {
	shown := ""
	err := l.until(ctx, "the job has ended", patience+l.timeout, func() (bool, error) {
		j, err := l.Job(ctx, jobID)
		if err != nil {
			return false, err
		}
		if w.last, err = l.world(ctx); err != nil {
			return false, err
		}
		met := w.matched
		if err := w.look(w.last); err != nil {
			return false, err
		}
		if text := w.sample(w.last); text != shown || w.matched != met {
			shown = text
			w.lines = append(w.lines, line{time.Since(w.begin), text, w.remark(met)})
		}
		w.job = j
		return j.Status != live.Pending, nil
	})
	w.ended = time.Since(w.begin)
	return err
}

// look notes what is seen for the first time. The ISO may go only after the
// new node is Ready, unless its VM goes too.
func (w *watch) look(now world) error {
	after := time.Since(w.begin)
	var attached *vm
	exists := false
	for _, v := range now.VMs {
		if v.ISO {
			attached, w.fresh = &v, v
		}
		exists = exists || v.ID == w.fresh.ID
	}
	joined := w.fresh.ID != "" && now.NodeOf(w.fresh.ID).Ready == live.Ready
	if w.matched == 0 && attached != nil && ready(now) == up(now) {
		w.matched, w.early = after, !joined
	}
	if w.ready == 0 && joined {
		w.ready = after
	}
	if w.silent == 0 && now.NodeOf(w.stale).Ready == "Unknown" {
		w.silent = after
	}
	if w.detached == 0 && w.fresh.ID != "" && attached == nil {
		w.detached = after
		if exists && !joined {
			return errors.New("the ISO was detached before the new node was Ready")
		}
	}
	return nil
}

// sample is a line as the seed's report has it.
func (w *watch) sample(now world) string {
	nodes := make([]string, len(w.before)+1)
	for _, n := range now.Nodes {
		if (vm{Name: n.Name}).Worker() {
			nodes[w.place(n.VMID)] = w.label(n.VMID) + "=" + n.Ready
		}
	}
	iso := "(none)"
	for _, v := range now.VMs {
		if v.ISO {
			iso = w.label(v.ID)
		}
	}
	return fmt.Sprintf("%-52s | ISO on: %s", strings.TrimSpace(strings.Join(nodes, " ")), iso)
}

// remark is about the sample in which the count was met, which is the last if
// it has changed since met.
func (w *watch) remark(met time.Duration) string {
	if w.matched == met || !w.early {
		return ""
	}
	return fmt.Sprintf("<- the early match: %d nodes Ready, %d expected", ready(w.last), up(w.last))
}

// succeeded checks that the scale-up did, that the new node is there, and that
// the ISO, which was seen, is gone.
func (w *watch) succeeded() error {
	if w.job.Status != live.Succeeded {
		return fmt.Errorf("the scale-up failed: %s", w.job.Result.ErrorText)
	}
	for _, v := range w.job.Result.Cluster.Workers() {
		if w.place(v.ID) == len(w.before) && w.last.NodeOf(v.ID).Ready != live.Ready {
			return errors.New("the new node was not Ready when the job had ended")
		}
	}
	switch {
	case w.fresh.ID == "":
		return fmt.Errorf("the time with the ISO attached was %w", errMissed)
	case w.detached == 0:
		return errors.New("the ISO was still attached when the job had ended")
	}
	return nil
}

// nodesAt is what kubectl get nodes would show: NAME STATUS ROLES VERSION.
func nodesAt(c cluster, w world, fresh string) []string {
	var lines []string
	list := func(role, roles string, vms []vm) {
		for i, v := range vms {
			n := w.NodeOf(v.ID)
			status := "NotReady"
			if n.Ready == live.Ready {
				status = "Ready"
			}
			if n.Name == "" {
				status = "(no node)"
			}
			text := fmt.Sprintf("%-11s%-11s%-16sv%s", fmt.Sprintf("%s-%d", role, i+1), status, roles, v.Version)
			if v.ID == fresh {
				text += "    <- new"
			}
			lines = append(lines, text)
		}
	}
	list("control", "control-plane", c.Controls())
	list("worker", "<none>", c.Workers())
	return lines
}
