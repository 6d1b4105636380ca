package service

import (
	"context"
	"errors"
	"strings"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// Networks lists networks, with how many there are on all pages. An id that
// names nothing is cks.UnknownID, somebody else's is cks.Denied.
func (s *Service) Networks(ctx context.Context, caller cks.Account, f cks.NetworkFilter) ([]cks.NetworkView, int, error) {
	q := s.store.Queries
	if f.ID != "" {
		n, err := q.Network(ctx, f.ID)
		if err != nil {
			return nil, 0, unknown(err, "id", f.ID)
		}
		if err := permit(caller, n.AccountID); err != nil {
			return nil, 0, err
		}
		f.ID = n.ID
	}
	if f.ZoneID != "" {
		z, err := q.Zone(ctx, f.ZoneID)
		if err != nil {
			return nil, 0, unknown(err, "zoneid", f.ZoneID)
		}
		f.ZoneID = z.ID
	}
	var err error
	if f.Reach, err = reach(ctx, q, caller, asked{f.Account, f.Project, f.ListAll || f.ID != "", f.ID != ""}); err != nil {
		return nil, 0, err
	}
	return q.Networks(ctx, f, "")
}

// Templates lists templates, with how many there are on all pages. An id that
// names nothing is cks.UnknownID.
func (s *Service) Templates(ctx context.Context, caller cks.Account, f cks.TemplateFilter) ([]cks.Template, int, error) {
	q := s.store.Queries
	shown, err := cks.TemplatesShown(f.Which, caller)
	if err == nil {
		err = errors.Join(known(ctx, "id", f.ID, q.TemplateByRef), known(ctx, "zoneid", f.ZoneID, q.Zone))
	}
	if err != nil {
		return nil, 0, err
	}
	for i, ref := range f.IDs {
		t, err := q.TemplateByRef(ctx, ref)
		if err != nil {
			return nil, 0, unknown(err, "ids", ref)
		}
		f.IDs[i] = t.ID
	}
	if !shown {
		return nil, 0, nil
	}
	return q.Templates(ctx, f)
}

// templates returns, by id, the templates that nodetemplates names. One that
// does not exist is left out, and the checks refuse it.
func templates(ctx context.Context, q *store.Queries, entries []cks.NodeTemplate) (map[string]cks.Template, error) {
	found := map[string]cks.Template{}
	for _, e := range entries {
		if e.Template == nil {
			continue
		}
		t, err := q.TemplateByRef(ctx, strings.TrimSpace(*e.Template))
		if err != nil && cks.CodeOf(err) != cks.NotFound {
			return nil, err
		}
		if err == nil {
			found[t.ID] = t
		}
	}
	return found, nil
}

// placeIn returns the network that a new cluster is to be put into, for a
// caller who may use it; nil for an empty ref. Until the transaction ends nobody
// else puts a cluster into it.
func placeIn(ctx context.Context, q *store.Queries, caller cks.Account, ref string) (*cks.Network, error) {
	if ref == "" {
		return nil, nil
	}
	n, err := q.LockNetwork(ctx, ref)
	if err != nil {
		return nil, unknown(err, "networkid", ref)
	}
	if err := permit(caller, n.AccountID); err != nil {
		return nil, &refusal{error: err}
	}
	return &n, nil
}
