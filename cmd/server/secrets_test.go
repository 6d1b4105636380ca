package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"ckscale/internal/embeddedpg"
)

// Where secrets are, and where they are not.

// contents is all that the tables of the database hold, as text.
func contents(t testing.TB, db *pgx.Conn) string {
	t.Helper()
	tables := strings.Fields(ask[string](t, db,
		`SELECT string_agg(table_name, ' ') FROM information_schema.tables WHERE table_schema = 'public'`))
	all := ""
	for _, name := range tables {
		all += name + ask[string](t, db, fmt.Sprintf(`SELECT coalesce(string_agg(to_jsonb(r)::text, ' '), '') FROM %q r`, name)) + "\n"
	}
	return all
}

// written is a secret in the forms in which it could be written somewhere.
func written(secret string) []string {
	return []string{secret, url.QueryEscape(secret), hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret))}
}

// No secret key, signature, session key or password that came with a request
// is in the log, at its most talkative, or in any row of any table, whatever
// becomes of the request; nor is a secret key that an operator has made, or the
// key of a kubeconfig.
//
// Keeps: §1.11/stored-parameters.
func TestSecretsAreNotInLogsOrRows(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_LOG_LEVEL": "DEBUG", "CKSCALE_SCAN_INTERVAL": "1h"})
	db := connect(t, l.url)
	ann := l.account("ann")
	secrets := []string{l.keys.Secret, ann.keys.Secret, "the-session", "the-password", "wrong-secret"}
	send := func(c *client, method, command string, params ...string) reply {
		t.Helper()
		query := c.keys.signed(command, append(params, "sessionkey=the-session")...)
		_, signature, _ := strings.Cut(query, "&signature=")
		plain, err := url.QueryUnescape(signature)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, plain)
		req, err := http.NewRequestWithContext(t.Context(), method, c.url+"?"+query, nil)
		if method == http.MethodPost {
			req, err = http.NewRequestWithContext(t.Context(), method, c.url, strings.NewReader(query))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(&http.Cookie{Name: "sessionkey", Value: "the-session"})
		return c.fetch(req)
	}
	status := func(want int, r reply) reply {
		t.Helper()
		if r.status != want {
			t.Errorf("%d %s", r.status, r.raw)
		}
		return r
	}
	id := l.id()
	fresh := []string{"name=x", "size=1", "dockerregistryusername=me", "dockerregistrypassword=the-password", "dockerregistryurl=https://r.example",
		"zoneid=" + l.call("listZones").list("zone")[0].text("id"),
		"kubernetesversionid=" + l.call("listKubernetesSupportedVersions").list("kubernetessupportedversion")[0].text("id"),
		"serviceofferingid=" + l.offeringsByName()["small"]}
	l.simulate("vm.create", "panic", "count=1")
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		status(200, send(ann, method, "listKubernetesClusters"))
		status(401, send(ann.as(keys{ann.keys.API, "wrong-secret"}), method, "listKubernetesClusters"))
		status(431, send(l.client, method, "scaleKubernetesCluster", "id="+id, "size=the-password"))
		status(531, send(ann, method, "scaleKubernetesCluster", "id="+id, "size=3"))
		l.ended(status(200, send(l.client, method, "scaleKubernetesCluster", "id="+id, "size=0")).answer.text("jobid"))
		l.ended(status(200, send(l.client, method, "scaleKubernetesCluster", "id="+id, "size=3")).answer.text("jobid"))
		l.ended(status(200, send(l.client, method, "createKubernetesCluster", fresh...)).answer.text("jobid"))
		k, config := l.kubeconfig(status(200, send(l.client, method, "getKubernetesClusterConfig", "id="+id)).answer.object("clusterconfig").text("id"))
		key := decodedKey(t, k)
		secrets = append(secrets, config, k.Users[0].User.Key, key, strings.Split(key, "\n")[1])
	}
	for secret, want := range map[string]int{ann.keys.Secret: 200, "wrong-secret": 401} {
		if got, body := get(t, l.client.url+"?command=listKubernetesClusters", keys{ann.keys.API, secret}); got != want {
			t.Errorf("%d %s", got, body)
		}
	}
	secrets = append(secrets, printedKeys(l.operate("account", "rotate", "ann")).Secret)

	log, rows := l.server.stdout.String()+l.server.stderr.String(), contents(t, db)
	if !strings.Contains(log, `"account":"ann"`) || !strings.Contains(log, `panic`) || !strings.Contains(rows, `"name": "ann"`) {
		t.Fatalf("the log or the tables are not all:\n%s\n%s", log, rows)
	}
	for _, secret := range secrets {
		for _, form := range written(secret) {
			if strings.Contains(log, form) {
				t.Errorf("%q is in the log", form)
			}
			if strings.Contains(rows, form) {
				t.Errorf("%q is in a row", form)
			}
		}
	}
}

