package service

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// design.md §1.3: check, transition and job are one commit.
//
// Keeps: §4/fires-scale-up, §3.6/validated.
// Keeps: §1.10/owner, §1.11/pending.
// Keeps: §5.2/state.
// Keeps: seed/no-window, seed/as-validated.
func TestAcceptedScaleHoldsTheClusterForItsJob(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	job := s.scale(cks.ScaleRequest{Size: new(int64(5))})

	if job.Status != cks.JobPending || job.Kind != cks.ScaleUp || job.Args.Size != 5 || job.Command != "scaleKubernetesCluster" {
		t.Fatalf("job is %+v", job)
	}
	if job.Account.ID != s.owner.ID || job.ClusterID != s.view.Cluster.ID {
		t.Fatalf("job is of account %s for cluster %s", job.Account.ID, job.ClusterID)
	}
	if job.Notes.Seen != cks.Running || job.Notes.Before != 2 {
		t.Fatalf("job remembers %+v", job.Notes)
	}
	if c := s.now().Cluster; c.State != cks.Scaling || c.HeldBy != job.ID || c.Size != 2 {
		t.Fatalf("cluster is %s, held by %q, size %d", c.State, c.HeldBy, c.Size)
	}
}

// spec/cks.md §4: each kind of work takes hold by its own event.
//
// Keeps: §4/fires-scale-down, §4/Alert-scales.
// Keeps: §5.3/state, §5.4/state.
// Keeps: seed/alert-to-scaling.
func TestScaleDownOfAClusterInAlertHoldsIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, storetest.Spec{State: cks.Alert, Control: 1, Workers: 2})
	downed := s.workers()[0]
	if err := s.st.ObserveVM(t.Context(), downed.ID, cks.Machine{State: cks.VMStopped}, time.Now()); err != nil {
		t.Fatal(err)
	}
	job := s.scale(cks.ScaleRequest{NodeIDs: []string{downed.ID}})
	if c := s.now().Cluster; job.Notes.Seen != cks.Alert || c.State != cks.Scaling || c.HeldBy != job.ID {
		t.Fatalf("job remembers %s; cluster is %s, held by %q", job.Notes.Seen, c.State, c.HeldBy)
	}
}

// spec/cks.md §2.4: what is found out inside the job upstream is told by a
// failed job. design.md §3: it never holds the cluster.
//
// Keeps: §3/failed-job, §3/changes-nothing.
// Keeps: §2.9/failed-job.
// Keeps: §5.1/1.
func TestRefusedScaleChangesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	before := s.now()
	for text, req := range map[string]cks.ScaleRequest{
		"Maximum cluster size can not exceed 10. Please contact your administrator":     {Size: new(int64(11))},
		"Kubernetes cluster : " + before.Cluster.Name + " cannot be scaled for size, 0": {Size: new(int64(0))},
		"nodeids can not be passed along with clustersize or service offering":          {Size: new(int64(1)), NodeIDs: []string{s.workers()[0].ID}},
		"Invalid node ids":                                      {NodeIDs: []string{}},
		"Can not remove all nodes from a cluster":               {NodeIDs: []string{s.workers()[0].ID, s.workers()[1].ID}},
		"Autoscaling requires minsize and maxsize to be passed": {Autoscaling: new(true)},
	} {
		job := s.scale(req)
		s.refused(job, text)
		if job.ClusterID != before.Cluster.ID {
			t.Errorf("%s: job is for cluster %q", text, job.ClusterID)
		}
	}
	if diff := cmp.Diff(before, s.now()); diff != "" {
		t.Errorf("refused requests changed the cluster:\n%s", diff)
	}
	if live := s.live(); len(live) > 0 {
		t.Errorf("refused requests left live jobs: %+v", live)
	}
}

