package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// Of sixteen jobs that were validated against one row, exactly one gets it.
//
// Keeps: seed/both-validated.
func TestOneOfManyHoldsTheCluster(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 2})
	jobs := make([]cks.Job, 16)
	for i := range jobs {
		jobs[i] = must[cks.Job](t)(st.AddJob(t.Context(), loose(v)))
	}
	errs := together(len(jobs), func(i int) error {
		return st.HoldCluster(t.Context(), v.Cluster, jobs[i].ID, cks.ScaleUpRequested)
	})
	winner := slices.Index(errs, nil)
	if winner < 0 {
		t.Fatal("nobody holds the cluster")
	}
	for i, err := range errs {
		if i == winner {
			continue
		}
		wantCode(t, err, cks.Conflict)
		if got, want := err.Error(), "Kubernetes cluster test changed since the request was validated"; got != want {
			t.Errorf("text is %q, want %q", got, want)
		}
	}
	c := cluster(t, st, v)
	if c.State != cks.Scaling || c.HeldBy != jobs[winner].ID || c.Version != v.Cluster.Version+1 {
		t.Errorf("cluster is %s, held by %s, version %d", c.State, c.HeldBy, c.Version)
	}
}

// staleReads are clusters as no row is, each by one column; from is the real
// row.
var staleReads = []struct {
	name   string
	from   cks.State
	stale  func(*cks.Cluster)
	events []cks.Event
}{
	{"other version", cks.Running, func(c *cks.Cluster) { c.Version-- }, []cks.Event{cks.ScaleUpRequested}},
	{"other state", cks.Running, func(c *cks.Cluster) { c.State = cks.Alert }, []cks.Event{cks.ScaleUpRequested}},
	{"held", cks.Scaling, func(c *cks.Cluster) {}, []cks.Event{cks.OperationSucceeded, cks.ScaleUpRequested}},
	{"other cluster", cks.Running, func(c *cks.Cluster) { c.ID = "00000000-0000-0000-0000-000000000000" },
		[]cks.Event{cks.ScaleUpRequested}},
}

// A cluster is held only by who read it as it is (cks.md §3.6, §4).
//
// Keeps: §3.6/validated, §4/conditional.
// Keeps: §5.1/5, #14609.
// Keeps: seed/as-validated.
func TestHoldNeedsTheRowAsItWasRead(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	for _, tt := range staleReads {
		t.Run(tt.name, func(t *testing.T) {
			v := storetest.Fixture(t, st, storetest.Spec{State: tt.from, Workers: 1})
			j := must[cks.Job](t)(st.AddJob(t.Context(), loose(v)))
			c := v.Cluster
			tt.stale(&c)
			wantCode(t, st.HoldCluster(t.Context(), c, j.ID, tt.events...), cks.Conflict)
			if got := cluster(t, st, v); got.HeldBy != v.Cluster.HeldBy || got.Version != v.Cluster.Version {
				t.Errorf("the cluster changed: %+v", got)
			}
		})
	}
}

// A cluster is moved only by who read it as it is (cks.md §4).
//
// Keeps: §4/conditional.
// Keeps: §6/conditional.
// Keeps: A48.
func TestMoveNeedsTheRowAsItWasRead(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	for _, tt := range staleReads {
		t.Run(tt.name, func(t *testing.T) {
			v := storetest.Fixture(t, st, storetest.Spec{State: tt.from, Workers: 1})
			c := v.Cluster
			tt.stale(&c)
			event := map[cks.State]cks.Event{cks.Running: cks.FaultsDetected, cks.Alert: cks.OperationSucceeded,
				cks.Scaling: cks.OperationSucceeded}[c.State]
			if moved := must[bool](t)(st.MoveCluster(t.Context(), c, event)); moved {
				t.Error("the cluster moved")
			}
			if got := cluster(t, st, v); got.State != v.Cluster.State || got.Version != v.Cluster.Version {
				t.Errorf("the cluster changed: %+v", got)
			}
		})
	}
}

