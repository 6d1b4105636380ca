package store

import (
	"context"
	"errors"
	"time"

	"ckscale/internal/cks"
)

// accountColumns reads an account a with its domain d.
const accountColumns = `a.id, a.name, a.admin, a.user_id, d.id, d.name, d.path,
	coalesce((SELECT p.id::text FROM projects p WHERE p.account_id = a.id), ''),
	coalesce((SELECT p.name FROM projects p WHERE p.account_id = a.id), '')`

func accountFields(a *cks.Account) []any {
	return []any{&a.ID, &a.Name, &a.Admin, &a.UserID, &a.DomainID, &a.Domain, &a.DomainPath, &a.ProjectID, &a.Project}
}

// callerColumns reads an account that asks for something: also whose member it
// is.
const callerColumns = accountColumns + `,
	coalesce((SELECT string_agg(p.account_id::text, ' ') FROM project_members m JOIN projects p ON p.id = m.project_id
		WHERE m.account_id = a.id), '')`

func callerFields(a *cks.Account) []any { return append(accountFields(a), &a.Projects) }

// accountJSON is the same for rows that are read as JSON.
const accountJSON = `json_build_object('id', a.id, 'name', a.name, 'admin', a.admin, 'userid', a.user_id,
	'domainid', d.id, 'domain', d.name, 'domainpath', d.path,
	'projectid', (SELECT p.id FROM projects p WHERE p.account_id = a.id),
	'project', (SELECT p.name FROM projects p WHERE p.account_id = a.id))`

// AddAccount makes an account in domain ROOT. It fails with cks.Invalid when
// the name or the key is taken.
func (q *Queries) AddAccount(ctx context.Context, name, apiKey, secret string, admin bool) (a cks.Account, err error) {
	err = q.inTx(ctx, func(q *Queries) error {
		n, err := q.exec(ctx, `
			INSERT INTO accounts (name, admin, domain_id, api_key, secret_key)
			SELECT $1, $2, id, $3, `+unknownSecret+` FROM domains WHERE path = 'ROOT'
			ON CONFLICT DO NOTHING`,
			name, admin, apiKey)
		if err != nil {
			return refuse(err, "account %s needs a name, an API key and a secret key", name)
		}
		if n == 0 {
			return cks.Errorf(cks.Invalid, "account name %s or its API key is taken", name)
		}
		a, err = q.RotateKeys(ctx, name, apiKey, secret)
		return err
	})
	return a, err
}

// AccountByName fails with cks.NotFound when there is none. A project's account
// is not found by its name: nobody is to have its keys, nor to log in as it.
func (q *Queries) AccountByName(ctx context.Context, name string) (cks.Account, error) {
	a, err := one(ctx, q, accountFields,
		`SELECT `+accountColumns+` FROM accounts a JOIN domains d ON d.id = a.domain_id WHERE a.name = $1 AND `+noProject, name)
	if errors.Is(err, errNone) {
		err = cks.Errorf(cks.NotFound, "no account %s", name)
	}
	return a, err
}

// AccountByID fails with cks.NotFound when there is none.
func (q *Queries) AccountByID(ctx context.Context, id string) (cks.Account, error) {
	a, err := one(ctx, q, accountFields,
		`SELECT `+accountColumns+` FROM accounts a JOIN domains d ON d.id = a.domain_id WHERE a.id = nullif($1, '')::uuid`, parseUUID(id))
	if errors.Is(err, errNone) {
		err = cks.Errorf(cks.NotFound, "no account %s", id)
	}
	return a, err
}

// AccountEntry is an account in the list for operators.
type AccountEntry struct {
	Name           string
	Admin, Enabled bool
	Sealed         bool // its secret key is not stored in clear
	Created        time.Time
}

// Accounts returns all accounts by name, but those of projects.
func (q *Queries) Accounts(ctx context.Context) ([]AccountEntry, error) {
	return all(ctx, q, func(e *AccountEntry) []any { return []any{&e.Name, &e.Admin, &e.Enabled, &e.Sealed, &e.Created} },
		`SELECT name, admin, enabled, secret_sealed IS NOT NULL, created FROM accounts a WHERE `+noProject+` ORDER BY name`)
}

// SetEnabled says whether the account's keys are good; cks.NotFound when there
// is none.
func (q *Queries) SetEnabled(ctx context.Context, name string, enabled bool) error {
	n, err := q.exec(ctx, `UPDATE accounts a SET enabled = $2 WHERE name = $1 AND `+noProject, name, enabled)
	if err == nil && n == 0 {
		return cks.Errorf(cks.NotFound, "no account %s", name)
	}
	return err
}

