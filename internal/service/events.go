package service

import (
	"context"
	"errors"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// refusal is an error that an event has to tell of: a rule forbids the request,
// or it is about somebody else's cluster or VM.
type refusal struct {
	error
	clusterID, vmID string // of what is somebody else's
}

func (r *refusal) Unwrap() error { return r.error }

// audited writes the event of a command that was refused by an error: all that
// is left of it, since its transaction was given up. It returns err, or what
// kept the event from being written: no refusal is answered that is not
// recorded. What has been refused by a job has its events by that.
func (s *Service) audited(ctx context.Context, caller cks.Account, command string, err error) error {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return err
	}
	if failed := s.store.AddRefusal(ctx, store.Refusal{
		Command: command, CallerID: caller.ID, ClusterID: r.clusterID, VMID: r.vmID, Why: r.Error(),
	}); failed != nil {
		return failed
	}
	return err
}

// Events lists events, the newest first, with how many there are on all pages.
// An id that names nothing is cks.UnknownID, somebody else's is cks.Denied.
func (s *Service) Events(ctx context.Context, caller cks.Account, f cks.EventFilter) ([]cks.AuditEvent, int, error) {
	for _, named := range []struct {
		param string
		ref   *string
	}{{"id", &f.ID}, {"startid", &f.StartID}} {
		if *named.ref == "" {
			continue
		}
		e, err := s.store.EventByRef(ctx, *named.ref)
		if err != nil {
			return nil, 0, unknown(err, named.param, *named.ref)
		}
		if err := permit(caller, e.Account.ID); err != nil {
			return nil, 0, err
		}
		*named.ref = e.ID
	}
	named := f.ID != "" || f.StartID != ""
	var err error
	if f.Reach, err = reach(ctx, s.store.Queries, caller, asked{f.Account, f.Project, f.ListAll || named, named}); err != nil {
		return nil, 0, err
	}
	return s.store.Events(ctx, f, "")
}
