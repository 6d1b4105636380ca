package http

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) StartKubernetesCluster(ctx context.Context, req api.StartKubernetesClusterRequestObject) (api.StartKubernetesClusterResponseObject, error) {
	job, err := s.svc.StartCluster(ctx, callerFrom(ctx), req.Params.Id, req.Params.Customjobid)
	if err != nil {
		return nil, err
	}
	return api.StartKubernetesCluster200JSONResponse{Startkubernetesclusterresponse: encodeAccepted(job)}, nil
}

func (s *server) StopKubernetesCluster(ctx context.Context, req api.StopKubernetesClusterRequestObject) (api.StopKubernetesClusterResponseObject, error) {
	job, err := s.svc.StopCluster(ctx, callerFrom(ctx), req.Params.Id, req.Params.Customjobid)
	if err != nil {
		return nil, err
	}
	return api.StopKubernetesCluster200JSONResponse{Stopkubernetesclusterresponse: encodeAccepted(job)}, nil
}

func (s *server) UpgradeKubernetesCluster(ctx context.Context, req api.UpgradeKubernetesClusterRequestObject) (api.UpgradeKubernetesClusterResponseObject, error) {
	job, err := s.svc.UpgradeCluster(ctx, callerFrom(ctx), cks.UpgradeRequest{
		Cluster: req.Params.Id,
		Version: req.Params.Kubernetesversionid,
		JobID:   req.Params.Customjobid,
	})
	if err != nil {
		return nil, err
	}
	return api.UpgradeKubernetesCluster200JSONResponse{Upgradekubernetesclusterresponse: encodeAccepted(job)}, nil
}
