package service

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// told lists the events that caller sees, the newest first, a line each.
func (s scene) told(caller cks.Account, f cks.EventFilter) (lines []string) {
	s.Helper()
	events, n, err := s.Events(s.Context(), caller, f)
	if must(events, err)(s); n != len(events) {
		s.Errorf("%d events of %d", len(events), n)
	}
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("%s %s %s by %s: %s", e.Type, e.Level, e.State, e.Username, e.Description))
	}
	return lines
}

func differ(t testing.TB, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// An administrator's request on somebody's cluster, one that is refused and one
// that changes nothing are told to the cluster's owner, with who asked; a
// request that names nothing leaves no event.
//
// Keeps: §1.10/events, §1.10/events-owner, §1.10/events-refusal.
func TestRequestsAreTold(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	root := s.account("root", true)
	id := s.view.Cluster.ID
	ask := func(size int64) {
		_, err := s.Scale(t.Context(), root, cks.ScaleRequest{Cluster: id, Size: &size})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int64{2, 0, 3} {
		ask(size)
	}
	_, err := s.Scale(t.Context(), root, cks.ScaleRequest{Cluster: uuid.NewString(), Size: new(int64(3))})
	coded(t, err, cks.UnknownID, "")
	_, err = s.Scale(t.Context(), root, cks.ScaleRequest{Cluster: id, Size: new(int64(3)), JobID: "x"})
	coded(t, err, cks.Parameter, "")
	const scale = "KUBERNETES.CLUSTER.SCALE "
	scheduled := scale + "INFO Scheduled by root: Scaling Kubernetes cluster ID: " + id
	differ(t, []string{
		"KUBERNETES.CLUSTER.STATE INFO Completed by root: Kubernetes cluster test moved from Running to Scaling: ScaleUpRequested",
		scheduled,
		scale + "ERROR Completed by root: Error while scaling Kubernetes cluster. Kubernetes cluster : test cannot be scaled for size, 0",
		scheduled,
		scale + "INFO Completed by root: Successfully completed scaling Kubernetes cluster",
		scheduled,
		"KUBERNETES.CLUSTER.CREATE INFO Created by alice: Successfully created entity for creating Kubernetes cluster",
	}, s.told(s.owner, cks.EventFilter{}))
	differ(t, []string(nil), s.told(root, cks.EventFilter{}))
}

// What is refused by an error leaves an event too: somebody else's cluster, VM
// or job, and a create that a rule forbids. It is told to who asked, and to
// administrators.
//
// Keeps: §1.10/events-refusal.
func TestRefusalsAreTold(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	bob, root := s.account("bob", false), s.account("root", true)
	c, job := s.view.Cluster, s.scale(cks.ScaleRequest{Size: new(int64(2))})
	before := len(s.told(s.owner, cks.EventFilter{}))
	for _, refused := range []error{
		func() error { _, err := s.Scale(t.Context(), bob, cks.ScaleRequest{Cluster: c.ID}); return err }(),
		func() error { _, err := s.DeleteCluster(t.Context(), bob, number64(c.Seq), ""); return err }(),
		func() error { _, err := s.StartVM(t.Context(), bob, cks.VMRequest{VM: s.workers()[0].ID}); return err }(),
		func() error { _, err := s.StopVM(t.Context(), bob, cks.VMRequest{VM: s.workers()[0].ID}); return err }(),
		s.CancelJob(t.Context(), bob, job.ID),
	} {
		coded(t, refused, cks.Denied, "")
	}
	_, _, err := s.CreateCluster(t.Context(), bob, cks.CreateRequest{Name: "b", ZoneID: c.ZoneID, VersionID: c.VersionID, Size: new(int64(11))})
	coded(t, err, cks.CodeOf(err), "")
	_, _, reading := s.Clusters(t.Context(), bob, cks.ClusterFilter{ID: c.ID}) // only reads: no event
	coded(t, reading, cks.Denied, "")
	differ(t, []string{
		"KUBERNETES.CLUSTER.CREATE ERROR Completed by bob: Error while creating Kubernetes cluster. " + err.Error(),
		fmt.Sprintf("JOB.CANCEL ERROR Completed by bob: Error while cancelling job. Account bob is not authorized to see job id=%d", job.Seq),
		"VM.STOP ERROR Completed by bob: Error while stopping Instance. " + denied,
		"VM.START ERROR Completed by bob: Error while starting Instance. " + denied,
		"KUBERNETES.CLUSTER.DELETE ERROR Completed by bob: Error while deleting Kubernetes cluster. " + denied,
		"KUBERNETES.CLUSTER.SCALE ERROR Completed by bob: Error while scaling Kubernetes cluster. " + denied,
	}, s.told(bob, cks.EventFilter{}))
	events, _, err := s.Events(t.Context(), bob, cks.EventFilter{ResourceID: c.ID})
	for _, e := range must(events, err)(t) {
		if e.ResourceName != "" || e.ResourceType != "KubernetesCluster" {
			t.Errorf("bob is told of %s %q", e.ResourceType, e.ResourceName)
		}
	}
	if len(events) != 2 {
		t.Errorf("%d events show the id that he sent", len(events))
	}
	if n := len(s.told(s.owner, cks.EventFilter{})); n != before {
		t.Errorf("alice is told %d events more", n-before)
	}
	if n := len(s.told(root, cks.EventFilter{ListAll: true, Level: "error"})); n != 6 {
		t.Errorf("an administrator is told %d", n)
	}
}

// A refusal that cannot be recorded is not answered as one.
func TestRefusalIsRecordedBeforeItIsAnswered(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	nobody := cks.Account{ID: uuid.NewString(), Name: "nobody"} // no such account
	_, err := s.Scale(t.Context(), nobody, cks.ScaleRequest{Cluster: s.view.Cluster.ID})
	coded(t, err, cks.Internal, "")
}

// A create is told from its beginning: the record, the job, and their cluster's
// name.
func TestCreateIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	c := s.view.Cluster
	for _, jobID := range []string{"", uuid.NewString()} {
		id, job, err := s.CreateCluster(t.Context(), s.owner, cks.CreateRequest{Name: "fresh", ZoneID: c.ZoneID, VersionID: c.VersionID,
			OfferingID: &c.DefaultOffering, JobID: jobID})
		if must(id, err)(t); jobID != "" && job.ID != jobID {
			t.Errorf("job %s", job.ID)
		}
		events, _, err := s.Events(t.Context(), s.owner, cks.EventFilter{ResourceID: id})
		for i, e := range must(events, err)(t) {
			if want := []cks.Progress{cks.Scheduled, cks.EntityCreated}[i]; e.State != want || e.ResourceName != "fresh" || e.Type != cks.EventClusterCreate {
				t.Errorf("%+v", e)
			}
		}
		if held, err := s.st.ClusterByRef(t.Context(), id); len(events) != 2 || held.HeldBy != job.ID {
			t.Errorf("%d events, held by %q, %v", len(events), held.HeldBy, err)
		}
	}
	_, _, err := s.CreateCluster(t.Context(), s.owner, cks.CreateRequest{Name: "again", ZoneID: c.ZoneID, VersionID: c.VersionID,
		OfferingID: &c.DefaultOffering, JobID: s.live()[0].ID})
	coded(t, err, cks.Parameter, "")
}

// Events are an account's own, as other lists are: an administrator sees all
// when he asks for it, or for one by its id.
//
// Keeps: §1.10/events-visibility.
func TestEventsAreTheAccountsOwn(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	bob, root := s.account("bob", false), s.account("root", true)
	s.scale(cks.ScaleRequest{Size: new(int64(1))})
	events, _, err := s.Events(t.Context(), s.owner, cks.EventFilter{})
	completed, scheduled := must(events, err)(t)[0], events[1]
	for name, tt := range map[string]struct {
		caller cks.Account
		f      cks.EventFilter
		n      int
	}{
		"own":                {s.owner, cks.EventFilter{}, 3},
		"own, listall":       {s.owner, cks.EventFilter{ListAll: true}, 3},
		"own by id":          {s.owner, cks.EventFilter{ID: completed.ID}, 1},
		"own by number":      {s.owner, cks.EventFilter{ID: number64(completed.Seq)}, 1},
		"own by parent":      {s.owner, cks.EventFilter{StartID: scheduled.ID}, 2},
		"stranger":           {bob, cks.EventFilter{ListAll: true}, 0},
		"stranger, resource": {bob, cks.EventFilter{ResourceID: s.view.Cluster.ID}, 0},
		"admin":              {root, cks.EventFilter{}, 0},
		"admin, listall":     {root, cks.EventFilter{ListAll: true}, 3},
		"admin, account":     {root, cks.EventFilter{Account: s.owner.Name}, 3},
		"admin, id":          {root, cks.EventFilter{ID: completed.ID}, 1},
		"admin, parent":      {root, cks.EventFilter{StartID: scheduled.ID}, 2},
	} {
		if got := s.told(tt.caller, tt.f); len(got) != tt.n {
			t.Errorf("%s: %d events, want %d: %q", name, len(got), tt.n, got)
		}
	}
	for name, f := range map[string]cks.EventFilter{"id": {ID: completed.ID}, "startid": {StartID: scheduled.ID}, "account": {Account: s.owner.Name}} {
		_, _, err := s.Events(t.Context(), bob, f)
		if cks.CodeOf(err) != cks.Denied {
			t.Errorf("%s of somebody else: %v", name, err)
		}
	}
	none := uuid.NewString()
	_, _, err = s.Events(t.Context(), root, cks.EventFilter{ID: none})
	coded(t, err, cks.UnknownID, unknownText("id", none))
	_, _, err = s.Events(t.Context(), root, cks.EventFilter{StartID: none})
	coded(t, err, cks.UnknownID, unknownText("startid", none))
}

// Who may see a job may cancel it, while it lives; asking twice is no error.
//
// Keeps: ours/cancel-access, ours/cancel-ended.
func TestWhoMayCancel(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	bob, root := s.account("bob", false), s.account("root", true)
	job := s.scale(cks.ScaleRequest{Size: new(int64(2))})
	coded(t, s.CancelJob(t.Context(), bob, job.ID), cks.Denied, fmt.Sprintf("Account bob is not authorized to see job id=%d", job.Seq))
	none := uuid.NewString()
	coded(t, s.CancelJob(t.Context(), root, none), cks.UnknownID, unknownText("jobid", none))
	by := func() string {
		name, err := s.st.CancelledBy(t.Context(), job.ID)
		return must(name, err)(t)
	}
	if by() != "" {
		t.Errorf("cancelled by %s", by())
	}
	for range 2 {
		if err := s.CancelJob(t.Context(), root, number64(job.Seq)); err != nil || by() != "root" {
			t.Errorf("cancelled by %q: %v", by(), err)
		}
	}
	if err := s.CancelJob(t.Context(), s.owner, job.ID); err != nil || by() != "root" {
		t.Errorf("cancelled by %q: %v", by(), err)
	}
	s.end(job, func(*store.Queries, cks.Job) error { return nil })
	refused := s.scale(cks.ScaleRequest{Size: new(int64(0))})
	for id, how := range map[string]string{job.ID: "1 (succeeded)", refused.ID: "2 (failed)"} {
		coded(t, s.CancelJob(t.Context(), s.owner, id), cks.Invalid, "Unable to cancel job ID: "+id+", it has ended already: jobstatus is "+how)
	}
}
