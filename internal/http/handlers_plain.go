package http

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) DeployVirtualMachine(ctx context.Context, req api.DeployVirtualMachineRequestObject) (api.DeployVirtualMachineResponseObject, error) {
	p := req.Params
	if err := checkDomain(callerFrom(ctx), p.Domainid); err != nil {
		return nil, err
	}
	id, job, err := s.svc.DeployVM(ctx, callerFrom(ctx), cks.DeployRequest{
		Name:        p.Name,
		DisplayName: p.Displayname,
		ZoneID:      p.Zoneid,
		OfferingID:  p.Serviceofferingid,
		TemplateID:  p.Templateid,
		NetworkIDs:  p.Networkids,
		Keypair:     p.Keypair,
		KeepStopped: p.Startvm != nil && !*p.Startvm,
		Account:     p.Account,
		ProjectID:   p.Projectid,
		JobID:       p.Customjobid,
	})
	if err != nil {
		return nil, err
	}
	return api.DeployVirtualMachine200JSONResponse{Deployvirtualmachineresponse: api.AcceptedCreate{Id: id, Jobid: job.ID}}, nil
}

func (s *server) DestroyVirtualMachine(ctx context.Context, req api.DestroyVirtualMachineRequestObject) (api.DestroyVirtualMachineResponseObject, error) {
	job, err := s.svc.DestroyVM(ctx, callerFrom(ctx), cks.VMRequest{VM: req.Params.Id, JobID: req.Params.Customjobid})
	if err != nil {
		return nil, err
	}
	return api.DestroyVirtualMachine200JSONResponse{Destroyvirtualmachineresponse: encodeAccepted(job)}, nil
}
