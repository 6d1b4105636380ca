package store_test

import (
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

const idle = 30 * time.Minute

// loginOf is a session of the account to be opened.
func loginOf(a cks.Account, hash string) store.NewSession {
	return store.NewSession{ID: "id of " + a.Name, Key: "key of " + a.Name, AccountID: a.ID, PasswordHash: hash, From: "192.0.2.1", Idle: idle}
}

// withHash is an account that can log in by a password of that hash.
func withHash(t *testing.T, st *store.Store, name, hash string) cks.Account {
	t.Helper()
	a := must[cks.Account](t)(st.AddAccount(t.Context(), name, name+"-key", name+"-secret", false))
	ok(t, st.SetPassword(t.Context(), name, hash))
	return a
}

// A login that is under way when the password changes opens nothing, and one
// that is just being written down is ended by the change: no session outlives
// its password.
func TestPasswordChangeEndsTheLoginBesideIt(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	withHash(t, st, "ann", "first")
	for name, change := range map[string]func(q *store.Queries) error{
		"password": func(q *store.Queries) error { return q.SetPassword(ctx, "ann", "second") },
		"disabled": func(q *store.Queries) error { return q.SetEnabled(ctx, "ann", false) },
	} {
		ann := must[cks.Account](t)(st.AccountByName(ctx, "ann"))
		ok(t, st.SetEnabled(ctx, "ann", true))
		ok(t, st.SetPassword(ctx, "ann", "first"))
		ended := make(chan error, 1)
		ok(t, st.InTx(ctx, func(q *store.Queries) error {
			ok(t, change(q))
			go func() { ended <- st.OpenSession(ctx, loginOf(ann, "first")) }()
			waitBlocked(t, st, 1)
			return nil
		}))
		wantCode(t, <-ended, cks.NotFound)

		ok(t, st.SetEnabled(ctx, "ann", true))
		ok(t, st.SetPassword(ctx, "ann", "first"))
		ok(t, st.InTx(ctx, func(q *store.Queries) error {
			ok(t, q.OpenSession(ctx, loginOf(ann, "first")))
			go func() { ended <- st.InTx(ctx, change) }()
			waitBlocked(t, st, 1)
			return nil
		}))
		ok(t, <-ended)
		if n := read[int](t, st, `SELECT count(*) FROM sessions`); n != 0 {
			t.Errorf("%s: %d sessions are left", name, n)
		}
	}
}

// A session is found by its id, with its key or not, until it has not been used
// for long enough; to use it is written down once a minute.
func TestSessionIsFoundWhileItIsUsed(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	ann := withHash(t, st, "ann", "hash")
	wantCode(t, st.OpenSession(ctx, loginOf(ann, "another hash")), cks.NotFound)
	ok(t, st.OpenSession(ctx, loginOf(ann, "hash")))
	find := func(id, key string) (cks.Account, bool) {
		t.Helper()
		a, right, err := st.Session(ctx, id, key, idle)
		ok(t, err)
		return a, right
	}
	if a, right := find("id of ann", "key of ann"); a != ann || !right {
		t.Errorf("found %v, %t", a, right)
	}
	if _, right := find("id of ann", "another key"); right {
		t.Error("another key is right")
	}
	_, _, err := st.Session(ctx, "another id", "key of ann", idle)
	wantCode(t, err, cks.NotFound)
	for _, c := range []struct {
		since   string
		touched bool
	}{{"59 seconds", false}, {"61 seconds", true}, {"29 minutes", true}} {
		sql(t, st, `UPDATE sessions SET used = now() - $1::interval`, c.since)
		before := read[time.Time](t, st, `SELECT used FROM sessions`)
		find("id of ann", "key of ann")
		if touched := read[time.Time](t, st, `SELECT used FROM sessions`).After(before); touched != c.touched {
			t.Errorf("used %s ago: touched %t", c.since, touched)
		}
	}
	sql(t, st, `UPDATE sessions SET used = now() - interval '31 minutes'`)
	_, _, err = st.Session(ctx, "id of ann", "key of ann", idle)
	wantCode(t, err, cks.NotFound)
	if read[time.Time](t, st, `SELECT used FROM sessions`).After(time.Now().Add(-30 * time.Minute)) {
		t.Error("a session that has ended was brought back")
	}
	bob := withHash(t, st, "bob", "hash")
	ok(t, st.OpenSession(ctx, loginOf(bob, "hash")))
	if n := read[int](t, st, `SELECT count(*) FROM sessions`); n != 1 {
		t.Errorf("%d sessions are kept", n)
	}
	ok(t, st.EndSession(ctx, "id of bob", true))
	ok(t, st.EndSession(ctx, "id of bob", true)) // is gone
	if n := read[int](t, st, `SELECT count(*) FROM events WHERE type = 'USER.LOGOUT'`); n != 1 {
		t.Errorf("%d events", n)
	}
}

// The release before, which knows no sessions, ends them too when it disables an
// account.
func TestOldReleaseEndsSessions(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ann := withHash(t, st, "ann", "hash")
	ok(t, st.OpenSession(t.Context(), loginOf(ann, "hash")))
	sql(t, st, `UPDATE accounts SET enabled = true WHERE name = 'ann'`) // nothing changes
	if n := read[int](t, st, `SELECT count(*) FROM sessions`); n != 1 {
		t.Fatalf("%d sessions", n)
	}
	sql(t, st, `UPDATE accounts SET enabled = false WHERE name = 'ann'`)
	if n := read[int](t, st, `SELECT count(*) FROM sessions`); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// A value for an account counts for it, one for everybody for the others; a
// second one replaces the first, also when two are set at once.
func TestSettingOfAccountCountsFirst(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	ann := withHash(t, st, "ann", "hash")
	wants := func(account, want string, set bool) {
		t.Helper()
		value, is, err := st.Setting(ctx, "n", account)
		ok(t, err)
		if value != want || is != set || must[map[string]string](t)(st.Settings(ctx, account))["n"] != want {
			t.Errorf("for %q it is %q, %t", account, value, is)
		}
	}
	wants("", "", false)
	ok(t, st.SetSetting(ctx, "n", "2", ann.ID, ann.ID))
	wants("", "", false)
	wants(ann.ID, "2", true)
	for _, err := range together(4, func(int) error { return st.SetSetting(ctx, "n", "1", "", ann.ID) }) {
		ok(t, err)
	}
	wants("", "1", true)
	wants(ann.ID, "2", true)
	ok(t, st.SetSetting(ctx, "n", "3", ann.ID, ann.ID))
	wants(ann.ID, "3", true)
	if n := read[int](t, st, `SELECT count(*) FROM settings`); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// The time of a job is that of its command's setting, else what the server
// says.
func TestSettingsSetDeadlines(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	ctx := t.Context()
	deadline := func(command string) time.Duration {
		t.Helper()
		var left time.Duration
		err := st.InTx(ctx, func(q *store.Queries) error {
			j, err := q.AddJob(ctx, store.NewJob{Command: command, Kind: cks.Nothing, AccountID: v.Account.ID, Timeout: time.Hour})
			left = j.Remaining.Round(time.Minute)
			return err
		})
		ok(t, err)
		return left
	}
	for command, name := range cks.TimeoutSettings {
		ok(t, st.SetSetting(ctx, name, "3600", "", v.Account.ID))
		if d := deadline(command); d != time.Hour {
			t.Errorf("%s has %s", command, d)
		}
		ok(t, st.SetSetting(ctx, name, "120", "", v.Account.ID))
		if d := deadline(command); d != 2*time.Minute {
			t.Errorf("%s has %s by %s", command, d, name)
		}
	}
	if d := deadline("deleteKubernetesCluster"); d != time.Hour {
		t.Errorf("another command has %s", d)
	}
}

// Of two owners that are removed at once one stays.
func TestProjectKeepsAnOwner(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	withHash(t, st, "ann", "hash")
	withHash(t, st, "bob", "hash")
	ok(t, st.InTx(ctx, func(q *store.Queries) error { return q.AddProject(ctx, "shop", "Shop", "ann") }))
	wantCode(t, st.RemoveMember(ctx, "shop", "ann"), cks.Conflict)
	sql(t, st, `INSERT INTO project_members SELECT p.id, a.id, 'Admin' FROM projects p, accounts a WHERE a.name = 'bob'`)
	ended := make(chan error, 1)
	ok(t, st.InTx(ctx, func(q *store.Queries) error {
		ok(t, q.RemoveMember(ctx, "shop", "ann"))
		go func() { ended <- st.RemoveMember(ctx, "shop", "bob") }()
		waitBlocked(t, st, 1)
		return nil
	}))
	wantCode(t, <-ended, cks.Conflict)
	p := must[cks.Project](t)(st.ProjectByRef(ctx, read[string](t, st, `SELECT id::text FROM projects`)))
	if len(p.Owners) != 1 {
		t.Errorf("owners are %v", p.Owners)
	}
	wantCode(t, st.InTx(ctx, func(q *store.Queries) error { return q.AddProject(ctx, "shop", "", "bob") }), cks.Invalid)
	if n := read[int](t, st, `SELECT count(*) FROM accounts WHERE name LIKE 'PrjAcct-%'`); n != 1 {
		t.Errorf("%d project accounts", n)
	}
}
