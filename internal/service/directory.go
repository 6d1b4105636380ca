package service

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// Accounts lists accounts, with how many there are on all pages. An id that
// names nothing is cks.UnknownID, somebody else's is cks.Denied.
func (s *Service) Accounts(ctx context.Context, caller cks.Account, f cks.AccountFilter) ([]cks.AccountEntry, int, error) {
	for _, named := range []struct {
		ref  string
		find func(context.Context, string) (cks.Account, error)
	}{{f.ID, s.store.AccountByID}, {f.UserID, s.store.AccountByUser}} {
		if named.ref == "" {
			continue
		}
		account, err := named.find(ctx, named.ref)
		if err == nil && account.ProjectID != "" {
			err = cks.Errorf(cks.NotFound, "no account %s", named.ref)
		}
		if err != nil {
			return nil, 0, unknown(err, "id", named.ref)
		}
		if !caller.Admin && account.ID != caller.ID {
			return nil, 0, permit(caller, "")
		}
	}
	owner, err := scope(ctx, s.store.Queries, caller, f.Account, f.ListAll || f.ID != "" || f.UserID != "")
	if err != nil {
		return nil, 0, err
	}
	return s.store.AccountEntries(ctx, f, owner)
}

// Projects lists projects, with how many there are on all pages. An id that
// names nothing is cks.UnknownID, that of a project that the caller is no member
// of is cks.Denied.
func (s *Service) Projects(ctx context.Context, caller cks.Account, f cks.ProjectFilter) ([]cks.Project, int, error) {
	if f.ID != "" {
		p, err := project(ctx, s.store.Queries, caller, "id", f.ID)
		if err != nil {
			return nil, 0, err
		}
		f.ID = p.ID
	}
	member, err := scope(ctx, s.store.Queries, caller, f.Account, f.ListAll || f.ID != "")
	if err != nil {
		return nil, 0, err
	}
	return s.store.Projects(ctx, f, member)
}

// project resolves ref, sent as the parameter param, for a caller who may use
// what belongs to the project.
func project(ctx context.Context, q *store.Queries, caller cks.Account, param, ref string) (cks.Project, error) {
	p, err := q.ProjectByRef(ctx, ref)
	if err != nil {
		return p, unknown(err, param, ref)
	}
	return p, permit(caller, p.Account.ID)
}

// asked is whose things a list was asked for.
type asked struct {
	account    string // name
	project    string // projectid
	everything bool   // listall
	named      bool   // the things themselves were named, and the caller may use them
}

// reach says whose things a list shows that projects have, too. Without project,
// what belongs to projects is shown only to whoever names it (spec/cks.md §2.6).
func reach(ctx context.Context, q *store.Queries, caller cks.Account, a asked) (r cks.Reach, err error) {
	switch {
	case a.project != "" && a.account != "":
		return r, cks.Errorf(cks.Invalid, "Account and projectId can't be specified together")
	case a.project == "" && a.account == "" && a.named, a.project == cks.AllProjects:
		switch {
		case !caller.Admin:
			return cks.Reach{Accounts: append([]string{caller.ID}, caller.Projects.List()...)}, nil
		case a.everything:
			return cks.Reach{}, nil
		}
		projects, err := q.ProjectAccounts(ctx)
		return cks.Reach{Accounts: append(projects, caller.ID)}, err
	case a.project != "":
		p, err := project(ctx, q, caller, "projectid", a.project)
		return cks.Reach{Accounts: []string{p.Account.ID}}, err
	}
	owner, err := scope(ctx, q, caller, a.account, a.everything)
	if owner != "" {
		return cks.Reach{Accounts: []string{owner}}, err
	}
	return cks.Reach{NoProjects: true}, err
}

// ownerOf is the account that a new cluster is to belong to.
func ownerOf(ctx context.Context, q *store.Queries, caller cks.Account, account, projectID string) (cks.Account, error) {
	switch {
	case projectID != "" && account != "":
		return caller, cks.Errorf(cks.Invalid, "Account and projectId can't be specified together")
	case projectID != "":
		p, err := project(ctx, q, caller, "projectid", projectID)
		return p.Account, err
	case account == "" || account == caller.Name:
		return caller, nil
	case !caller.Admin:
		return caller, permit(caller, "")
	}
	owner, err := q.AccountByName(ctx, account)
	if cks.CodeOf(err) == cks.NotFound {
		return owner, cks.Errorf(cks.Invalid, "Unable to find account by name %s", account)
	}
	return owner, err
}