// Limits is how much an account may have; nil is no limit.
type Limits struct {
	VMs, Cores *int
	MemoryMB   *int64
}

// Limits returns the account's limits; cks.NotFound when there is none.
func (q *Queries) Limits(ctx context.Context, accountID string) (Limits, error) {
	l, err := one(ctx, q, func(l *Limits) []any { return []any{&l.VMs, &l.Cores, &l.MemoryMB} },
		`SELECT max_vms, max_cores, max_memory FROM accounts WHERE id = $1`, accountID)
	if errors.Is(err, errNone) {
		err = cks.Errorf(cks.NotFound, "no account %s", accountID)
	}
	return l, err
}

// SetLimits changes the account's limits; cks.NotFound when there is none.
func (q *Queries) SetLimits(ctx context.Context, accountID string, l Limits) error {
	n, err := q.exec(ctx, `UPDATE accounts SET max_vms = $2, max_cores = $3, max_memory = $4 WHERE id = $1`,
		accountID, l.VMs, l.Cores, l.MemoryMB)
	if err == nil && n == 0 {
		return cks.Errorf(cks.NotFound, "no account %s", accountID)
	}
	return err
}

// Usage returns what the account's VMs add up to, also those that are being
// made or still have to be destroyed, and those that jobs are about to make.
func (q *Queries) Usage(ctx context.Context, accountID string) (vms, cores int, memoryMB int64, err error) {
	type row struct {
		vms, cores int
		memoryMB   int64
	}
	r, err := one(ctx, q, func(r *row) []any { return []any{&r.vms, &r.cores, &r.memoryMB} }, `
		SELECT used.vms + wanted.vms, used.cores + wanted.cores, used.memory + wanted.memory
		FROM (SELECT $1::uuid AS id) a `+usedBy+wantedBy, accountID)
	return r.vms, r.cores, r.memoryMB, err
}

// usedBy joins what the VMs of an account a add up to.
const usedBy = `CROSS JOIN LATERAL (
	SELECT count(*) AS vms, coalesce(sum(o.cores), 0) AS cores, coalesce(sum(o.memory_mb), 0) AS memory
	FROM (
		SELECT offering_id FROM vms WHERE account_id = a.id AND removed IS NULL
		UNION ALL
		SELECT v.offering_id FROM clusters c JOIN vms v ON v.cluster_id = c.id
		WHERE c.account_id = a.id AND c.removed IS NULL AND v.removed IS NULL AND v.account_id IS NULL) v
	JOIN service_offerings o ON o.id = v.offering_id) used`

// wantedBy joins what the VMs add up to that live jobs on clusters of an account
// a are to make and have no rows for yet.
const wantedBy = ` CROSS JOIN LATERAL (
	SELECT coalesce(sum(w.n), 0)::bigint AS vms, coalesce(sum(w.n * o.cores), 0)::bigint AS cores,
		coalesce(sum(w.n * o.memory_mb), 0)::bigint AS memory
	FROM clusters c JOIN jobs j ON j.id = c.held_by AND j.status = 0 AND j.failure = ''
	CROSS JOIN LATERAL (VALUES
		(coalesce(c.control_offering_id, c.offering_id), CASE WHEN j.kind = 'create-cluster' THEN c.control_nodes ELSE 0 END),
		(coalesce(c.etcd_offering_id, c.offering_id), CASE WHEN j.kind = 'create-cluster' THEN c.etcd_nodes ELSE 0 END),
		(coalesce((j.args->'offerings'->>'worker')::uuid, c.worker_offering_id, (j.args->>'defaultoffering')::uuid, c.offering_id),
			CASE WHEN j.kind = 'create-cluster' THEN c.size
				WHEN j.kind IN ('scale-up', 'change-offering-then-scale-up') THEN greatest((j.args->>'size')::int - c.size, 0)
				ELSE 0 END)) w (offering_id, n)
	JOIN service_offerings o ON o.id = w.offering_id
	WHERE c.account_id = a.id AND c.removed IS NULL AND NOT EXISTS (SELECT FROM vms v WHERE v.job_id = j.id)) wanted`

// refuse turns a broken constraint into cks.Invalid with a text; other errors
// stay.
func refuse(err error, format string, args ...any) error {
	switch sqlState(err) {
	case "23505", "23514", "23503", "23502": // unique, check, foreign key, not null
		return cks.Errorf(cks.Invalid, format+": %w", append(args, err)...)
	}
	return err
}
