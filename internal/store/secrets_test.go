package store_test

import (
	"fmt"
	"strings"
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/secretbox"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
	"ckscale/migrations"
)

// secretOf is the secret that the store reads for an API key.
func secretOf(t *testing.T, st *store.Store, apiKey string) string {
	t.Helper()
	_, secret, err := st.AccountByKey(t.Context(), apiKey)
	ok(t, err)
	return secret
}

// accountRows is all that is stored of the accounts.
func accountRows(t *testing.T, st *store.Store) string {
	t.Helper()
	return read[string](t, st, `SELECT string_agg(to_jsonb(a)::text, ' ' ORDER BY name) FROM accounts a`)
}

// However a secret gets into the database, it is sealed there, for its account
// and with the store's key only; in any mode of the driver.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			url := migrated(t)
			st := open(t, with(t, url, "default_query_exec_mode", mode))
			st.UseKey(storetest.Key)
			ctx := t.Context()
			must[cks.Account](t)(st.EnsureAdmin(ctx, "admin-key", "the-secret-1"))
			must[cks.Account](t)(st.AddAccount(ctx, "ann", "ann-key", "the-secret-2", false))
			must[cks.Account](t)(st.AddAccount(ctx, "bob", "bob-key", "the-secret-3", false))
			bob := must[cks.Account](t)(st.RotateKeys(ctx, "bob", "bob-key-2", "the-secret\xff\x004"))
			diff(t, bob, must[cks.Account](t)(st.AccountByName(ctx, "bob")))
			for key, want := range map[string]string{"admin-key": "the-secret-1", "ann-key": "the-secret-2", "bob-key-2": "the-secret\xff\x004"} {
				if got := secretOf(t, st, key); got != want {
					t.Errorf("the secret of %s is %q", key, got)
				}
			}
			if rows := accountRows(t, st); strings.Contains(rows, "the-secret") || strings.Contains(rows, fmt.Sprintf("%x", "the-secret")) {
				t.Errorf("stored: %s", rows)
			}
			diff(t, []string{storetest.Key.ID()}, must[[]string](t)(st.SealedWith(ctx)))
			if n := must[int](t)(st.ClearSecrets(ctx)); n != 0 {
				t.Errorf("%d are in clear", n)
			}
			for name, key := range map[string]secretbox.Key{"another": secretbox.NewKey(), "no": {}} {
				stranger := open(t, url)
				stranger.UseKey(key)
				_, secret, err := stranger.AccountByKey(ctx, "ann-key")
				wantErr(t, err, secretbox.ErrNotOpened)
				wantCode(t, err, cks.Internal)
				if secret != "" || !strings.Contains(err.Error(), "secret key of account ann") {
					t.Errorf("with %s key: %q, %v", name, secret, err)
				}
			}
		})
	}
}

// Without a key no account is made.
func TestNoSecretIsStoredWithoutKey(t *testing.T) {
	t.Parallel()
	st := open(t, migrated(t))
	if _, err := st.AddAccount(t.Context(), "ann", "ann-key", "s", false); err == nil || cks.CodeOf(err) != cks.Internal {
		t.Errorf("added: %v", err)
	}
	if _, err := st.EnsureAdmin(t.Context(), "key", "s"); err == nil || cks.CodeOf(err) != cks.Internal {
		t.Errorf("admin: %v", err)
	}
	st.UseKey(storetest.Key)
	for _, err := range []error{second(st.AddAccount(t.Context(), "ann", "ann-key", "", false)), second(st.EnsureAdmin(t.Context(), "key", ""))} {
		wantCode(t, err, cks.Invalid) // no secret
	}
	if n := read[int](t, st, `SELECT count(*) FROM accounts`); n != 0 {
		t.Errorf("%d accounts", n)
	}
}

