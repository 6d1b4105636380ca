package service

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"ckscale/internal/cks"
)

func newVersion() cks.VersionRequest {
	return cks.VersionRequest{Version: "1.35.0", MinCores: 2, MinMemoryMB: 2048}
}

// A version is added, disabled and deleted, each with its event; one that a
// cluster has is not deleted, and its name is not given twice while it is there.
//
// Keeps: clients/versions.
func TestVersionsComeAndGo(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	ctx, admin := t.Context(), s.account("root", true)
	add := func() (cks.KubernetesVersion, error) { return s.AddVersion(ctx, admin, newVersion()) }
	v := must(add())(t)
	_, err := add()
	coded(t, err, cks.Invalid, "There is a Kubernetes version with the name v1.35.0 already")
	if v = must(s.UpdateVersion(ctx, admin, number64(2), "Disabled"))(t); v.Enabled {
		t.Errorf("version is %+v", v)
	}
	req := s.createRequest("fresh")
	req.VersionID = v.ID
	_, _, err = s.CreateCluster(ctx, s.owner, req)
	coded(t, err, cks.Invalid, "Kubernetes version ID: "+v.ID+" is in Disabled state")
	must(s.UpdateVersion(ctx, admin, v.ID, "Enabled"))(t)
	_, err = s.UpdateVersion(ctx, admin, v.ID, "enabled")
	coded(t, err, cks.Invalid, "Invalid value for state parameter: enabled")

	job := must(s.DeleteVersion(ctx, admin, s.view.Version.ID, ""))(t)
	if job.Status != cks.JobFailed || job.ErrorText != "Unable to delete Kubernetes version ID: "+s.view.Version.ID+". Existing clusters currently using the version." {
		t.Errorf("job is %+v", job)
	}
	job = must(s.DeleteVersion(ctx, admin, v.ID, ""))(t)
	if job.Status != cks.JobSucceeded || !job.Result.Success {
		t.Errorf("job is %+v", job)
	}
	for _, id := range []string{v.ID, uuid.NewString()} {
		_, err = s.DeleteVersion(ctx, admin, id, "")
		coded(t, err, cks.UnknownID, unknownText("id", id))
		_, err = s.UpdateVersion(ctx, admin, id, "Enabled")
		coded(t, err, cks.UnknownID, unknownText("id", id))
	}
	req.VersionID = v.ID
	_, _, err = s.CreateCluster(ctx, s.owner, req)
	coded(t, err, cks.UnknownID, unknownText("kubernetesversionid", v.ID))
	if list, total, err := s.Versions(ctx, cks.CatalogFilter{}); err != nil || total != 1 || list[0].ID != s.view.Version.ID {
		t.Errorf("%+v, %d, %v", list, total, err)
	}
	must(add())(t) // its name is free again

	for kind, want := range map[cks.EventType]int{cks.EventVersionAdd: 2, cks.EventVersionUpdate: 2, cks.EventVersionDelete: 5} {
		if events, total, err := s.Events(ctx, admin, cks.EventFilter{Type: string(kind)}); err != nil || total != want {
			t.Errorf("%s: %+v, %v", kind, events, err)
		}
		if _, total, err := s.Events(ctx, admin, cks.EventFilter{Type: string(kind), Keyword: v.ID}); err != nil || total == 0 {
			t.Errorf("%s: no event names the version: %v", kind, err)
		}
	}
}

// Of a cluster that gets a version and its deletion, at once, one is refused.
//
// Keeps: clients/versions.
func TestVersionIsNotDeletedUnderACluster(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	admin := s.account("root", true)
	for range 10 {
		v := must(s.AddVersion(t.Context(), admin, newVersion()))(t)
		var wg sync.WaitGroup
		var created, deleted bool
		wg.Go(func() {
			req := s.createRequest("fresh")
			req.VersionID = v.ID
			_, _, err := s.CreateCluster(t.Context(), s.owner, req)
			created = err == nil
		})
		wg.Go(func() {
			job, err := s.DeleteVersion(t.Context(), admin, v.ID, "")
			deleted = err == nil && job.Status == cks.JobSucceeded
		})
		wg.Wait()
		if created == deleted {
			t.Fatalf("created %t, deleted %t", created, deleted)
		}
		if created {
			return // the name is taken now
		}
	}
}

// Of an upgrade to a version and its deletion, at once, one is refused: a version
// that a cluster is being upgraded to is as good as the cluster's.
//
// Keeps: clients/versions.
func TestVersionIsNotDeletedUnderAnUpgrade(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	admin := s.account("root", true)
	for range 10 {
		v := s.version("1.34.1")
		var wg sync.WaitGroup
		var upgraded, deleted bool
		wg.Go(func() {
			job, err := s.UpgradeCluster(t.Context(), s.owner, cks.UpgradeRequest{Cluster: s.view.Cluster.ID, Version: v.ID})
			upgraded = err == nil && job.Status == cks.JobPending
		})
		wg.Go(func() {
			job, err := s.DeleteVersion(t.Context(), admin, v.ID, "")
			deleted = err == nil && job.Status == cks.JobSucceeded
		})
		wg.Wait()
		if upgraded == deleted {
			t.Fatalf("upgraded %t, deleted %t", upgraded, deleted)
		}
		if upgraded {
			s.refused(must(s.DeleteVersion(t.Context(), admin, v.ID, ""))(t),
				"Unable to delete Kubernetes version ID: "+v.ID+". Existing clusters currently using the version.")
			return
		}
	}
}
