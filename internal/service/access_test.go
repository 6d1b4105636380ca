package service

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

const denied = "Caller does not have permission to operate with provided resource."

// spec/cks.md §7 E12: access is checked at submission.
//
// Keeps: §3.1/5.
// Keeps: §1.10/id-access.
// Keeps: E12.
func TestNobodyTouchesWhatBelongsToOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(3))
	other, admin := s.account("other", false), s.account("root", true)
	id, vmID, otherVMID := s.view.Cluster.ID, s.workers()[0].ID, s.workers()[1].ID
	for name, call := range map[string]func(caller cks.Account) error{
		"scale": func(a cks.Account) error {
			_, err := s.Scale(t.Context(), a, cks.ScaleRequest{Cluster: id, Size: new(int64(11))})
			return err
		},
		"scale by number": func(a cks.Account) error {
			_, err := s.Scale(t.Context(), a, cks.ScaleRequest{Cluster: number64(s.view.Cluster.Seq), Size: new(int64(11))})
			return err
		},
		"list by id": func(a cks.Account) error {
			_, _, err := s.Clusters(t.Context(), a, cks.ClusterFilter{ID: id})
			return err
		},
		"list VM": func(a cks.Account) error {
			_, _, err := s.VMs(t.Context(), a, cks.VMFilter{ID: vmID})
			return err
		},
		"list VMs": func(a cks.Account) error {
			_, _, err := s.VMs(t.Context(), a, cks.VMFilter{IDs: []string{vmID}})
			return err
		},
		"list VMs of a cluster": func(a cks.Account) error {
			_, _, err := s.VMs(t.Context(), a, cks.VMFilter{Cluster: id})
			return err
		},
		"start VM": func(a cks.Account) error {
			_, err := s.StartVM(t.Context(), a, cks.VMRequest{VM: vmID})
			return err
		},
		"stop VM": func(a cks.Account) error {
			_, err := s.StopVM(t.Context(), a, cks.VMRequest{VM: otherVMID})
			return err
		},
		"list VMs of an account": func(a cks.Account) error {
			_, _, err := s.VMs(t.Context(), a, cks.VMFilter{Account: s.owner.Name})
			return err
		},
		"list clusters of an account": func(a cks.Account) error {
			_, _, err := s.Clusters(t.Context(), a, cks.ClusterFilter{Account: s.owner.Name})
			return err
		},
		"list jobs of an account": func(a cks.Account) error {
			_, _, err := s.Jobs(t.Context(), a, cks.JobFilter{Account: s.owner.Name})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			coded(t, call(other), cks.Denied, denied)
			for _, a := range []cks.Account{s.owner, admin} {
				if err := call(a); err != nil {
					t.Errorf("account %s: %v", a.Name, err)
				}
			}
		})
	}
	_, err := s.DeleteCluster(t.Context(), other, id, "")
	coded(t, err, cks.Denied, denied)
	if job := must(s.DeleteCluster(t.Context(), admin, id, ""))(t); job.Status != cks.JobPending || job.Account.ID != admin.ID {
		t.Errorf("job is %+v", job)
	}
}

// E12: nothing else about the request is told to who may not use the cluster.
//
// Keeps: §3.1/5.
func TestAccessIsCheckedBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	other := s.account("other", false)
	nobody := uuid.NewString()
	_, err := s.Scale(t.Context(), other, cks.ScaleRequest{Cluster: s.view.Cluster.ID, NodeIDs: []string{nobody}, OfferingID: &nobody})
	coded(t, err, cks.Denied, denied)
	if live := s.live(); len(live) > 0 {
		t.Errorf("live jobs: %+v", live)
	}
}

// spec/cks.md §2.3.
//
// Keeps: §2.3/jobid, §2.3/access, §2.3/access-admin.
func TestJobsAreSeenByTheirAccount(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	other, admin := s.account("other", false), s.account("root", true)
	job := s.scale(cks.ScaleRequest{Size: new(int64(3))})

	for _, a := range []cks.Account{s.owner, admin} {
		if seen := must(s.Job(t.Context(), a, job.ID))(t); seen.ID != job.ID {
			t.Errorf("%s sees job %s", a.Name, seen.ID)
		}
	}
	_, err := s.Job(t.Context(), other, job.ID)
	coded(t, err, cks.Denied, fmt.Sprintf("Account other is not authorized to see job id=%d", job.Seq))
	for _, ref := range []string{uuid.NewString(), "4711", "x"} {
		_, err := s.Job(t.Context(), admin, ref)
		coded(t, err, cks.UnknownID, unknownText("jobid", ref))
	}
}

