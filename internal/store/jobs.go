package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ckscale/internal/cks"
)

// jobColumns reads a job j with its account.
const jobColumns = `j.id, j.seq, j.command, j.kind, coalesce(j.cluster_id::text, ''), coalesce(j.vm_id::text, ''),
	j.args, j.notes, j.status, j.step, j.attempt, j.tries, j.failure, j.unchanged,
	(extract(epoch FROM j.deadline - now()) * 1000000)::bigint * 1000,
	coalesce(j.owner, ''), coalesce(j.error_text, ''), j.result, j.created,
	coalesce(j.completed, '0001-01-01 00:00:00+00'),
	j.step_times, coalesce(j.step_since, '0001-01-01 00:00:00+00'), j.message, ` + accountColumns

const jobJoins = `JOIN accounts a ON a.id = j.account_id JOIN domains d ON d.id = a.domain_id`

var jobRows = source[cks.Job]{from: "jobs j", alias: "j", joins: jobJoins, row: jobColumns, fields: jobFields}

func jobFields(j *cks.Job) []any {
	return append([]any{&j.ID, &j.Seq, &j.Command, &j.Kind, &j.ClusterID, &j.VMID,
		&j.Args, &j.Notes, &j.Status, &j.Step, &j.Attempt, &j.Tries, &j.Failure, &j.Unchanged, (*int64)(&j.Remaining),
		&j.Server, &j.ErrorText, &j.Result, &j.Created,
		&j.Completed, &j.StepTimes, &j.StepSince, &j.Message}, accountFields(&j.Account)...)
}

// changedJobs is the part after WITH of a statement that returns the jobs, j,
// that an INSERT or UPDATE of jobs changes. then are more parts, about j.
func changedJobs(change string, then ...string) string {
	parts := append([]string{`j AS (` + change + ` RETURNING id, seq, command, kind, cluster_id, vm_id, args, notes, status, step,
		attempt, tries, failure, unchanged, deadline, owner, error_text, result, created, completed,
		step_times, step_since, message, account_id)`}, then...)
	return strings.Join(parts, ", ") + ` SELECT ` + jobColumns + ` FROM j ` + jobJoins + ` ORDER BY j.seq`
}

// NewJob is a job to be added.
type NewJob struct {
	ID        string // "" = random
	Command   string
	Kind      cks.Kind
	AccountID string
	ClusterID string // "" when it concerns no cluster
	VMID      string // "" unless it is a VM job
	Args      cks.Args
	Notes     cks.Notes
	Timeout   time.Duration // unless a setting says another for the command (cks.TimeoutSettings)
}

// AddJob adds a live job, due now, and wakes the runners. It fails with
// cks.Conflict when its cluster or VM has a live job, and with cks.Parameter
// when its ID is taken; the transaction can go on then.
func (q *Queries) AddJob(ctx context.Context, n NewJob) (cks.Job, error) {
	j, err := q.addJob(ctx, n, cks.JobPending, nil, nil)
	if err == nil {
		q.Wake(TopicJobs, "")
	}
	return j, err
}

// AddFailedJob adds a job that has failed already, with text.
func (q *Queries) AddFailedJob(ctx context.Context, n NewJob, text string) (cks.Job, error) {
	text = clean(text)
	return q.addJob(ctx, n, cks.JobFailed, &text, nil)
}

// AddDoneJob adds a job that has succeeded already.
func (q *Queries) AddDoneJob(ctx context.Context, n NewJob, r cks.JobResult) (cks.Job, error) {
	result, err := toJSON(r)
	if err != nil {
		return cks.Job{}, err
	}
	return q.addJob(ctx, n, cks.JobSucceeded, nil, &result)
}

// addJob adds the job, and the events that say so: a job that has ended already
// was scheduled and completed at once.
func (q *Queries) addJob(ctx context.Context, n NewJob, status cks.JobStatus, text, result *string) (j cks.Job, err error) {
	err = q.inTx(ctx, func(q *Queries) error {
		if j, err = q.insertJob(ctx, n, status, text, result); err != nil {
			return err
		}
		if err = q.jobScheduled(ctx, j); err == nil && status != cks.JobPending {
			err = q.jobCompleted(ctx, j, status == cks.JobFailed, j.ErrorText)
		}
		return err
	})
	return j, err
}

