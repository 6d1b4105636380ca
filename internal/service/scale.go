package service

import (
	"context"
	"strings"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// Scale validates req and records the job that will carry it out. Ids that name
// nothing (cks.UnknownID) and somebody else's cluster (cks.Denied) are errors;
// everything else that is wrong is told by a job that has failed already.
func (s *Service) Scale(ctx context.Context, caller cks.Account, req cks.ScaleRequest) (cks.Job, error) {
	if err := checkJobID(req.JobID); err != nil {
		return cks.Job{}, err
	}
	job, err := s.record(ctx, judgements, func(q *store.Queries) (cks.Job, error) {
		facts, err := s.scaleFacts(ctx, q, caller, req)
		if err != nil {
			return cks.Job{}, err
		}
		c := facts.View.Cluster
		job := s.jobFor(caller, "scaleKubernetesCluster", req.JobID, c)
		change, err := cks.CheckScale(facts, req)
		if err != nil {
			return refuse(ctx, q, job, err)
		}
		job.Kind, job.Args = change.Kind, change.Args
		switch job.Kind {
		case cks.Nothing:
			return q.AddDoneJob(ctx, job, cks.JobResult{Cluster: &facts.View})
		case cks.RecordSize:
			return recordOnly(ctx, q, c, job)
		default:
			return hold(ctx, q, c, job)
		}
	})
	return job, s.audited(ctx, caller, "scaleKubernetesCluster", err)
}

// jobFor is a job of caller's on c, which may be none.
func (s *Service) jobFor(caller cks.Account, command, id string, c cks.Cluster) store.NewJob {
	return store.NewJob{
		ID: id, Command: command, Kind: cks.Nothing, AccountID: caller.ID, ClusterID: c.ID,
		Notes: cks.Notes{Seen: c.State, Before: c.Size}, Timeout: s.set.ScaleTimeout,
	}
}

// scaleFacts gathers what req is judged by. That the caller may use the cluster
// is found out before anything else is looked at (spec/cks.md §7 E12).
func (s *Service) scaleFacts(ctx context.Context, q *store.Queries, caller cks.Account, req cks.ScaleRequest) (cks.ScaleFacts, error) {
	var facts cks.ScaleFacts
	c, err := clusterOrNumber(ctx, q, caller, req.Cluster)
	if err != nil {
		return facts, err
	}
	if facts.EndpointURL, err = s.endpointURL(ctx, q); err != nil {
		return facts, err
	}
	if facts.Offerings, err = offerings(ctx, q, req.OfferingID, req.NodeOfferings); err != nil {
		return facts, err
	}
	if facts.NodeVMs, err = nodeVMs(ctx, q, "nodeids", req.NodeIDs); err != nil {
		return facts, err
	}
	if c.ID == "" {
		return facts, nil
	}
	if facts.View, err = q.View(ctx, c.ID); err != nil {
		return facts, err
	}
	if facts.MaxSize, err = s.maxSize(ctx, q, c.AccountID); err != nil {
		return facts, err
	}
	facts.Limits, facts.Used, err = allowance(ctx, q, c.AccountID)
	return facts, err
}

// clusterOrNumber is cluster for the parameter id of a job's command, except
// that a number that names nothing is no error: the zero Cluster stands for it,
// and the command is refused for it.
func clusterOrNumber(ctx context.Context, q *store.Queries, caller cks.Account, ref string) (cks.Cluster, error) {
	c, err := cluster(ctx, q, caller, "id", ref)
	if cks.CodeOf(err) == cks.UnknownID && number(ref) {
		return cks.Cluster{}, nil
	}
	return c, err
}

// offerings returns, by id, the offerings that a request names. One in
// nodeofferings that does not exist is left out, and the checks refuse it; so
// is a number in serviceofferingid.
func offerings(ctx context.Context, q *store.Queries, id *string, entries []cks.NodeOffering) (map[string]cks.Offering, error) {
	found := map[string]cks.Offering{}
	add := func(ref string) error {
		o, err := q.Offering(ctx, strings.TrimSpace(ref))
		if err == nil {
			found[o.ID] = o
		}
		return err
	}
	if id != nil {
		if err := add(*id); err != nil && (cks.CodeOf(err) != cks.NotFound || !number(*id)) {
			return nil, unknown(err, "serviceofferingid", *id)
		}
	}
	for _, entry := range entries {
		if entry.Offering == nil {
			continue
		}
		if err := add(*entry.Offering); err != nil && cks.CodeOf(err) != cks.NotFound {
			return nil, err
		}
	}
	return found, nil
}

// nodeVMs returns the rows that refs, sent as the parameter param, name, of whatever cluster, one for
// each time that it is named. A number that names nothing has none, and the
// checks refuse it. An id sent over and over is read once.
func nodeVMs(ctx context.Context, q *store.Queries, param string, refs []string) ([]cks.VM, error) {
	var vms []cks.VM
	read := map[string]cks.VM{}
	for _, sent := range refs {
		ref := strings.ToLower(strings.TrimSpace(sent))
		v, known := read[ref]
		if !known {
			var err error
			v, err = q.VMByRef(ctx, ref)
			if cks.CodeOf(err) == cks.NotFound && number(ref) {
				continue
			}
			if err != nil {
				return nil, unknown(err, param, sent)
			}
			read[ref] = v
		}
		vms = append(vms, v)
	}
	return vms, nil
}

// allowance returns what an account may have and what it has. Until the
// transaction ends no other counts it, or several at once could pass its limits.
func allowance(ctx context.Context, q *store.Queries, accountID string) (limits cks.Limits, used cks.Usage, err error) {
	if err := q.LockAccount(ctx, accountID); err != nil {
		return limits, used, err
	}
	l, err := q.Limits(ctx, accountID)
	if err != nil {
		return limits, used, err
	}
	used.VMs, used.Cores, used.MemoryMB, err = q.Usage(ctx, accountID)
	return cks.Limits(l), used, err
}

// recordOnly carries out a request that needs no job: the record changes, in
// the request's own transaction.
func recordOnly(ctx context.Context, q *store.Queries, c cks.Cluster, job store.NewJob) (cks.Job, error) {
	if err := q.RecordUnheld(ctx, c, job.Args); err != nil {
		return cks.Job{}, lostIfConflict(err, job)
	}
	view, err := q.View(ctx, c.ID)
	if err != nil {
		return cks.Job{}, err
	}
	return q.AddDoneJob(ctx, job, cks.JobResult{Cluster: &view})
}