// spec/cks.md §2.6: without listall and id, an administrator sees his own.
//
// Keeps: §2.5/account, §2.5/listall, §2.6/user, §2.6/admin-own, §2.6/admin-listall, §2.6/admin-id.
// Keeps: §2.6/service-errors, §2.8/listall.
func TestListsShowWhatTheCallerMayAndWantsToSee(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	other, admin := s.account("other", false), s.account("root", true)
	s.scale(cks.ScaleRequest{Size: new(int64(3))})
	own := s.owner.Name
	type filter struct {
		account string
		all     bool
	}
	for _, c := range []struct {
		caller cks.Account
		filter filter
		sees   bool
	}{
		{s.owner, filter{}, true},
		{s.owner, filter{all: true}, true},
		{s.owner, filter{account: own}, true},
		{other, filter{}, false},
		{other, filter{all: true}, false},
		{other, filter{account: "other"}, false},
		{admin, filter{}, false},
		{admin, filter{all: true}, true},
		{admin, filter{account: own}, true},
		{admin, filter{account: own, all: true}, true},
		{admin, filter{account: "other"}, false},
	} {
		t.Run(fmt.Sprintf("%s %+v", c.caller.Name, c.filter), func(t *testing.T) {
			want := map[bool]int{true: 1}[c.sees]
			_, n, err := s.Clusters(t.Context(), c.caller, cks.ClusterFilter{Account: c.filter.account, ListAll: c.filter.all})
			if err != nil || n != want {
				t.Errorf("%d clusters, %v; want %d", n, err, want)
			}
			_, n, err = s.Jobs(t.Context(), c.caller, cks.JobFilter{Account: c.filter.account, ListAll: c.filter.all})
			if err != nil || n != want {
				t.Errorf("%d jobs, %v; want %d", n, err, want)
			}
			_, n, err = s.VMs(t.Context(), c.caller, cks.VMFilter{Account: c.filter.account, ListAll: c.filter.all})
			if err != nil || n != 3*want {
				t.Errorf("%d VMs, %v; want %d", n, err, 3*want)
			}
		})
	}
	const nobody = "Unable to find account by name nobody"
	_, _, err := s.Clusters(t.Context(), admin, cks.ClusterFilter{Account: "nobody"})
	coded(t, err, cks.Failed, nobody)
	_, _, err = s.Jobs(t.Context(), admin, cks.JobFilter{Account: "nobody"})
	coded(t, err, cks.Invalid, nobody)
	if views, _, err := s.Clusters(t.Context(), admin, cks.ClusterFilter{ID: s.view.Cluster.ID}); err != nil || len(views) != 1 {
		t.Errorf("by id: %d clusters, %v", len(views), err)
	}
	for want, f := range map[int]cks.VMFilter{
		1: {ID: s.workers()[0].ID}, 2: {IDs: []string{s.workers()[0].ID, s.workers()[1].ID}}, 3: {Cluster: s.view.Cluster.ID},
	} {
		if _, n, err := s.VMs(t.Context(), admin, f); err != nil || n != want {
			t.Errorf("by %+v: %d VMs, %v; want %d", f, n, err, want)
		}
	}
}

// A06, spec/cks.md §2.6.
//
// Keeps: §2.6/clustertype.
func TestListFiltersAreChecked(t *testing.T) {
	t.Parallel()
	s := newScene(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2})
	nobody := uuid.NewString()
	for _, id := range []string{nobody, "not-a-uuid"} {
		_, _, err := s.Clusters(t.Context(), s.owner, cks.ClusterFilter{ID: id})
		coded(t, err, cks.UnknownID, unknownText("id", id))
	}
	for param, f := range map[string]cks.VMFilter{
		"id": {ID: nobody}, "ids": {IDs: []string{s.workers()[0].ID, nobody}},
		"kubernetesclusterid": {Cluster: nobody}, "zoneid": {ZoneID: nobody},
	} {
		_, _, err := s.VMs(t.Context(), s.owner, f)
		coded(t, err, cks.UnknownID, unknownText(param, nobody))
	}
	_, _, err := s.Clusters(t.Context(), s.owner, cks.ClusterFilter{Type: "cloudmanaged"})
	coded(t, err, cks.Failed, "Unable to resolve cluster type cloudmanaged to a supported value (CloudManaged, ExternalManaged)")
	for kind, want := range map[string]int{"CloudManaged": 1, "ExternalManaged": 0} {
		if _, n, err := s.Clusters(t.Context(), s.owner, cks.ClusterFilter{Type: kind}); err != nil || n != want {
			t.Errorf("%s: %d clusters, %v", kind, n, err)
		}
	}
	if _, n, err := s.VMs(t.Context(), s.owner, cks.VMFilter{IDs: []string{s.workers()[0].ID, s.workers()[0].ID, s.workers()[1].ID}}); err != nil || n != 2 {
		t.Errorf("%d VMs, %v", n, err)
	}
	if _, n, err := s.VMs(t.Context(), s.owner, cks.VMFilter{Cluster: s.view.Cluster.ID, ZoneID: s.view.Zone.ID}); err != nil || n != 3 {
		t.Errorf("%d VMs, %v", n, err)
	}
}
