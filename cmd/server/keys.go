package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// keys are what an account signs its requests with.
type keys struct {
	API    string `json:"apikey"`
	Secret string `json:"secretkey"`
}

// newKeys are keys that nobody can guess; they need no escaping anywhere.
func newKeys() keys { return keys{API: rand.Text(), Secret: rand.Text() + rand.Text()} }

// adminName is the account that a new database has.
const adminName = "admin"

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

// ensureAdmin makes sure of the account admin. Keys of the environment replace
// those of the database. Generated ones do not where other servers may use
// them: only the embedded database is ours alone.
func ensureAdmin(ctx context.Context, st *store.Store, cfg config) (a admin, err error) {
	if cfg.AdminAPIKey != "" {
		a.source, a.keys = given, keys{cfg.AdminAPIKey, cfg.AdminSecret}
		a.account, err = st.EnsureAdmin(ctx, a.keys.API, a.keys.Secret)
		return a, err
	}
	err = st.InTx(ctx, func(q *store.Queries) error {
		if err := q.Alone(ctx); err != nil { // or two servers would each generate keys
			return err
		}
		a, err = adminOf(ctx, q, cfg)
		return err
	})
	return a, err
}

func adminOf(ctx context.Context, q *store.Queries, cfg config) (admin, error) {
	path := filepath.Join(cfg.DataDir, "admin-keys.json")
	k, err := readKeys(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return admin{}, err
	}
	if !cfg.embedded() {
		account, err := q.AccountByName(ctx, adminName)
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
	case err == nil && owner.ID == account.ID && secret == k.Secret:
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

// writeFile replaces a file so that a reader sees all of it or none.
func writeFile(path string, content []byte, mode os.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
