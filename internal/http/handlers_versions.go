package http

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) AddKubernetesSupportedVersion(ctx context.Context, req api.AddKubernetesSupportedVersionRequestObject) (api.AddKubernetesSupportedVersionResponseObject, error) {
	p := req.Params
	v, err := s.svc.AddVersion(ctx, callerFrom(ctx), cks.VersionRequest{
		Name:        p.Name,
		Version:     p.Semanticversion,
		ZoneID:      p.Zoneid,
		MinCores:    p.Mincpunumber,
		MinMemoryMB: p.Minmemory,
	})
	if err != nil {
		return nil, err
	}
	return api.AddKubernetesSupportedVersion200JSONResponse{
		Addkubernetessupportedversionresponse: api.OneKubernetesVersion{Kubernetessupportedversion: encodeVersion(v)},
	}, nil
}

func (s *server) UpdateKubernetesSupportedVersion(ctx context.Context, req api.UpdateKubernetesSupportedVersionRequestObject) (api.UpdateKubernetesSupportedVersionResponseObject, error) {
	v, err := s.svc.UpdateVersion(ctx, callerFrom(ctx), req.Params.Id, req.Params.State)
	if err != nil {
		return nil, err
	}
	return api.UpdateKubernetesSupportedVersion200JSONResponse{
		Updatekubernetessupportedversionresponse: api.OneKubernetesVersion{Kubernetessupportedversion: encodeVersion(v)},
	}, nil
}

func (s *server) DeleteKubernetesSupportedVersion(ctx context.Context, req api.DeleteKubernetesSupportedVersionRequestObject) (api.DeleteKubernetesSupportedVersionResponseObject, error) {
	job, err := s.svc.DeleteVersion(ctx, callerFrom(ctx), req.Params.Id, req.Params.Customjobid)
	if err != nil {
		return nil, err
	}
	return api.DeleteKubernetesSupportedVersion200JSONResponse{Deletekubernetessupportedversionresponse: encodeAccepted(job)}, nil
}
