package service

import (
	"context"
	"errors"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// DryRun says what Scale would come to now, by the same facts and rules, and
// changes nothing: no job, no event. Its errors are those of Scale; what Scale
// tells by a job that has failed already is the Refusal.
//
// What only the cloud knows, such as room on the hosts, is found out by the job.
func (s *Service) DryRun(ctx context.Context, caller cks.Account, req cks.ScaleRequest) (d cks.DryRun, err error) {
	if err := checkJobID(req.JobID); err != nil {
		return d, err
	}
	err = s.store.InTx(ctx, func(q *store.Queries) error {
		facts, err := s.scaleFacts(ctx, q, caller, req)
		if err != nil {
			return err
		}
		change, err := cks.CheckScale(facts, req)
		if refusal, ok := errors.AsType[*cks.CodedError](err); ok && refusal.Code != cks.Internal {
			d = cks.DryRun{Refusal: refusal.Message}
			return q.JobIDFree(ctx, req.JobID)
		}
		if err != nil {
			return err
		}
		d = change.Foresee(facts)
		d.Steps = s.steps(d.Kind)
		return q.JobIDFree(ctx, req.JobID)
	})
	return d, err
}
