package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/invariant"
	"ckscale/internal/sim"
)

// late is a test in its cleanup, whose own context has ended.
type late struct {
	testing.TB
	ctx context.Context
}

func (l late) Context() context.Context { return l.ctx }

// settles ends a scenario once its test has: the faults of the simulated cloud
// are cleared, every job must end, and the invariants must hold as a client
// sees them. It is to be called after the server's own cleanup is set up.
func (c *client) settles() {
	c.Cleanup(func() {
		if c.Failed() {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), time.Minute)
		defer cancel()
		c := &client{late{c.TB, ctx}, c.url, c.keys}
		for _, operation := range sim.Clearable() {
			c.simulate(operation, "clear")
		}
		var facts invariant.Facts
		defer func() {
			if c.Failed() {
				c.Logf("%d jobs are live; broken: %q", len(facts.Jobs), facts.Broken())
			}
		}()
		c.until("every job has ended and the invariants hold", 50*time.Second, func() bool {
			facts = c.facts()
			return len(facts.Jobs) == 0 && len(facts.Broken()) == 0
		})
	})
}

// facts sees the service from without, as a root admin may.
func (c *client) facts() invariant.Facts {
	c.Helper()
	var f invariant.Facts
	for _, k := range c.call("listKubernetesClusters", "listall=true").list("kubernetescluster") {
		cluster := invariant.Cluster{ID: k.text("id"), Name: k.text("name"), State: cks.State(k.text("state")), Size: int(k["size"].(float64))}
		for _, v := range k.list("virtualmachines") {
			worker := v["isetcdnode"] == false && !strings.Contains(v.text("name"), "-control-")
			cluster.VMs = append(cluster.VMs, invariant.VM{ID: v.text("id"), Name: v.text("name"), Worker: worker, Version: v.text("kubernetesnodeversion")})
		}
		f.Clusters = append(f.Clusters, cluster)
	}
	for _, v := range c.call("listVirtualMachines", "listall=true").list("virtualmachine") {
		if !slices.ContainsFunc(f.Clusters, func(k invariant.Cluster) bool {
			return slices.ContainsFunc(k.VMs, func(m invariant.VM) bool { return m.ID == v.text("id") })
		}) {
			f.VMs = append(f.VMs, invariant.VM{ID: v.text("id"), Name: v.text("name")})
		}
	}
	for _, j := range c.call("listAsyncJobs", "listall=true").list("asyncjobs") {
		f.Jobs = append(f.Jobs, invariant.Job{ID: j.text("jobid"), VMID: j.text("jobinstanceid"), Holds: strings.Contains(j.text("cmd"), ".kubernetes.cluster.")})
	}
	world := c.call("querySimulator")
	f.Kubelets = map[string]string{}
	for _, n := range world.list("node") {
		f.Kubelets[n.text("vmid")] = n.text("version")
	}
	for _, m := range world.list("vm") {
		f.Cloud = append(f.Cloud, invariant.Machine{ID: m.text("id"), Name: m.text("name"), ClusterID: m.text("clusterid")})
	}
	return f
}

// consistent checks the invariants, once no job is live, and that the ISO is
// out.
func (c *client) consistent() {
	c.Helper()
	facts := c.facts()
	for _, broken := range facts.Broken() {
		c.Error(broken)
	}
	if len(facts.Jobs) > 0 {
		c.Errorf("jobs are live: %+v", facts.Jobs)
	}
	for _, m := range c.call("querySimulator").list("vm") {
		if fmt.Sprint(m["isoattached"]) != "false" {
			c.Errorf("the ISO is still attached to %s", m.text("name"))
		}
	}
}