// What the embedded PostgreSQL leaves on the disk, its log and write-ahead log
// included, has no secret key in clear.
func TestSecretsAreNotOnTheDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(dataDir(t), "state")
	s := launch(t, map[string]string{"CKSCALE_DATA_DIR": dir})
	c := &client{t, apiURL(s.serving(t)), s.keys(t)}
	out, err := s.command(t, nil, "account", "create", "ann")
	if err != nil {
		t.Fatal(err)
	}
	ann := printedKeys(out)
	if !c.accepts(ann) {
		t.Error("the new account is refused")
	}
	s.end(t)
	found := false
	for _, root := range []string{"postgres", "postgres.log"} {
		err := filepath.WalkDir(filepath.Join(dir, root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			found = found || bytes.Contains(b, []byte(ann.API))
			for _, secret := range []string{ann.Secret, c.keys.Secret} {
				for _, form := range written(secret) {
					if bytes.Contains(b, []byte(form)) {
						t.Errorf("%s has a secret key", path)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		t.Error("not even the API key is there: the test looks in the wrong place")
	}
	for _, name := range []string{"encryption-key", "admin-keys.json"} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
	}
}

// The secrets that an older release has stored in clear. Its servers may still
// run on a database that is given, so there they stay readable until the
// operator says otherwise; everything new is sealed at once.
func TestClearSecretsAreSealedWhenTheOperatorSaysSo(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h"})
	db := connect(t, l.url)
	ann := l.account("ann")
	former := keys{ann.keys.API, "anns-secret"}
	const inClear = `SELECT coalesce(string_agg(name || ' ' || secret_key, ', ' ORDER BY name), '') FROM accounts WHERE secret_sealed IS NULL`
	for name, secret := range map[string]string{"ann": former.Secret, "admin": adminKeys.Secret} {
		if _, err := db.Exec(t.Context(), `UPDATE accounts SET secret_key = $2 WHERE name = $1`, name, secret); err != nil {
			t.Fatal(err)
		}
	}
	warned := func(s *instance) bool { return strings.Contains(s.stdout.String(), "server account encrypt") }
	start := func() (*instance, *client) {
		t.Helper()
		s := launch(t, l.server.env)
		return s, &client{t, apiURL(s.serving(t)), adminKeys}
	}
	if warned(l.server) {
		t.Error("a warning without a reason")
	}
	s, c := start()
	if want := "admin " + adminKeys.Secret + ", ann anns-secret"; ask[string](t, db, inClear) != want {
		t.Errorf("in clear after a start: %s", ask[string](t, db, inClear))
	}
	if !warned(s) || !strings.Contains(s.stdout.String(), `"accounts":2`) || strings.Contains(s.stdout.String(), "anns-secret") {
		t.Errorf("the log says\n%s", s.stdout)
	}
	if !c.accepts(former) || !c.accepts(adminKeys) {
		t.Error("an account of the older release is refused")
	}
	if list := l.operate("account", "list"); !regexp.MustCompile(`(?m)^ann +user +enabled +in clear `).MatchString(list) {
		t.Errorf("listed as\n%s", list)
	}
	for _, want := range []string{"encrypted 2 secret keys\n", "encrypted 0 secret keys\n"} {
		if out := l.operate("account", "encrypt"); out != want {
			t.Errorf("%q, want %q", out, want)
		}
	}
	if left := ask[string](t, db, inClear); left != "" || strings.Contains(contents(t, db), "anns-secret") {
		t.Errorf("in clear: %s", left)
	}
	s, c = start()
	if warned(s) || !c.accepts(former) || !c.accepts(adminKeys) {
		t.Errorf("after that a server warns or refuses:\n%s", s.stdout)
	}
}

// Of the embedded database no other server knows, so a start seals them.
func TestEmbeddedClearSecretsAreSealedAtStart(t *testing.T) {
	t.Parallel()
	env := map[string]string{"CKSCALE_DATA_DIR": filepath.Join(dataDir(t), "state"), "CKSCALE_DEMO": "false"}
	s := launch(t, env)
	s.serving(t)
	out, err := s.command(t, nil, "account", "create", "ann")
	if err != nil {
		t.Fatal(err)
	}
	url := embeddedpg.URL(embeddedDir(config{DataDir: env["CKSCALE_DATA_DIR"]}), embeddedName)
	if _, err := connect(t, url).Exec(t.Context(), `UPDATE accounts SET secret_key = name || 's-secret'`); err != nil {
		t.Fatal(err)
	}
	admin := s.keys(t)
	s.end(t)
	s = launch(t, env)
	c := &client{t, apiURL(s.serving(t)), admin}
	if !c.accepts(keys{printedKeys(out).API, "anns-secret"}) || !c.accepts(admin) {
		t.Error("the keys are not good any more")
	}
	if rows := contents(t, connect(t, url)); strings.Contains(rows, "-secret") || !strings.Contains(rows, `"name": "ann"`) {
		t.Errorf("the tables have\n%s", rows)
	}
	if !strings.Contains(s.stdout.String(), "have been encrypted") {
		t.Errorf("the log says\n%s", s.stdout)
	}
}

// A secret that cannot be opened, since its row was changed or is another
// account's, is our error, told as such in answer and log; it is no wrong
// signature, and no concern of others.
func TestSecretThatCannotBeOpenedIsOurError(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h"})
	db := connect(t, l.url)
	bob := l.account("bob")
	for name, change := range map[string]string{
		"ann":   `UPDATE accounts SET secret_sealed = set_byte(secret_sealed, 30, 255 - get_byte(secret_sealed, 30)) WHERE name = 'ann'`,
		"carol": `UPDATE accounts SET secret_sealed = (SELECT secret_sealed FROM accounts WHERE name = 'bob') WHERE name = 'carol'`,
		"dave":  `UPDATE accounts SET secret_sealed = substring(secret_sealed FOR 20) WHERE name = 'dave'`,
	} {
		c := l.account(name)
		if _, err := db.Exec(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		k := c.keys
		if name == "carol" {
			k.Secret = bob.keys.Secret // nobody becomes another by a copied row
		}
		signed, a := c.as(k).send("listKubernetesClusters")
		basic, _ := get(t, c.url+"?command=listKubernetesClusters", k)
		if signed != 530 || basic != 530 || strings.Contains(a.text("errortext"), name) {
			t.Errorf("%s: %d %v, %d by HTTP Basic", name, signed, a, basic)
		}
		if log := l.server.stdout.String(); !strings.Contains(log, "secret key of account "+name+": the sealed secret cannot be opened") || strings.Contains(log, k.Secret) {
			t.Errorf("%s: the log says\n%s", name, log)
		}
	}
	if !l.accepts(bob.keys) || !l.accepts(adminKeys) {
		t.Error("others are refused")
	}
	out := l.operate("account", "rotate", "ann")
	if !l.accepts(printedKeys(out)) {
		t.Error("new keys do not help")
	}
}

// Secrets are compared in constant time: nowhere in the program by what stops at
// the first difference. That there is one at all may be asked.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	t.Parallel()
	files, compared := 0, 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch how, of := comparison(n); {
			case !slices.ContainsFunc(of, isSecret):
			case how == "hmac.Equal", how == "subtle.ConstantTimeCompare", how == "bcrypt.CompareHashAndPassword":
				compared++
			case how != "":
				t.Errorf("%s: %s takes longer the more is right", fset.Position(n.Pos()), how)
			}
			return true
		})
		return nil
	})
	if err != nil || files < 50 || compared < 3 {
		t.Fatalf("%d files with %d comparisons, %v", files, compared, err)
	}
}

// comparison says how n compares things, and which; "" if it does not, or asks
// only whether something is empty.
func comparison(n ast.Node) (how string, of []ast.Expr) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if _, plain := n.Y.(*ast.BasicLit); !plain && (n.Op == token.EQL || n.Op == token.NEQ) {
			return n.Op.String(), []ast.Expr{n.X, n.Y}
		}
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || !regexp.MustCompile("Equal|Compare|HasPrefix").MatchString(f.Sel.Name) {
			return "", nil
		}
		if pkg, ok := f.X.(*ast.Ident); ok {
			return pkg.Name + "." + f.Sel.Name, n.Args
		}
	}
	return "", nil
}

var secretName = regexp.MustCompile(`(?i)(secret|signature|password)$`)

// isSecret reports whether e is a variable or field with the name of a secret.
func isSecret(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return secretName.MatchString(e.Name)
	case *ast.SelectorExpr:
		return secretName.MatchString(e.Sel.Name)
	case *ast.CallExpr: // a conversion
		return len(e.Args) == 1 && isSecret(e.Args[0])
	}
	return false
}