// What was read is moved, but never by an event that its state does not take.
//
// Keeps: §4/refused.
func TestScannerMovesWhatItRead(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	if moved := must[bool](t)(st.MoveCluster(t.Context(), v.Cluster, cks.FaultsDetected)); !moved {
		t.Fatal("the cluster did not move")
	}
	if c := cluster(t, st, v); c.State != cks.Alert || c.Version != v.Cluster.Version+1 {
		t.Errorf("cluster is %s, version %d", c.State, c.Version)
	}
	_, err := st.MoveCluster(t.Context(), v.Cluster, cks.CreateFailed)
	wantCode(t, err, cks.Conflict)
	wantCode(t, st.HoldCluster(t.Context(), v.Cluster, "", cks.CreateFailed), cks.Conflict)
}

// Whatever a job records about its cluster, it must hold the cluster.
func TestOnlyTheHolderRecords(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, holder := scaling(t, st, storetest.Spec{Workers: 2})
	chosen := choose(t, st, v, holder, 2)
	leaving := workers(v)[0]
	ok(t, st.ChooseLeaving(t.Context(), holder, []string{leaving.ID}))
	before := must[cks.ClusterView](t)(st.View(t.Context(), v.Cluster.ID))

	foreign := holder // as if the hold had been taken by another
	foreign.ID = must[cks.Job](t)(st.AddJob(t.Context(), loose(v))).ID
	foreign.Attempt = 0
	elsewhere := holder
	elsewhere.ClusterID = storetest.Fixture(t, st, storetest.Spec{Workers: 1}).Cluster.ID
	nowhere := holder
	nowhere.ClusterID = ""
	superseded := holder // by another claim
	superseded.Attempt--
	ctx := t.Context()
	for name, record := range map[string]func(j cks.Job) error{
		"FreeCluster":       func(j cks.Job) error { return st.FreeCluster(ctx, j, cks.OperationSucceeded) },
		"RecordOfferings":   func(j cks.Job) error { return st.RecordOfferings(ctx, j, nil, v.Cluster.DefaultOffering) },
		"RecordAutoscaling": func(j cks.Job) error { return st.RecordAutoscaling(ctx, j, cks.Autoscaling{}) },
		"ChooseNew":         func(j cks.Job) error { _, err := st.ChooseNew(ctx, j, wantNode(v, 1)); return err },
		"ChooseLeaving":     func(j cks.Job) error { return st.ChooseLeaving(ctx, j, []string{workers(v)[1].ID}) },
		"NodeJoined":        func(j cks.Job) error { return st.NodeJoined(ctx, j, chosen[0].ID, true) },
		"NodeRemoved":       func(j cks.Job) error { return st.NodeRemoved(ctx, j, leaving.ID) },
		"NodeDoomed":        func(j cks.Job) error { return st.NodeDoomed(ctx, j, chosen[1].ID) },
		"KeepNode":          func(j cks.Job) error { return st.KeepNode(ctx, j, leaving.ID) },
		"SetOfferingOf":     func(j cks.Job) error { return st.SetOfferingOf(ctx, j, leaving.ID, v.Cluster.DefaultOffering) },
	} {
		for _, j := range []cks.Job{foreign, elsewhere, nowhere} {
			if err := record(j); !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("%s: %v, want ErrNotHeld", name, err)
			}
		}
		if err := record(superseded); !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("%s: %v, want ErrLeaseLost", name, err)
		}
	}
	diff(t, before, must[cks.ClusterView](t)(st.View(ctx, v.Cluster.ID)))
}

func TestFreeingEndsTheHoldOnce(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Workers: 1})
	world := st.Subscribe(t.Context(), store.TopicWorld)
	ids := must[[]string](t)(st.ClustersToScan(t.Context(), 10, time.Hour))
	if len(ids) != 1 {
		t.Fatalf("%d clusters to scan, want 1", len(ids))
	}
	errs := together(4, func(int) error { return st.FreeCluster(t.Context(), j, cks.OperationFailed) })
	freed := 0
	for _, err := range errs {
		if err == nil {
			freed++
		} else {
			wantErr(t, err, store.ErrNotHeld)
		}
	}
	if freed != 1 {
		t.Errorf("the cluster was freed %d times", freed)
	}
	if c := cluster(t, st, v); c.State != cks.Alert || c.HeldBy != "" || c.Version != v.Cluster.Version+1 {
		t.Errorf("cluster is %s, held by %q, version %d", c.State, c.HeldBy, c.Version)
	}
	if ids = must[[]string](t)(st.ClustersToScan(t.Context(), 10, time.Hour)); len(ids) != 1 {
		t.Error("the freed cluster is not due for a scan")
	}
	eventually(t, world, v.Cluster.ID)
}

