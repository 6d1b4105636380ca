package service

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// DeployVM validates req and records the VM together with the job that will
// make it. Like CreateCluster it refuses by an error.
func (s *Service) DeployVM(ctx context.Context, caller cks.Account, req cks.DeployRequest) (string, cks.Job, error) {
	const command = "deployVirtualMachine"
	if err := checkJobID(req.JobID); err != nil {
		return "", cks.Job{}, err
	}
	id := uuid.NewString()
	var job cks.Job
	err := s.store.InTx(ctx, func(q *store.Queries) error {
		owner, err := ownerOf(ctx, q, caller, req.Account, req.ProjectID)
		if err != nil {
			return err
		}
		facts, err := deployFacts(ctx, q, owner, req)
		if err != nil {
			return err
		}
		if err := cks.CheckDeploy(facts, req); err != nil {
			return &refusal{error: err}
		}
		network, err := networkOf(ctx, q, owner, facts.Zone, req.NetworkIDs)
		if err != nil {
			return err
		}
		err = q.AddPlainVM(ctx, store.NewPlainVM{
			ID: id, AccountID: owner.ID, ZoneID: facts.Zone.ID, OfferingID: facts.Offering.ID, TemplateID: facts.Template.ID,
			Name: cmp.Or(req.Name, cks.HostNameOf(id)), DisplayName: req.DisplayName, Keypair: req.Keypair,
			NetworkID: network.ID, NetworkName: network.Name,
		})
		if err != nil { // somebody else was faster with the name
			return err
		}
		job, err = q.AddJob(ctx, store.NewJob{ID: req.JobID, Command: command, Kind: cks.DeployVM, AccountID: caller.ID, VMID: id,
			Args: cks.Args{KeepStopped: req.KeepStopped}, Timeout: s.set.ScaleTimeout})
		if err != nil {
			return err
		}
		return q.ChoosePlain(ctx, job, cks.Chosen)
	})
	if err != nil {
		return "", cks.Job{}, s.audited(ctx, caller, command, err)
	}
	return id, job, nil
}

// networkOf returns the first of the networks, which all have to be the owner's.
// A VM that names none is in a network of its account, which is made for the
// first one and whose id never changes.
func networkOf(ctx context.Context, q *store.Queries, owner cks.Account, zone cks.Zone, refs []string) (first cks.Network, err error) {
	if len(refs) == 0 {
		id := uuid.NewSHA1(uuid.NameSpaceOID, []byte("network of account "+owner.ID)).String()
		return q.EnsureNetwork(ctx, cks.Network{ID: id, Name: owner.Name + "-network", AccountID: owner.ID, ZoneID: zone.ID})
	}
	for i, ref := range refs {
		n, err := q.Network(ctx, ref)
		if err != nil {
			return first, unknown(err, "networkids", ref)
		}
		if err := permit(owner, n.AccountID); err != nil {
			return first, &refusal{error: err}
		}
		if i == 0 {
			first = n
		}
	}
	return first, nil
}

// deployFacts gathers what req is judged by.
func deployFacts(ctx context.Context, q *store.Queries, owner cks.Account, req cks.DeployRequest) (f cks.DeployFacts, err error) {
	if f.Zone, err = q.Zone(ctx, req.ZoneID); err != nil {
		return f, unknown(err, "zoneid", req.ZoneID)
	}
	if f.Offering, err = q.Offering(ctx, req.OfferingID); err != nil {
		return f, unknown(err, "serviceofferingid", req.OfferingID)
	}
	t, err := q.TemplateByRef(ctx, req.TemplateID)
	if err != nil {
		return f, unknown(err, "templateid", req.TemplateID)
	}
	f.Template = &t
	if f.Taken, err = q.HasVMNamed(ctx, owner.ID, req.Name); err != nil {
		return f, err
	}
	f.Limits, f.Used, err = allowance(ctx, q, owner.ID)
	return f, err
}

// DestroyVM records the job that destroys a VM that is no member of a cluster.
// One that is gone already is cks.UnknownID.
func (s *Service) DestroyVM(ctx context.Context, caller cks.Account, req cks.VMRequest) (cks.Job, error) {
	const command = "destroyVirtualMachine"
	if err := checkJobID(req.JobID); err != nil {
		return cks.Job{}, err
	}
	job, err := s.record(ctx, 1, func(q *store.Queries) (cks.Job, error) {
		v, err := vm(ctx, q, caller, "id", req.VM)
		if err != nil {
			return cks.Job{}, err
		}
		if err := q.LockVM(ctx, v.ID); err != nil {
			return cks.Job{}, err
		}
		view, err := q.VMView(ctx, v.ID)
		if err != nil {
			return cks.Job{}, err
		}
		if view.VM.Removed {
			return cks.Job{}, cks.UnknownEntity("id", req.VM)
		}
		job := store.NewJob{ID: req.JobID, Command: command, Kind: cks.Nothing, AccountID: caller.ID, VMID: v.ID, Timeout: s.set.ScaleTimeout}
		if err := cks.CheckDestroyVM(view.VM, view.ClusterName); err != nil {
			return refuse(ctx, q, job, err)
		}
		job.Kind = cks.DestroyVM
		added, err := addJob(ctx, q, job)
		if err != nil {
			return cks.Job{}, err
		}
		return added, lostIfConflict(q.ChoosePlain(ctx, added, cks.Leaving), job)
	})
	return job, s.audited(ctx, caller, command, err)
}
