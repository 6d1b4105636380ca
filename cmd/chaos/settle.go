package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ckscale/cmd/internal/live"
	"ckscale/internal/invariant"
	"ckscale/internal/sim"
	"ckscale/internal/store"
)

// violation is something that must not be, with what it is about.
type violation struct {
	rule, cluster, job, text string
}

// Limits of what comes by itself once nobody disturbs any more.
const (
	jobsEnd    = 90 * time.Second // a call that hangs takes half a minute, three times
	allRecover = 90 * time.Second
)

// settle waits until every job has ended, every VM runs again, and all is as it
// must be. What does not come to that is violated.
func (t *town) settle(ctx context.Context) []violation {
	cloud := newCaller(t.fleet, t.choices("mayor", 0), answerTime)
	broken := func(rule string, err error) []violation { return []violation{{rule: rule, text: err.Error()}} }
	if err := cloud.clear(ctx); err != nil { // the tides' last order may have come after the weather's end
		return broken("set up", err)
	}
	if err := until(ctx, jobsEnd, func() (string, error) { return t.liveJobs(ctx) }); err != nil {
		return broken("every job ends", err)
	}
	st, err := store.Open(ctx, t.fleet.database)
	if err != nil {
		return broken("set up", err)
	}
	defer st.Close()
	world := sim.New(st, sim.Config{})
	if err := until(ctx, allRecover, func() (string, error) { return t.recovered(ctx, cloud) }); err != nil {
		return broken("every cluster recovers", err)
	}
	err = until(ctx, allRecover, func() (string, error) {
		facts, err := invariant.Gather(ctx, st, world)
		return strings.Join(facts.Broken(), "; "), err
	})
	if err != nil {
		return broken("size, list and cloud agree", err)
	}
	return nil
}

// clear takes back all that was ordered to disturb.
func (c *caller) clear(ctx context.Context) error {
	for _, operation := range sim.Clearable() {
		value := "clear"
		if operation == "capacity" {
			value = fmt.Sprint(room)
		}
		if err := c.simulate(ctx, operation, value); err != nil {
			return err
		}
	}
	return nil
}

// until waits until nothing is missing.
func until(ctx context.Context, limit time.Duration, look func() (missing string, err error)) error {
	end := time.Now().Add(limit)
	for {
		missing, err := look()
		switch {
		case err != nil:
			return err
		case missing == "":
			return nil
		case time.Now().After(end):
			return fmt.Errorf("not within %s: %s", limit, missing)
		case !sleep(ctx, 300*time.Millisecond):
			return context.Cause(ctx)
		}
	}
}

// liveJobs tells of jobs that have not ended.
func (t *town) liveJobs(ctx context.Context) (string, error) {
	var text string
	err := t.fleet.pool.QueryRow(ctx, `
		SELECT coalesce(string_agg(format('%s of %s is at %s with %s', kind, coalesce(cluster_id, vm_id), step, owner), '; '), '')
		FROM jobs WHERE status = 0`).Scan(&text)
	return text, err
}

// recovered starts the VMs that do not run, and tells of the clusters that are
// not Running. One whose VMs were all stopped once is Stopped and stays so: no
// command starts it.
func (t *town) recovered(ctx context.Context, cloud *caller) (string, error) {
	list, err := ask[struct {
		Clusters []live.Cluster `json:"kubernetescluster"`
	}](ctx, cloud, "listKubernetesClusters", "listall=true")
	if err != nil {
		return "", err
	}
	var missing []string
	for _, k := range list.Clusters {
		if k.State != "Running" && k.State != "Stopped" {
			missing = append(missing, fmt.Sprintf("%s (%s) is %s", k.Name, k.ID, k.State))
		}
		for _, v := range k.VMs {
			if err := cloud.recover(ctx, v); err != nil {
				return "", err
			}
			if v.State != "Running" {
				missing = append(missing, fmt.Sprintf("%s is %s", v.Name, v.State))
			}
		}
	}
	return strings.Join(missing, ", "), nil
}

// recover lets a VM run again.
func (c *caller) recover(ctx context.Context, v live.VM) error {
	switch v.State {
	case "Unknown", "Migrating":
		return c.setVM(ctx, v.ID, "Running")
	case "Stopped", "Shutdown":
		_, err := ask[struct{}](ctx, c, "startVirtualMachine", "id="+v.ID)
		if _, ok := errors.AsType[*live.Refusal](err); ok {
			return nil // removed meanwhile
		}
		return err
	}
	return nil
}
