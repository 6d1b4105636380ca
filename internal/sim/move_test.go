package sim_test

import (
	"context"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
)

// A machine moves into a cluster and out of it as it is: it runs on, and joins
// as any other does. Moving it again does nothing.
func TestMachineMoves(t *testing.T) {
	ctx, st, w := begin(t)
	const id, a, b = "vm-1", "cluster-a", "cluster-b"
	boot(ctx, t, w, a, "n1")
	must(t, w.Create(ctx, spec(id, id)), w.Start(ctx, id, id))
	until(ctx, t, "it runs", func() bool { return machineIn(ctx, t, w, id, id).State == cks.VMRunning })
	before := machineIn(ctx, t, w, id, id)
	must(t, w.AttachISO(ctx, id, id)) // where there is no cluster it joins none
	for range 2 {
		must(t, w.Move(ctx, id, id, a))
	}
	in := machineIn(ctx, t, w, a, id)
	if in.State != cks.VMRunning || in.IPAddress != before.IPAddress || in.MACAddress != before.MACAddress || in.ISOAttached || in.ClusterID != a || before.ClusterID != "" {
		t.Errorf("%+v, before %+v", in, before)
	}
	if machineIn(ctx, t, w, id, id).ID != "" {
		t.Error("it is still where it was")
	}
	must(t, w.AttachISO(ctx, a, id))
	until(ctx, t, "both nodes are Ready", func() bool { return ready(ctx, t, w, a) == 2 })
	must(t, w.DetachISO(ctx, a, id), w.Delete(ctx, a, "demo-node-"+id))
	for range 2 {
		must(t, w.Move(ctx, id, a, id))
	}
	if out := machineIn(ctx, t, w, id, id); out.State != cks.VMRunning || machineIn(ctx, t, w, a, id).ID != "" {
		t.Errorf("%+v", out)
	}
	must(t, w.Move(ctx, id, id, b), w.AttachISO(ctx, b, id)) // it joins anew
	until(ctx, t, "its node is Ready", func() bool { return ready(ctx, t, w, b) == 1 })
	if err := w.Move(ctx, "nobody", "nobody", a); cks.CodeOf(err) != cks.NotFound {
		t.Errorf("a machine that does not exist: %v", err)
	}
	must(t, st.Ping(ctx))
}

// Who dies between the arrival and the departure leaves both; the next ends it.
func TestMoveThatWasCutOffIsEnded(t *testing.T) {
	ctx, st, w := begin(t)
	const id, a = "vm-1", "cluster-a"
	must(t, w.Create(ctx, spec(id, id)), w.Start(ctx, id, id))
	left, _, err := st.ReadDocument(ctx, id)
	must(t, err, w.Move(ctx, id, id, a), w.AttachISO(ctx, a, id))
	must(t, st.ChangeDocument(ctx, id, func([]byte, time.Time) ([]byte, time.Time, error) { return left, time.Time{}, nil }))
	must(t, w.Move(ctx, id, id, a))
	if machineIn(ctx, t, w, id, id).ID != "" || !machineIn(ctx, t, w, a, id).ISOAttached {
		t.Error("the machine is in two places, or has arrived twice")
	}
}

// machineIn is the machine as its place shows it; empty when it is not there.
func machineIn(ctx context.Context, t *testing.T, w *sim.World, place, id string) cks.Machine {
	t.Helper()
	list, err := w.Machines(ctx, place)
	must(t, err)
	for _, m := range list {
		if m.ID == id {
			return m
		}
	}
	return cks.Machine{}
}
