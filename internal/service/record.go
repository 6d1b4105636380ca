package service

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// judgements is how often a request is judged when others keep changing the
// cluster between its validation and its commit. The second time nearly always
// shows the winner's state.
const judgements = 5

// lostRace says that what a request was judged by had changed when its job was
// to be written. Nothing of the transaction is kept.
type lostRace struct {
	job   store.NewJob
	cause error
}

func (l *lostRace) Error() string { return l.cause.Error() }
func (l *lostRace) Unwrap() error { return l.cause }

// record judges and records a request in one transaction. When another request
// wins the race it is judged again, on the state that the winner has left, so
// that a refusal tells what is so now; after the given number of judgements it
// is refused with the reason of the last loss.
func (s *Service) record(ctx context.Context, judgements int,
	judge func(*store.Queries) (cks.Job, error)) (job cks.Job, err error) {
	var lost *lostRace
	for range judgements {
		err = s.store.InTx(ctx, func(q *store.Queries) (err error) {
			job, err = judge(q)
			return err
		})
		if !errors.As(err, &lost) {
			return job, err
		}
	}
	err = s.store.InTx(ctx, func(q *store.Queries) (err error) {
		job, err = refuse(ctx, q, lost.job, lost)
		return err
	})
	return job, err
}

// hold records job and takes hold of c for it. Both are in the transaction that
// c was read in, so no other request fits in between.
func hold(ctx context.Context, q *store.Queries, c cks.Cluster, job store.NewJob) (cks.Job, error) {
	added, err := addJob(ctx, q, job)
	if err != nil {
		return cks.Job{}, err
	}
	if err := q.HoldCluster(ctx, c, added.ID, cks.Requests[job.Kind]); err != nil {
		return cks.Job{}, lostIfConflict(err, job)
	}
	return added, nil
}

// addJob records a live job; there is one at a time for each cluster and VM.
func addJob(ctx context.Context, q *store.Queries, job store.NewJob) (cks.Job, error) {
	added, err := q.AddJob(ctx, job)
	return added, lostIfConflict(err, job)
}

func lostIfConflict(err error, job store.NewJob) error {
	if cks.CodeOf(err) == cks.Conflict {
		return &lostRace{job, err}
	}
	return err
}

// refuse records a job that has failed already with why, as CloudStack answers
// what it finds out inside the job. What is our own failure is no refusal.
func refuse(ctx context.Context, q *store.Queries, job store.NewJob, why error) (cks.Job, error) {
	if cks.CodeOf(why) == cks.Internal {
		return cks.Job{}, why
	}
	coded, _ := errors.AsType[*cks.CodedError](why)
	return q.AddFailedJob(ctx, job, coded.Message)
}

// checkJobID refuses a customjobid that is not a uuid in its canonical form.
func checkJobID(id string) error {
	if id == "" {
		return nil
	}
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return cks.Errorf(cks.Parameter, "UUID: %s doesn't follow the UUID format", id)
	}
	return nil
}