// A46, spec/cks.md §3.4; design.md §4.2.
//
// Keeps: §3.4/success, §4/fires-no-op.
// Keeps: A46.
func TestRepeatedTargetIsDoneAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(3))
	before := s.now()
	for range 2 {
		job := s.scale(cks.ScaleRequest{Size: new(int64(3))})
		stored := must(s.st.Job(t.Context(), job.ID))(t)
		if stored.Status != cks.JobSucceeded || stored.Result == nil || stored.Result.Cluster == nil {
			t.Fatalf("job is %+v", stored)
		}
		if diff := cmp.Diff(before, *stored.Result.Cluster, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("result is not the cluster as it is:\n%s", diff)
		}
	}
	if diff := cmp.Diff(before, s.now()); diff != "" {
		t.Errorf("the cluster changed:\n%s", diff)
	}
	if live := s.live(); len(live) > 0 {
		t.Errorf("live jobs: %+v", live)
	}
}

// A46: in Alert the same is refused, as it would hide what is wrong.
//
// Keeps: §3.4/alert, §3.6/A2.
// Keeps: A46, seed/neither-stays-alert.
func TestRepeatedTargetIsRefusedInAlert(t *testing.T) {
	t.Parallel()
	s := newScene(t, storetest.Spec{State: cks.Alert, Control: 1, Workers: 3})
	job := s.scale(cks.ScaleRequest{Size: new(int64(3))})
	s.refused(job, "Kubernetes cluster "+s.view.Cluster.Name+" is in Alert state; only its size can be changed or nodes removed, and the request does neither")
	if c := s.now().Cluster; c.State != cks.Alert {
		t.Errorf("the cluster is %s", c.State)
	}
}

// spec/cks.md §7 E5: upstream accepts a size in Created and forgets it.
//
// Keeps: §3.3/size-created.
// Keeps: §5.2/created, E5.
func TestCreatedClusterRecordsWhatWasAsked(t *testing.T) {
	t.Parallel()
	s := newScene(t, storetest.Spec{State: cks.Created, Control: 1, Workers: 1})
	big := must(s.st.AddOffering(t.Context(), cks.Offering{Name: "big", DisplayText: "big", Cores: 8, SpeedMHz: 4000, MemoryMB: 32768}))(t)
	job := s.scale(cks.ScaleRequest{Size: new(int64(4)), OfferingID: &big.ID})

	c := s.now().Cluster
	if c.State != cks.Created || c.Size != 4 || c.DefaultOffering != big.ID || c.HeldBy != "" {
		t.Fatalf("cluster is %+v", c)
	}
	stored := must(s.st.Job(t.Context(), job.ID))(t)
	if stored.Status != cks.JobSucceeded || stored.Result.Cluster.Cluster.Size != 4 {
		t.Fatalf("job is %+v", stored)
	}
}

// spec/cks.md §1.3, §2.9: a uuid that names nothing is an error at once, a
// number is found out by the command.
//
// Keeps: §3.1/1-offering, §3.1/2-number, §3.1/11a.
// Keeps: §1.3/uuid-number, §1.3/uuid-minus-one, §2.9/unknown-id.
// Keeps: A34.
func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	id, nobody := s.view.Cluster.ID, uuid.NewString()
	for name, c := range map[string]struct {
		req   cks.ScaleRequest
		param string // an UnknownEntity error; empty: a failed job with text
		value string
		text  string
	}{
		"cluster":             {req: cks.ScaleRequest{Cluster: nobody}, param: "id", value: nobody},
		"no uuid":             {req: cks.ScaleRequest{Cluster: "not-a-uuid"}, param: "id", value: "not-a-uuid"},
		"number":              {req: cks.ScaleRequest{Cluster: "4711"}, text: "Invalid Kubernetes cluster ID"},
		"minus one":           {req: cks.ScaleRequest{Cluster: "-1"}, text: "Invalid Kubernetes cluster ID"},
		"offering":            {req: cks.ScaleRequest{Cluster: id, OfferingID: &nobody}, param: "serviceofferingid", value: nobody},
		"number of offering":  {req: cks.ScaleRequest{Cluster: id, OfferingID: new("4711")}, text: "Failed to find service offering ID: 4711"},
		"offering of a type":  {req: cks.ScaleRequest{Cluster: id, NodeOfferings: []cks.NodeOffering{{Node: new("worker"), Offering: &nobody}}}, text: "Cannot find a service offering with ID " + nobody},
		"node":                {req: cks.ScaleRequest{Cluster: id, NodeIDs: []string{s.workers()[0].ID, nobody}}, param: "nodeids", value: nobody},
		"node as it was sent": {req: cks.ScaleRequest{Cluster: id, NodeIDs: []string{" " + nobody}}, param: "nodeids", value: " " + nobody},
		"number of node":      {req: cks.ScaleRequest{Cluster: id, NodeIDs: []string{"4711"}}, text: "Invalid node ids"},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			job, err := s.Scale(t.Context(), s.owner, c.req)
			if c.param != "" {
				coded(t, err, cks.UnknownID, unknownText(c.param, c.value))
				return
			}
			s.refused(must(job, err)(t), c.text)
		})
	}
	if c := s.now().Cluster; c.State != cks.Running {
		t.Errorf("cluster is %s", c.State)
	}
}

