package http

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) ListEvents(ctx context.Context, req api.ListEventsRequestObject) (api.ListEventsResponseObject, error) {
	p := req.Params
	if err := checkDomain(callerFrom(ctx), p.Domainid); err != nil {
		return nil, err
	}
	if err := refuseUnsupported([]unsupported{
		{"duration", p.Duration != nil},
		{"entrytime", p.Entrytime != nil},
	}); err != nil {
		return nil, err
	}
	filter := cks.EventFilter{
		ID:           p.Id,
		StartID:      p.Startid,
		Type:         p.Type,
		Level:        p.Level,
		Keyword:      p.Keyword,
		ResourceID:   p.Resourceid,
		ResourceType: p.Resourcetype,
		Account:      p.Account,
		Project:      p.Projectid,
		ListAll:      p.Listall,
		Page:         decodePage(p.Page, p.Pagesize),
	}
	if p.Startdate != nil {
		filter.Since = *p.Startdate
	}
	if p.Enddate != nil {
		filter.Until = *p.Enddate
	}
	events, total, err := s.svc.Events(ctx, callerFrom(ctx), filter)
	if err != nil {
		return nil, err
	}
	return api.ListEvents200JSONResponse{Listeventsresponse: api.Events{
		Count: total,
		Event: each(events, encodeEvent),
	}}, nil
}

func (s *server) ListEventTypes(context.Context, api.ListEventTypesRequestObject) (api.ListEventTypesResponseObject, error) {
	return api.ListEventTypes200JSONResponse{Listeventtypesresponse: api.EventTypes{
		Count:     len(cks.EventTypes),
		Eventtype: each(cks.EventTypes, func(t cks.EventType) api.EventType { return api.EventType{Name: string(t)} }),
	}}, nil
}
