package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"ckscale/cmd/internal/live"
)

// weather is what happens to the simulated cloud by itself: VMs go down and
// come back behind the service's back, and calls go wrong. It turns to another
// server sooner than clients do. In the end it clears up, so that the last
// requests can end.
func (t *town) weather(ctx, until context.Context, choose *rand.Rand) error {
	cloud := newCaller(t.fleet, choose, time.Second)
	for sleep(until, between(choose, 200*time.Millisecond, time.Second)) {
		cluster := t.clusters[choose.IntN(len(t.clusters))]
		event := events[choose.IntN(len(events))]
		if err := event(t, ctx, cloud, choose, cluster); err != nil {
			return fmt.Errorf("weather: %w", err)
		}
	}
	return cloud.clear(ctx)
}

type event func(t *town, ctx context.Context, cloud *caller, choose *rand.Rand, cluster string) error

// events are drawn with equal chances.
var events = []event{
	(*town).moveVM, (*town).moveVM, (*town).moveVM, (*town).mend, (*town).mend, (*town).breakCalls, (*town).breakCalls, (*town).breakCalls,
}

// moveVM puts a VM into another state; seldom that of a control node.
func (t *town) moveVM(ctx context.Context, cloud *caller, choose *rand.Rand, cluster string) error {
	to, control, pick := anyOf(choose, "Stopped", "Stopped", "Shutdown", "Unknown", "Migrating"), choose.IntN(8) == 0, choose.Uint64()
	w, err := ask[live.World](ctx, cloud, "querySimulator", "clusterid="+cluster)
	if err != nil {
		return err
	}
	var can []live.VM
	for _, v := range w.VMs {
		if v.State == "Running" && v.Worker() != control {
			can = append(can, v)
		}
	}
	if len(can) == 0 {
		return nil
	}
	t.count("VMs put into another state")
	return cloud.setVM(ctx, can[pick%uint64(len(can))].ID, to)
}

// mend lets those VMs of a cluster run again that no client can start.
func (t *town) mend(ctx context.Context, cloud *caller, _ *rand.Rand, cluster string) error {
	w, err := ask[live.World](ctx, cloud, "querySimulator", "clusterid="+cluster)
	if err != nil {
		return err
	}
	for _, v := range w.VMs {
		if v.State == "Unknown" || v.State == "Migrating" {
			if err := cloud.setVM(ctx, v.ID, "Running"); err != nil {
				return err
			}
		}
	}
	return nil
}

// setVM puts a VM into a state, if it is still there.
func (c *caller) setVM(ctx context.Context, vm, state string) error {
	err := c.simulate(ctx, "vm.set", state, "vmid="+vm)
	if _, ok := errors.AsType[*live.Refusal](err); ok {
		return nil
	}
	return err
}

// breakable are the calls that go wrong. iso.detach is none of them: a job goes
// on without, and the ISO that is left would look like a breach.
var breakable = []string{
	"vm.create", "vm.start", "vm.stop", "vm.destroy", "vm.resize", "vm.list", "iso.attach", "node.join", "node.drain", "node.uncordon",
	"node.delete", "node.list",
}

// breakCalls lets the next few calls of one kind go wrong, of one cluster or of
// any.
func (t *town) breakCalls(ctx context.Context, cloud *caller, choose *rand.Rand, cluster string) error {
	what, how := anyOf(choose, breakable...), anyOf(choose, "fail", "fail:broken by the weather", "delay:1s", "delay:3s", "delay:3s", "panic", "hang")
	params := []string{fmt.Sprintf("count=%d", 1+choose.IntN(4))}
	if choose.IntN(2) == 0 {
		params = append(params, "clusterid="+cluster)
	}
	if how == "panic" && what == "node.join" { // it is no call
		how = "fail"
	}
	t.count("faults ordered")
	return cloud.simulate(ctx, what, how, params...)
}

// tides fill the hosts now and then, so that there is room for a VM or two.
func (t *town) tides(ctx, until context.Context) error {
	choose := t.choices("tides", 0)
	cloud := newCaller(t.fleet, choose, time.Second)
	for sleep(until, between(choose, 3*time.Second, 8*time.Second)) {
		t.count("times the hosts were full")
		if err := cloud.simulate(ctx, "capacity", fmt.Sprint(choose.IntN(3))); err != nil {
			return fmt.Errorf("tides: %w", err)
		}
		sleep(ctx, 2*time.Second)
		if err := cloud.simulate(ctx, "capacity", fmt.Sprint(room)); err != nil {
			return fmt.Errorf("tides: %w", err)
		}
	}
	return nil
}

func anyOf(choose *rand.Rand, all ...string) string { return all[choose.IntN(len(all))] }
