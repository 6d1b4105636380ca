package service

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// StartCluster validates the request and records the job that will start the
// cluster's VMs, or make them if it is Created. Errors and refusals are as in
// Scale; a cluster that is Running is started already.
func (s *Service) StartCluster(ctx context.Context, caller cks.Account, id, jobID string) (cks.Job, error) {
	return s.power(ctx, caller, "startKubernetesCluster", id, jobID, cks.CheckStart, func(view cks.ClusterView) cks.JobResult {
		return cks.JobResult{Cluster: &view}
	})
}

// StopCluster is StartCluster the other way round.
func (s *Service) StopCluster(ctx context.Context, caller cks.Account, id, jobID string) (cks.Job, error) {
	return s.power(ctx, caller, "stopKubernetesCluster", id, jobID, cks.CheckStop, func(cks.ClusterView) cks.JobResult {
		return cks.JobResult{Success: true}
	})
}

// power records the job that check says. already is the result for a cluster
// that needs none.
func (s *Service) power(ctx context.Context, caller cks.Account, command, id, jobID string,
	check func(cks.Cluster) (cks.Kind, error), already func(cks.ClusterView) cks.JobResult) (cks.Job, error) {
	if err := checkJobID(jobID); err != nil {
		return cks.Job{}, err
	}
	job, err := s.record(ctx, judgements, func(q *store.Queries) (cks.Job, error) {
		view, err := viewOrNumber(ctx, q, caller, id)
		if err != nil {
			return cks.Job{}, err
		}
		c := view.Cluster
		job := s.jobFor(caller, command, jobID, c)
		job.Timeout = s.set.StartTimeout
		if job.Kind, err = check(c); err != nil {
			job.Kind = cks.Nothing
			return refuse(ctx, q, job, err)
		}
		if job.Kind == cks.Nothing {
			return q.AddDoneJob(ctx, job, already(view))
		}
		return hold(ctx, q, c, job)
	})
	return job, s.audited(ctx, caller, command, err)
}

// UpgradeCluster validates req and records the job that will carry it out.
// Errors and refusals are as in Scale.
func (s *Service) UpgradeCluster(ctx context.Context, caller cks.Account, req cks.UpgradeRequest) (cks.Job, error) {
	if err := checkJobID(req.JobID); err != nil {
		return cks.Job{}, err
	}
	const command = "upgradeKubernetesCluster"
	job, err := s.record(ctx, judgements, func(q *store.Queries) (cks.Job, error) {
		view, err := viewOrNumber(ctx, q, caller, req.Cluster)
		if err != nil {
			return cks.Job{}, err
		}
		facts := cks.UpgradeFacts{View: view}
		switch v, err := q.LockVersion(ctx, req.Version); {
		case err == nil:
			facts.To = &v
		case cks.CodeOf(err) != cks.NotFound || !number(req.Version):
			return cks.Job{}, unknown(err, "kubernetesversionid", req.Version)
		}
		job := s.jobFor(caller, command, req.JobID, view.Cluster)
		job.Timeout = s.set.UpgradeTimeout
		args, err := cks.CheckUpgrade(facts)
		if err != nil {
			return refuse(ctx, q, job, err)
		}
		job.Kind, job.Args = cks.UpgradeCluster, args
		return hold(ctx, q, view.Cluster, job)
	})
	return job, s.audited(ctx, caller, command, err)
}

// viewOrNumber is clusterOrNumber with all that belongs to the cluster.
func viewOrNumber(ctx context.Context, q *store.Queries, caller cks.Account, ref string) (cks.ClusterView, error) {
	c, err := clusterOrNumber(ctx, q, caller, ref)
	if err != nil || c.ID == "" {
		return cks.ClusterView{}, err
	}
	return q.View(ctx, c.ID)
}
