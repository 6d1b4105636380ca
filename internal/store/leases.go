package store

import (
	"context"
	"time"

	"ckscale/internal/cks"
)

// ClaimJobs leases at most n jobs to owner: those that are due and those whose
// lease ran out, the longest due first. Owners that claim at the same time get
// different jobs. The first claim of a job is its start.
func (q *Queries) ClaimJobs(ctx context.Context, owner string, n int, lease time.Duration) ([]cks.Job, error) {
	commands, kinds, texts := actions()
	return all(ctx, q, jobFields, `
		WITH due AS MATERIALIZED (
			SELECT id FROM jobs WHERE status = 0 AND due <= now()
			ORDER BY due LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED), `+changedJobs(`
		UPDATE jobs SET owner = $1, attempt = attempt + 1, due = now() + $3::interval, poked = false,
			step_since = coalesce(step_since, now())
		WHERE id IN (SELECT id FROM due)`, startedJobs), owner, n, lease, commands, kinds, texts)
}

// NextDue returns how long it is until the first live job is due or its lease
// ends: 0 when one is already, ok false when no job is live.
func (q *Queries) NextDue(ctx context.Context) (d time.Duration, ok bool, err error) {
	in, err := scalar[*int64](ctx, q,
		`SELECT (extract(epoch FROM min(due) - clock_timestamp()) * 1000000)::bigint FROM jobs WHERE status = 0`)
	if err != nil || in == nil {
		return 0, false, err
	}
	return max(0, time.Duration(*in)*time.Microsecond), true, nil
}

// KeepLeases renews the leases of the jobs (of each, id and attempt count), and
// returns the ids of those that owner still executes. It locks them by id, as
// WakeCluster does, so that the two never wait for each other.
func (q *Queries) KeepLeases(ctx context.Context, owner string, jobs []cks.Job, lease time.Duration) (map[string]bool, error) {
	ids, attempts := make([]string, len(jobs)), make([]int64, len(jobs))
	for i, j := range jobs {
		ids[i], attempts[i] = j.ID, j.Attempt
	}
	renewed, err := all(ctx, q, self[string], `
		WITH held AS (
			SELECT jobs.id FROM jobs, unnest($1::text[]::uuid[], $2::bigint[]) AS mine (id, attempt)
			WHERE jobs.id = mine.id AND jobs.attempt = mine.attempt AND owner = $3
			ORDER BY jobs.id FOR UPDATE OF jobs)
		UPDATE jobs SET due = now() + $4::interval FROM held WHERE jobs.id = held.id
		RETURNING jobs.id::text`, ids, attempts, owner, lease)
	if err != nil {
		return nil, err
	}
	kept := make(map[string]bool, len(renewed))
	for _, id := range renewed {
		kept[id] = true
	}
	return kept, nil
}

// leased changes j's row if the caller still executes j; else it fails with
// ErrLeaseLost. In set, $1 and $2 are taken; args start at $3.
//
// A finished job has no owner (the schema checks it), so that the guard on the
// owner keeps every late write off it as well.
func (q *Queries) leased(ctx context.Context, j cks.Job, set string, args ...any) error {
	n, err := q.exec(ctx, `UPDATE jobs SET `+set+` WHERE id = $1 AND attempt = $2 AND owner IS NOT NULL`,
		append([]any{j.ID, j.Attempt}, args...)...)
	if err == nil && n == 0 {
		return ErrLeaseLost
	}
	return err
}

// StepDone records that j has done step, with what its steps have found out,
// and with j's message. The next step starts without failed tries, and now. It
// fails with ErrLeaseLost.
func (q *Queries) StepDone(ctx context.Context, j cks.Job, step string, notes cks.Notes) error {
	doc, err := toJSON(notes)
	if err != nil {
		return err
	}
	return q.leased(ctx, j, `step = $3, notes = $4, tries = 0, message = $5, step_since = statement_timestamp(),
		step_times = step_times || jsonb_build_object($3::text, jsonb_build_object('started', step_since, 'ended', statement_timestamp()))`,
		step, doc, clean(j.Message))
}

// AtStep records that j stands behind a step that it has done before. It is
// StepDone otherwise.
func (q *Queries) AtStep(ctx context.Context, j cks.Job, step string, notes cks.Notes) error {
	doc, err := toJSON(notes)
	if err != nil {
		return err
	}
	return q.leased(ctx, j, `step = $3, notes = $4, tries = 0, message = $5`, step, doc, clean(j.Message))
}

