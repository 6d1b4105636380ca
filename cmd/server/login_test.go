package main

import (
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/internal/secretbox"
	"ckscale/internal/store/storetest"
)

// guest is cmk without keys, which logs in as clients.md §5 has it: with a jar for cookies,
// of which it takes the session's key.
type guest struct {
	*client
	http *http.Client
}

func (c *client) guest() *guest {
	c.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.Fatal(err)
	}
	return &guest{c, &http.Client{Jar: jar}}
}

// at is the same client, with the same cookies, at another server.
func (c *guest) at(url string) *guest { return &guest{&client{c.TB, url, c.keys}, c.http} }

// fetch sends a request with the jar's cookies.
func (c *guest) fetch(req *http.Request) reply {
	c.Helper()
	resp, err := c.http.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	return c.read(resp)
}

// login posts exactly what cmk posts.
func (c *guest) login(username, password string) reply {
	c.Helper()
	body := "command=login&domain=%2F&password=" + escape(password) + "&response=json&username=" + escape(username)
	req, err := http.NewRequestWithContext(c.Context(), http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c.fetch(req)
}

// loggedIn logs in, which must succeed.
func (c *guest) loggedIn(username, password string) reply {
	c.Helper()
	r := c.login(username, password)
	if r.status != http.StatusOK || r.key != "loginresponse" {
		c.Fatalf("login: %d %s", r.status, r.raw)
	}
	return r
}

// cookie is the value of a cookie that the jar would send.
func (c *guest) cookie(name string) string {
	c.Helper()
	u, err := url.Parse(c.url)
	if err != nil {
		c.Fatal(err)
	}
	for _, cookie := range c.http.Jar.Cookies(u) {
		if cookie.Name == name {
			return cookie.Value
		}
	}
	return ""
}

// get sends a command in the session, by GET, sorted and unsigned.
func (c *guest) get(command string, params ...string) reply {
	c.Helper()
	values := map[string]string{"command": command, "response": "json", "sessionkey": c.cookie("sessionkey")}
	for _, p := range pairs(params) {
		values[p.name] = p.value
	}
	var query []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		query = append(query, name+"="+escape(values[name]))
	}
	req, err := http.NewRequestWithContext(c.Context(), http.MethodGet, c.url+"?"+strings.Join(query, "&"), nil)
	if err != nil {
		c.Fatal(err)
	}
	return c.fetch(req)
}

// served sends a command that must be answered with 200.
func (c *guest) served(command string, params ...string) answer {
	c.Helper()
	r := c.get(command, params...)
	if r.status != http.StatusOK {
		c.Fatalf("%s %q: %d %s", command, params, r.status, r.raw)
	}
	return r.answer
}

// turnedAway sends a command that must be answered with 401.
func (c *guest) turnedAway(command string) {
	c.Helper()
	if r := c.get(command); r.status != http.StatusUnauthorized {
		c.Errorf("%s: %d %s", command, r.status, r.raw)
	}
}

const adminPassword = "correct horse battery"

// withPassword is a server whose admin may log in.
func withPassword(t *testing.T, more map[string]string) *lab {
	t.Helper()
	env := map[string]string{"CKSCALE_ADMIN_PASSWORD": adminPassword}
	maps.Copy(env, more)
	return newLab(t, env)
}

// cmk without keys: it logs in, learns the commands, scales, waits for the job
// and reads the result, all in a session; then it logs out, and the session is
// no more. Nothing of what opens one is in the log or, in clear, in the database
// (clients.md §5, cks.md §1.8).
//
// Keeps: §1.8/login, §1.8/login-answer, §1.8/session, §1.8/logout, §1.8/events.
func TestCmkScalesInASession(t *testing.T) {
	t.Parallel()
	l := withPassword(t, map[string]string{"CKSCALE_LOG_LEVEL": "DEBUG"})
	c := l.guest()
	a := c.loggedIn("admin", adminPassword).answer
	id, key := c.cookie("JSESSIONID"), c.cookie("sessionkey")
	if key == "" || len(key) != 27 || a.text("sessionkey") != key || id == "" || a["timeout"] != 1800.0 ||
		a.text("username") != "admin" || a.text("account") != "admin" || a.text("type") != "1" || a.text("registered") != "false" {
		t.Errorf("id %q, key %q, answer %v", id, key, a)
	}
	if apis := c.served("listApis", "listall=true"); len(apis.list("api")) < 20 {
		t.Errorf("listApis: %v", apis)
	}
	cluster := c.served("listKubernetesClusters", "filter=id,name").list("kubernetescluster")[0].text("id")
	job := c.served("scaleKubernetesCluster", "id="+cluster, "size=3").text("jobid")
	l.until("the job has ended", time.Minute, func() bool {
		return c.served("queryAsyncJobResult", "jobid="+job)["jobstatus"] != 0.0
	})
	if result := c.served("queryAsyncJobResult", "jobid="+job).object("jobresult"); result.object("kubernetescluster")["size"] != 3.0 {
		t.Errorf("the job gave %v", result)
	}
	db := connect(t, l.url)
	stored := ask[string](t, db, `SELECT string_agg(to_jsonb(s)::text, ' ') || (SELECT string_agg(to_jsonb(a)::text, ' ') FROM accounts a) FROM sessions s`)
	for _, secret := range []string{id, key, adminPassword} {
		if strings.Contains(stored, secret) || strings.Contains(l.server.stdout.String(), secret) {
			t.Errorf("%q is stored or logged", secret)
		}
	}
	if out := c.served("logout"); out.text("description") != "success" {
		t.Errorf("logout: %v", out)
	}
	if c.cookie("sessionkey") != "" || c.cookie("JSESSIONID") != "" {
		t.Error("the cookies are kept")
	}
	c.turnedAway("listKubernetesClusters")
	if n := ask[int](t, db, `SELECT count(*)::int FROM sessions`); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	for kind, text := range map[string]string{"USER.LOGIN": "user has logged in from IP Address 127.0.0.1", "USER.LOGOUT": "user has logged out"} {
		found := l.call("listEvents", "type="+kind).list("event")
		if len(found) != 1 || found[0].text("description") != text || found[0].text("username") != "admin" || found[0].text("level") != "INFO" {
			t.Errorf("%s: %v", kind, found)
		}
	}
	l.consistent()
}