// A hold ends only by an event that the state takes (cks.md §4).
//
// Keeps: §4/refused.
func TestFreeingFollowsTheLifecycle(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Workers: 1})
	wantCode(t, st.FreeCluster(t.Context(), j, cks.CreateFailed), cks.Conflict)
	if c := cluster(t, st, v); c.HeldBy != j.ID {
		t.Error("the hold is lost")
	}
	ok(t, st.FreeCluster(t.Context(), j, cks.OperationFailed, cks.OperationSucceeded))
	if c := cluster(t, st, v); c.State != cks.Running {
		t.Errorf("cluster is %s after two events", c.State)
	}
}

// A cluster that becomes Destroyed is removed with its VMs (cks.md §4).
//
// Keeps: §4/fires-delete.
func TestDestroyedClusterIsRemovedWithItsVMs(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{State: cks.Destroying, Etcd: 1, Workers: 2})
	other := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	j := must[cks.Job](t)(st.Job(t.Context(), v.Cluster.HeldBy))
	ok(t, st.FreeCluster(t.Context(), j, cks.OperationSucceeded))

	got := must[cks.ClusterView](t)(st.View(t.Context(), v.Cluster.ID))
	if !got.Cluster.Removed || got.Cluster.State != cks.Destroyed || len(got.VMs) != 0 {
		t.Errorf("cluster is %s, removed %t, with %d VMs", got.Cluster.State, got.Cluster.Removed, len(got.VMs))
	}
	for _, m := range v.VMs {
		if m := vm(t, st, m.ID); !m.Removed || m.State != cks.VMExpunging {
			t.Errorf("VM is %s, removed %t", m.State, m.Removed)
		}
	}
	list, total, err := st.Views(t.Context(), cks.ClusterFilter{}, "")
	ok(t, err)
	if total != 1 || list[0].Cluster.ID != other.Cluster.ID || len(list[0].VMs) != 2 {
		t.Errorf("the list shows %d clusters", total)
	}
}

// Nothing waits for a job that has ended: what it had chosen to make is left to
// the scanner, what it had chosen to remove stays, and what joined is a member.
func TestEndOfAHoldLeavesNoVMHalfWay(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Workers: 2})
	_, other := scaling(t, st, storetest.Spec{Workers: 1})
	fresh, apart := choose(t, st, v, j, 2), choose(t, st, v, other, 1)
	ok(t, st.NodeJoined(t.Context(), j, fresh[0].ID, true))
	ok(t, st.ChooseLeaving(t.Context(), j, []string{workers(v)[1].ID}))
	ok(t, st.FreeCluster(t.Context(), j, cks.OperationFailed))
	for id, want := range map[string]cks.Phase{
		fresh[0].ID: cks.Member, fresh[1].ID: cks.Doomed, workers(v)[1].ID: cks.Member, apart[0].ID: cks.Chosen,
	} {
		if got := vm(t, st, id).Phase; got != want {
			t.Errorf("a VM is %s, want %s", got, want)
		}
	}
}

