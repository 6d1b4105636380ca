package service

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// CreateCluster validates req and records the cluster, in Starting, together
// with the job that holds it and will build it. Unlike Scale it refuses by an
// error: CloudStack makes the record before it answers, so it knows by then.
func (s *Service) CreateCluster(ctx context.Context, caller cks.Account, req cks.CreateRequest) (string, cks.Job, error) {
	if err := checkJobID(req.JobID); err != nil {
		return "", cks.Job{}, err
	}
	const command = "createKubernetesCluster"
	if req.Linked {
		return s.createLinked(ctx, caller, command, req)
	}
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
		draft, err := cks.CheckCreate(facts, req)
		if err != nil {
			return &refusal{error: err}
		}
		draft = furnish(draft, owner)
		order := s.jobFor(caller, command, cmp.Or(req.JobID, uuid.NewString()), draft)
		order.Kind, order.Args, order.Timeout = cks.CreateCluster, cks.Args{Size: draft.Size}, s.set.StartTimeout
		if draft.State, err = draft.State.On(cks.Requests[cks.CreateCluster]); err != nil {
			return err
		}
		draft.HeldBy = order.ID
		if c, err = q.AddClusterBy(ctx, draft, caller.ID); err != nil { // first, so that the job's events can name it
			return err
		}
		job, err = q.AddJob(ctx, order)
		return err
	})
	if err != nil {
		return "", cks.Job{}, s.audited(ctx, caller, command, err)
	}
	return c.ID, job, nil
}

// createFacts gathers what req is judged by.
func (s *Service) createFacts(ctx context.Context, q *store.Queries, owner cks.Account, req cks.CreateRequest) (cks.CreateFacts, error) {
	var facts cks.CreateFacts
	var err error
	if facts.MaxSize, err = s.maxSize(ctx, q, owner.ID); err != nil {
		return facts, err
	}
	if facts.Zone, err = q.Zone(ctx, req.ZoneID); err != nil {
		return facts, unknown(err, "zoneid", req.ZoneID)
	}
	if req.VersionID != "" {
		v, err := q.LockVersion(ctx, req.VersionID)
		if err != nil {
			return facts, unknown(err, "kubernetesversionid", req.VersionID)
		}
		facts.Version = &v
	}
	switch t, err := q.Template(ctx); {
	case err == nil:
		facts.Template = &t
	case cks.CodeOf(err) != cks.NotFound:
		return facts, err
	}
	if facts.Offerings, err = offerings(ctx, q, req.OfferingID, req.NodeOfferings); err != nil {
		return facts, err
	}
	if facts.Templates, err = templates(ctx, q, req.NodeTemplates); err != nil {
		return facts, err
	}
	if facts.Network, err = placeIn(ctx, q, owner, req.NetworkID); err != nil {
		return facts, err
	}
	facts.Limits, facts.Used, err = allowance(ctx, q, owner.ID)
	return facts, err
}

// furnish gives a new cluster its identity, owner and address, and a network of
// its own unless it is put into one.
func furnish(c cks.Cluster, owner cks.Account) cks.Cluster {
	c.ID, c.AccountID = uuid.NewString(), owner.ID
	if c.NetworkID == "" {
		c.NetworkID, c.NetworkName = uuid.NewString(), c.Name+"-network"
	}
	c.IPAddress, c.IPAddressID = publicIP(c.ID), uuid.NewString()
	return c
}

// publicIP is an address for the cluster's API, from the block that is set
// aside for documentation (RFC 5737): nothing can be reached there by mistake.
func publicIP(clusterID string) string {
	h := fnv.New32a()
	h.Write([]byte(clusterID))
	return fmt.Sprintf("203.0.113.%d", 1+h.Sum32()%254)
}