// A session is good at every server of the database, and ends at all of them.
func TestServersShareSessions(t *testing.T) {
	t.Parallel()
	database := storetest.URL(t)
	env := func() map[string]string {
		return childEnv(t, map[string]string{"DATABASE_URL": database, "CKSCALE_DEMO": "false", "CKSCALE_ADMIN_PASSWORD": adminPassword})
	}
	one, two := launch(t, env()), launch(t, env())
	here := (&client{t, apiURL(one.serving(t)), adminKeys}).guest()
	there := here.at(apiURL(two.serving(t)))
	here.loggedIn("admin", adminPassword)
	for range 3 {
		here.served("listZones")
		there.served("listZones")
	}
	there.served("logout")
	here.turnedAway("listZones")
	there.turnedAway("listZones")
	// A server that starts with the same password ends nothing.
	here.loggedIn("admin", adminPassword)
	three := launch(t, env())
	here.at(apiURL(three.serving(t))).served("listZones")
	here.served("listZones")
}

// Nobody can log in unless he was given a password: cmk, which after a 401 tries
// its default by itself, is told 531 and stops (clients.md §5).
//
// Keeps: §1.8/bad-credentials, §1.8/no-default, §1.8/domain-in-text.
func TestNobodyLogsInByDefault(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	wrong := l.as(keys{adminKeys.API, "wrong"})
	if status, _ := wrong.send("listZones"); status != http.StatusUnauthorized {
		t.Errorf("a wrong signature gets %d", status)
	}
	l.account("ann")
	texts := map[string]bool{}
	for _, user := range []string{"admin", "ann", "nobody"} {
		c := l.guest()
		r := c.login(user, "password")
		if r.status != 531 || r.key != "loginresponse" || r.answer["errorcode"] != 531.0 || r.answer["cserrorcode"] != nil || c.cookie("sessionkey") != "" {
			t.Errorf("%s: %d %s", user, r.status, r.raw)
		}
		texts[strings.ReplaceAll(r.answer.text("errortext"), user, "X")] = true
	}
	if len(texts) != 1 || !texts["Failed to authenticate user X in domain ROOT; please provide valid credentials"] {
		t.Errorf("whether there is an account can be told: %v", texts)
	}
	if _, err := l.server.command(t, map[string]string{"CKSCALE_ADMIN_PASSWORD": "password"}, "account", "list"); err == nil || strings.Contains(err.Error(), "environment") {
		t.Errorf("cmk's default is taken for a password: %v", err)
	}
}

// printedPassword is what "account password" prints.
func printedPassword(t *testing.T, out string) string {
	t.Helper()
	_, password, found := strings.Cut(out, "password=")
	if password = strings.TrimSpace(password); !found || len(password) < 26 {
		t.Fatalf("printed %q", out)
	}
	return password
}

// An account logs in with the password that the operator gave it. Another
// password, none, or the end of the account ends its sessions at once.
func TestPasswordsAreGivenByTheOperator(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.account("ann")
	first := printedPassword(t, l.operate("account", "password", "ann"))
	c := l.guest()
	if a := c.loggedIn("ann", first).answer; a.text("type") != "0" || a.text("username") != "ann" {
		t.Errorf("login: %v", a)
	}
	c.served("listKubernetesClusters")
	if r := c.get("querySimulator"); r.status != 432 {
		t.Errorf("ann asks the simulator: %d %s", r.status, r.raw)
	}
	if r := c.get("nonsense"); r.status != 432 || r.key != "errorresponse" {
		t.Errorf("an unknown command: %d %s", r.status, r.raw)
	}
	second := printedPassword(t, l.operate("account", "password", "ann"))
	c.turnedAway("listKubernetesClusters")
	if r := c.login("ann", first); r.status != 531 {
		t.Errorf("the old password: %d %s", r.status, r.raw)
	}
	c.loggedIn("ann", second)
	l.operate("account", "disable", "ann")
	c.turnedAway("listKubernetesClusters")
	if r := c.login("ann", second); r.status != 531 {
		t.Errorf("a disabled account: %d %s", r.status, r.raw)
	}
	l.operate("account", "enable", "ann")
	c.turnedAway("listKubernetesClusters") // the session does not come back
	c.loggedIn("ann", second)
	l.operate("account", "password", "ann", "-none")
	c.turnedAway("listKubernetesClusters")
	if r := c.login("ann", second); r.status != 531 {
		t.Errorf("no password: %d %s", r.status, r.raw)
	}
}

