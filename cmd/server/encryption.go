package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"ckscale/internal/secretbox"
	"ckscale/internal/store"
)

// encryptionKeyFile is where a generated encryption key is kept.
func encryptionKeyFile(cfg config) string { return filepath.Join(cfg.DataDir, "encryption-key") }

// withKey runs fn in a transaction, alone among those that write secrets, and
// sees to it that st has the encryption key that all of the database's secrets
// are sealed with. It fails when ours is another one.
func withKey(ctx context.Context, st *store.Store, cfg config, log *slog.Logger, fn func(*store.Queries) error) error {
	return st.InTx(ctx, func(q *store.Queries) error {
		if err := q.Alone(ctx); err != nil { // or two servers would each generate keys
			return err
		}
		used, err := q.SealedWith(ctx)
		if err != nil {
			return err
		}
		key, err := encryptionKey(cfg, used, log)
		if err != nil {
			return err
		}
		q.UseKey(key)
		return fn(q)
	})
}

// encryptionKey is the key of the environment, else that of the data directory,
// else, unless secrets are sealed already, a new one. used are the ids of the
// keys that they are sealed with.
func encryptionKey(cfg config, used []string, log *slog.Logger) (secretbox.Key, error) {
	key, from, err := cfg.EncryptKey, "CKSCALE_ENCRYPTION_KEY", error(nil)
	if key == (secretbox.Key{}) {
		from = encryptionKeyFile(cfg)
		key, err = readEncryptionKey(from)
	}
	switch {
	case err == nil:
		for _, id := range used {
			if id != key.ID() {
				return key, fmt.Errorf("secret keys in the database are sealed with encryption key %s, and %s has key %s: %s", id, from, key.ID(), setTheirs)
			}
		}
		return key, nil
	case !errors.Is(err, os.ErrNotExist):
		return key, err
	case len(used) > 0:
		return key, fmt.Errorf("secret keys in the database are sealed with encryption key %s, and there is no key in %s: %s", used[0], from, setTheirs)
	}
	if err := makeEncryptionKey(cfg, from); err != nil {
		return key, fmt.Errorf("keep an encryption key: %w (or set CKSCALE_ENCRYPTION_KEY)", err)
	}
	if !cfg.embedded() {
		log.Info("made an encryption key; other servers of this database need it as CKSCALE_ENCRYPTION_KEY", "file", from)
	}
	return readEncryptionKey(from)
}

const setTheirs = "set CKSCALE_ENCRYPTION_KEY to the key that the other servers of this database have, or put the file with that key there"

func readEncryptionKey(path string) (key secretbox.Key, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return key, fmt.Errorf("encryption key: %w", err)
	}
	if err := key.UnmarshalText(b); err != nil {
		return key, fmt.Errorf("encryption key in %s: %w", path, err)
	}
	return key, nil
}

// makeEncryptionKey writes a new key, unless another process has just done so:
// what is sealed with a key that was replaced would be lost.
func makeEncryptionKey(cfg config, path string) error {
	if err := makeDataDir(cfg); err != nil {
		return err
	}
	err := placeFile(path, []byte(secretbox.NewKey().Text()+"\n"), 0o600, os.Link)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}
