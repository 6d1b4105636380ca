package service

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// StartVM records the job that starts a VM. It holds no cluster: what becomes
// of the cluster, the scanner decides by what it sees.
func (s *Service) StartVM(ctx context.Context, caller cks.Account, req cks.VMRequest) (cks.Job, error) {
	return s.vmJob(ctx, caller, "startVirtualMachine", req, cks.CheckStartVM)
}

// StopVM records the job that stops a VM, otherwise like StartVM.
func (s *Service) StopVM(ctx context.Context, caller cks.Account, req cks.VMRequest) (cks.Job, error) {
	return s.vmJob(ctx, caller, "stopVirtualMachine", req, cks.CheckStopVM)
}

func (s *Service) vmJob(ctx context.Context, caller cks.Account, command string, req cks.VMRequest,
	check func(cks.VM) (cks.Kind, error)) (cks.Job, error) {
	if err := checkJobID(req.JobID); err != nil {
		return cks.Job{}, err
	}
	// Judged once: that another job works on the VM does not change by itself.
	job, err := s.record(ctx, 1, func(q *store.Queries) (cks.Job, error) {
		v, err := vm(ctx, q, caller, "id", req.VM)
		if err != nil {
			return cks.Job{}, err
		}
		job := store.NewJob{
			ID: req.JobID, Command: command, Kind: cks.Nothing, AccountID: caller.ID, VMID: v.ID,
			Args: cks.Args{Forced: req.Forced}, Timeout: s.set.ScaleTimeout,
		}
		if err := q.LockVM(ctx, v.ID); err != nil { // or a cluster could take it meanwhile
			return cks.Job{}, err
		}
		view, err := q.VMView(ctx, v.ID) // it is judged by what it is told, or a scan could come in between
		if err != nil {
			return cks.Job{}, err
		}
		kind, err := check(view.VM)
		if err != nil {
			return refuse(ctx, q, job, err)
		}
		if job.Kind = kind; kind != cks.Nothing {
			return addJob(ctx, q, job)
		}
		return q.AddDoneJob(ctx, job, cks.JobResult{VM: &view})
	})
	return job, s.audited(ctx, caller, command, err)
}
