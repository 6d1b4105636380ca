package service

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// dry asks what req would come to for the scene's cluster, as its owner.
func (s scene) dry(req cks.ScaleRequest) cks.DryRun {
	s.Helper()
	req.Cluster = s.view.Cluster.ID
	d, err := s.DryRun(s.Context(), s.owner, req)
	return must(d, err)(s)
}

// A dry run, accepted or refused, leaves no job, no event, and the cluster as it
// is, its version too.
//
// Keeps: ours/dry-run.
func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(3))
	stranger := s.account("stranger", false)
	before, told := s.now(), s.told(s.owner, cks.EventFilter{})
	if d := s.dry(cks.ScaleRequest{Size: new(int64(1))}); d.Refusal != "" || d.Kind != cks.ScaleDown || len(d.Leaving) != 2 {
		t.Errorf("got %+v", d)
	}
	if d := s.dry(cks.ScaleRequest{Size: new(int64(99))}); d.Refusal == "" || d.Kind != "" {
		t.Errorf("got %+v", d)
	}
	_, err := s.DryRun(t.Context(), stranger, cks.ScaleRequest{Cluster: s.view.Cluster.ID, Size: new(int64(1))})
	coded(t, err, cks.Denied, "")
	differ(t, before, s.now())
	differ(t, told, s.told(s.owner, cks.EventFilter{})) // every job has its events
	if live := s.live(); len(live) > 0 {
		t.Errorf("it left the jobs %+v", live)
	}
}

// Whatever is asked for, the request itself comes to what the dry run said: the
// same kind of job, the same refusal, the same error.
//
// Keeps: ours/dry-run-same.
func TestScaleDoesWhatTheDryRunSaid(t *testing.T) {
	t.Parallel()
	taken := uuid.NewString()
	for name, c := range map[string]struct {
		spec storetest.Spec
		req  func(s scene) cks.ScaleRequest
	}{
		"up":         {running(2), func(scene) cks.ScaleRequest { return cks.ScaleRequest{Size: new(int64(3))} }},
		"down":       {running(3), func(scene) cks.ScaleRequest { return cks.ScaleRequest{Size: new(int64(1))} }},
		"as it is":   {running(2), func(scene) cks.ScaleRequest { return cks.ScaleRequest{Size: new(int64(2))} }},
		"in Created": {storetest.Spec{State: cks.Created}, func(scene) cks.ScaleRequest { return cks.ScaleRequest{Size: new(int64(4))} }},
		"named":      {running(3), func(s scene) cks.ScaleRequest { return cks.ScaleRequest{NodeIDs: []string{s.workers()[1].ID}} }},
		"autoscaling": {running(2), func(scene) cks.ScaleRequest {
			return cks.ScaleRequest{Autoscaling: new(true), MinSize: new(int64(1)), MaxSize: new(int64(4))}
		}},

		"too large":       {running(2), func(scene) cks.ScaleRequest { return cks.ScaleRequest{Size: new(int64(99))} }},
		"none left":       {running(2), func(scene) cks.ScaleRequest { return cks.ScaleRequest{Size: new(int64(0))} }},
		"being scaled":    {storetest.Spec{State: cks.Scaling, Workers: 2}, func(scene) cks.ScaleRequest { return cks.ScaleRequest{Size: new(int64(3))} }},
		"nothing at all":  {running(2), func(scene) cks.ScaleRequest { return cks.ScaleRequest{} }},
		"unknown node":    {running(2), func(scene) cks.ScaleRequest { return cks.ScaleRequest{NodeIDs: []string{uuid.NewString()}} }},
		"unknown, number": {running(2), func(scene) cks.ScaleRequest { return cks.ScaleRequest{OfferingID: new("987654")} }},
		"no uuid":         {running(2), func(scene) cks.ScaleRequest { return cks.ScaleRequest{Size: new(int64(3)), JobID: "x"} }},
		"taken uuid": {running(2), func(s scene) cks.ScaleRequest {
			s.scale(cks.ScaleRequest{Size: new(int64(2)), JobID: taken})
			return cks.ScaleRequest{Size: new(int64(2)), JobID: taken}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, c.spec)
			req := c.req(s)
			req.Cluster = s.view.Cluster.ID
			d, dryErr := s.DryRun(t.Context(), s.owner, req)
			job, err := s.Scale(t.Context(), s.owner, req)
			if (err == nil) != (dryErr == nil) || err != nil && (err.Error() != dryErr.Error() || cks.CodeOf(err) != cks.CodeOf(dryErr)) {
				t.Fatalf("Scale: %v, the dry run: %v", err, dryErr)
			}
			if err != nil {
				return
			}
			if refused := job.Status == cks.JobFailed; refused != (d.Refusal != "") || d.Refusal != job.ErrorText || !refused && d.Kind != job.Kind {
				t.Errorf("Scale: %s %d %q, the dry run: %s %q", job.Kind, job.Status, job.ErrorText, d.Kind, d.Refusal)
			}
		})
	}
}

// The steps are those of the job's plan.
func TestDryRunShowsSteps(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	s.set.Steps = func(k cks.Kind) []string { return []string{string(k), "second"} }
	if d := s.dry(cks.ScaleRequest{Size: new(int64(3))}); !slices.Equal(d.Steps, []string{"scale-up", "second"}) {
		t.Errorf("got %v", d.Steps)
	}
}
