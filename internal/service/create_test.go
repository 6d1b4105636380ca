package service

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

func (s scene) createRequest(name string) cks.CreateRequest {
	return cks.CreateRequest{
		Name: name, Description: "d", ZoneID: s.view.Zone.ID, VersionID: s.view.Version.ID,
		OfferingID: &s.view.Cluster.DefaultOffering, Size: new(int64(2)), ControlNodes: new(int64(1)),
	}
}

// clusters counts the clusters there are.
func (s scene) clusters() int {
	s.Helper()
	_, n, err := s.st.Views(s.Context(), cks.ClusterFilter{}, "")
	return must(n, err)(s)
}

// A new cluster is there, held by its job, when the client gets the answer.
//
// Keeps: §4/fires-create, §8.4/create.
// Keeps: §5.2/a, §5.2/e.
func TestCreatedClusterIsHeldByItsJob(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	other := s.account("other", false)
	req := s.createRequest("fresh")
	req.ZoneID = strings.ToUpper(req.ZoneID)
	id, job, err := s.CreateCluster(t.Context(), other, req)
	if err != nil {
		t.Fatal(err)
	}
	v := must(s.st.View(t.Context(), id))(t)
	c := v.Cluster
	if c.State != cks.Starting || c.HeldBy != job.ID || c.AccountID != other.ID || c.Size != 2 || c.ControlNodes != 1 {
		t.Errorf("cluster is %+v", c)
	}
	if c.NetworkName != "fresh-network" || !strings.HasPrefix(c.IPAddress, "203.0.113.") || c.Endpoint != "https://"+c.IPAddress+":6443/" {
		t.Errorf("network %q, address %q, endpoint %q", c.NetworkName, c.IPAddress, c.Endpoint)
	}
	if v.Template == nil || c.DefaultOffering != s.view.Cluster.DefaultOffering {
		t.Errorf("template %v, offering %q", v.Template, c.DefaultOffering)
	}
	stored := must(s.st.Job(t.Context(), job.ID))(t)
	if stored.Status != cks.JobPending || stored.Kind != cks.CreateCluster || stored.ClusterID != id ||
		stored.Command != "createKubernetesCluster" || stored.Account.ID != other.ID {
		t.Errorf("job is %+v", stored)
	}
}

// Creating refuses by an error, at once, and leaves nothing.
func TestRefusedCreateLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	other := s.account("other", false)
	if err := s.st.SetLimits(t.Context(), other.ID, store.Limits{VMs: new(3)}); err != nil {
		t.Fatal(err)
	}
	nobody, taken := uuid.NewString(), s.scale(cks.ScaleRequest{Size: new(int64(2))})
	clusters, live := s.clusters(), len(s.live())
	for name, c := range map[string]struct {
		change func(*cks.CreateRequest)
		code   cks.Code
		text   string
	}{
		"zone":          {func(r *cks.CreateRequest) { r.ZoneID = nobody }, cks.UnknownID, unknownText("zoneid", nobody)},
		"version":       {func(r *cks.CreateRequest) { r.VersionID = nobody }, cks.UnknownID, unknownText("kubernetesversionid", nobody)},
		"offering":      {func(r *cks.CreateRequest) { r.OfferingID = &nobody }, cks.UnknownID, unknownText("serviceofferingid", nobody)},
		"network":       {func(r *cks.CreateRequest) { r.NetworkID = "lan" }, cks.UnknownID, unknownText("networkid", "lan")},
		"too many":      {func(r *cks.CreateRequest) { r.Size = new(int64(10)) }, cks.Invalid, "Maximum cluster size can not exceed 10. Please contact your administrator"},
		"limit":         {func(r *cks.CreateRequest) { r.Size = new(int64(3)) }, cks.Failed, "Resource limits prevent creating the cluster: the account may use 3 VMs, uses 0 and needs 4 more"},
		"no version":    {func(r *cks.CreateRequest) { r.VersionID = "" }, cks.Invalid, ""},
		"bad job id":    {func(r *cks.CreateRequest) { r.JobID = "x" }, cks.Parameter, "UUID: x doesn't follow the UUID format"},
		"job id in use": {func(r *cks.CreateRequest) { r.JobID = taken.ID }, cks.Parameter, ""},
		"type's unknown": {func(r *cks.CreateRequest) {
			r.NodeOfferings = []cks.NodeOffering{{Node: new("worker"), Offering: &nobody}}
		}, cks.Invalid, "Cannot find a service offering with ID " + nobody},
	} {
		t.Run(name, func(t *testing.T) {
			req := s.createRequest("fresh")
			c.change(&req)
			_, _, err := s.CreateCluster(t.Context(), other, req)
			coded(t, err, c.code, c.text)
		})
	}
	if s.clusters() != clusters || len(s.live()) != live {
		t.Errorf("%d clusters and %d live jobs, were %d and %d", s.clusters(), len(s.live()), clusters, live)
	}
}

// The address belongs to the cluster: the same id gives the same one.
func TestPublicIPIsFixedAndUsable(t *testing.T) {
	t.Parallel()
	for range 1000 {
		id := uuid.NewString()
		ip := publicIP(id)
		if ip != publicIP(id) || ip == "203.0.113.0" || ip == "203.0.113.255" {
			t.Fatalf("address of %s is %s", id, ip)
		}
	}
}

// spec/cks.md §4: a delete holds the cluster, or is refused by a failed job.
//
// Keeps: §4/fires-delete, §4/fires-delete-refused.
func TestDelete(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	job := must(s.DeleteCluster(t.Context(), s.owner, strings.ToUpper(s.view.Cluster.ID), ""))(t)
	if job.Status != cks.JobPending || job.Kind != cks.DeleteCluster || job.Command != "deleteKubernetesCluster" || job.Notes.Seen != cks.Running {
		t.Fatalf("job is %+v", job)
	}
	if c := s.now().Cluster; c.State != cks.Destroying || c.HeldBy != job.ID {
		t.Fatalf("cluster is %s, held by %q", c.State, c.HeldBy)
	}
	again := must(s.DeleteCluster(t.Context(), s.owner, s.view.Cluster.ID, ""))(t)
	s.refused(again, "Cannot perform delete operation on Kubernetes cluster : "+s.view.Cluster.Name+" in state: Destroying")

	nobody := uuid.NewString()
	_, err := s.DeleteCluster(t.Context(), s.owner, nobody, "")
	coded(t, err, cks.UnknownID, unknownText("id", nobody))
	s.refused(must(s.DeleteCluster(t.Context(), s.owner, "4711", ""))(t), "Invalid Kubernetes cluster ID")
	_, err = s.DeleteCluster(t.Context(), s.owner, s.view.Cluster.ID, "x")
	coded(t, err, cks.Parameter, "UUID: x doesn't follow the UUID format")
}
