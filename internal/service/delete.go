package service

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// DeleteCluster validates the request and records the job that will carry it
// out. Errors and refusals are as in Scale.
func (s *Service) DeleteCluster(ctx context.Context, caller cks.Account, id, jobID string) (cks.Job, error) {
	if err := checkJobID(jobID); err != nil {
		return cks.Job{}, err
	}
	job, err := s.record(ctx, judgements, func(q *store.Queries) (cks.Job, error) {
		c, err := clusterOrNumber(ctx, q, caller, id)
		if err != nil {
			return cks.Job{}, err
		}
		job := s.jobFor(caller, "deleteKubernetesCluster", jobID, c)
		if err := cks.CheckDelete(c); err != nil {
			return refuse(ctx, q, job, err)
		}
		job.Kind = cks.DeleteCluster
		return hold(ctx, q, c, job)
	})
	return job, s.audited(ctx, caller, "deleteKubernetesCluster", err)
}
