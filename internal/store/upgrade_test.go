package store_test

import (
	"errors"
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// The job that holds a cluster records the versions of its nodes and its own;
// no other does, and it only for nodes of the cluster.
//
// Keeps: §2.7/after-upgrade.
func TestOnlyTheHolderRecordsAnUpgrade(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	v, j := scaling(t, st, storetest.Spec{Workers: 2})
	n, theirs := scaling(t, st, storetest.Spec{Workers: 1})
	newer := must[cks.KubernetesVersion](t)(st.AddVersion(ctx, cks.KubernetesVersion{Name: "v1.34.1", Version: "1.34.1", ISOName: "iso", MinCores: 2, MinMemoryMB: 2048, Enabled: true}))
	w := workers(v)[0]
	ok(t, st.NodeUpgraded(ctx, j, w.ID, "v1.34.1"))
	ok(t, st.NodeUpgraded(ctx, j, w.ID, "v1.34.1"))
	ok(t, st.RecordVersion(ctx, j, newer.ID))
	view := must[cks.ClusterView](t)(st.View(ctx, v.Cluster.ID))
	if got := workers(view); got[0].NodeVersion != "v1.34.1" || got[1].NodeVersion != "1.33.1" || view.Version.Version != "1.34.1" {
		t.Errorf("%+v at %s", got, view.Version.Version)
	}
	wantCode(t, st.NodeUpgraded(ctx, j, workers(n)[0].ID, "v1.34.1"), cks.NotFound)
	late := j
	late.Attempt--
	stranger := theirs
	stranger.ClusterID = v.Cluster.ID
	for want, who := range map[error]cks.Job{store.ErrLeaseLost: late, store.ErrNotHeld: stranger} {
		for _, err := range []error{st.NodeUpgraded(ctx, who, w.ID, "v1.35.0"), st.RecordVersion(ctx, who, newer.ID)} {
			if !errors.Is(err, want) {
				t.Errorf("error is %v, want %v", err, want)
			}
		}
	}
}

// What was seen of a node's version is recorded only while nobody holds the
// cluster and nothing has changed since.
//
// Keeps: §6/conditional.
func TestObservedVersionsAreNotStale(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{State: cks.Alert, Workers: 1})
	w := workers(v)[0]
	version := func() string { return workers(must[cks.ClusterView](t)(st.View(ctx, v.Cluster.ID)))[0].NodeVersion }
	stale := v.Cluster
	stale.Version--
	ok(t, st.ObserveVersion(ctx, stale, w.ID, "v1.34.1"))
	if got := version(); got != "1.33.1" {
		t.Errorf("a stale look makes it %s", got)
	}
	ok(t, st.ObserveVersion(ctx, v.Cluster, w.ID, "v1.34.1"))
	if got := version(); got != "v1.34.1" {
		t.Errorf("it is %s", got)
	}
	j := must[cks.Job](t)(st.AddJob(ctx, newJob(v)))
	ok(t, st.HoldCluster(ctx, v.Cluster, j.ID, cks.ScaleUpRequested))
	held := must[cks.ClusterView](t)(st.View(ctx, v.Cluster.ID)).Cluster
	ok(t, st.ObserveVersion(ctx, held, w.ID, "v1.35.0"))
	if got := version(); got != "v1.34.1" {
		t.Errorf("while a job has the cluster it becomes %s", got)
	}
}

// What a VM is made with is what is read of it: that its owner upgrades it, too.
//
// Keeps: §8.2/manual-upgrade.
func TestManualUpgradeIsKept(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	for name, manual := range map[string]bool{"by-hand": true, "by-us": false} {
		vm := must[cks.VM](t)(st.AddVM(t.Context(), cks.VM{ClusterID: v.Cluster.ID, Name: name, Role: cks.Worker, External: true, Manual: manual,
			OfferingID: v.Cluster.DefaultOffering, State: cks.VMRunning}))
		if vm.Manual != manual || vm.Upgradable() == manual {
			t.Errorf("%s: %+v", name, vm)
		}
	}
}
