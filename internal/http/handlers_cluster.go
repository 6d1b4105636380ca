package http

import (
	"context"
	"strings"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) ScaleKubernetesCluster(ctx context.Context, req api.ScaleKubernetesClusterRequestObject) (api.ScaleKubernetesClusterResponseObject, error) {
	if req.Params.Dryrun {
		return s.dryRun(ctx, req.Params)
	}
	job, err := s.svc.Scale(ctx, callerFrom(ctx), decodeScale(req.Params))
	if err != nil {
		return nil, err
	}
	return api.ScaleKubernetesCluster200JSONResponse{Scalekubernetesclusterresponse: api.AcceptedScale{Jobid: job.ID}}, nil
}

func (s *server) dryRun(ctx context.Context, p api.ScaleKubernetesClusterParams) (api.ScaleKubernetesClusterResponseObject, error) {
	d, err := s.svc.DryRun(ctx, callerFrom(ctx), decodeScale(p))
	if err != nil {
		return nil, err
	}
	return api.ScaleKubernetesCluster200JSONResponse{Scalekubernetesclusterresponse: api.AcceptedScale{Dryrun: encodeDryRun(d)}}, nil
}

func decodeScale(p api.ScaleKubernetesClusterParams) cks.ScaleRequest {
	req := cks.ScaleRequest{
		Cluster:       p.Id,
		OfferingID:    p.Serviceofferingid,
		NodeOfferings: decodeNodeOfferings(p.Nodeofferings),
		Size:          p.Size,
		Autoscaling:   p.Autoscalingenabled,
		MinSize:       p.Minsize,
		MaxSize:       p.Maxsize,
		JobID:         p.Customjobid,
	}
	if p.Nodeids != nil {
		req.NodeIDs = []string{} // an empty list is not the same as none
		for _, id := range *p.Nodeids {
			if id != "" {
				req.NodeIDs = append(req.NodeIDs, id)
			}
		}
	}
	return req
}

func decodeNodeOfferings(sent []api.NodeOffering) []cks.NodeOffering {
	var out []cks.NodeOffering
	for _, o := range sent {
		out = append(out, cks.NodeOffering{Node: o.Node, Offering: o.Offering})
	}
	return out
}

func (s *server) CreateKubernetesCluster(ctx context.Context, req api.CreateKubernetesClusterRequestObject) (api.CreateKubernetesClusterResponseObject, error) {
	create, err := decodeCreate(callerFrom(ctx), req.Params)
	if err != nil {
		return nil, err
	}
	id, job, err := s.svc.CreateCluster(ctx, callerFrom(ctx), create)
	if err != nil {
		return nil, err
	}
	return api.CreateKubernetesCluster200JSONResponse{
		Createkubernetesclusterresponse: api.AcceptedCreate{Id: id, Jobid: job.ID},
	}, nil
}

func decodeCreate(caller cks.Account, p api.CreateKubernetesClusterParams) (cks.CreateRequest, error) {
	if err := checkCreate(caller, p); err != nil {
		return cks.CreateRequest{}, err
	}
	req := cks.CreateRequest{
		Name:          p.Name,
		Description:   p.Description,
		ZoneID:        p.Zoneid,
		VersionID:     p.Kubernetesversionid,
		OfferingID:    p.Serviceofferingid,
		NodeOfferings: decodeNodeOfferings(p.Nodeofferings),
		NodeTemplates: decodeNodeTemplates(p.Nodetemplates),
		Size:          p.Size,
		ControlNodes:  p.Controlnodes,
		EtcdNodes:     p.Etcdnodes,
		Keypair:       p.Keypair,
		NetworkID:     p.Networkid,
		CSI:           p.Enablecsi,
		Linked:        p.Clustertype == externalManaged,
		Endpoint:      p.Externalloadbalanceripaddress,
		Account:       p.Account,
		ProjectID:     p.Projectid,
		JobID:         p.Customjobid,
	}
	if req.ControlNodes == nil {
		req.ControlNodes = p.Masternodes
	}
	return req, nil
}

