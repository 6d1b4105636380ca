package service

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// outcomes are the words for how a job has ended.
var outcomes = map[cks.JobStatus]string{cks.JobSucceeded: "succeeded", cks.JobFailed: "failed"}

// CancelJob records that caller wants a live job to end; it ends as failed at
// its next step boundary. Errors about the job are as in Job; one that has ended
// is cks.Invalid. A job that is cancelled already, or is being given up, will
// end as it is, and asking for it changes nothing.
func (s *Service) CancelJob(ctx context.Context, caller cks.Account, jobID string) error {
	job, err := s.Job(ctx, caller, jobID)
	if cks.CodeOf(err) == cks.Denied {
		return s.audited(ctx, caller, "cancelAsyncJob", &refusal{error: err})
	}
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(q *store.Queries) error {
		done, err := q.CancelJob(ctx, job.ID, caller.ID)
		if err != nil || done {
			return err
		}
		if job, err = q.Job(ctx, job.ID); err != nil {
			return err
		}
		if job.Status != cks.JobPending {
			return cks.Errorf(cks.Invalid, "Unable to cancel job ID: %s, it has ended already: jobstatus is %d (%s)",
				job.ID, job.Status, outcomes[job.Status])
		}
		return nil
	})
}
