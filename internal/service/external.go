package service

import (
	"cmp"
	"context"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// AddNodes validates req and records the job that makes nodes of VMs of the
// cluster's owner. Errors and refusals are as in Scale; VMs are refused like
// clusters.
func (s *Service) AddNodes(ctx context.Context, caller cks.Account, req cks.NodesRequest) (cks.Job, error) {
	return s.nodesJob(ctx, caller, "addNodesToKubernetesCluster", s.set.AddTimeout, req, cks.AddNodes, cks.CheckAddNodes,
		func(ctx context.Context, q *store.Queries, f cks.NodesFacts, job cks.Job) error {
			return q.TakeIn(ctx, job, ids(f.NodeVMs), f.View.Version.Version, req.ManualUpgrade)
		})
}

// RemoveNodes is AddNodes for external nodes that are to leave the cluster.
func (s *Service) RemoveNodes(ctx context.Context, caller cks.Account, req cks.NodesRequest) (cks.Job, error) {
	return s.nodesJob(ctx, caller, "removeNodesFromKubernetesCluster", s.set.RemoveTimeout, req, cks.RemoveExternal, cks.CheckRemoveNodes,
		func(ctx context.Context, q *store.Queries, f cks.NodesFacts, job cks.Job) error {
			return q.TakeOut(ctx, job, ids(f.NodeVMs))
		})
}

func (s *Service) nodesJob(ctx context.Context, caller cks.Account, command string, timeout time.Duration, req cks.NodesRequest, kind cks.Kind,
	check func(cks.NodesFacts, cks.NodesRequest) error, take func(context.Context, *store.Queries, cks.NodesFacts, cks.Job) error) (cks.Job, error) {
	if err := checkJobID(req.JobID); err != nil {
		return cks.Job{}, err
	}
	job, err := s.record(ctx, judgements, func(q *store.Queries) (cks.Job, error) {
		facts, err := s.nodesFacts(ctx, q, caller, req)
		if err != nil {
			return cks.Job{}, err
		}
		c := facts.View.Cluster
		job := s.jobFor(caller, command, req.JobID, c)
		if err := check(facts, req); err != nil {
			return refuse(ctx, q, job, err)
		}
		job.Kind, job.Timeout, job.Notes.Wanted = kind, cmp.Or(timeout, job.Timeout), len(facts.NodeVMs)
		job.Args.VMIDs = ids(facts.NodeVMs)
		held, err := hold(ctx, q, c, job)
		if err != nil {
			return cks.Job{}, err
		}
		return held, lostIfConflict(take(ctx, q, facts, held), job)
	})
	return job, s.audited(ctx, caller, command, err)
}

// nodesFacts gathers what req is judged by.
func (s *Service) nodesFacts(ctx context.Context, q *store.Queries, caller cks.Account, req cks.NodesRequest) (cks.NodesFacts, error) {
	var facts cks.NodesFacts
	c, err := clusterOrNumber(ctx, q, caller, req.Cluster)
	if err != nil {
		return facts, err
	}
	if facts.NodeVMs, err = ownVMs(ctx, q, caller, "nodeids", req.NodeIDs); err != nil || c.ID == "" {
		return facts, err
	}
	if facts.MaxSize, err = s.maxSize(ctx, q, c.AccountID); err != nil {
		return facts, err
	}
	facts.View, err = q.View(ctx, c.ID)
	return facts, err
}

// ownVMs is nodeVMs for VMs that the caller has to own.
func ownVMs(ctx context.Context, q *store.Queries, caller cks.Account, param string, refs []string) ([]cks.VM, error) {
	vms, err := nodeVMs(ctx, q, param, refs)
	if err != nil {
		return nil, err
	}
	for _, v := range vms {
		if _, err := vm(ctx, q, caller, param, v.ID); err != nil {
			return nil, err
		}
	}
	return vms, nil
}

func ids(vms []cks.VM) []string {
	var list []string
	for _, v := range vms {
		list = append(list, v.ID)
	}
	return list
}
