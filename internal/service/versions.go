package service

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// AddVersion records a Kubernetes version that clusters can have. It is for
// administrators.
func (s *Service) AddVersion(ctx context.Context, caller cks.Account, req cks.VersionRequest) (cks.KubernetesVersion, error) {
	var zone cks.Zone
	var err error
	if req.ZoneID != "" {
		if zone, err = s.store.Zone(ctx, req.ZoneID); err != nil {
			return cks.KubernetesVersion{}, unknown(err, "zoneid", req.ZoneID)
		}
	}
	v, err := cks.CheckVersion(req, zone.Name)
	if err != nil {
		return v, err
	}
	added, err := s.store.CreateVersion(ctx, v, caller.ID)
	if cks.CodeOf(err) == cks.Invalid {
		err = cks.Errorf(cks.Invalid, "There is a Kubernetes version with the name %s already", v.Name)
	}
	return added, err
}

// UpdateVersion says whether new clusters can have a version: state is Enabled
// or Disabled. An id that names nothing is cks.UnknownID.
func (s *Service) UpdateVersion(ctx context.Context, caller cks.Account, id, state string) (cks.KubernetesVersion, error) {
	enabled, known := cks.VersionStates[state]
	if !known {
		return cks.KubernetesVersion{}, cks.Errorf(cks.Invalid, "Invalid value for state parameter: %s", state)
	}
	v, err := s.store.Version(ctx, id)
	if err == nil {
		v, err = s.store.EnableVersion(ctx, v.ID, enabled, caller.ID)
	}
	return v, unknown(err, "id", id)
}

// DeleteVersion removes a version that no cluster has, by a job that has ended
// already. An id that names nothing is cks.UnknownID.
func (s *Service) DeleteVersion(ctx context.Context, caller cks.Account, id, jobID string) (cks.Job, error) {
	if err := checkJobID(jobID); err != nil {
		return cks.Job{}, err
	}
	var job cks.Job
	err := s.store.InTx(ctx, func(q *store.Queries) error {
		v, err := q.Version(ctx, id)
		if err != nil {
			return unknown(err, "id", id)
		}
		record := s.jobFor(caller, "deleteKubernetesSupportedVersion", jobID, cks.Cluster{})
		switch done, err := q.RemoveVersion(ctx, v.ID, caller.ID); {
		case err != nil:
			return err
		case done:
			job, err = q.AddDoneJob(ctx, record, cks.JobResult{Success: true})
			return err
		}
		job, err = refuse(ctx, q, record, cks.Errorf(cks.Failed,
			"Unable to delete Kubernetes version ID: %s. Existing clusters currently using the version.", v.ID))
		return err
	})
	return job, err
}
