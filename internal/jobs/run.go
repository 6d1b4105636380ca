package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// run is one attempt at a job: from a claim to its end, or to the next wait.
type run struct {
	*Runner
	job     cks.Job
	plan    plan // carried here: a step that named plans would make an initialisation cycle
	claimed time.Time
	lease   *lease
	log     *slog.Logger
}

// notYet is what a step returns to wait: the job is put back with the time
// that wakes it, and costs nothing meanwhile. A change in the world that
// concerns its cluster wakes it earlier.
type notYet struct{ after time.Duration }

func (n notYet) Error() string { return fmt.Sprintf("not yet; look again in %s", n.after) }

// worldError is what the world answered. Its text may be shown to a client.
type worldError struct {
	what string
	err  error
}

func (e *worldError) Error() string { return e.what + ": " + e.err.Error() }
func (e *worldError) Unwrap() error { return e.err }

// errStopping ends a run between two steps because the process is stopping.
var errStopping = errors.New("jobs: stopping")

// work takes the job as far as it goes and records how that ended. It returns
// the errors that no outcome could be recorded for; the lease then runs out
// and the job is taken up again. A lost lease is none: another runner owns the
// job now.
func (r *run) work(ctx context.Context) error {
	err := r.attempt(ctx)
	if errors.Is(err, store.ErrLeaseLost) {
		r.log.WarnContext(ctx, "the lease is lost; whoever has it goes on")
		return nil
	}
	return err
}

func (r *run) attempt(ctx context.Context) error {
	if len(r.plan.steps) == 0 { // of a newer release: leave it to a server that knows it
		return r.store.PutBack(ctx, r.job, r.cfg.Poll, false)
	}
	steps := r.plan.steps
	if r.job.Failure != "" {
		steps = r.plan.undo
	}
	at, err := r.steps(ctx, steps)
	if cause := context.Cause(ctx); errors.Is(cause, store.ErrLeaseLost) {
		err = cause
	}
	// The outcome is written even while the process stops (A52).
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.CallTimeout)
	defer cancel()
	if err == nil {
		if err = r.finish(ctx); err == nil || r.job.Failure != "" {
			return err
		} // as if one more step had failed: an end that can never be written is given up
	}
	var wait notYet
	var answer *worldError
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		return err
	case errors.As(err, &wait):
		return r.store.PutBack(ctx, r.job, r.untilDeadline(wait.after), false)
	case errors.Is(err, errStopping), errors.Is(err, context.Canceled):
		return r.store.PutBack(ctx, r.job, 0, false)
	case cks.CodeOf(err) == cks.Unavailable:
		return err
	case final(err):
		return r.giveUp(ctx, steps, at, text(err))
	case r.job.Tries+1 < r.cfg.MaxTries:
		r.log.WarnContext(ctx, "step failed, will be tried again", "step", nameOf(steps, at), "try", r.job.Tries+1, "err", err)
		r.say("%s failed, try %d of %d: %s", nameOf(steps, at), r.job.Tries+1, r.cfg.MaxTries, text(err))
		return r.store.PutBack(ctx, r.job, r.cfg.RetryWait, true)
	case errors.As(err, &answer):
		return r.giveUp(ctx, steps, at, text(err))
	default:
		r.log.ErrorContext(ctx, "step failed", "step", nameOf(steps, at), "err", err)
		return r.giveUp(ctx, steps, at, fmt.Sprintf("internal error in step %s", nameOf(steps, at)))
	}
}

// nameOf names what failed: a step, or behind the last one the record of the
// job's end.
func nameOf(steps []step, at int) string {
	if at < len(steps) {
		return steps[at].name
	}
	return "record-end"
}

// final reports whether trying again cannot help.
func final(err error) bool {
	switch cks.CodeOf(err) {
	case cks.Failed, cks.Conflict, cks.Invalid, cks.Denied:
		return true
	}
	return false
}

// text is what a client may read of err.
func text(err error) string {
	if answer, ok := errors.AsType[*worldError](err); ok {
		return answer.Error()
	}
	if e, ok := errors.AsType[*cks.CodedError](err); ok {
		return e.Message
	}
	return "internal error"
}

// steps does what is left of steps and records each. at is the one that failed.
func (r *run) steps(ctx context.Context, steps []step) (at int, err error) {
	for at, err = after(steps, r.job.Step); err == nil && at < len(steps); {
		if r.isStopping() {
			return at, errStopping
		}
		s := steps[at]
		if err = r.cancelled(ctx, s); err != nil {
			return at, err
		}
		if err = r.step(ctx, s); err == nil {
			r.job.Tries = 0
			at, err = after(steps, r.job.Step)
			continue
		}
		if s.optional && errors.As(err, new(*worldError)) && !r.canRetry(err) {
			r.log.WarnContext(ctx, "went on without a step", "step", s.name, "err", err)
			if err = r.store.StepDone(ctx, r.job, s.name, r.job.Notes); err == nil {
				r.job.Step, r.job.Tries = s.name, 0
				at++
				continue
			}
		}
		return at, err
	}
	return at, err
}

// cancelled fails when somebody wants the job to end. Only a step that acts on
// the world is kept from beginning, or from looking again: what the one before
// it did is recorded first. A job that has nothing left to do, or that is being
// undone, ends as it would.
func (r *run) cancelled(ctx context.Context, s step) error {
	if s.do == nil || r.job.Failure != "" {
		return nil
	}
	by, err := r.store.CancelledBy(ctx, r.job.ID)
	if err == nil && by != "" {
		err = cks.Errorf(cks.Failed, "cancelled by %s", by)
	}
	return err
}

