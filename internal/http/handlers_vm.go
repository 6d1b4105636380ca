package http

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) ListVirtualMachines(ctx context.Context, req api.ListVirtualMachinesRequestObject) (api.ListVirtualMachinesResponseObject, error) {
	p := req.Params
	if err := checkDomain(callerFrom(ctx), p.Domainid); err != nil {
		return nil, err
	}
	if p.Id != "" && len(p.Ids) > 0 {
		return nil, cks.Errorf(cks.Invalid, "Specify either id or ids but not both parameters")
	}
	views, total, err := s.svc.VMs(ctx, callerFrom(ctx), cks.VMFilter{
		ID:        p.Id,
		IDs:       p.Ids,
		Name:      p.Name,
		Keyword:   p.Keyword,
		State:     p.State,
		ZoneID:    p.Zoneid,
		NetworkID: p.Networkid,
		Cluster:   p.Kubernetesclusterid,
		Account:   p.Account,
		Project:   p.Projectid,
		ListAll:   p.Listall,
		Page:      decodePage(p.Page, p.Pagesize),
	})
	if err != nil {
		return nil, err
	}
	return api.ListVirtualMachines200JSONResponse{Listvirtualmachinesresponse: api.VirtualMachines{
		Count:          total,
		Virtualmachine: each(views, encodeVM),
	}}, nil
}

func (s *server) StartVirtualMachine(ctx context.Context, req api.StartVirtualMachineRequestObject) (api.StartVirtualMachineResponseObject, error) {
	job, err := s.svc.StartVM(ctx, callerFrom(ctx), cks.VMRequest{VM: req.Params.Id, JobID: req.Params.Customjobid})
	if err != nil {
		return nil, err
	}
	return api.StartVirtualMachine200JSONResponse{Startvirtualmachineresponse: encodeAccepted(job)}, nil
}

func (s *server) StopVirtualMachine(ctx context.Context, req api.StopVirtualMachineRequestObject) (api.StopVirtualMachineResponseObject, error) {
	job, err := s.svc.StopVM(ctx, callerFrom(ctx), cks.VMRequest{
		VM:     req.Params.Id,
		Forced: req.Params.Forced,
		JobID:  req.Params.Customjobid,
	})
	if err != nil {
		return nil, err
	}
	return api.StopVirtualMachine200JSONResponse{Stopvirtualmachineresponse: encodeAccepted(job)}, nil
}