// spec/cks.md §1.3: uuids match in any case, and internal numbers are accepted.
// design.md §4.3: nodeids are trimmed.
//
// Keeps: §3.1/10b-repeated.
// Keeps: §1.3/uuid-case, §1.3/uuid-number, §1.3/list-trimmed-ids.
func TestIDsMayBeWrittenInManyWays(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(3))
	w := s.workers()
	job, err := s.Scale(t.Context(), s.owner, cks.ScaleRequest{
		Cluster: strings.ToUpper(s.view.Cluster.ID),
		NodeIDs: []string{" " + strings.ToUpper(w[2].ID) + " ", number64(w[1].Seq)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{w[2].ID, w[1].ID}; job.Kind != cks.RemoveNodes || !cmp.Equal(job.Args.VMIDs, want) {
		t.Fatalf("job is %s of %v with text %q, want %v", job.Kind, job.Args.VMIDs, job.ErrorText, want)
	}
	again, err := s.Scale(t.Context(), s.owner, cks.ScaleRequest{Cluster: number64(s.view.Cluster.Seq), Size: new(int64(5))})
	s.refused(must(again, err)(t), notScalable(s.view.Cluster, cks.Scaling))
}

// A18, design.md §4.3: the whole request is refused.
//
// Keeps: §3.1/10b.
func TestNodesOfAnotherClusterAreRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(3))
	other := storetest.Fixture(t, s.st, running(2))
	job := s.scale(cks.ScaleRequest{NodeIDs: []string{s.workers()[0].ID, other.VMs[len(other.VMs)-1].ID}})
	s.refused(job, "Invalid node ids")
}

// spec/cks.md §1.3: uuids resolve to removed rows, and the command refuses them.
//
// Keeps: §3.1/2-removed.
// Keeps: §1.3/uuid-removed.
func TestRemovedClusterIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	remove := must(s.DeleteCluster(t.Context(), s.owner, s.view.Cluster.ID, ""))(t)
	s.end(remove, s.leave())
	s.refused(s.scale(cks.ScaleRequest{Size: new(int64(2))}), "Invalid Kubernetes cluster ID")
	again, err := s.DeleteCluster(t.Context(), s.owner, s.view.Cluster.ID, "")
	s.refused(must(again, err)(t), "Invalid Kubernetes cluster ID")
}

// A43: every repeat of a removal that was done is refused; nothing else goes.
//
// Keeps: §1.3/uuid-removed.
// Keeps: A43.
func TestRepeatedRemovalIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(5))
	w := s.workers()
	req := cks.ScaleRequest{NodeIDs: []string{w[4].ID}}
	s.end(s.scale(req), s.leave(w[4]))
	for range 4 {
		s.refused(s.scale(req), "Invalid node ids")
	}
	if c := s.now().Cluster; c.Size != 4 || c.State != cks.Running {
		t.Errorf("size is %d, state %s", c.Size, c.State)
	}
	if diff := cmp.Diff(w[:4], s.workers()); diff != "" {
		t.Errorf("workers changed:\n%s", diff)
	}
}

