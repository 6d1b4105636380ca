package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// scenario is a row of the report.
type scenario struct {
	name, what string
	// The cluster that it starts with: so many workers, so many of them, the
	// oldest, stopped. It is Running, or in Alert if there are such.
	workers, down int
	drains        int // calls to node.drain that the cloud is to see
	run           func(*trial, context.Context) error
}

// trial is a scenario that is carried out, and then its result.
type trial struct {
	*lab
	scenario
	before   cluster
	measured []measure
	text     string // of the refusal or the failure
	timeline *watch
	nodes    []string
	drained  int
	tries    int
	err      error
}

// measure is a duration that was seen.
type measure struct {
	what string
	took time.Duration
}

func (t *trial) measure(what string, took time.Duration) {
	t.measured = append(t.measured, measure{what, took})
}

var (
	// errNotRun says that a scenario cannot be carried out on this server.
	errNotRun = errors.New("not run")
	// errMissed says that the lab was too late for what the scenario is about:
	// on a busy machine, at a high speed. It is tried again.
	errMissed = errors.New("missed")
)

// maxTries is how often a scenario that was missed is tried in all.
const maxTries = 5

func (t *trial) failed() bool { return t.err != nil && !errors.Is(t.err, errNotRun) }

// tryAll carries out the scenarios, one after the other on the one cluster. One
// that fails does not keep the next from its own start.
func (l *lab) tryAll(ctx context.Context, scenarios []scenario, progress io.Writer) ([]*trial, error) {
	var trials []*trial
	for _, s := range scenarios {
		t := l.attempt(ctx, s)
		for n := 2; n <= maxTries && errors.Is(t.err, errMissed); n++ {
			t = l.attempt(ctx, s)
			t.tries = n
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if _, err := fmt.Fprintf(progress, "%-26s %s\n", s.name, t.outcome()); err != nil {
			return nil, err
		}
		trials = append(trials, t)
	}
	return trials, nil
}

func (l *lab) attempt(ctx context.Context, s scenario) *trial {
	t := &trial{lab: l, scenario: s}
	if t.err = t.prepare(ctx); t.err != nil {
		t.err = fmt.Errorf("cannot prepare: %w", t.err)
	} else {
		t.err = t.try(ctx)
	}
	return t
}

// outcome is pass, or what happened instead.
func (t *trial) outcome() string {
	switch {
	case t.failed():
		return "fail: " + strings.ReplaceAll(t.err.Error(), "\n", "; ")
	case t.err != nil:
		return t.err.Error()
	case t.tries > 1:
		return fmt.Sprintf("pass (try %d: the lab was too late before)", t.tries)
	}
	return "pass"
}

// prepare gives the cluster the shape that the scenario starts with, if it has
// another.
func (t *trial) prepare(ctx context.Context) (err error) {
	if t.before, err = t.cluster(ctx); err != nil || t.shaped(t.before) {
		return err
	}
	if err := t.recover(ctx); err != nil {
		return err
	}
	c, err := t.cluster(ctx)
	if err != nil {
		return err
	}
	if c.Size != t.workers {
		if c, err = t.scale(ctx, fmt.Sprintf("size=%d", t.workers)); err != nil {
			return err
		}
	}
	for _, v := range c.Workers()[:t.down] {
		if err := t.stop(ctx, v.ID); err != nil {
			return err
		}
	}
	if t.down > 0 {
		if err := t.inState(ctx, "Alert"); err != nil {
			return err
		}
	}
	t.before, err = t.cluster(ctx)
	return err
}

// shaped reports whether the cluster is as the scenario wants it.
func (t *trial) shaped(c cluster) bool {
	state, wrong := "Running", 0
	for i, v := range append(c.Workers(), c.Controls()...) {
		want := "Running"
		if i < t.down {
			want, state = "Stopped", "Alert"
		}
		if v.State != want {
			wrong++
		}
	}
	return c.State == state && c.Size == t.workers && wrong == 0
}

// recover brings all VMs back, and with them the cluster.
func (t *trial) recover(ctx context.Context) error {
	for _, v := range t.before.VMs {
		var err error
		switch v.State {
		case "Running":
		case "Stopped":
			err = t.start(ctx, v.ID)
		default: // the simulated cloud was told so
			err = t.Simulate(ctx, "vm.set", "Running", "vmid="+v.ID)
		}
		if err != nil {
			return err
		}
	}
	return t.inState(ctx, "Running")
}

// try carries the scenario out, and checks what holds after each.
func (t *trial) try(ctx context.Context) error {
	w, err := t.world(ctx)
	if err != nil {
		return err
	}
	before := drains(w)
	ran := t.run(t, ctx)
	if w, err = t.world(ctx); err != nil {
		return errors.Join(ran, err)
	}
	t.drained = drains(w) - before
	switch {
	case ran != nil:
		return ran
	case t.drained != t.drains:
		return fmt.Errorf("the cloud saw %d drains, not %d", t.drained, t.drains)
	}
	c, err := t.cluster(ctx)
	if err != nil {
		return err
	}
	return agree(c, w)
}