func (q *Queries) insertJob(ctx context.Context, n NewJob, status cks.JobStatus, text, result *string) (cks.Job, error) {
	if n.ID != "" && parseUUID(n.ID) == "" {
		return cks.Job{}, cks.Errorf(cks.Parameter, "%s is no UUID", n.ID)
	}
	args, err := toJSON(n.Args)
	if err != nil {
		return cks.Job{}, err
	}
	notes, err := toJSON(n.Notes)
	if err != nil {
		return cks.Job{}, err
	}
	j, err := one(ctx, q, jobFields, `WITH `+changedJobs(`
		INSERT INTO jobs (id, command, kind, account_id, cluster_id, vm_id, args, notes, deadline,
			status, error_text, result, completed)
		VALUES (coalesce(nullif($1, '')::uuid, gen_random_uuid()), $2, $3, $4, nullif($5, '')::uuid,
			nullif($6, '')::uuid, $7, $8,
			now() + coalesce((SELECT value::int * interval '1 second' FROM settings WHERE name = $13 AND account_id IS NULL), $9::interval),
			$10::smallint, $11, $12, CASE WHEN $10::smallint <> 0 THEN now() END)
		ON CONFLICT DO NOTHING`),
		n.ID, n.Command, n.Kind, n.AccountID, n.ClusterID, n.VMID, args, notes, n.Timeout, int16(status), text, result,
		cks.TimeoutSettings[n.Command])
	if errors.Is(err, errNone) {
		return cks.Job{}, q.collision(ctx, n)
	}
	return j, err
}

// collision says which rule kept n out.
func (q *Queries) collision(ctx context.Context, n NewJob) error {
	if err := q.JobIDFree(ctx, n.ID); err != nil {
		return err
	}
	return cks.Errorf(cks.Conflict, "another job is in progress for %s", describe(n))
}

// JobIDFree fails with cks.Parameter when a job has that id; "" is always free.
func (q *Queries) JobIDFree(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	taken, err := scalar[bool](ctx, q, `SELECT EXISTS (SELECT FROM jobs WHERE id = $1)`, id)
	if err == nil && taken {
		err = cks.Errorf(cks.Parameter, "UUID: %s already exists so can't create/update with custom id", id)
	}
	return err
}

func describe(n NewJob) string {
	if n.VMID != "" {
		return fmt.Sprintf("VM %s", n.VMID)
	}
	return fmt.Sprintf("%s %s", clusterWord, n.ClusterID)
}

// Job returns the job with that uuid or internal number; else cks.NotFound. It
// is one read by key.
func (q *Queries) Job(ctx context.Context, ref string) (cks.Job, error) {
	return jobRows.ref(ctx, q, "job", ref, "")
}

// EndedJobs returns those of the jobs that have ended.
func (q *Queries) EndedJobs(ctx context.Context, ids []string) ([]string, error) {
	return all(ctx, q, self[string], `SELECT id::text FROM jobs WHERE id = ANY ($1::text[]::uuid[]) AND status <> 0`, ids)
}

// Jobs returns a page of the unfinished jobs, oldest first, and the number of
// all that match. An empty accountID stands for all accounts.
func (q *Queries) Jobs(ctx context.Context, f cks.JobFilter, accountID string) ([]cks.Job, int, error) {
	w := &filter{conds: []string{"j.status = 0"}}
	if !f.Since.IsZero() {
		w.and("j.created >= ?", f.Since)
	}
	if f.Keyword != "" {
		w.and("j.command = ANY (?::text[])", cks.CommandsLike(f.Keyword))
	}
	w.text("j.owner = ?", f.Server)
	w.id("j.account_id", accountID)
	w.text("j.account_id = (SELECT id FROM accounts WHERE name = ?)", f.Account)
	return jobRows.page(ctx, q, w, f.Page)
}