// checkCreate refuses what would make another cluster than was asked for if it
// were ignored.
func checkCreate(caller cks.Account, p api.CreateKubernetesClusterParams) error {
	if err := checkDomain(caller, p.Domainid); err != nil {
		return err
	}
	if p.Clustertype != "" && p.Clustertype != cloudManaged && p.Clustertype != externalManaged {
		return cks.Errorf(cks.Invalid, "Unable to resolve cluster type %s to a supported value (CloudManaged, ExternalManaged)", p.Clustertype)
	}
	if p.Cniconfigurationid != "" {
		return cks.UnknownEntity("cniconfigurationid", p.Cniconfigurationid)
	}
	if err := checkUnkept(p); err != nil {
		return err
	}
	return refuseUnsupported([]unsupported{
		{"externalloadbalanceripaddress", p.Externalloadbalanceripaddress != "" && p.Clustertype != externalManaged},
		{"cniconfigdetails", p.Cniconfigdetails != nil},
		{"asnumber", p.Asnumber != 0},
	})
}

// unsupported is a parameter of CloudStack's that cannot be honoured here.
type unsupported struct {
	name string
	sent bool
}

func refuseUnsupported(params []unsupported) error {
	for _, p := range params {
		if p.sent {
			return cks.Errorf(cks.Invalid, "The parameter %s is not supported here", p.name)
		}
	}
	return nil
}

func (s *server) DeleteKubernetesCluster(ctx context.Context, req api.DeleteKubernetesClusterRequestObject) (api.DeleteKubernetesClusterResponseObject, error) {
	p := req.Params
	remove := s.svc.DeleteCluster
	if p.Cleanup || p.Expunge {
		remove = s.svc.DeleteClusterAndVMs
	}
	job, err := remove(ctx, callerFrom(ctx), p.Id, p.Customjobid)
	if err != nil {
		return nil, err
	}
	return api.DeleteKubernetesCluster200JSONResponse{Deletekubernetesclusterresponse: encodeAccepted(job)}, nil
}

func (s *server) ListKubernetesClusters(ctx context.Context, req api.ListKubernetesClustersRequestObject) (api.ListKubernetesClustersResponseObject, error) {
	p := req.Params
	if err := checkDomain(callerFrom(ctx), p.Domainid); err != nil {
		return nil, err
	}
	views, total, err := s.svc.Clusters(ctx, callerFrom(ctx), cks.ClusterFilter{
		ID:      p.Id,
		Name:    p.Name,
		Keyword: p.Keyword,
		State:   p.State,
		Type:    p.Clustertype,
		Account: p.Account,
		Project: p.Projectid,
		ListAll: p.Listall,
		Page:    decodePage(p.Page, p.Pagesize),
	})
	if err != nil {
		return nil, err
	}
	return api.ListKubernetesClusters200JSONResponse{Listkubernetesclustersresponse: api.KubernetesClusters{
		Count:             total,
		Kubernetescluster: each(views, encodeCluster),
	}}, nil
}

func (s *server) ListKubernetesSupportedVersions(ctx context.Context, req api.ListKubernetesSupportedVersionsRequestObject) (api.ListKubernetesSupportedVersionsResponseObject, error) {
	p := req.Params
	versions, total, err := s.svc.Versions(ctx, cks.CatalogFilter{
		ID:         p.Id,
		Keyword:    p.Keyword,
		ZoneID:     p.Zoneid,
		MinVersion: p.Minimumsemanticversion,
		Page:       decodePage(p.Page, p.Pagesize),
	})
	if err != nil {
		return nil, err
	}
	return api.ListKubernetesSupportedVersions200JSONResponse{Listkubernetessupportedversionsresponse: api.KubernetesVersions{
		Count:                      total,
		Kubernetessupportedversion: each(versions, encodeVersion),
	}}, nil
}

// decodePage returns the page that was asked for; the pair was checked before.
func decodePage(number, size *int) cks.Page {
	var p cks.Page
	if number != nil {
		p.Number = *number
	}
	if size != nil {
		p.Size = *size
	}
	return p
}

// checkScope refuses a domain or project that does not exist here. Project -1
// is all of them.
func checkScope(caller cks.Account, domainID, projectID string) error {
	if projectID != "" && projectID != "-1" {
		return cks.UnknownEntity("projectid", projectID)
	}
	return checkDomain(caller, domainID)
}

// checkDomain refuses every domain but the caller's, as there is one.
func checkDomain(caller cks.Account, id string) error {
	if id != "" && !strings.EqualFold(id, caller.DomainID) {
		return cks.UnknownEntity("domainid", id)
	}
	return nil
}

// each encodes every item; no items are nil, which is left out of an answer.
func each[T, U any](items []T, encode func(T) U) []U {
	var out []U
	for _, item := range items {
		out = append(out, encode(item))
	}
	return out
}
