package service

import (
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// Where each kind of request takes the cluster, and what job it makes (cks.md
// §4, "fired by").
//
// Keeps: §4/fires-scale-up, §4/fires-scale-down, §4/fires-offering, §4/fires-autoscaling.
func TestRequestsTakeTheClusterWhereTheyShould(t *testing.T) {
	t.Parallel()
	size := func(n int64) func(scene) cks.ScaleRequest {
		return func(scene) cks.ScaleRequest { return cks.ScaleRequest{Size: &n} }
	}
	medium := func(s scene) cks.ScaleRequest {
		offerings, _, err := s.st.Offerings(s.Context(), cks.CatalogFilter{Name: storetest.MediumName})
		return cks.ScaleRequest{OfferingID: &must(offerings, err)(s)[0].ID}
	}
	oldest := func(s scene) cks.ScaleRequest { return cks.ScaleRequest{NodeIDs: []string{s.workers()[0].ID}} }
	autoscaling := func(scene) cks.ScaleRequest {
		return cks.ScaleRequest{Autoscaling: new(true), MinSize: new(int64(1)), MaxSize: new(int64(3))}
	}
	for name, c := range map[string]struct {
		from cks.State
		req  func(scene) cks.ScaleRequest
		kind cks.Kind
		to   cks.State
	}{
		"up":                   {cks.Running, size(3), cks.ScaleUp, cks.Scaling},
		"down":                 {cks.Running, size(1), cks.ScaleDown, cks.Scaling},
		"nodeids":              {cks.Running, oldest, cks.RemoveNodes, cks.Scaling},
		"offering":             {cks.Running, medium, cks.ChangeOffering, cks.Scaling},
		"offering, stopped":    {cks.Stopped, medium, cks.ChangeOffering, cks.ScalingStoppedCluster},
		"autoscaling":          {cks.Running, autoscaling, cks.Autoscale, cks.Scaling},
		"up, in Alert":         {cks.Alert, size(3), cks.ScaleUp, cks.Scaling},
		"down, in Alert":       {cks.Alert, size(1), cks.ScaleDown, cks.Scaling},
		"nodeids, in Alert":    {cks.Alert, oldest, cks.RemoveNodes, cks.Scaling},
		"nothing new":          {cks.Running, size(2), cks.Nothing, cks.Running},
		"nothing new, stopped": {cks.Stopped, size(2), cks.Nothing, cks.Stopped},
		"created":              {cks.Created, size(3), cks.RecordSize, cks.Created},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, storetest.Spec{State: c.from, Control: 1, Workers: 2})
			if c.from == cks.Alert {
				if err := s.st.ObserveVM(t.Context(), s.workers()[0].ID, cks.Machine{State: cks.VMStopped}, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			job := s.scale(c.req(s))
			if job.Kind != c.kind || job.ErrorText != "" {
				t.Errorf("job is %s, %q; want %s", job.Kind, job.ErrorText, c.kind)
			}
			if got := s.now().Cluster; got.State != c.to || (got.HeldBy == job.ID) != c.to.Busy() {
				t.Errorf("cluster is %s, held by %q; want %s", got.State, got.HeldBy, c.to)
			}
		})
	}
}

// How large a cluster may be is a setting of the server (cks.md §3.1, "Max").
//
// Keeps: §3.1/max, §8.6/maximum.
func TestMaximumSizeIsASetting(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	four := settings
	four.MaxSize = 4
	svc := New(s.st, nil, four)
	const text = "Maximum cluster size can not exceed 4. Please contact your administrator"
	req := cks.ScaleRequest{Cluster: s.view.Cluster.ID, Size: new(int64(4))}
	job, err := svc.Scale(t.Context(), s.owner, req)
	s.refused(must(job, err)(t), text)
	create := s.createRequest("fresh")
	create.Size = new(int64(4))
	_, _, err = svc.CreateCluster(t.Context(), s.owner, create)
	coded(t, err, cks.Invalid, text)
	if job := s.scale(req); job.Status != cks.JobPending { // the service whose setting is 10
		t.Errorf("job is %+v", job)
	}
}