// PutBack lets j wait, to be claimed by anyone after that long; at once when
// after is not positive. failedTry counts a failed try of its step; one that is
// cancelled is not tried again, so it does not back off. It fails with
// ErrLeaseLost. What j says of itself is kept with it.
func (q *Queries) PutBack(ctx context.Context, j cks.Job, after time.Duration, failedTry bool) error {
	err := q.leased(ctx, j, `owner = NULL, poked = $4, message = $5, tries = tries + CASE WHEN $4 THEN 1 ELSE 0 END,
		due = CASE WHEN poked AND NOT $4 OR cancelled IS NOT NULL AND failure = '' AND $4 THEN now()
			ELSE now() + $3::interval END`, max(0, after), failedTry, clean(j.Message))
	if err == nil {
		q.Wake(TopicJobs, "") // whoever sleeps must learn when to look again
	}
	return err
}

// GiveUp records in which step and why j fails; its undo steps follow, from the
// first. unchanged: j had changed nothing yet. The lease stays. It fails with
// ErrLeaseLost.
func (q *Queries) GiveUp(ctx context.Context, j cks.Job, step, why string, unchanged bool) error {
	if why = clean(why); why == "" {
		why = "failed without a message" // an empty failure would mean that all goes well
	}
	return q.leased(ctx, j, `failure = $3, unchanged = $4, step = '', tries = 0, message = $6, step_since = statement_timestamp(),
		step_times = step_times || jsonb_build_object($5::text,
			jsonb_build_object('started', step_since, 'ended', statement_timestamp(), 'failed', true))`,
		why, unchanged, step, clean(j.Message))
}

// FinishJob ends j as succeeded. It fails with ErrLeaseLost.
func (q *Queries) FinishJob(ctx context.Context, j cks.Job, r cks.JobResult) error {
	result, err := toJSON(r)
	if err != nil {
		return err
	}
	return q.ended(ctx, j, false, "", `status = 1, completed = clock_timestamp(), owner = NULL, result = $3`, result)
}

// FailJob ends j as failed with text, cleaned. It fails with ErrLeaseLost.
func (q *Queries) FailJob(ctx context.Context, j cks.Job, text string) error {
	text = clean(text)
	return q.ended(ctx, j, true, text, `status = 2, completed = clock_timestamp(), owner = NULL, error_text = $3`, text)
}

// ended is leased for the change that ends j, with its event.
func (q *Queries) ended(ctx context.Context, j cks.Job, failed bool, why, set string, arg any) error {
	return q.inTx(ctx, func(q *Queries) error {
		if err := q.leased(ctx, j, set, arg); err != nil {
			return err
		}
		q.Wake(TopicEnded, j.ID)
		return q.jobCompleted(ctx, j, failed, why)
	})
}

// WakeCluster makes the waiting jobs of the cluster and of its VMs due now, and
// wakes the runners then. A job that is just being executed will not wait: it
// may have looked before what it is woken for happened. A job that waits to try
// a failed step again is left alone.
func (q *Queries) WakeCluster(ctx context.Context, clusterID string) (bool, error) {
	n, err := q.exec(ctx, `
		WITH woken AS (
			SELECT id FROM jobs
			WHERE id IN (
					SELECT id FROM jobs WHERE status = 0 AND cluster_id = $1
					UNION ALL
					SELECT j.id FROM vms v JOIN jobs j ON j.vm_id = v.id AND j.status = 0
					WHERE v.cluster_id = $1 AND v.removed IS NULL)
				AND status = 0 AND NOT poked AND (owner IS NOT NULL OR due > now())
			ORDER BY id FOR UPDATE)
		UPDATE jobs SET poked = true, due = CASE WHEN owner IS NULL THEN now() ELSE due END
		FROM woken WHERE jobs.id = woken.id`, clusterID)
	if n > 0 {
		q.Wake(TopicJobs, "")
	}
	return n > 0, err
}

// ReleaseLeases makes all live jobs due now, whoever executes them. Only where
// no other server can be running.
func (q *Queries) ReleaseLeases(ctx context.Context) error {
	_, err := q.exec(ctx, `UPDATE jobs SET owner = NULL, due = now() WHERE status = 0`)
	if err == nil {
		q.Wake(TopicJobs, "")
	}
	return err
}
