package http

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) ListServiceOfferings(ctx context.Context, req api.ListServiceOfferingsRequestObject) (api.ListServiceOfferingsResponseObject, error) {
	p := req.Params
	offerings, total, err := s.svc.Offerings(ctx, cks.CatalogFilter{
		ID:      p.Id,
		Name:    p.Name,
		Keyword: p.Keyword,
		Page:    decodePage(p.Page, p.Pagesize),
	})
	if err != nil {
		return nil, err
	}
	return api.ListServiceOfferings200JSONResponse{Listserviceofferingsresponse: api.ServiceOfferings{
		Count:           total,
		Serviceoffering: each(offerings, encodeOffering),
	}}, nil
}

func (s *server) ListZones(ctx context.Context, req api.ListZonesRequestObject) (api.ListZonesResponseObject, error) {
	p := req.Params
	zones, total, err := s.svc.Zones(ctx, cks.CatalogFilter{
		ID:      p.Id,
		Name:    p.Name,
		Keyword: p.Keyword,
		Page:    decodePage(p.Page, p.Pagesize),
	})
	if err != nil {
		return nil, err
	}
	return api.ListZones200JSONResponse{Listzonesresponse: api.Zones{
		Count: total,
		Zone:  each(zones, encodeZone),
	}}, nil
}
