package service

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ckscale/internal/cks"
)

// A VM's job holds no cluster; a second one for the same VM is refused.
func TestOneJobForOneVM(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	v := s.workers()[0]
	job := must(s.StopVM(t.Context(), s.owner, cks.VMRequest{VM: strings.ToUpper(v.ID), Forced: true}))(t)
	if job.Status != cks.JobPending || job.Kind != cks.StopVM || job.Command != "stopVirtualMachine" ||
		job.VMID != v.ID || job.ClusterID != "" || !job.Args.Forced {
		t.Fatalf("job is %+v", job)
	}
	if c := s.now().Cluster; c.State != cks.Running || c.HeldBy != "" {
		t.Errorf("cluster is %s, held by %q", c.State, c.HeldBy)
	}
	again := must(s.StopVM(t.Context(), s.owner, cks.VMRequest{VM: number64(v.Seq)}))(t)
	s.refused(again, "another job is in progress for VM "+v.ID)
	if live := s.live(); len(live) != 1 || live[0].ID != job.ID {
		t.Errorf("live jobs: %+v", live)
	}
}

// A VM's job and the scaling of its cluster do not exclude each other.
func TestVMJobBesideScaling(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	s.scale(cks.ScaleRequest{Size: new(int64(3))})
	if job := must(s.StopVM(t.Context(), s.owner, cks.VMRequest{VM: s.workers()[0].ID}))(t); job.Status != cks.JobPending {
		t.Errorf("job is %+v", job)
	}
}

func TestVMThatIsSoAlreadyOrCannotBe(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	v := s.workers()[0]
	done := must(s.StartVM(t.Context(), s.owner, cks.VMRequest{VM: v.ID}))(t)
	stored := must(s.st.Job(t.Context(), done.ID))(t)
	if stored.Status != cks.JobSucceeded || stored.Result == nil || stored.Result.VM == nil || stored.Result.VM.VM.ID != v.ID {
		t.Fatalf("job is %+v", stored)
	}
	if err := s.st.ObserveVM(t.Context(), v.ID, cks.Machine{State: cks.VMMigrating}, time.Now()); err != nil {
		t.Fatal(err)
	}
	refused := must(s.StartVM(t.Context(), s.owner, cks.VMRequest{VM: v.ID}))(t)
	s.refused(refused, "Instance "+v.Name+" is in Migrating state and can not be started")
	if live := s.live(); len(live) > 0 {
		t.Errorf("live jobs: %+v", live)
	}

	if err := s.st.ObserveVM(t.Context(), v.ID, cks.Machine{State: cks.VMStopped}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if job := must(s.StartVM(t.Context(), s.owner, cks.VMRequest{VM: v.ID}))(t); job.Kind != cks.StartVM || job.Status != cks.JobPending {
		t.Errorf("job is %+v", job)
	}
	nobody := uuid.NewString()
	_, err := s.StartVM(t.Context(), s.owner, cks.VMRequest{VM: nobody})
	coded(t, err, cks.UnknownID, unknownText("id", nobody))
	_, err = s.StopVM(t.Context(), s.owner, cks.VMRequest{VM: v.ID, JobID: "x"})
	coded(t, err, cks.Parameter, "UUID: x doesn't follow the UUID format")
}
