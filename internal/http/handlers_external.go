package http

import (
	"context"
	"slices"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) AddNodesToKubernetesCluster(ctx context.Context, req api.AddNodesToKubernetesClusterRequestObject) (api.AddNodesToKubernetesClusterResponseObject, error) {
	p := req.Params
	job, err := s.svc.AddNodes(ctx, callerFrom(ctx), cks.NodesRequest{
		Cluster: p.Id, NodeIDs: named(p.Nodeids), ManualUpgrade: p.Manualupgrade, JobID: p.Customjobid,
	})
	if err != nil {
		return nil, err
	}
	return api.AddNodesToKubernetesCluster200JSONResponse{Addnodestokubernetesclusterresponse: encodeAccepted(job)}, nil
}

func (s *server) RemoveNodesFromKubernetesCluster(ctx context.Context, req api.RemoveNodesFromKubernetesClusterRequestObject) (api.RemoveNodesFromKubernetesClusterResponseObject, error) {
	p := req.Params
	job, err := s.svc.RemoveNodes(ctx, callerFrom(ctx), cks.NodesRequest{Cluster: p.Id, NodeIDs: named(p.Nodeids), JobID: p.Customjobid})
	if err != nil {
		return nil, err
	}
	return api.RemoveNodesFromKubernetesCluster200JSONResponse{Removenodesfromkubernetesclusterresponse: encodeAccepted(job)}, nil
}

func (s *server) AddVirtualMachinesToKubernetesCluster(ctx context.Context, req api.AddVirtualMachinesToKubernetesClusterRequestObject) (api.AddVirtualMachinesToKubernetesClusterResponseObject, error) {
	p := req.Params
	err := s.svc.LinkVMs(ctx, callerFrom(ctx), cks.LinkRequest{Cluster: p.Id, VMIDs: named(p.Virtualmachineids), Control: p.Iscontrolnode})
	if err != nil {
		return nil, err
	}
	return api.AddVirtualMachinesToKubernetesCluster200JSONResponse{Addvirtualmachinestokubernetesclusterresponse: api.Success{Success: true}}, nil
}

func (s *server) RemoveVirtualMachinesFromKubernetesCluster(ctx context.Context, req api.RemoveVirtualMachinesFromKubernetesClusterRequestObject) (api.RemoveVirtualMachinesFromKubernetesClusterResponseObject, error) {
	p := req.Params
	vms, err := s.svc.UnlinkVMs(ctx, callerFrom(ctx), cks.LinkRequest{Cluster: p.Id, VMIDs: named(p.Virtualmachineids)})
	if err != nil {
		return nil, err
	}
	return api.RemoveVirtualMachinesFromKubernetesCluster200JSONResponse{
		Removevirtualmachinesfromkubernetesclusterresponse: api.UnlinkedVMs{
			Count: len(vms),
			Removevirtualmachinesfromkubernetesclusterresponse: each(vms, func(u cks.Unlinked) api.UnlinkedVM {
				return api.UnlinkedVM{Id: u.VMID, Displaytext: u.Why, Success: u.Why == ""}
			}),
		},
	}, nil
}

// named leaves out what is empty between the commas of a list.
func named(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
}
