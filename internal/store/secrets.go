package store

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"

	"ckscale/internal/cks"
	"ckscale/internal/secretbox"
)

// Admin is the name of the root admin's account.
const Admin = "admin"

// unknownSecret is what secret_key has beside a sealed secret, for a server of
// the release that reads nothing else: it matches no signature. See
// migrations/0002_sealed_secrets.up.sql.
const unknownSecret = `gen_random_uuid()::text`

// UseKey says what secret keys are sealed with and opened. It is for the start:
// nobody else may use the store yet. Without a key no secret can be written,
// nor a sealed one read.
func (q *Queries) UseKey(k secretbox.Key) { *q.key = k }

// SealedWith returns the ids of the keys that the stored secrets are sealed
// with: one, or none when nothing is sealed yet.
func (q *Queries) SealedWith(ctx context.Context) (ids []string, err error) {
	headers, err := all(ctx, q, self[[]byte],
		`SELECT substring(secret_sealed FOR $1) FROM accounts WHERE secret_sealed IS NOT NULL
		UNION SELECT substring(key_sealed FOR $1) FROM cluster_credentials ORDER BY 1`, secretbox.HeaderSize)
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		id, err := secretbox.KeyID(h)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// EnsureAdmin makes the account "admin", a root admin in domain ROOT, or gives
// it other keys. An account that is so already is only read: a change waits for
// every transaction that has added a job or a cluster of it, and a server that
// starts must not wait for one that stands still; and one of the release before
// may still read the secret in clear. It fails with cks.Invalid when another
// account has the key.
func (q *Queries) EnsureAdmin(ctx context.Context, apiKey, secret string) (a cks.Account, err error) {
	err = q.inTx(ctx, func(q *Queries) error {
		owner, known, err := q.AccountByKey(ctx, apiKey)
		switch {
		case err == nil:
			if owner.Name == Admin && owner.Admin && subtle.ConstantTimeCompare([]byte(known), []byte(secret)) == 1 {
				a = owner
				return nil
			}
		case cks.CodeOf(err) != cks.NotFound && !errors.Is(err, secretbox.ErrNotOpened): // one that cannot be opened is replaced
			return err
		}
		_, err = q.exec(ctx, `
			INSERT INTO accounts (name, admin, domain_id, api_key, secret_key)
			SELECT $1, true, id, $2, `+unknownSecret+` FROM domains WHERE path = 'ROOT'
			ON CONFLICT (name) DO UPDATE SET admin = true, enabled = true`,
			Admin, apiKey)
		if err != nil {
			return refuse(err, "API key of account %s is taken", Admin)
		}
		a, err = q.RotateKeys(ctx, Admin, apiKey, secret)
		return err
	})
	return a, err
}

// RotateKeys gives the account other keys. It fails with cks.NotFound when
// there is none, and with cks.Invalid when another account has the key.
func (q *Queries) RotateKeys(ctx context.Context, name, apiKey, secret string) (cks.Account, error) {
	if secret == "" {
		return cks.Account{}, cks.Errorf(cks.Invalid, "account %s needs a secret key", name)
	}
	a, err := q.AccountByName(ctx, name)
	if err != nil {
		return a, err
	}
	sealed, err := q.key.Seal(secret, a.ID)
	if err != nil {
		return a, fmt.Errorf("secret key of account %s: %w", name, err)
	}
	_, err = q.exec(ctx, `UPDATE accounts SET api_key = $2, secret_key = `+unknownSecret+`, secret_sealed = $3 WHERE id = $1`,
		a.ID, apiKey, sealed)
	return a, refuse(err, "API key of account %s is taken", name)
}

// keptSecret is a secret as it is stored.
type keptSecret struct {
	account cks.Account
	clear   string
	sealed  []byte // nil: clear has it
}

// AccountByKey returns the enabled account that has the API key, and its
// secret key. It fails with cks.NotFound when there is none; an error without
// code says that its secret cannot be opened.
func (q *Queries) AccountByKey(ctx context.Context, apiKey string) (cks.Account, string, error) {
	k, err := one(ctx, q, func(k *keptSecret) []any { return append(callerFields(&k.account), &k.clear, &k.sealed) },
		`SELECT `+callerColumns+`, a.secret_key, a.secret_sealed FROM accounts a JOIN domains d ON d.id = a.domain_id
		WHERE a.api_key = $1 AND a.enabled`, apiKey)
	if errors.Is(err, errNone) {
		err = cks.Errorf(cks.NotFound, "no account with this API key")
	}
	if err != nil || k.sealed == nil {
		return k.account, k.clear, err
	}
	secret, err := q.key.Open(k.sealed, k.account.ID)
	if err != nil {
		return k.account, "", fmt.Errorf("secret key of account %s: %w", k.account.Name, err)
	}
	return k.account, secret, nil
}

// ClearSecrets returns how many secrets are stored in clear.
func (q *Queries) ClearSecrets(ctx context.Context) (int, error) {
	return scalar[int](ctx, q, `SELECT count(*) FROM accounts WHERE secret_sealed IS NULL`)
}

// SealSecrets seals the secrets that are stored in clear, and returns how many
// there were. A server of the release before cannot read them any more.
func (q *Queries) SealSecrets(ctx context.Context) (n int, err error) {
	err = q.inTx(ctx, func(q *Queries) error {
		found, err := all(ctx, q, func(k *keptSecret) []any { return []any{&k.account.ID, &k.clear} },
			`SELECT id, secret_key FROM accounts WHERE secret_sealed IS NULL ORDER BY id FOR NO KEY UPDATE`)
		if err != nil {
			return err
		}
		for _, k := range found {
			sealed, err := q.key.Seal(k.clear, k.account.ID)
			if err != nil {
				return err
			}
			if _, err := q.exec(ctx, `UPDATE accounts SET secret_key = `+unknownSecret+`, secret_sealed = $2 WHERE id = $1`,
				k.account.ID, sealed); err != nil {
				return err
			}
		}
		n = len(found)
		return nil
	})
	return n, err
}