// A45: later requests are refused and leave the first alone.
//
// Keeps: A45, seed/second-refused.
func TestLaterRequestLeavesTheFirstAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(3))
	first := s.scale(cks.ScaleRequest{Size: new(int64(5))})
	held := s.now()
	s.refused(s.scale(cks.ScaleRequest{Size: new(int64(2))}), notScalable(s.view.Cluster, cks.Scaling))
	s.refused(s.scale(cks.ScaleRequest{Autoscaling: new(true), MinSize: new(int64(1)), MaxSize: new(int64(4))}),
		notScalable(s.view.Cluster, cks.Scaling))

	if diff := cmp.Diff(held, s.now()); diff != "" {
		t.Errorf("the cluster changed:\n%s", diff)
	}
	if diff := cmp.Diff(first, must(s.st.Job(t.Context(), first.ID))(t), cmpopts.IgnoreFields(cks.Job{}, "Remaining")); diff != "" {
		t.Errorf("the first job changed:\n%s", diff)
	}
}

// A47: a client that gave up sends the same again, during and after the job.
//
// Keeps: §1.10/offering-access.
// Keeps: A47.
func TestRepeatAfterAClientGaveUp(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	same := cks.ScaleRequest{Size: new(int64(3)), OfferingID: &s.view.Cluster.DefaultOffering}
	first := s.scale(cks.ScaleRequest{Size: new(int64(3))})
	s.refused(s.scale(same), notScalable(s.view.Cluster, cks.Scaling))
	s.end(first, s.join(1))
	third := must(s.st.Job(t.Context(), s.scale(same).ID))(t)
	if third.Status != cks.JobSucceeded || third.Kind != cks.Nothing {
		t.Fatalf("third job is %s with status %d: %s", third.Kind, third.Status, third.ErrorText)
	}
	if n := len(s.workers()); n != 3 {
		t.Errorf("%d workers", n)
	}
}

// spec/cks.md §1.10.
//
// Keeps: §1.10/customjobid, §1.10/customjobid-form, §1.10/customjobid-used.
func TestCustomJobID(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	want := uuid.NewString()
	for _, bad := range []string{strings.ToUpper(want), "{" + want + "}", strings.ReplaceAll(want, "-", ""), "job-1", want + " "} {
		_, err := s.Scale(t.Context(), s.owner, cks.ScaleRequest{Cluster: s.view.Cluster.ID, Size: new(int64(3)), JobID: bad})
		coded(t, err, cks.Parameter, "UUID: "+bad+" doesn't follow the UUID format")
	}
	if job := s.scale(cks.ScaleRequest{Size: new(int64(3)), JobID: want}); job.ID != want {
		t.Fatalf("job is %s, want %s", job.ID, want)
	}
	_, err := s.Scale(t.Context(), s.owner, cks.ScaleRequest{Cluster: s.view.Cluster.ID, Size: new(int64(3)), JobID: want})
	coded(t, err, cks.Parameter, "UUID: "+want+" already exists so can't create/update with custom id")
}

// spec/cks.md §3.1 13: the limits are those of the cluster's owner, whoever asks.
//
// Keeps: §3.1/13-owner.
// Keeps: §1.10/owner.
func TestLimitsOfTheOwnerCount(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	admin := s.account("root", true)
	if err := s.st.SetLimits(t.Context(), s.owner.ID, store.Limits{VMs: new(4)}); err != nil {
		t.Fatal(err)
	}
	ask := func(size int64) cks.Job {
		job, err := s.Scale(t.Context(), admin, cks.ScaleRequest{Cluster: s.view.Cluster.ID, Size: &size})
		return must(job, err)(t)
	}
	s.refused(ask(4), "Resource limits prevent scaling the cluster: the account may use 4 VMs, uses 3 and needs 2 more")
	if job := ask(3); job.Status != cks.JobPending || job.Account.ID != admin.ID {
		t.Fatalf("job is %+v", job)
	}
}
