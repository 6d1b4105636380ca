package jobs

import (
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// TestVanishedWorkerCountsAsDown: a worker that was destroyed behind our back
// puts the cluster into Alert, lets it be scaled there, and goes first and
// undrained (cks.md §3.6, "a VM row that is gone").
//
// Keeps: §3.6/gone.
// Keeps: A40.
func TestVanishedWorkerCountsAsDown(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	w := b.workers()
	b.must(b.world.Destroy(b.ctx, b.id, w[0].ID))
	b.scan()
	view := b.view()
	if got := view.VMs[1]; view.Cluster.State != cks.Alert || got.ID != w[0].ID || !got.State.Down() {
		t.Fatalf("cluster is %s, %s is %s", view.Cluster.State, got.Name, got.State)
	}
	change, err := cks.CheckScale(cks.ScaleFacts{View: view, MaxSize: 10}, cks.ScaleRequest{Size: new(int64(1))})
	if err != nil || change.Kind != cks.ScaleDown {
		t.Fatalf("%s, %v", change.Kind, err)
	}
	b.run()
	b.do(change.Kind, change.Args)
	if left := b.workers(); len(left) != 1 || left[0].ID != w[1].ID || b.calls("node.drain", "") != 0 {
		t.Errorf("left: %v, with %d drains", left, b.calls("node.drain", ""))
	}
	if _, there := b.node(w[0]); there {
		t.Error("its node object is still there")
	}
	b.inState(cks.Running)
	b.consistent()
}
