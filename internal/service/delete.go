package service

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// DeleteCluster validates the request and records the job that will carry it
// out. Errors and refusals are as in Scale. Of a cluster that others manage only
// the record goes, at once.
func (s *Service) DeleteCluster(ctx context.Context, caller cks.Account, id, jobID string) (cks.Job, error) {
	return s.deleteCluster(ctx, caller, id, jobID, false)
}

// DeleteClusterAndVMs is DeleteCluster with the VMs that are linked to a cluster
// that others manage, all of which the caller has to own. Those of other clusters
// go in any case.
func (s *Service) DeleteClusterAndVMs(ctx context.Context, caller cks.Account, id, jobID string) (cks.Job, error) {
	return s.deleteCluster(ctx, caller, id, jobID, true)
}

func (s *Service) deleteCluster(ctx context.Context, caller cks.Account, id, jobID string, cleanup bool) (cks.Job, error) {
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
		if c.ExternalManaged && !cleanup {
			if err := q.ForgetCluster(ctx, c); err != nil {
				return cks.Job{}, lostIfConflict(err, job)
			}
			return q.AddDoneJob(ctx, job, cks.JobResult{Success: true})
		}
		if err := mayDestroyLinked(ctx, q, caller, c); err != nil {
			return cks.Job{}, err
		}
		job.Kind = cks.DeleteCluster
		return hold(ctx, q, c, job)
	})
	return job, s.audited(ctx, caller, "deleteKubernetesCluster", err)
}

// mayDestroyLinked refuses with cks.Denied what would destroy somebody else's VM:
// whoever may use both can link it to c. Until the transaction ends nobody links
// any more.
func mayDestroyLinked(ctx context.Context, q *store.Queries, caller cks.Account, c cks.Cluster) error {
	if !c.ExternalManaged {
		return nil
	}
	if err := q.LockCluster(ctx, c.ID); err != nil {
		return err
	}
	vms, err := q.VMs(ctx, c.ID)
	if err != nil {
		return err
	}
	for _, v := range vms {
		if _, err := vm(ctx, q, caller, "id", v.ID); err != nil {
			return err
		}
	}
	return nil
}
