package service

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// Clusters that others manage are records to us: what is done with them is done
// in the request's own transaction.

// createLinked is CreateCluster for such a cluster. Its job has ended already.
func (s *Service) createLinked(ctx context.Context, caller cks.Account, command string, req cks.CreateRequest) (string, cks.Job, error) {
	var c cks.Cluster
	var job cks.Job
	err := s.store.InTx(ctx, func(q *store.Queries) error {
		owner, err := ownerOf(ctx, q, caller, req.Account, req.ProjectID)
		if err != nil {
			return err
		}
		facts, err := s.createFacts(ctx, q, owner, req)
		if err != nil {
			return err
		}
		draft, err := cks.CheckCreateLinked(facts, req)
		if err != nil {
			return &refusal{error: err}
		}
		draft = furnish(draft, owner)
		draft.IPAddress = req.Endpoint // ours to give is none
		if c, err = q.AddClusterBy(ctx, draft, caller.ID); err != nil {
			return err
		}
		view, err := q.View(ctx, c.ID)
		if err != nil {
			return err
		}
		order := s.jobFor(caller, command, cmp.Or(req.JobID, uuid.NewString()), c)
		job, err = q.AddDoneJob(ctx, order, cks.JobResult{Cluster: &view})
		return err
	})
	return c.ID, job, s.audited(ctx, caller, command, err)
}

// LinkVMs links VMs to such a cluster, at once: all of them or none.
func (s *Service) LinkVMs(ctx context.Context, caller cks.Account, req cks.LinkRequest) error {
	const command = "addVirtualMachinesToKubernetesCluster"
	err := s.store.InTx(ctx, func(q *store.Queries) error {
		c, vms, err := linkFacts(ctx, q, caller, req)
		if err != nil {
			return err
		}
		if err := cks.CheckLink(c, vms); err != nil {
			return &refusal{error: err}
		}
		role := cks.Worker
		if req.Control {
			role = cks.Control
		}
		for _, v := range vms {
			if err := q.LinkVM(ctx, c.ID, v.ID, role); err != nil {
				return err
			}
		}
		return q.NodesChanged(ctx, command, caller.ID, c.ID)
	})
	return s.audited(ctx, caller, command, err)
}

// UnlinkVMs unlinks VMs from such a cluster, at once, and tells of each whether
// it was linked.
func (s *Service) UnlinkVMs(ctx context.Context, caller cks.Account, req cks.LinkRequest) ([]cks.Unlinked, error) {
	const command = "removeVirtualMachinesFromKubernetesCluster"
	var result []cks.Unlinked
	err := s.store.InTx(ctx, func(q *store.Queries) error {
		result = nil // the transaction may run again
		c, vms, err := linkFacts(ctx, q, caller, req)
		if err != nil {
			return err
		}
		if err := cks.CheckUnlink(c); err != nil {
			return &refusal{error: err}
		}
		for _, v := range vms {
			done, err := q.UnlinkVM(ctx, c.ID, v.ID)
			if err != nil {
				return err
			}
			u := cks.Unlinked{VMID: v.ID}
			if !done {
				u.Why = cks.WhyNotUnlinked(v)
			}
			result = append(result, u)
		}
		return q.NodesChanged(ctx, command, caller.ID, c.ID)
	})
	return result, s.audited(ctx, caller, command, err)
}

// linkFacts returns the cluster and the VMs that req names, each VM once, and
// locks them, the VMs in the order of their ids.
func linkFacts(ctx context.Context, q *store.Queries, caller cks.Account, req cks.LinkRequest) (c cks.Cluster, vms []cks.VM, err error) {
	if c, err = clusterOrNumber(ctx, q, caller, req.Cluster); err != nil {
		return c, nil, err
	}
	named, err := ownVMs(ctx, q, caller, "virtualmachineids", req.VMIDs)
	if err != nil {
		return c, nil, err
	}
	if len(named) == 0 {
		return c, nil, cks.Errorf(cks.Invalid, "Invalid VM ID specified")
	}
	if c.ID == "" {
		return c, named, nil
	}
	if err := q.LockCluster(ctx, c.ID); err != nil {
		return c, nil, err
	}
	if c, err = q.ClusterByRef(ctx, c.ID); err != nil {
		return c, nil, err
	}
	once := slices.Compact(slices.Sorted(slices.Values(ids(named))))
	for _, id := range once {
		if err := q.LockVM(ctx, id); err != nil {
			return c, nil, err
		}
		v, err := q.VMByRef(ctx, id)
		if err != nil {
			return c, nil, err
		}
		vms = append(vms, v)
	}
	return c, vms, nil
}
