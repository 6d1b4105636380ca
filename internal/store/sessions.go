package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"ckscale/internal/cks"
)

// digest is what is stored of a secret that nobody can guess.
func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// PasswordOf returns the enabled account of that name with the hash of its
// password, "" when it has none; else cks.NotFound.
func (q *Queries) PasswordOf(ctx context.Context, name string) (cks.Account, string, error) {
	type row struct {
		account cks.Account
		hash    string
	}
	r, err := one(ctx, q, func(r *row) []any { return append(accountFields(&r.account), &r.hash) },
		`SELECT `+accountColumns+`, coalesce(a.password_hash, '') FROM accounts a JOIN domains d ON d.id = a.domain_id
		WHERE a.name = $1 AND a.enabled AND `+noProject, name)
	if errors.Is(err, errNone) {
		err = cks.Errorf(cks.NotFound, "no account %s", name)
	}
	return r.account, r.hash, err
}

// SetPassword gives the account another password by its hash, "" for none, and
// ends its sessions. It fails with cks.NotFound when there is no such account.
func (q *Queries) SetPassword(ctx context.Context, name, hash string) error {
	n, err := q.exec(ctx, `UPDATE accounts a SET password_hash = nullif($2, '') WHERE name = $1 AND `+noProject, name, hash)
	if err == nil && n == 0 {
		return cks.Errorf(cks.NotFound, "no account %s", name)
	}
	return err
}

// NewSession is a session to be opened.
type NewSession struct {
	ID, Key      string // of which only hashes are stored
	AccountID    string
	PasswordHash string        // of the password that was right
	From         string        // address, for the event
	Idle         time.Duration // how long sessions last that are not used
}

// OpenSession adds a session with its event, and deletes some that have ended.
// It fails with cks.NotFound when the account has been disabled, or the password
// is not its own any more.
func (q *Queries) OpenSession(ctx context.Context, s NewSession) error {
	return q.inTx(ctx, func(q *Queries) error {
		// The account's row stays as it is until the commit: whoever changes it
		// afterwards finds the session, and ends it.
		n, err := q.exec(ctx, `
			WITH a AS (SELECT id FROM accounts WHERE id = $1 AND enabled AND password_hash = $2 FOR SHARE)
			INSERT INTO sessions (id_hash, key_hash, account_id) SELECT $3, $4, id FROM a`,
			s.AccountID, s.PasswordHash, digest(s.ID), digest(s.Key))
		if err != nil {
			return err
		}
		if n == 0 {
			return cks.Errorf(cks.NotFound, "no account %s with this password", s.AccountID)
		}
		if _, err := q.exec(ctx, `
			DELETE FROM sessions WHERE id_hash IN (
				SELECT id_hash FROM sessions WHERE used < now() - $1::interval LIMIT 100 FOR UPDATE SKIP LOCKED)`, s.Idle); err != nil {
			return err
		}
		return q.addEvent(ctx, event{kind: cks.EventUserLogin, level: cks.LevelInfo, state: cks.Completed,
			text: cks.LoggedIn(s.From), caller: s.AccountID})
	})
}

// Session returns the enabled account of a session that was used within idle,
// with whether key is the session's; else cks.NotFound. To ask keeps it alive,
// to the minute.
func (q *Queries) Session(ctx context.Context, id, key string, idle time.Duration) (a cks.Account, right bool, err error) {
	type row struct {
		account cks.Account
		right   bool
	}
	r, err := one(ctx, q, func(r *row) []any { return append(callerFields(&r.account), &r.right) }, `
		WITH touched AS (
			UPDATE sessions SET used = now()
			WHERE id_hash = $1 AND used > now() - $3::interval AND used < now() - interval '1 minute')
		SELECT `+callerColumns+`, s.key_hash = $2
		FROM sessions s JOIN accounts a ON a.id = s.account_id JOIN domains d ON d.id = a.domain_id
		WHERE s.id_hash = $1 AND s.used > now() - $3::interval AND a.enabled`,
		digest(id), digest(key), idle)
	if errors.Is(err, errNone) {
		err = cks.Errorf(cks.NotFound, "no such session")
	}
	return r.account, r.right, err
}

// EndSession deletes a session, if it is still there. loggedOut says that its
// user asked for it, which is an event.
func (q *Queries) EndSession(ctx context.Context, id string, loggedOut bool) error {
	return q.inTx(ctx, func(q *Queries) error {
		account, err := scalar[string](ctx, q, `DELETE FROM sessions WHERE id_hash = $1 RETURNING account_id::text`, digest(id))
		if errors.Is(err, errNone) {
			return nil
		}
		if err != nil || !loggedOut {
			return err
		}
		return q.addEvent(ctx, event{kind: cks.EventUserLogout, level: cks.LevelInfo, state: cks.Completed,
			text: cks.LoggedOut, caller: account})
	})
}