// A password can be read from standard input; one that is short, too long or
// cmk's default is refused, and the one of the environment is kept.
func TestPasswordsAreReadFromStandardInput(t *testing.T) {
	t.Parallel()
	l := withPassword(t, nil)
	l.account("ann")
	set := func(input string, args ...string) error {
		out := newTranscript("never")
		p := process{getenv: environment(l.server.env), stdin: strings.NewReader(input), stdout: out, stderr: out}
		err := p.run(t.Context(), append([]string{"account", "password"}, args...))
		if strings.TrimSpace(input) != "" && strings.Contains(out.String(), strings.TrimSpace(input)) {
			t.Errorf("%q is shown: %s", input, out)
		}
		return err
	}
	if err := set("ann's own secret\nand more", "ann", "-stdin"); err != nil {
		t.Fatal(err)
	}
	l.guest().loggedIn("ann", "ann's own secret")
	for _, input := range []string{"", "\n", "seven77\n", "password\n", strings.Repeat("a", 73) + "\n", "with\ttab in it\n"} {
		if err := set(input, "ann", "-stdin"); err == nil {
			t.Errorf("%q was taken", input)
		}
	}
	for _, args := range [][]string{{}, {"ann", "-x"}, {"ann", "-none", "-stdin"}, {"nobody"}, {"nobody", "-none"}, {"admin"}, {"admin", "-none"}} {
		if err := set("", args...); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
	l.guest().loggedIn("ann", "ann's own secret")
	l.guest().loggedIn("admin", adminPassword)
}

// A session that is not used ends, one that is used does not, and those that
// have ended are not kept.
func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	l := withPassword(t, map[string]string{"CKSCALE_DEMO": "false"})
	db := connect(t, l.url)
	idle, used := l.guest(), l.guest()
	idle.loggedIn("admin", adminPassword)
	used.loggedIn("admin", adminPassword)
	age := func(by string) {
		t.Helper()
		if _, err := db.Exec(t.Context(), `UPDATE sessions SET used = used - $1::interval`, by); err != nil {
			t.Fatal(err)
		}
	}
	age("20 minutes")
	used.served("listZones") // and counts as used now
	age("20 minutes")
	used.served("listZones")
	idle.turnedAway("listZones")
	if n := ask[int](t, db, `SELECT count(*)::int FROM sessions`); n != 2 {
		t.Errorf("%d sessions before", n)
	}
	l.guest().loggedIn("admin", adminPassword)
	if n := ask[int](t, db, `SELECT count(*)::int FROM sessions`); n != 2 {
		t.Errorf("%d sessions after: the one that ended is kept, or another is gone", n)
	}
}

// A page of somebody else's that makes a browser send its cookies gets nothing
// done without the key, and over TLS the cookies go nowhere else.
//
// Keeps: §1.8/csrf.
func TestCookiesAloneOpenNothing(t *testing.T) {
	t.Parallel()
	l := withPassword(t, nil)
	c := l.guest()
	for _, params := range [][]string{{"sessionkey="}, {"sessionkey=guess"}} {
		c.loggedIn("admin", adminPassword)
		before := l.cluster()["size"]
		if r := c.get("scaleKubernetesCluster", append(params, "id="+l.id(), "size=5")...); r.status != http.StatusUnauthorized {
			t.Errorf("%q: %d %s", params, r.status, r.raw)
		}
		if after := l.cluster()["size"]; after != before {
			t.Errorf("%q: the size is %v", params, after)
		}
		c.turnedAway("listZones") // whoever guesses has ended it
	}
}

// What is stored of a password is a hash: it needs no encryption key, and cannot
// be read back.
func TestPasswordsAreHashed(t *testing.T) {
	t.Parallel()
	l := withPassword(t, nil)
	hash := ask[string](t, connect(t, l.url), `SELECT password_hash FROM accounts WHERE name = 'admin'`)
	if !strings.HasPrefix(hash, "$2a$10$") || strings.Contains(hash, adminPassword) {
		t.Errorf("stored as %q", hash)
	}
	if _, err := l.server.command(t, map[string]string{"CKSCALE_ENCRYPTION_KEY": secretbox.NewKey().Text(), "CKSCALE_ADMIN_PASSWORD": ""},
		"account", "password", "admin", "-none"); err != nil {
		t.Error(err)
	}
}
