package store_test

import (
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// Every write changes the rows of its own cluster, job or VM, and no other: a
// neighbour in the middle of a scale-up of its own, with new and leaving
// workers, looks the same after each step of another cluster's life.
func TestWritesTouchOnlyTheirOwnRows(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	n, theirs := scaling(t, st, storetest.Spec{Workers: 3})
	choose(t, st, n, theirs, 2)
	ok(t, st.ChooseLeaving(ctx, theirs, []string{workers(n)[0].ID}))
	v, j := scaling(t, st, storetest.Spec{Workers: 3})
	own, medium := workers(v), medium(t, st)
	later := must[time.Time](t)(st.Now(ctx)).Add(time.Hour)
	var chosen []cks.VM

	gone := func() time.Time { return read[time.Time](t, st, `SELECT removed FROM vms WHERE id = $1`, own[0].ID) }
	var went time.Time

	before := neighbour(t, st, n)
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"ChooseNew", func() (err error) { chosen, err = st.ChooseNew(ctx, j, wantNode(v, 3)); return err }},
		{"NodeJoined", func() error { return st.NodeJoined(ctx, j, chosen[0].ID, true) }},
		{"NodeDoomed", func() error { return st.NodeDoomed(ctx, j, chosen[1].ID) }},
		{"DropDoomed", func() error { return st.DropDoomed(ctx, chosen[1].ID) }},
		{"ChooseLeaving", func() error { return st.ChooseLeaving(ctx, j, []string{own[0].ID, own[1].ID}) }},
		{"KeepNode", func() error { return st.KeepNode(ctx, j, own[1].ID) }},
		{"NodeRemoved", func() error { return st.NodeRemoved(ctx, j, own[0].ID) }},
		{"", func() error { went = gone(); return nil }},
		{"LeaveNode", func() error { return st.LeaveNode(ctx, j, own[0].ID) }},
		{"NodeDeleted", func() error { return st.NodeDeleted(ctx, own[0].ID) }},
		{"SetOfferingOf", func() error { return st.SetOfferingOf(ctx, j, own[1].ID, medium.ID) }},
		{"ObserveVM", func() error {
			return st.ObserveVM(ctx, own[1].ID, cks.Machine{ID: own[1].ID, State: cks.VMUnknown, IPAddress: "10.9.9.9"}, later)
		}},
		{"ObserveGone", func() error { return st.ObserveGone(ctx, own[2], later) }},
		{"RecordOfferings", func() error { return st.RecordOfferings(ctx, j, map[cks.Role]string{cks.Worker: medium.ID}, medium.ID) }},
		{"NodeUpgraded", func() error { return st.NodeUpgraded(ctx, j, own[1].ID, "v1.34.1") }},
		{"RecordVersion", func() error { return st.RecordVersion(ctx, j, v.Version.ID) }},
		{"RecordAutoscaling", func() error { return st.RecordAutoscaling(ctx, j, cks.Autoscaling{Enabled: true, Min: 1, Max: 3}) }},
		{"KeepLeases", func() error { _, err := st.KeepLeases(ctx, "tester", []cks.Job{j}, 2*time.Hour); return err }},
		{"StepDone", func() error { return st.StepDone(ctx, j, "x", cks.Notes{Wanted: 3}) }},
		{"AtStep", func() error { return st.AtStep(ctx, j, "x", cks.Notes{Wanted: 4}) }},
		{"GiveUp", func() error { return st.GiveUp(ctx, j, "drain", "why", false) }},
		{"WakeCluster", func() error { _, err := st.WakeCluster(ctx, v.Cluster.ID); return err }},
		{"PutBack", func() error { return st.PutBack(ctx, j, time.Hour, true) }},
		{"claim", func() error { j = claim(t, st, j.ID); return nil }},
		{"FreeCluster", func() error { return st.FreeCluster(ctx, j, cks.OperationSucceeded) }},
		{"FailJob", func() error { return st.FailJob(ctx, j, "text") }},
		{"RecordSize", func() error { return st.RecordSize(ctx, cluster(t, st, v), 4) }},
		{"ObserveVersion", func() error { return st.ObserveVersion(ctx, cluster(t, st, v), own[1].ID, "v1.34.2") }},
		{"MoveCluster", func() error { _, err := st.MoveCluster(ctx, cluster(t, st, v), cks.FaultsDetected); return err }},
		{"AddJob", func() (err error) { j, err = st.AddJob(ctx, newJob(v)); return err }},
		{"HoldCluster", func() error { return st.HoldCluster(ctx, cluster(t, st, v), j.ID, cks.DestroyRequested) }},
		{"claim again", func() error { j = claim(t, st, j.ID); return nil }},
		{"FreeCluster for good", func() error { return st.FreeCluster(ctx, j, cks.OperationSucceeded) }},
		{"FinishJob", func() error { return st.FinishJob(ctx, j, cks.JobResult{Success: true}) }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if after := neighbour(t, st, n); after != before {
			t.Fatalf("after %s the neighbour is\n%s\nand was\n%s", step.name, after, before)
		}
	}
	if at := gone(); !at.Equal(went) {
		t.Errorf("a VM that was removed at %s is removed again at %s, with its cluster", went, at)
	}
}

// A job that is refused because another is live is not told that its id is
// taken.
func TestCollisionsAreToldApart(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, _ := scaling(t, st, storetest.Spec{Workers: 1})
	second := newJob(v)
	second.ID = "00000000-0000-4000-8000-000000000001"
	_, err := st.AddJob(t.Context(), second)
	wantCode(t, err, cks.Conflict)
}

// neighbour is every row that belongs to a cluster, as text.
func neighbour(t *testing.T, st *store.Store, v cks.ClusterView) string {
	t.Helper()
	return read[string](t, st, `SELECT jsonb_pretty(jsonb_build_array(
		(SELECT jsonb_agg(to_jsonb(c)) FROM clusters c WHERE id = $1::uuid),
		(SELECT jsonb_agg(to_jsonb(m) ORDER BY seq) FROM vms m WHERE cluster_id = $1::uuid),
		(SELECT jsonb_agg(to_jsonb(j) ORDER BY seq) FROM jobs j WHERE cluster_id = $1::uuid)))`, v.Cluster.ID)
}
