package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"ckscale/internal/cks"
	"ckscale/internal/service"
	"ckscale/internal/store"
)

// keys are what an account signs its requests with.
type keys struct {
	API    string `json:"apikey"`
	Secret string `json:"secretkey"`
}

// newKeys are keys that nobody can guess; they need no escaping anywhere.
func newKeys() keys { return keys{API: rand.Text(), Secret: rand.Text() + rand.Text()} }

// admin is the account admin and where its keys can be seen.
type admin struct {
	account cks.Account
	keys    keys
	source  keySource
}

type keySource int

const (
	given     keySource = iota // by the environment
	kept                       // in the data directory
	elsewhere                  // another server of this database made them: keys is empty
)

// adminKeysFile is where generated keys of the account admin are kept.
func adminKeysFile(cfg config) string { return filepath.Join(cfg.DataDir, "admin-keys.json") }

// ensureAdmin makes sure of the encryption key and then of the account admin.
func ensureAdmin(ctx context.Context, st *store.Store, cfg config, log *slog.Logger) (a admin, err error) {
	inClear := 0
	err = withKey(ctx, st, cfg, log, func(q *store.Queries) error {
		if a, err = adminOf(ctx, q, cfg); err != nil {
			return err
		}
		if cfg.embedded() { // else a server of an older release may still read them
			inClear, err = q.SealSecrets(ctx)
			return err
		}
		inClear, err = q.ClearSecrets(ctx)
		return err
	})
	if err == nil && cfg.AdminPasswd != "" {
		err = service.EnsurePassword(ctx, st, store.Admin, cfg.AdminPasswd)
	}
	switch {
	case err != nil || inClear == 0:
	case cfg.embedded():
		log.InfoContext(ctx, "secret keys that were stored in clear have been encrypted", "accounts", inClear)
	default:
		log.WarnContext(ctx, "secret keys are stored in clear; when all servers are of this release, run: server account encrypt", "accounts", inClear)
	}
	return a, err
}

// adminOf makes sure of the account admin. Keys of the environment replace
// those of the database. Generated ones do not where other servers may use
// them: only the embedded database is ours alone.
func adminOf(ctx context.Context, q *store.Queries, cfg config) (admin, error) {
	if cfg.AdminAPIKey != "" {
		k := keys{cfg.AdminAPIKey, cfg.AdminSecret}
		account, err := q.EnsureAdmin(ctx, k.API, k.Secret)
		return admin{account: account, keys: k, source: given}, err
	}
	path := adminKeysFile(cfg)
	k, err := readKeys(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return admin{}, err
	}
	if !cfg.embedded() {
		account, err := q.AccountByName(ctx, store.Admin)
		if err == nil {
			return existing(ctx, q, k, account)
		}
		if cks.CodeOf(err) != cks.NotFound {
			return admin{}, err
		}
	}
	if k == (keys{}) {
		k = newKeys()
		if err := writeKeys(cfg, path, k); err != nil {
			return admin{}, err
		}
	}
	account, err := q.EnsureAdmin(ctx, k.API, k.Secret)
	return admin{account: account, keys: k, source: kept}, err
}

// existing leaves the keys of account as they are; k is what we know of them.
func existing(ctx context.Context, q *store.Queries, k keys, account cks.Account) (admin, error) {
	owner, secret, err := q.AccountByKey(ctx, k.API)
	switch {
	case err == nil && owner.ID == account.ID && subtle.ConstantTimeCompare([]byte(secret), []byte(k.Secret)) == 1:
		return admin{account: account, keys: k, source: kept}, nil
	case err == nil, cks.CodeOf(err) == cks.NotFound:
		return admin{account: account, source: elsewhere}, nil
	}
	return admin{}, err
}

func readKeys(path string) (keys, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return keys{}, fmt.Errorf("keys of the account admin: %w", err)
	}
	var k keys
	if err := json.Unmarshal(b, &k); err != nil || k.API == "" || k.Secret == "" {
		return keys{}, fmt.Errorf("%s is damaged: remove it to have new keys generated", path)
	}
	return k, nil
}

func writeKeys(cfg config, path string, k keys) error {
	err := makeDataDir(cfg)
	if err == nil {
		var b []byte
		if b, err = json.Marshal(k); err == nil {
			err = writeFile(path, append(b, '\n'), 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("keep the keys of the account admin: %w (or set CKSCALE_ADMIN_API_KEY and CKSCALE_ADMIN_SECRET_KEY)", err)
	}
	return nil
}