// Keys are replaced for an account that there is, by keys that nobody has.
func TestRotateKeys(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	ann := must[cks.Account](t)(st.AddAccount(ctx, "ann", "ann-key", "s1", false))
	must[cks.Account](t)(st.AddAccount(ctx, "bob", "bob-key", "s2", false))
	diff(t, ann, must[cks.Account](t)(st.RotateKeys(ctx, "ann", "ann-key-2", "s3")))
	_, _, err := st.AccountByKey(ctx, "ann-key")
	wantCode(t, err, cks.NotFound)
	wantCode(t, second(st.RotateKeys(ctx, "ann", "bob-key", "s")), cks.Invalid)
	wantCode(t, second(st.RotateKeys(ctx, "eve", "eve-key", "s")), cks.NotFound)
	wantCode(t, second(st.RotateKeys(ctx, "ann", "ann-key-3", "")), cks.Invalid)
	wantCode(t, st.SetEnabled(ctx, "eve", false), cks.NotFound)
	if secretOf(t, st, "ann-key-2") != "s3" || secretOf(t, st, "bob-key") != "s2" {
		t.Error("a refused rotation has changed a secret")
	}
}

// The admin's row is written when there is something to change, and only then:
// servers start all the time, and one of the release before may read it.
func TestEnsureAdminWritesWhatChanged(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	written := func(secret string) bool {
		t.Helper()
		const row = `SELECT coalesce((SELECT xmin::text || ctid FROM accounts WHERE name = 'admin'), '')`
		before := read[string](t, st, row)
		must[cks.Account](t)(st.EnsureAdmin(ctx, "key", secret))
		if got := secretOf(t, st, "key"); got != secret {
			t.Errorf("the secret is %q, want %q", got, secret)
		}
		return read[string](t, st, row) != before
	}
	for _, s := range []struct{ change, secret string }{
		{`SELECT`, "one"},
		{`SELECT`, "two"},
		{`UPDATE accounts SET admin = false`, "two"},
		{`UPDATE accounts SET enabled = false`, "two"},
		{`UPDATE accounts SET api_key = 'other'`, "two"},
		{`UPDATE accounts SET secret_sealed = substring(secret_sealed FOR 20)`, "two"},
	} {
		sql(t, st, s.change)
		if !written(s.secret) {
			t.Errorf("%s, secret %s: nothing was written", s.change, s.secret)
		}
		if written(s.secret) {
			t.Errorf("%s, secret %s: written twice", s.change, s.secret)
		}
	}
	sql(t, st, `UPDATE accounts SET secret_key = 'two'`) // as the release before does
	if written("two") {
		t.Error("a secret that the release before may read was sealed")
	}
}

// formerStatements are those of the release before that write and read keys. It
// still runs while its successor's first server has migrated the database.
var formerStatements = struct{ ensureAdmin, addAccount, accountByKey string }{
	`INSERT INTO accounts (name, admin, domain_id, api_key, secret_key)
		SELECT $1, true, id, $2, $3 FROM domains WHERE path = 'ROOT'
		ON CONFLICT (name) DO UPDATE SET admin = true, enabled = true, api_key = $2, secret_key = $3`,
	`INSERT INTO accounts (name, admin, domain_id, api_key, secret_key)
		SELECT $1, $2, id, $3, $4 FROM domains WHERE path = 'ROOT'
		ON CONFLICT DO NOTHING`,
	`SELECT a.secret_key FROM accounts a JOIN domains d ON d.id = a.domain_id WHERE a.api_key = $1 AND a.enabled`,
}

