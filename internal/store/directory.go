package store

import (
	"context"
	"crypto/rand"
	"errors"

	"ckscale/internal/cks"
)

// noProject is the condition that an account a is not one that a project's
// things belong to.
const noProject = `NOT EXISTS (SELECT FROM projects p WHERE p.account_id = a.id)`

var accountRows = source[cks.AccountEntry]{
	from:  "accounts a JOIN domains d ON d.id = a.domain_id",
	alias: "a",
	joins: usedBy,
	row:   accountColumns + `, a.enabled, a.max_vms, a.max_cores, a.max_memory, used.vms, used.cores, used.memory, a.created`,
	fields: func(e *cks.AccountEntry) []any {
		return append(accountFields(&e.Account), &e.Enabled, &e.Limits.VMs, &e.Limits.Cores, &e.Limits.MemoryMB,
			&e.Used.VMs, &e.Used.Cores, &e.Used.MemoryMB, &e.Created)
	},
}

// AccountEntries returns a page of the accounts that are no project's, and the
// number of all that match. An empty accountID stands for all accounts.
func (q *Queries) AccountEntries(ctx context.Context, f cks.AccountFilter, accountID string) ([]cks.AccountEntry, int, error) {
	w := &filter{conds: []string{noProject}}
	w.id("a.id", f.ID)
	w.id("a.user_id", f.UserID)
	w.text("a.name = ?", f.Name)
	w.text("CASE WHEN a.enabled THEN 'enabled' ELSE 'disabled' END = lower(?)", f.State)
	if f.Type != nil {
		w.and("CASE WHEN a.admin THEN 1 ELSE 0 END = ?", *f.Type)
	}
	w.text(contains("a.name"), f.Keyword)
	w.text("a.name = ?", f.Account)
	w.id("a.id", accountID)
	return accountRows.page(ctx, q, w, f.Page)
}

// AccountByUser returns the account of a user; else cks.NotFound.
func (q *Queries) AccountByUser(ctx context.Context, userID string) (cks.Account, error) {
	a, err := one(ctx, q, accountFields, `SELECT `+accountColumns+` FROM accounts a JOIN domains d ON d.id = a.domain_id
		WHERE a.user_id = nullif($1, '')::uuid AND `+noProject, parseUUID(userID))
	if errors.Is(err, errNone) {
		err = cks.Errorf(cks.NotFound, "no user %s", userID)
	}
	return a, err
}

var projectRows = source[cks.Project]{
	from:  "projects r JOIN accounts a ON a.id = r.account_id JOIN domains d ON d.id = a.domain_id",
	alias: "r",
	row: `r.id, r.name, r.display_text, r.created, (
		SELECT coalesce(json_agg(json_build_object('id', o.id, 'name', o.name, 'userid', o.user_id) ORDER BY o.name), '[]')
		FROM project_members m JOIN accounts o ON o.id = m.account_id WHERE m.project_id = r.id AND m.role = 'Admin'), ` + accountColumns,
	fields: func(p *cks.Project) []any {
		return append([]any{&p.ID, &p.Name, &p.DisplayText, &p.Created, &p.Owners}, accountFields(&p.Account)...)
	},
}

// ProjectByRef returns the project with that uuid or internal number; else
// cks.NotFound.
func (q *Queries) ProjectByRef(ctx context.Context, ref string) (cks.Project, error) {
	return projectRows.ref(ctx, q, "project", ref, "")
}

// Projects returns a page of the projects that the account is a member of, or
// with "" of all, and the number of all that match.
func (q *Queries) Projects(ctx context.Context, f cks.ProjectFilter, memberID string) ([]cks.Project, int, error) {
	w := &filter{}
	w.id("r.id", f.ID)
	w.text("r.name = ?", f.Name)
	w.text("r.display_text = ?", f.DisplayText)
	w.text("lower(?) = lower('"+cks.ProjectState+"')", f.State)
	w.text(contains("r.name || ' ' || r.display_text"), f.Keyword)
	if memberID != "" {
		w.and("EXISTS (SELECT FROM project_members m WHERE m.project_id = r.id AND m.account_id = ?::uuid)", memberID)
	}
	return projectRows.page(ctx, q, w, f.Page)
}

