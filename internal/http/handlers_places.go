package http

import (
	"context"
	"net/url"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) GetKubernetesClusterConfig(ctx context.Context, req api.GetKubernetesClusterConfigRequestObject) (api.GetKubernetesClusterConfigResponseObject, error) {
	c, err := s.svc.ClusterConfig(ctx, callerFrom(ctx), req.Params.Id)
	if err != nil {
		return nil, err
	}
	return api.GetKubernetesClusterConfig200JSONResponse{Getkubernetesclusterconfigresponse: api.ClusterConfigAnswer{
		Clusterconfig: api.ClusterConfig{Id: c.ID, Name: c.Name, Configdata: c.Data},
	}}, nil
}

func (s *server) ListTemplates(ctx context.Context, req api.ListTemplatesRequestObject) (api.ListTemplatesResponseObject, error) {
	p := req.Params
	templates, total, err := s.svc.Templates(ctx, callerFrom(ctx), cks.TemplateFilter{
		Which:   p.Templatefilter,
		ID:      p.Id,
		IDs:     p.Ids,
		Name:    p.Name,
		Keyword: p.Keyword,
		ZoneID:  p.Zoneid,
		Page:    decodePage(p.Page, p.Pagesize),
	})
	if err != nil {
		return nil, err
	}
	return api.ListTemplates200JSONResponse{Listtemplatesresponse: api.Templates{
		Count:    total,
		Template: each(templates, encodeTemplate),
	}}, nil
}

func (s *server) ListNetworks(ctx context.Context, req api.ListNetworksRequestObject) (api.ListNetworksResponseObject, error) {
	p := req.Params
	if err := checkDomain(callerFrom(ctx), p.Domainid); err != nil {
		return nil, err
	}
	networks, total, err := s.svc.Networks(ctx, callerFrom(ctx), cks.NetworkFilter{
		ID:      p.Id,
		Keyword: p.Keyword,
		ZoneID:  p.Zoneid,
		Account: p.Account,
		Project: p.Projectid,
		ListAll: p.Listall,
		Page:    decodePage(p.Page, p.Pagesize),
	})
	if err != nil {
		return nil, err
	}
	return api.ListNetworks200JSONResponse{Listnetworksresponse: api.Networks{
		Count:   total,
		Network: each(networks, encodeNetwork),
	}}, nil
}

func decodeNodeTemplates(sent []api.NodeTemplate) []cks.NodeTemplate {
	var out []cks.NodeTemplate
	for _, t := range sent {
		out = append(out, cks.NodeTemplate{Node: t.Node, Template: t.Template})
	}
	return out
}

// checkUnkept refuses bad values of parameters that are accepted without
// effect, with CloudStack's texts. The registry's password goes no further.
func checkUnkept(p api.CreateKubernetesClusterParams) error {
	if p.Noderootdisksize != nil && *p.Noderootdisksize <= 0 {
		return cks.Errorf(cks.Invalid, "Invalid value for noderootdisksize")
	}
	registry := []string{p.Dockerregistryusername, p.Dockerregistrypassword, p.Dockerregistryurl}
	given := 0
	for _, s := range registry {
		if s != "" {
			given++
		}
	}
	switch u, err := url.Parse(p.Dockerregistryurl); {
	case given == 0:
	case given < len(registry):
		return cks.Errorf(cks.Invalid, "All the docker private registry parameters (username, password, url) required are specified")
	case err != nil || u.Scheme == "" || u.Host == "":
		return cks.Errorf(cks.Invalid, "Invalid docker registry url specified")
	}
	return nil
}