// The scanners of many replicas share the clusters; none is scanned twice.
//
// Keeps: §6/shared.
func TestScannersShareTheClusters(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	want := map[string]bool{}
	for range 20 {
		want[storetest.Fixture(t, st, storetest.Spec{Workers: 1}).Cluster.ID] = true
	}
	gone := storetest.Fixture(t, st, storetest.Spec{State: cks.Destroying})
	ok(t, st.FreeCluster(t.Context(), must[cks.Job](t)(st.Job(t.Context(), gone.Cluster.HeldBy)), cks.OperationSucceeded))

	claims := make([][]string, 4)
	for _, err := range together(len(claims), func(i int) (err error) {
		for {
			ids, err := st.ClustersToScan(t.Context(), 3, time.Hour)
			if err != nil || len(ids) == 0 {
				return err
			}
			if len(ids) > 3 {
				return errors.New("more clusters than asked for")
			}
			claims[i] = append(claims[i], ids...)
		}
	}) {
		ok(t, err)
	}
	all := slices.Concat(claims...)
	for _, id := range all {
		if !want[id] {
			t.Errorf("cluster %s was claimed twice, or is removed", id)
		}
		delete(want, id)
	}
	if len(want) > 0 {
		t.Errorf("%d clusters were not claimed", len(want))
	}
	if v := cluster(t, st, cks.ClusterView{Cluster: cks.Cluster{ID: all[0]}}).Version; v != 1 {
		t.Errorf("scanning changed the version to %d", v)
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Workers: 1})
	medium := medium(t, st)
	ok(t, st.RecordOfferings(t.Context(), j, map[cks.Role]string{cks.Worker: medium.ID}, ""))
	c := cluster(t, st, v)
	if c.OfferingFor(cks.Worker) != medium.ID || c.OfferingFor(cks.Control) != v.Cluster.DefaultOffering {
		t.Errorf("offerings are %v, default %s", c.Offerings, c.DefaultOffering)
	}
	ok(t, st.RecordOfferings(t.Context(), j, map[cks.Role]string{cks.Etcd: medium.ID, cks.Control: medium.ID}, medium.ID))
	if c = cluster(t, st, v); c.DefaultOffering != medium.ID || len(c.Offerings) != 3 {
		t.Errorf("offerings are %v, default %s", c.Offerings, c.DefaultOffering)
	}
	for _, a := range []cks.Autoscaling{{Enabled: true, Min: 1, Max: 5}, {Enabled: true, Min: 2, Max: 3}, {}} {
		ok(t, st.RecordAutoscaling(t.Context(), j, a))
		if c = cluster(t, st, v); c.Autoscaling != a {
			t.Errorf("autoscaling is %+v, want %+v", c.Autoscaling, a)
		}
	}
	if c.Version != v.Cluster.Version+5 {
		t.Errorf("version went from %d to %d in five changes", v.Cluster.Version, c.Version)
	}
}

func TestSizeIsRecordedOnlyForTheRowAsRead(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{State: cks.Created, Workers: 1})
	ok(t, st.RecordSize(t.Context(), v.Cluster, 3))
	wantCode(t, st.RecordSize(t.Context(), v.Cluster, 4), cks.Conflict)
	if c := cluster(t, st, v); c.Size != 3 {
		t.Errorf("size is %d", c.Size)
	}
}

// Jobs are locked before clusters, also where the job's row is only written at
// the end: else this would be a deadlock.
func TestJobIsLockedBeforeItsCluster(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Workers: 1})
	chosen := choose(t, st, v, j, 1)
	late := make(chan error, 1)
	ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
		if err := q.FreeCluster(t.Context(), j, cks.OperationSucceeded); err != nil {
			return err
		}
		go func() {
			late <- st.InTx(t.Context(), func(q *store.Queries) error {
				if err := q.StepDone(t.Context(), j, "late", cks.Notes{}); err != nil {
					return err
				}
				return q.NodeJoined(t.Context(), j, chosen[0].ID, true)
			})
		}()
		waitBlocked(t, st, 1)
		return q.FinishJob(t.Context(), j, cks.JobResult{Success: true})
	}))
	wantErr(t, <-late, store.ErrLeaseLost)
}

// A cluster is locked before its VMs, also where it is only written after them.
func TestClusterIsLockedBeforeItsVMs(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Workers: 1})
	chosen := choose(t, st, v, j, 1)
	tx, err := st.Pool().Begin(t.Context())
	ok(t, err)
	defer tx.Rollback(context.Background()) //nolint:errcheck // ends the test
	_, err = tx.Exec(t.Context(), `SELECT FROM clusters WHERE id = $1 FOR UPDATE`, v.Cluster.ID)
	ok(t, err)
	joined := make(chan error, 1)
	go func() { joined <- st.NodeJoined(t.Context(), j, chosen[0].ID, true) }()
	waitBlocked(t, st, 1)
	_, err = tx.Exec(t.Context(), `SELECT FROM vms WHERE id = $1 FOR UPDATE NOWAIT`, chosen[0].ID)
	ok(t, err)
	ok(t, tx.Rollback(t.Context()))
	ok(t, <-joined)
}

func TestLiveClusters(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	a := storetest.Fixture(t, st, storetest.Spec{})
	storetest.Fixture(t, st, storetest.Spec{State: cks.Destroyed})
	b := storetest.Fixture(t, st, storetest.Spec{State: cks.Scaling})
	diff(t, []string{a.Cluster.ID, b.Cluster.ID}, must[[]string](t)(st.LiveClusters(t.Context())))
}
