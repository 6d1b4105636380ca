package http

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) ConfigureSimulator(ctx context.Context, req api.ConfigureSimulatorRequestObject) (api.ConfigureSimulatorResponseObject, error) {
	p := req.Params
	err := s.svc.ConfigureSimulator(ctx, callerFrom(ctx), cks.Fault{
		Operation: p.Name,
		Value:     p.Value,
		Count:     p.Count,
		ClusterID: p.Clusterid,
		VMID:      p.Vmid,
	})
	if err != nil {
		return nil, err
	}
	return api.ConfigureSimulator200JSONResponse{Configuresimulatorresponse: api.Success{Success: true}}, nil
}

func (s *server) QuerySimulator(ctx context.Context, req api.QuerySimulatorRequestObject) (api.QuerySimulatorResponseObject, error) {
	world, err := s.svc.QuerySimulator(ctx, callerFrom(ctx), req.Params.Clusterid)
	if err != nil {
		return nil, err
	}
	return api.QuerySimulator200JSONResponse{Querysimulatorresponse: encodeSimulation(world)}, nil
}
