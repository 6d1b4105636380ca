package main

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ckscale/internal/store/storetest"
)

// What an operator does with accounts, and when servers follow.

// keyLife is for how long a server may go by what it knows of a key.
const keyLife = 5 * time.Second

// another starts one more server like l's, and returns a client of the admin.
func (l *lab) another() *client {
	l.Helper()
	env := maps.Clone(l.server.env)
	delete(env, "CKSCALE_ADDR_FILE")
	return &client{l.TB, apiURL(launch(l.TB, env).serving(l.TB)), l.keys}
}

// accepts reports whether the server takes requests signed with k.
func (c *client) accepts(k keys) bool {
	c.Helper()
	status, a := c.as(k).send("listKubernetesClusters")
	if status != http.StatusOK && status != http.StatusUnauthorized {
		c.Fatalf("%d %v", status, a)
	}
	return status == http.StatusOK
}

// end checks that no server takes k any more, keyLife after now.
func (k keys) end(servers []*client) {
	changed := time.Now()
	for _, c := range servers {
		c.Helper()
		for {
			asked := time.Now()
			if !c.accepts(k) {
				break
			}
			if asked.After(changed.Add(keyLife)) {
				c.Fatalf("the keys are good %s after they were taken away", asked.Sub(changed))
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

// Keys are replaced and an account is disabled and enabled beside the running
// servers, which all follow within 5 s; new keys are good at once.
//
// Keeps: §1.7/disabled, §1.7/unknown-key.
func TestServersFollowChangesOfAccounts(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h"})
	servers := []*client{l.client, l.another()}
	first := l.account("ann").keys
	all := func(k keys, want bool) {
		t.Helper()
		for i, c := range servers {
			if c.accepts(k) != want {
				t.Errorf("server %d takes the keys: %t", i, !want)
			}
		}
	}
	all(first, true) // and remembers them
	out := l.operate("account", "rotate", "ann")
	second := printedKeys(out)
	if second.API == first.API || second.Secret == first.Secret || len(second.Secret) < 50 || !strings.Contains(out, "not shown again") {
		t.Errorf("rotated: %s", out)
	}
	all(second, true)
	all(keys{second.API, first.Secret}, false)
	first.end(servers)

	if out := l.operate("account", "disable", "ann"); out != "account ann is disabled\n" {
		t.Errorf("disabled: %s", out)
	}
	second.end(servers)
	l.operate("account", "disable", "ann") // as it is
	third := printedKeys(l.operate("account", "rotate", "ann"))
	all(third, false)
	if out := l.operate("account", "enable", "ann"); out != "account ann is enabled\n" {
		t.Errorf("enabled: %s", out)
	}
	all(third, true)
	all(l.keys, true)
}

// An operator sees all accounts, and no key. What makes no sense is refused, and
// changes nothing.
func TestAccountCommands(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h"})
	k := l.account("ann").keys
	l.operate("account", "create", "bob")
	l.operate("account", "disable", "bob")
	list := l.operate("account", "list")
	for _, want := range []string{`(?m)^NAME +ROLE +STATE +SECRET KEY +CREATED$`,
		`(?m)^admin +root admin +enabled +encrypted +20\d\d-\S+Z$`, `(?m)^ann +user +enabled +encrypted +20\d\d-\S+Z$`, `(?m)^bob +user +disabled +encrypted `} {
		if !regexp.MustCompile(want).MatchString(list) {
			t.Errorf("no %s in\n%s", want, list)
		}
	}
	for _, secret := range []string{k.API, k.Secret, adminKeys.API, adminKeys.Secret} {
		if strings.Contains(list, secret) {
			t.Errorf("the list shows a key:\n%s", list)
		}
	}
	for args, want := range map[string]string{
		"account rotate eve": "no account eve", "account disable eve": "no account eve", "account enable eve": "no account eve",
		"account rotate admin":  "CKSCALE_ADMIN_API_KEY", // else the next start would take them back
		"account disable admin": "cannot be disabled",
		"account create ann":    "account name ann or its API key is taken",
		"account":               "is no command", "account drop ann": "is no command",
		"account create": "wrong usage", "account create a b": "wrong usage", "account rotate": "wrong usage",
		"account disable": "wrong usage", "account enable a b": "wrong usage", "account list all": "wrong usage", "account encrypt ann": "wrong usage",
	} {
		if out, err := l.server.command(t, nil, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%s: %q, %v", args, out, err)
		}
	}
	if got := l.operate("account", "list"); got != list {
		t.Errorf("changed to\n%s", got)
	}
	if !l.accepts(k) || !l.accepts(adminKeys) {
		t.Error("keys were changed")
	}
}

// Generated keys of the account admin are rotated for good: the next start
// knows the new ones, and shows them.
func TestGeneratedAdminKeysAreRotated(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"embedded": "", "DATABASE_URL": storetest.URL(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"CKSCALE_DATA_DIR": filepath.Join(dataDir(t), "state"), "DATABASE_URL": url}
			s := launch(t, env)
			c := &client{t, apiURL(s.serving(t)), s.keys(t)}
			out, err := s.command(t, nil, "account", "rotate", "admin")
			if err != nil {
				t.Fatal(err)
			}
			fresh := printedKeys(out)
			if fresh == c.keys || !c.accepts(fresh) {
				t.Errorf("the new keys are not good: %s", out)
			}
			c.keys.end([]*client{c})
			if fi, err := os.Stat(filepath.Join(env["CKSCALE_DATA_DIR"], "admin-keys.json")); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", fi, err)
			}
			s.end(t)
			s = launch(t, env)
			again := &client{t, apiURL(s.serving(t)), fresh}
			if s.keys(t) != fresh || !again.accepts(fresh) || again.accepts(c.keys) {
				t.Error("after a restart the keys are not the new ones")
			}
		})
	}
}
