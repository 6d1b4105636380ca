package service

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// lan adds a network of the scene's owner.
func (s scene) lan() cks.Network {
	s.Helper()
	n, err := s.st.AddNetwork(s.Context(), cks.Network{Name: "lan", AccountID: s.owner.ID, ZoneID: s.view.Zone.ID})
	return must(n, err)(s)
}

// Of several requests that put a cluster into one network at once, one is
// accepted, and the others are told why not.
//
// Keeps: §8.4/network.
func TestOneClusterGetsANetwork(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	n := s.lan()
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			req := s.createRequest("fresh")
			req.NetworkID = n.ID
			_, _, errs[i] = s.CreateCluster(t.Context(), s.owner, req)
		})
	}
	wg.Wait()
	accepted := 0
	for _, err := range errs {
		if err == nil {
			accepted++
			continue
		}
		coded(t, err, cks.Invalid, "Network ID: "+n.ID+" is already under use by another Kubernetes cluster")
	}
	if accepted != 1 || s.clusters() != 2 {
		t.Errorf("%d accepted, %d clusters", accepted, s.clusters())
	}
}

// A cluster is put into a network of the caller's, by uuid or by number; not
// into one of another account, of which an event tells, nor of another zone.
//
// Keeps: §8.4/network.
func TestNetworkOfACreateIsChecked(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	other, n, nobody := s.account("other", false), s.lan(), uuid.NewString()
	far := must(s.st.AddZone(t.Context(), cks.Zone{Name: "far"}))(t)
	create := func(caller cks.Account, ref, zone string) (string, error) {
		req := s.createRequest("fresh")
		req.NetworkID, req.ZoneID = ref, zone
		id, _, err := s.CreateCluster(t.Context(), caller, req)
		return id, err
	}
	_, err := create(other, n.ID, s.view.Zone.ID)
	coded(t, err, cks.Denied, denied)
	_, err = create(s.owner, nobody, s.view.Zone.ID)
	coded(t, err, cks.UnknownID, unknownText("networkid", nobody))
	_, err = create(s.owner, "99", s.view.Zone.ID)
	coded(t, err, cks.UnknownID, unknownText("networkid", "99"))
	_, err = create(s.owner, n.ID, far.ID)
	coded(t, err, cks.Invalid, "Network ID: "+n.ID+" is not in zone far")
	if s.clusters() != 1 {
		t.Fatalf("%d clusters", s.clusters())
	}
	events, _, err := s.Events(t.Context(), other, cks.EventFilter{})
	if err != nil || len(events) != 1 || events[0].Type != cks.EventClusterCreate || events[0].Level != cks.LevelError {
		t.Errorf("events %+v, %v", events, err)
	}
	linked := cks.CreateRequest{Name: "linked", ZoneID: s.view.Zone.ID, NetworkID: number64(s.lan().Seq), Linked: true}
	id, _, err := s.CreateCluster(t.Context(), s.owner, linked)
	if c := must(s.st.View(t.Context(), id))(t).Cluster; err != nil || c.NetworkName != "lan" || !c.ExternalManaged {
		t.Errorf("managed elsewhere: %v, %+v", err, c)
	}
	id, err = create(s.owner, number64(n.Seq), s.view.Zone.ID)
	c := must(s.st.View(t.Context(), id))(t).Cluster
	if err != nil || c.NetworkID != n.ID || c.NetworkName != "lan" {
		t.Errorf("%v, %+v", err, c)
	}
}

// An account sees its own networks, an administrator everybody's if he asks.
//
// Keeps: clients/networks.
func TestNetworksAreTheirAccounts(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	other, admin, n := s.account("other", false), s.account("root", true), s.lan()
	for name, c := range map[string]struct {
		caller cks.Account
		f      cks.NetworkFilter
		want   int
	}{
		"owner":       {s.owner, cks.NetworkFilter{}, 2},
		"owner, id":   {s.owner, cks.NetworkFilter{ID: number64(n.Seq)}, 1},
		"other":       {other, cks.NetworkFilter{ListAll: true}, 0},
		"admin":       {admin, cks.NetworkFilter{}, 0},
		"admin, all":  {admin, cks.NetworkFilter{ListAll: true}, 2},
		"admin, id":   {admin, cks.NetworkFilter{ID: n.ID}, 1},
		"admin, name": {admin, cks.NetworkFilter{Account: s.owner.Name, ZoneID: number64(1)}, 2},
	} {
		if list, total, err := s.Networks(t.Context(), c.caller, c.f); err != nil || len(list) != c.want || total != c.want {
			t.Errorf("%s: %+v of %d, %v", name, list, total, err)
		}
	}
	nobody := uuid.NewString()
	_, _, err := s.Networks(t.Context(), other, cks.NetworkFilter{ID: n.ID})
	coded(t, err, cks.Denied, denied)
	_, _, err = s.Networks(t.Context(), other, cks.NetworkFilter{Account: s.owner.Name})
	coded(t, err, cks.Denied, denied)
	_, _, err = s.Networks(t.Context(), other, cks.NetworkFilter{ID: nobody})
	coded(t, err, cks.UnknownID, unknownText("id", nobody))
	_, _, err = s.Networks(t.Context(), other, cks.NetworkFilter{ZoneID: nobody})
	coded(t, err, cks.UnknownID, unknownText("zoneid", nobody))
}

