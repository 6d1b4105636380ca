package store

import (
	"context"
	"errors"
)

// CancelJob records that the account wants a live job to end, and makes it due
// now, whatever it waits for; one that is being executed does not wait. done is
// false, and nothing is recorded, when the job has ended, is being given up, or
// is cancelled already.
func (q *Queries) CancelJob(ctx context.Context, jobID, accountID string) (done bool, err error) {
	err = q.inTx(ctx, func(q *Queries) error {
		n, err := q.exec(ctx, `
			UPDATE jobs SET cancelled_by = $2, cancelled = now(), poked = true,
				due = CASE WHEN owner IS NULL THEN now() ELSE due END
			WHERE id = $1 AND status = 0 AND failure = '' AND cancelled IS NULL`, jobID, accountID)
		if done = n == 1; err != nil || !done {
			return err
		}
		q.Wake(TopicJobs, "")
		return q.jobCancelled(ctx, jobID, accountID)
	})
	return done && err == nil, err
}

// CancelledBy returns the name of the account that wants the job to end; "" when
// nobody does.
func (q *Queries) CancelledBy(ctx context.Context, jobID string) (string, error) {
	name, err := scalar[string](ctx, q,
		`SELECT a.name FROM jobs j JOIN accounts a ON a.id = j.cancelled_by WHERE j.id = $1`, jobID)
	if errors.Is(err, errNone) {
		return "", nil
	}
	return name, err
}
