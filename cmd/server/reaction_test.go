package main

import (
	"testing"
	"time"
)

// How fast the server reacts, as a client sees it: `make bench`. Upstream takes
// up to 30 s to see a stopped VM and 7 to 15 s to detach the ISO (seed, lab
// report).

// BenchmarkStopToAlert measures from a VM being stopped in the cloud, behind
// the service's back, to the cluster being listed in Alert.
func BenchmarkStopToAlert(b *testing.B) {
	c := demo(b, nil)
	w := c.workers()[0]
	var total, worst time.Duration
	for b.Loop() {
		c.simulate("vm.set", "Stopped", "vmid="+w)
		begin := time.Now()
		c.inState("Alert")
		took := time.Since(begin)
		total, worst = total+took, max(worst, took)
		c.simulate("vm.set", "Running", "vmid="+w)
		c.inState("Running")
	}
	report(b, "alert", total, worst)
}

// BenchmarkReadyToDetached measures from a new node being Ready to its ISO
// being out, during a scale-up in Alert.
func BenchmarkReadyToDetached(b *testing.B) {
	c := demo(b, nil)
	id, w := c.id(), c.workers()
	c.simulate("vm.set", "Stopped", "vmid="+w[0])
	c.inState("Alert")
	var total, worst time.Duration
	for b.Loop() {
		job := c.start("scaleKubernetesCluster", "id="+id, "size=3")
		took := c.readyToDetached()
		c.ended(job)
		total, worst = total+took, max(worst, took)
		c.inState("Alert")
		fresh := c.workers()[2]
		c.do("scaleKubernetesCluster", "id="+id, "nodeids="+fresh)
		c.inState("Alert")
	}
	report(b, "detach", total, worst)
}

// readyToDetached watches the cloud until the ISO that is about to be attached
// is out again, and returns how long its node was Ready by then. Both are seen
// to within one look at the cloud.
func (c *client) readyToDetached() time.Duration {
	c.Helper()
	vm, ready := "", time.Time{}
	var took time.Duration
	c.until("the ISO is detached", time.Minute, func() bool {
		world := c.call("querySimulator")
		attached := ""
		for _, m := range world.list("vm") {
			if m["isoattached"] == true {
				attached = m.text("id")
			}
		}
		if attached != "" {
			vm = attached
		}
		for _, node := range world.list("node") {
			if vm != "" && ready.IsZero() && node.text("vmid") == vm && node.text("ready") == "True" {
				ready = time.Now()
			}
		}
		if vm == "" || attached != "" || ready.IsZero() {
			return false
		}
		took = time.Since(ready)
		return true
	})
	return took
}

func report(b *testing.B, what string, total, worst time.Duration) {
	b.Helper()
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), what+"-ms/op")
	b.ReportMetric(float64(worst.Milliseconds()), what+"-ms-worst")
	b.ReportMetric(0, "ns/op") // of the whole scenario, which says nothing
}
