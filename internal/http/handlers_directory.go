package http

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) ListUsers(ctx context.Context, req api.ListUsersRequestObject) (api.ListUsersResponseObject, error) {
	p := req.Params
	if err := checkDomain(callerFrom(ctx), p.Domainid); err != nil {
		return nil, err
	}
	found, total, err := s.svc.Accounts(ctx, callerFrom(ctx), cks.AccountFilter{
		UserID:  p.Id,
		Name:    p.Username,
		State:   p.State,
		Type:    p.Accounttype,
		Keyword: p.Keyword,
		Account: p.Account,
		ListAll: p.Listall,
		Page:    decodePage(p.Page, p.Pagesize),
	})
	if err != nil {
		return nil, err
	}
	return api.ListUsers200JSONResponse{Listusersresponse: api.Users{Count: total, User: each(found, encodeUser)}}, nil
}

func (s *server) ListAccounts(ctx context.Context, req api.ListAccountsRequestObject) (api.ListAccountsResponseObject, error) {
	p := req.Params
	if err := checkDomain(callerFrom(ctx), p.Domainid); err != nil {
		return nil, err
	}
	found, total, err := s.svc.Accounts(ctx, callerFrom(ctx), cks.AccountFilter{
		ID:      p.Id,
		Name:    p.Name,
		State:   p.State,
		Type:    p.Accounttype,
		Keyword: p.Keyword,
		ListAll: p.Listall,
		Page:    decodePage(p.Page, p.Pagesize),
	})
	if err != nil {
		return nil, err
	}
	return api.ListAccounts200JSONResponse{Listaccountsresponse: api.Accounts{Count: total, Account: each(found, encodeAccount)}}, nil
}

func (s *server) ListProjects(ctx context.Context, req api.ListProjectsRequestObject) (api.ListProjectsResponseObject, error) {
	p := req.Params
	if err := checkDomain(callerFrom(ctx), p.Domainid); err != nil {
		return nil, err
	}
	found, total, err := s.svc.Projects(ctx, callerFrom(ctx), cks.ProjectFilter{
		ID:          p.Id,
		Name:        p.Name,
		DisplayText: p.Displaytext,
		State:       p.State,
		Keyword:     p.Keyword,
		Account:     p.Account,
		ListAll:     p.Listall,
		Page:        decodePage(p.Page, p.Pagesize),
	})
	if err != nil {
		return nil, err
	}
	return api.ListProjects200JSONResponse{Listprojectsresponse: api.Projects{Count: total, Project: each(found, encodeProject)}}, nil
}

// cloudStackVersion is the one whose API this is.
const cloudStackVersion = "4.22.0.0"

func (s *server) ListCapabilities(context.Context, api.ListCapabilitiesRequestObject) (api.ListCapabilitiesResponseObject, error) {
	c := api.Capability{
		Cloudstackversion:        cloudStackVersion,
		Kubernetesserviceenabled: true,
		SupportELB:               "false",
	}
	if s.accounts != nil {
		c.Apilimitmax, c.Apilimitinterval = s.accounts.burst, 1
	}
	return api.ListCapabilities200JSONResponse{Listcapabilitiesresponse: api.Capabilities{Capability: c}}, nil
}