// nodetemplates name templates by uuid or by number, and each type gets its own.
//
// Keeps: §8.4/create, D6.
func TestTemplatesOfACreate(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	own := must(s.st.AddTemplate(t.Context(), cks.Template{Name: "own", Ready: true}))(t)
	must(s.st.AddTemplate(t.Context(), cks.Template{Name: "newest", Ready: true}))(t)
	req := s.createRequest("fresh")
	req.NodeTemplates = []cks.NodeTemplate{{Node: new("worker"), Template: &own.ID}, {Node: new("control"), Template: new(" " + own.ID)}}
	id, _, err := s.CreateCluster(t.Context(), s.owner, req)
	if err != nil {
		t.Fatal(err)
	}
	v := must(s.st.View(t.Context(), id))(t)
	if v.Template.Name != "newest" || v.Cluster.Templates[cks.Worker] != own.ID || v.Cluster.Templates[cks.Control] != own.ID {
		t.Errorf("template %v, by type %v", v.Template, v.Cluster.Templates)
	}
	for template, want := range map[*string]string{
		new("99"): "Cannot find a template with ID 99",
		nil:       "Incomplete Node Type to template ID mapping: 'worker' -> 'null'",
	} {
		req.NodeTemplates[0].Template = template
		_, _, err = s.CreateCluster(t.Context(), s.owner, req)
		coded(t, err, cks.Invalid, want)
	}
}

// Templates are listed by what the filter says.
//
// Keeps: clients/templates.
func TestTemplates(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	own := must(s.st.AddTemplate(t.Context(), cks.Template{Name: "own", Ready: true}))(t)
	for name, c := range map[string]struct {
		f    cks.TemplateFilter
		want int
	}{
		"featured": {cks.TemplateFilter{Which: "featured"}, 2},
		"self":     {cks.TemplateFilter{Which: "self"}, 0},
		"id":       {cks.TemplateFilter{Which: "featured", ID: own.ID, ZoneID: s.view.Zone.ID}, 1},
		"ids":      {cks.TemplateFilter{Which: "featured", IDs: []string{own.ID, "1"}}, 2},
		"name":     {cks.TemplateFilter{Which: "featured", Name: "own"}, 1},
	} {
		if list, total, err := s.Templates(t.Context(), s.owner, c.f); err != nil || len(list) != c.want || total != c.want {
			t.Errorf("%s: %+v of %d, %v", name, list, total, err)
		}
	}
	nobody := uuid.NewString()
	for param, f := range map[string]cks.TemplateFilter{
		"id": {Which: "featured", ID: nobody}, "ids": {Which: "self", IDs: []string{nobody}}, "zoneid": {Which: "featured", ZoneID: nobody},
	} {
		_, _, err := s.Templates(t.Context(), s.owner, f)
		if cks.CodeOf(err) != cks.UnknownID {
			t.Errorf("%s: %v", param, err)
		}
	}
}

// Everybody who asks at once gets the same kubeconfig; only the owner and
// administrators do.
//
// Keeps: clients/config-same, clients/config-refused.
func TestClusterConfigIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, storetest.Spec{Etcd: 1, Workers: 1})
	admin, other := s.account("root", true), s.account("other", false)
	id := s.view.Cluster.ID
	var wg sync.WaitGroup
	got := make([]cks.ClusterConfig, 8)
	for i := range got {
		wg.Go(func() {
			caller := []cks.Account{s.owner, admin}[i%2]
			c, err := s.ClusterConfig(t.Context(), caller, id)
			if err != nil {
				t.Error(err)
			}
			got[i] = c
		})
	}
	wg.Wait()
	for _, c := range got {
		if c != got[0] || c.ID != id || c.Name != s.view.Cluster.Name || c.Data == "" {
			t.Fatalf("%+v", got)
		}
	}
	_, err := s.ClusterConfig(t.Context(), other, id)
	coded(t, err, cks.Denied, denied)
	nobody := uuid.NewString()
	_, err = s.ClusterConfig(t.Context(), s.owner, nobody)
	coded(t, err, cks.UnknownID, unknownText("id", nobody))
	_, err = s.ClusterConfig(t.Context(), s.owner, "99")
	coded(t, err, cks.Failed, "Invalid Kubernetes cluster ID specified")
}
