package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ckscale/internal/secretbox"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// A server, or an operator, whose encryption key is not that of the database is
// refused with what to do, and leaves nothing behind; with that key it joins.
func TestOtherEncryptionKeyIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h"})
	ann := l.account("ann")
	rows := contents(t, connect(t, l.url))
	b, err := os.ReadFile(filepath.Join(l.server.env["CKSCALE_DATA_DIR"], "encryption-key"))
	if err != nil {
		t.Fatal(err)
	}
	var key secretbox.Key
	if err := key.UnmarshalText(b); err != nil {
		t.Fatal(err)
	}
	other := secretbox.NewKey()
	elsewhere := filepath.Join(t.TempDir(), "state")
	for name, env := range map[string]map[string]string{
		"none":  {"CKSCALE_DATA_DIR": elsewhere},
		"other": {"CKSCALE_ENCRYPTION_KEY": other.Text()},
	} {
		for _, args := range []string{"serve", "account create eve", "account rotate ann", "account encrypt"} {
			out, err := l.server.command(t, env, strings.Fields(args)...)
			if err == nil || !strings.Contains(err.Error(), "set CKSCALE_ENCRYPTION_KEY to the key that the other servers of this database have") ||
				!strings.Contains(err.Error(), "sealed with encryption key "+key.ID()) || out != "" {
				t.Errorf("%s, %s: %s, %v", name, args, out, err)
			}
			if err != nil && (strings.Contains(err.Error(), other.Text()) || strings.Contains(err.Error(), key.Text())) {
				t.Errorf("the error tells a key: %v", err)
			}
		}
	}
	if _, err := os.Stat(elsewhere); !os.IsNotExist(err) {
		t.Errorf("a data directory was made: %v", err)
	}
	if now := contents(t, connect(t, l.url)); now != rows {
		t.Errorf("the tables were changed from\n%s\nto\n%s", rows, now)
	}
	if _, err := l.server.command(t, map[string]string{"CKSCALE_DATA_DIR": elsewhere}, "account", "disable", "ann"); err != nil {
		t.Errorf("an account cannot be disabled without the key: %v", err)
	}
	l.operate("account", "enable", "ann")
	env := maps.Clone(l.server.env)
	env["CKSCALE_DATA_DIR"], env["CKSCALE_ENCRYPTION_KEY"] = elsewhere, key.Text()
	delete(env, "CKSCALE_ADDR_FILE")
	joined := &client{t, apiURL(launch(t, env).serving(t)), adminKeys}
	if !joined.accepts(ann.keys) || !joined.accepts(adminKeys) {
		t.Error("with the same key, accounts are refused")
	}
}

// Without its key a database is not lost: what README says is done, accounts get
// new keys.
func TestLostEncryptionKeyCostsSecretsOnly(t *testing.T) {
	t.Parallel()
	env := childEnv(t, nil)
	s := launch(t, env)
	s.serving(t)
	out, err := s.command(t, nil, "account", "create", "ann")
	if err != nil {
		t.Fatal(err)
	}
	s.end(t)
	if _, err := connect(t, env["DATABASE_URL"]).Exec(t.Context(), `UPDATE accounts SET secret_sealed = NULL`); err != nil {
		t.Fatal(err)
	}
	env["CKSCALE_DATA_DIR"] = t.TempDir()
	s = launch(t, env)
	c := &client{t, apiURL(s.serving(t)), adminKeys}
	if !c.accepts(adminKeys) || c.accepts(printedKeys(out)) {
		t.Error("the admin's keys of the environment are refused, or those of ann known")
	}
	out, err = s.command(t, nil, "account", "rotate", "ann")
	if err != nil || !c.accepts(printedKeys(out)) {
		t.Errorf("ann has no new keys: %v", err)
	}
	if c.id() == "" {
		t.Error("the cluster is gone")
	}
}

// Of those who come first to a database, each with a data directory of his own,
// one makes the key, and the others are refused. None seals with a second key.
func TestOneEncryptionKeyIsMade(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	const n = 6
	made := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		env := map[string]string{"DATABASE_URL": url, "CKSCALE_DATA_DIR": filepath.Join(t.TempDir(), fmt.Sprint(i))}
		all.Go(func() {
			_, made[i] = (&instance{env: env}).command(t, nil, "account", "create", fmt.Sprint("account-", i))
		})
	}
	all.Wait()
	first := 0
	for _, err := range made {
		switch {
		case err == nil:
			first++
		case !strings.Contains(err.Error(), "set CKSCALE_ENCRYPTION_KEY"):
			t.Error(err)
		}
	}
	if first != 1 {
		t.Errorf("%d of %d have made a key: %v", first, n, made)
	}
}

// A key that is none is reported with all other problems, and not shown.
func TestEncryptionKeyIsChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"swordfish", strings.Repeat("ab", 31), secretbox.NewKey().Text() + "x"} {
		_, err := loadConfig(environment(map[string]string{"HOME": "/home/me", "CKSCALE_ENCRYPTION_KEY": bad, "CKSCALE_WORKERS": "0"}))
		if err == nil || !strings.Contains(err.Error(), "CKSCALE_ENCRYPTION_KEY: not 32 bytes in base64 or hex") ||
			!strings.Contains(err.Error(), "CKSCALE_WORKERS") || strings.Contains(err.Error(), bad) {
			t.Errorf("%v", err)
		}
	}
	key := secretbox.NewKey()
	c, err := loadConfig(environment(map[string]string{"HOME": "/home/me", "CKSCALE_ENCRYPTION_KEY": key.Text()}))
	if err != nil || !c.EncryptKey.Equal(key) {
		t.Errorf("%v, %v", c.EncryptKey, err)
	}
}

// The generated key is for its owner's eyes, and never replaced: what was
// sealed with it would be lost. A file that is no key says so.
func TestGeneratedEncryptionKeyStays(t *testing.T) {
	t.Parallel()
	cfg := config{DataDir: filepath.Join(t.TempDir(), "state")}
	path := encryptionKeyFile(cfg)
	var first []byte
	for range 2 { // the second is the process that looked at the same moment
		if err := makeEncryptionKey(cfg, path); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil || first != nil && !bytes.Equal(b, first) {
			t.Errorf("the key is another one, %v", err)
		}
		first = b
	}
	files, err := os.ReadDir(cfg.DataDir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if fi, err := files[0].Info(); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	if err := os.WriteFile(path, first[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := encryptionKey(cfg, nil, nil); err == nil || key != (secretbox.Key{}) || !strings.Contains(err.Error(), path+": not 32 bytes") {
		t.Errorf("%v, %v", key, err)
	}
}