// The two releases share a database: each understands what the former has
// written, and a secret that only the later one knows is refused by the former
// whatever is signed with.
func TestReleaseBeforeWorksOnThisSchema(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	st := open(t, url)
	sql(t, st, string(must[[]byte](t)(migrations.FS.ReadFile("0001_init.up.sql"))))
	sql(t, st, `CREATE TABLE schema_migrations (version bigint PRIMARY KEY, dirty boolean NOT NULL); INSERT INTO schema_migrations VALUES (1, false)`)
	st.UseKey(storetest.Key)
	ctx := t.Context()
	sql(t, st, formerStatements.ensureAdmin, "admin", "admin-key", "admin-secret")
	sql(t, st, formerStatements.addAccount, "ann", false, "ann-key", "ann-secret")
	ok(t, store.Migrate(ctx, url))
	sql(t, st, formerStatements.addAccount, "bob", false, "bob-key", "bob-secret")
	sql(t, st, formerStatements.ensureAdmin, "admin", "admin-key", "admin-secret")
	must[cks.Account](t)(st.EnsureAdmin(ctx, "admin-key", "admin-secret")) // a server of this release starts
	for _, name := range []string{"admin", "ann", "bob"} {
		if former := read[string](t, st, formerStatements.accountByKey, name+"-key"); former != name+"-secret" || secretOf(t, st, name+"-key") != former {
			t.Errorf("%s's secret is %q to the release before, %q to this one", name, former, secretOf(t, st, name+"-key"))
		}
	}
	if n := must[int](t)(st.ClearSecrets(ctx)); n != 3 {
		t.Errorf("%d are in clear", n)
	}
	must[cks.Account](t)(st.AddAccount(ctx, "carol", "carol-key", "carol-secret", false))
	if n := must[int](t)(st.SealSecrets(ctx)); n != 3 {
		t.Errorf("%d were sealed", n)
	}
	seen := map[string]bool{"": true}
	for _, name := range []string{"admin", "ann", "bob", "carol"} {
		former := read[string](t, st, formerStatements.accountByKey, name+"-key")
		if seen[former] || strings.Contains(former, name) || len(former) < 32 {
			t.Errorf("the release before takes %q for %s's secret", former, name)
		}
		seen[former] = true
		if got := secretOf(t, st, name+"-key"); got != name+"-secret" {
			t.Errorf("%s's secret is %q", name, got)
		}
	}
	// One more of its servers starts, with other keys for the admin.
	sql(t, st, formerStatements.ensureAdmin, "admin", "admin-key-2", "admin-secret-2")
	if got := secretOf(t, st, "admin-key-2"); got != "admin-secret-2" {
		t.Errorf("what the release before wrote last is %q", got)
	}
}

// A secret that changes while all are being sealed is not lost.
func TestSealingWaitsForWriters(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	must[cks.Account](t)(st.AddAccount(t.Context(), "ann", "ann-key", "s", false))
	sql(t, st, `UPDATE accounts SET secret_key = 'old'`)
	tx, err := st.Pool().Begin(t.Context())
	ok(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // ends the test
	_, err = tx.Exec(t.Context(), `UPDATE accounts SET secret_key = 'new'`)
	ok(t, err)
	sealed := make(chan error)
	go func() { _, err := st.SealSecrets(t.Context()); sealed <- err }()
	waitBlocked(t, st, 1)
	ok(t, tx.Commit(t.Context()))
	ok(t, <-sealed)
	if got := secretOf(t, st, "ann-key"); got != "new" || must[int](t)(st.ClearSecrets(t.Context())) != 0 {
		t.Errorf("the secret is %q", got)
	}
}

// Nobody who disables an account or seals secrets waits for a server that stands
// still in the middle of adding a job.
func TestAccountsChangeBesideNewJobs(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ann := must[cks.Account](t)(st.AddAccount(t.Context(), "ann", "ann-key", "s", false))
	sql(t, st, `UPDATE accounts SET secret_key = 'clear'`)
	ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
		if _, err := q.AddJob(t.Context(), store.NewJob{Command: "c", Kind: "nothing", AccountID: ann.ID}); err != nil {
			return err
		}
		ok(t, st.SetEnabled(t.Context(), "ann", false))
		if n := must[int](t)(st.SealSecrets(t.Context())); n != 1 {
			t.Errorf("%d were sealed", n)
		}
		return nil
	}))
}

// The list is by name and complete.
func TestAccountsAreListed(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	for _, name := range []string{"carol", "ann", "bob"} {
		must[cks.Account](t)(st.AddAccount(t.Context(), name, name+"-key", "s", name == "bob"))
	}
	ok(t, st.SetEnabled(t.Context(), "ann", false))
	sql(t, st, `UPDATE accounts SET secret_key = 'clear' WHERE name = 'carol'`)
	got := ""
	for _, e := range must[[]store.AccountEntry](t)(st.Accounts(t.Context())) {
		if e.Created.IsZero() {
			t.Errorf("%s was made at no time", e.Name)
		}
		got += fmt.Sprintf("%s %t %t %t, ", e.Name, e.Admin, e.Enabled, e.Sealed)
	}
	diff(t, "ann false false true, bob true true true, carol false true false, ", got)
}