// step does s and records it behind the lease. A panic in it is an error of
// this job alone (A28).
func (r *run) step(ctx context.Context, s step) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.ErrorContext(ctx, "step panicked", "step", s.name, "panic", p, "stack", string(debug.Stack()))
			err = &worldError{"step " + s.name, fmt.Errorf("internal error")}
		}
	}()
	r.job.Message = ""
	begin := time.Now()
	defer func() { r.metrics.step(s.name, time.Since(begin)) }()
	if s.do != nil {
		if err := s.do(r, ctx); err != nil {
			return err
		}
	}
	done := s.name
	err = r.store.InTx(ctx, func(q *store.Queries) error {
		done = s.name                                                       // the transaction may run again
		if err := q.StepDone(ctx, r.job, s.name, r.job.Notes); err != nil { // the fence comes first
			return err
		}
		if s.db != nil {
			if err := s.db(r, ctx, q); err != nil {
				return err
			}
		}
		if s.back == "" {
			return nil
		}
		again, err := s.more(r, ctx, q)
		if err == nil && again {
			done = s.back
			err = q.AtStep(ctx, r.job, s.back, r.job.Notes)
		}
		return err
	})
	if err == nil {
		r.job.Step = done
	}
	return err
}

// giveUp records why the job fails, and undoes what steps[at] and those before
// it did. What is to be undone may take long, so it is a plan of its own.
func (r *run) giveUp(ctx context.Context, steps []step, at int, why string) error {
	if r.job.Failure == "" {
		unchanged := unchangedAt(steps, min(at, len(steps)-1))
		r.say("gives up in %s: %s", nameOf(steps, at), why)
		if err := r.store.GiveUp(ctx, r.job, nameOf(steps, at), why, unchanged); err != nil {
			return err
		}
		r.log.WarnContext(ctx, "job is given up", "step", nameOf(steps, at), "why", why)
		if len(r.plan.undo) > 0 && !unchanged {
			return r.store.PutBack(ctx, r.job, 0, false)
		}
		r.job.Failure, r.job.Unchanged, r.job.Step = why, unchanged, ""
	} else {
		r.log.ErrorContext(ctx, "undo failed", "why", why)
	}
	return r.finish(ctx)
}

// finish ends the job and frees its cluster in one transaction.
func (r *run) finish(ctx context.Context) error {
	failed := r.job.Failure != ""
	err := r.store.InTx(ctx, func(q *store.Queries) error {
		if err := q.AtStep(ctx, r.job, r.job.Step, r.job.Notes); err != nil { // the fence, and the job's row before the cluster's
			return err
		}
		why := ""
		if failed {
			var err error
			if why, err = r.why(ctx, q); err != nil {
				return err
			}
		}
		if r.job.ClusterID != "" {
			if err := q.FreeCluster(ctx, r.job, r.ending()); err != nil {
				return err
			}
		}
		if failed {
			return q.FailJob(ctx, r.job, why)
		}
		result, err := r.plan.result(r, ctx, q)
		if err != nil {
			return err
		}
		return q.FinishJob(ctx, r.job, result)
	})
	if err == nil {
		r.metrics.finished(r.job.Kind, failed)
		r.log.InfoContext(ctx, "job ended", "failed", failed, "why", r.job.Failure)
	}
	return err
}

// why is the text of the failure. It names the cluster, whatever it comes from.
func (r *run) why(ctx context.Context, q *store.Queries) (why string, err error) {
	why = r.job.Failure
	if r.plan.explain != nil && !r.job.Unchanged {
		if why, err = r.plan.explain(r, ctx, q); err != nil {
			return "", err
		}
	}
	if r.job.ClusterID == "" {
		return why, nil
	}
	c, err := q.ClusterByRef(ctx, r.job.ClusterID)
	if err == nil && !strings.Contains(why, c.Name) {
		why = fmt.Sprintf("Kubernetes cluster %s: %s", c.Name, why)
	}
	return why, err
}

// ending is the event that the job's end is for its cluster. A failure that
// has changed nothing gives the cluster back as it was seen.
func (r *run) ending() cks.Event {
	failed := cks.OperationFailed
	if r.plan.failed != "" {
		failed = r.plan.failed
	}
	if r.job.Failure == "" || r.job.Unchanged && r.job.Notes.Seen != cks.Alert && r.plan.failed == "" {
		return cks.OperationSucceeded
	}
	return failed
}

// expired reports whether the job's deadline has passed: one for the whole job
// (cks.md §5.1.2), by the database's clock as of the claim.
func (r *run) expired() bool { return time.Since(r.claimed) >= r.job.Remaining }

// untilDeadline shortens d so that a wait ends at the job's deadline.
func (r *run) untilDeadline(d time.Duration) time.Duration {
	if left := r.job.Remaining - time.Since(r.claimed); left > 0 {
		return min(d, left)
	}
	return d
}

// call asks the world for something: within its time limit, and only while the
// lease is surely ours. what begins the text of a failure.
func (r *run) call(ctx context.Context, what string, limit time.Duration, ask func(context.Context) error) error {
	if err := r.lease.check(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := r.guarded(limited, what, ask)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("no answer within %s", limit)
	case errors.Is(err, context.Canceled): // not by us: no reason to begin again at once
		err = errors.New("the call was cut off")
	}
	return &worldError{what, err}
}

// guarded makes an error of a panic in the world, so that what is undone goes
// on as after any other failure.
func (r *run) guarded(ctx context.Context, what string, ask func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.ErrorContext(ctx, "call panicked", "call", what, "panic", p, "stack", string(debug.Stack()))
			err = errors.New("the call panicked")
		}
	}()
	return ask(ctx)
}

// gone makes "not found" no error: what should go is gone (design.md §4.8).
func gone(err error) error {
	if cks.CodeOf(err) == cks.NotFound {
		return nil
	}
	return err
}
