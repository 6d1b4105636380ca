package http

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) ListConfigurations(ctx context.Context, req api.ListConfigurationsRequestObject) (api.ListConfigurationsResponseObject, error) {
	p := req.Params
	found, total, err := s.svc.Settings(ctx, cks.SettingFilter{
		Name:      p.Name,
		Category:  p.Category,
		Keyword:   p.Keyword,
		AccountID: p.Accountid,
		Page:      decodePage(p.Page, p.Pagesize),
	})
	if err != nil {
		return nil, err
	}
	return api.ListConfigurations200JSONResponse{Listconfigurationsresponse: api.Configurations{
		Count:         total,
		Configuration: each(found, encodeSetting),
	}}, nil
}

func (s *server) UpdateConfiguration(ctx context.Context, req api.UpdateConfigurationRequestObject) (api.UpdateConfigurationResponseObject, error) {
	p := req.Params
	changed, err := s.svc.UpdateSetting(ctx, callerFrom(ctx), p.Name, p.Value, p.Accountid)
	if err != nil {
		return nil, err
	}
	return api.UpdateConfiguration200JSONResponse{
		Updateconfigurationresponse: api.UpdatedConfiguration{Configuration: encodeSetting(changed)},
	}, nil
}