// ProjectAccounts returns the ids of the accounts that the things of projects
// belong to.
func (q *Queries) ProjectAccounts(ctx context.Context) ([]string, error) {
	return all(ctx, q, self[string], `SELECT account_id::text FROM projects ORDER BY seq`)
}

// AddProject makes a project with an account of its own, whose keys nobody is
// told, and its owner. It fails with cks.Invalid when the name is taken and with
// cks.NotFound when there is no such owner.
func (q *Queries) AddProject(ctx context.Context, name, displayText, owner string) error {
	return q.inTx(ctx, func(q *Queries) error {
		if _, err := q.AccountByName(ctx, owner); err != nil {
			return err
		}
		account, err := q.AddAccount(ctx, "PrjAcct-"+name, rand.Text(), rand.Text(), false)
		if err != nil {
			return err
		}
		n, err := q.exec(ctx, `INSERT INTO projects (name, display_text, account_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			name, displayText, account.ID)
		if err != nil {
			return refuse(err, "project %s needs a name", name)
		}
		if n == 0 {
			return cks.Errorf(cks.Invalid, "project name %s is taken", name)
		}
		return q.addMember(ctx, name, owner, "Admin")
	})
}

// AddMember lets the account use what belongs to the project. It fails with
// cks.NotFound when there is no such project or account.
func (q *Queries) AddMember(ctx context.Context, project, account string) error {
	return q.addMember(ctx, project, account, "Regular")
}

func (q *Queries) addMember(ctx context.Context, project, account, role string) error {
	a, err := q.AccountByName(ctx, account)
	if err != nil {
		return err
	}
	known, err := scalar[bool](ctx, q, `
		WITH r AS (SELECT id FROM projects WHERE name = $1), added AS (
			INSERT INTO project_members (project_id, account_id, role) SELECT id, $2, $3 FROM r ON CONFLICT DO NOTHING)
		SELECT EXISTS (SELECT FROM r)`, project, a.ID, role)
	if err == nil && !known {
		return cks.Errorf(cks.NotFound, "no project %s", project)
	}
	return err
}

// RemoveMember keeps the account from the project. It fails with cks.NotFound
// when it is no member, and with cks.Conflict when it is the only owner.
func (q *Queries) RemoveMember(ctx context.Context, project, account string) error {
	return q.inTx(ctx, func(q *Queries) error {
		// The project's row is locked: two owners are not removed at once.
		if _, err := q.exec(ctx, `SELECT FROM projects WHERE name = $1 FOR UPDATE`, project); err != nil {
			return err
		}
		role, err := scalar[string](ctx, q, `
			DELETE FROM project_members m USING projects r, accounts a
			WHERE r.id = m.project_id AND a.id = m.account_id AND r.name = $1 AND a.name = $2 RETURNING m.role`, project, account)
		if errors.Is(err, errNone) {
			return cks.Errorf(cks.NotFound, "account %s is no member of a project %s", account, project)
		}
		if err != nil || role != "Admin" {
			return err
		}
		owned, err := scalar[bool](ctx, q, `
			SELECT EXISTS (SELECT FROM project_members m JOIN projects r ON r.id = m.project_id WHERE r.name = $1 AND m.role = 'Admin')`, project)
		if err == nil && !owned {
			return cks.Errorf(cks.Conflict, "account %s is the only owner of project %s", account, project)
		}
		return err
	})
}

// reach restricts rows to those whose account, in column, r lets be seen.
func (f *filter) reach(column string, r cks.Reach) {
	if r.Accounts != nil {
		f.ids(column, r.Accounts)
	}
	if r.NoProjects {
		f.conds = append(f.conds, "NOT EXISTS (SELECT FROM projects p WHERE p.account_id = "+column+")")
	}
}
