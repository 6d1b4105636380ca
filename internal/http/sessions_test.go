package http

import (
	"context"
	"crypto/tls"
	"errors"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// loginForm is what cmk sends.
func loginForm(username, password string) string {
	return "command=login&domain=%2F&password=" + strings.ReplaceAll(password, " ", "+") + "&response=json&username=" + username
}

// browser sends requests with cookies of its own choice.
func (l *lab) browser(t *testing.T, query string, cookies ...string) answered {
	t.Helper()
	r := get(query)
	for i := 0; i+1 < len(cookies); i += 2 {
		r.AddCookie(&nethttp.Cookie{Name: cookies[i], Value: cookies[i+1]})
	}
	return l.do(t, r)
}

// login logs ann in, and returns the cookies that are set.
func (l *lab) login(t *testing.T, r *nethttp.Request) []*nethttp.Cookie {
	t.Helper()
	a := l.do(t, r)
	a.wantOK(t)
	cookies := (&nethttp.Response{Header: a.header}).Cookies()
	if a.key != "loginresponse" || !strings.Contains(a.raw, `"sessionkey":"`+goodKey+`"`) || len(cookies) != 2 {
		t.Fatalf("cookies %v, answer %s", cookies, a.raw)
	}
	return cookies
}

// login by POST, in any case of its name, opens a session: its key is in the
// answer, and two cookies are set, which no page can read and no other site
// sends along; over TLS they are for TLS only (cks.md §1.2, §1.8; clients.md §5).
//
// Keeps: §1.2/authenticator-commands, §1.8/login, §1.8/login-answer.
func TestLoginOpensASession(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.proxies = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	plain := func() *nethttp.Request { return post("", loginForm("ann", goodPassword)) }
	for name, c := range map[string]struct {
		change func(*nethttp.Request) *nethttp.Request
		secure bool
	}{
		"plain":  {func(r *nethttp.Request) *nethttp.Request { return r }, false},
		"by TLS": {func(r *nethttp.Request) *nethttp.Request { r.TLS = &tls.ConnectionState{}; return r }, true},
		"behind a proxy": {func(r *nethttp.Request) *nethttp.Request {
			r.RemoteAddr = "198.51.100.1:1"
			r.Header.Set("X-Forwarded-Proto", "https")
			return r
		}, true},
		"behind nobody": {func(r *nethttp.Request) *nethttp.Request { r.Header.Set("X-Forwarded-Proto", "https"); return r }, false},
		"in capitals": {func(*nethttp.Request) *nethttp.Request {
			return post("", strings.Replace(loginForm("ann", goodPassword), "login", "LOGIN", 1))
		}, false},
		"at its own path":  {func(r *nethttp.Request) *nethttp.Request { r.URL.Path = "/client/api/login"; return r }, false},
		"signed by others": {func(r *nethttp.Request) *nethttp.Request { r.URL.RawQuery = "apiKey=x&signature=y"; return r }, false},
	} {
		cookies := l.login(t, c.change(plain()))
		for i, want := range []struct{ name, value string }{{"JSESSIONID", sessionID}, {"sessionkey", goodKey}} {
			got := cookies[i]
			if got.Name != want.name || got.Value != want.value || got.Path != "/client/api" || !got.HttpOnly ||
				got.SameSite != nethttp.SameSiteLaxMode || got.Secure != c.secure || got.MaxAge != 0 {
				t.Errorf("%s: cookie %s", name, got)
			}
		}
	}
	if strings.Contains(l.log.String(), goodPassword) || strings.Contains(l.log.String(), goodKey) || strings.Contains(l.log.String(), sessionID) {
		t.Errorf("the log has a secret: %s", l.log)
	}
}

// What is no login sets no cookies: by GET it is 405, and with what is not right
// 531, without cserrorcode; cmk's own default among it (cks.md §1.8, §2.9).
//
// Keeps: §1.8/login-get, §1.8/bad-credentials, §2.9/405-login.
func TestBadLoginsAreRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, command := range []string{"login", "LOGIN", "Login"} {
		for _, r := range []*nethttp.Request{
			get("command=" + command + "&username=ann&password=correct+horse"),
			get(signedQuery("command", command)),
		} {
			a := l.do(t, r)
			a.want(t, 405, "loginresponse", 9999, "Please use HTTP POST to authenticate using this API")
			if a.header.Get("Set-Cookie") != "" {
				t.Errorf("a cookie is set: %s", a.header)
			}
		}
	}
	if len(l.svc.logins) != 0 {
		t.Errorf("asked %v", l.svc.logins)
	}
	a := l.do(t, post("", loginForm("admin", "password")))
	a.want(t, 531, "loginresponse", 0, "Failed to authenticate user admin")
	if a.header.Get("Set-Cookie") != "" || strings.Contains(a.raw, "cserrorcode") {
		t.Errorf("answered by %v %s", a.header, a.raw)
	}
	for form, text := range map[string]string{
		"command=login&password=x":                                      "Unable to execute API command login due to missing parameter username",
		"command=login&username=x":                                      "Unable to execute API command login due to missing parameter password",
		"command=login&username=x&password=":                            "",
		"command=login&username=x&password=" + strings.Repeat("a", 256): "",
		"command=login&username=x&password=%00":                         illegal + "password",
	} {
		a := l.do(t, post("", form))
		if a.status != 431 || text != "" && a.text != text {
			t.Errorf("%s: %d %s", form, a.status, a.raw)
		}
	}
	l.svc.broken = errors.New("the database is lost")
	l.do(t, post("", loginForm("ann", goodPassword))).want(t, 530, "loginresponse", 4250, internalText)
}

// A session's cookies, with its key as a parameter of exactly that name, say who
// asks, by GET and POST; without any of the three nobody does. A wrong key ends
// the session (cks.md §1.2, §1.8).
//
// Keeps: §1.2/sessionkey, §1.8/session, §1.8/signed-first.
func TestSessionNeedsItsCookiesAndItsKey(t *testing.T) {
	t.Parallel()
	const list = "command=listKubernetesClusters&sessionkey=" + goodKey
	both := []string{"JSESSIONID", sessionID, "sessionkey", goodKey}
	ended := "unable to verify user credentials"
	for name, c := range map[string]struct {
		query   string
		cookies []string
		text    string // "" = served
		ends    bool
	}{
		"all":                     {list, both, "", false},
		"all, response and more":  {list + "&response=json&filter=id", both, "", false},
		"empty signature":         {list + "&signature=", both, "", false},
		"key in another case":     {strings.Replace(list, "sessionkey", "sessionKey", 1), both, ended, true},
		"no parameter":            {"command=listKubernetesClusters", both, ended, true},
		"wrong parameter":         {list + "x", both, ended, true},
		"wrong cookie":            {list, []string{"JSESSIONID", sessionID, "sessionkey", "x"}, ended, true},
		"no cookie of the key":    {list, both[:2], ended, true},
		"both wrong, but equal":   {"command=listKubernetesClusters&sessionkey=x", []string{"JSESSIONID", sessionID, "sessionkey", "x"}, ended, true},
		"nothing of the key":      {"command=listKubernetesClusters", both[:2], ended, true},
		"empty key":               {"command=listKubernetesClusters&sessionkey=", []string{"JSESSIONID", sessionID, "sessionkey", ""}, ended, true},
		"no cookie of the id":     {list, both[2:], denied, false},
		"unknown id":              {list, []string{"JSESSIONID", "node01abc", "sessionkey", goodKey}, denied, false},
		"a signature counts more": {list + "&apiKey=" + adminKey + "&signature=x", both, denied, false},
		"a signature alone":       {list + "&signature=x", both, denied, false},
		"a key counts more":       {list + "&apiKey=" + adminKey, both, denied, false},
	} {
		l := newLab(t)
		l.login(t, post("", loginForm("ann", goodPassword)))
		a := l.browser(t, c.query, c.cookies...)
		if c.text == "" {
			a.wantOK(t)
		} else {
			a.want(t, 401, listKey, 0, c.text)
		}
		if again := l.browser(t, list, both...); (again.status == 401) != c.ends {
			t.Errorf("%s: and then %s", name, again.raw)
		}
	}
}

// In a session a command that is not known, or not for the account, is 432, and
// none at all 400; a change may have to be posted there, too (cks.md §2.9).
//
// Keeps: §2.9/400-session.
func TestSessionsKnowWhoAsks(t *testing.T) {
	t.Parallel()
	both := []string{"JSESSIONID", sessionID, "sessionkey", goodKey}
	with := func(query string) string { return query + "&sessionkey=" + goodKey }
	l := newLab(t)
	l.login(t, post("", loginForm("ann", goodPassword)))
	user := "does not exist or is not available for the account for user id [" + userID + "]."
	l.browser(t, with("command=foo"), both...).want(t, 432, errorKey, 9999, "The API [foo] "+user)
	l.browser(t, with("command=querySimulator"), both...).want(t, 432, errorKey, 9999, "The API [querySimulator] "+user)
	l.browser(t, with("x=y"), both...).want(t, 400, errorKey, 0, "no command specified")
	l.browser(t, with("command=scaleKubernetesCluster&id="+clusterID), both...).wantOK(t)
	if len(l.svc.scaled) != 1 || l.svc.caller.Name != "ann" {
		t.Errorf("scaled %v by %v", l.svc.scaled, l.svc.caller)
	}
	l.enforcePost = true
	l.browser(t, with("command=scaleKubernetesCluster&id="+clusterID), both...).want(t, 400, scaleKey, 9999,
		"State changing command scaleKubernetesCluster needs to be sent using POST request")
	l.login(t, post("", loginForm("admin", goodPassword)))
	l.browser(t, with("command=foo"), both...).want(t, 432, errorKey, 9999, "Unknown API command: foo")
	l.svc.broken = errors.New("the database is lost")
	l.browser(t, with("command=listKubernetesClusters"), both...).want(t, 530, listKey, 4250, internalText)
}

// What the document asks of a request in a session is what opens one, so that
// the page at /docs and generated clients can send it.
func TestDocumentTellsAllThatASessionAsksFor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	doc := document(t)
	secrets := map[string]string{idCookie: sessionID, keyCookie: goodKey}
	asked := 0
	for _, requirement := range doc.Security {
		if _, session := requirement["session"]; !session {
			continue
		}
		asked++
		query, cookies := "command=scaleKubernetesCluster&id="+clusterID, []string{}
		for name := range requirement {
			scheme := doc.Components.SecuritySchemes[name].Value
			if scheme.In == "query" {
				query += "&" + scheme.Name + "=" + secrets[scheme.Name]
			} else {
				cookies = append(cookies, scheme.Name, secrets[scheme.Name])
			}
		}
		l.login(t, post("", loginForm("ann", goodPassword)))
		l.browser(t, query, cookies...).wantOK(t)
	}
	if asked != 1 {
		t.Errorf("the document asks for a session %d times", asked)
	}
}

// logout ends the session that it is sent in, with its key, and has the browser
// forget it; without a session there is nothing to end (cks.md §1.8).
//
// Keeps: §1.8/logout.
func TestLogoutEndsTheSession(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	both := []string{"JSESSIONID", sessionID, "sessionkey", goodKey}
	const list = "command=listKubernetesClusters&sessionkey=" + goodKey
	for _, command := range []string{"logout", "Logout"} {
		l.login(t, post("", loginForm("ann", goodPassword)))
		l.browser(t, list, both...).wantOK(t)
		a := l.browser(t, "command="+command+"&sessionkey="+goodKey, both...)
		a.wantOK(t)
		if a.raw != `{"logoutresponse":{"description":"success"}}`+"\n" {
			t.Errorf("answered by %s", a.raw)
		}
		for _, c := range (&nethttp.Response{Header: a.header}).Cookies() {
			if c.MaxAge >= 0 || c.Value != "" || c.Path != "/client/api" {
				t.Errorf("cookie %s is kept", c)
			}
		}
		l.browser(t, list, both...).want(t, 401, listKey, 0, denied)
		l.browser(t, "command="+command).wantOK(t)
	}
	l.login(t, post("", loginForm("ann", goodPassword)))
	l.browser(t, "command=logout", both...).want(t, 401, "logoutresponse", 0, "unable to verify user credentials")
}

// Whoever guesses at a password waits like whoever guesses at a key, and gets
// 429 in CloudStack's form unjudged; the owner, elsewhere, is served, and is not
// held up by sessions of his (docs/security.md).
//
// Keeps: §1.8/password-guesses.
func TestPasswordGuessesAreSlowed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	from := func(address string, r *nethttp.Request) *nethttp.Request {
		r.RemoteAddr = address + ":1"
		return r
	}
	l.login(t, from("198.51.100.1", post("", loginForm("ann", goodPassword))))
	refused := 0
	for range 150 {
		now := l.now()
		a := l.do(t, from("203.0.113.5", post("", loginForm("ann", "guess"))))
		if a.status == 429 {
			refused++
			if a.key != "loginresponse" || a.csCode != 4545 || a.header.Get("Retry-After") == "" {
				t.Fatalf("answered by %s", a.raw)
			}
		}
		if l.now() != now {
			t.Fatal("the clock does not stand still")
		}
		if refused == 3 {
			break
		}
	}
	if refused != 3 || len(l.svc.logins) > 105 {
		t.Errorf("%d of %d attempts were refused", refused, len(l.svc.logins))
	}
	l.do(t, from("203.0.113.5", post("", loginForm("ann", goodPassword)))).want(t, 429, "loginresponse", 4545, "Too many failed authentications, please retry after [6000] ms.")
	l.login(t, from("198.51.100.1", post("", loginForm("ann", goodPassword))))
	r := from("198.51.100.1", get("command=listKubernetesClusters&sessionkey="+goodKey))
	r.AddCookie(&nethttp.Cookie{Name: "JSESSIONID", Value: sessionID})
	r.AddCookie(&nethttp.Cookie{Name: "sessionkey", Value: goodKey})
	l.do(t, r).wantOK(t)
}

// Whoever has logged in before from an address that somebody guesses from can
// log in, and is served in his session, while the guesses wait.
func TestSessionIsNotHeldUpByGuesses(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.login(t, post("", loginForm("ann", goodPassword))) // has been here before
	ctx, cancel := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for i := range 200 {
		crowd.Go(func() {
			l.serve(httptest.NewRecorder(), post("", loginForm("bob"+strconv.Itoa(i), "guess")).WithContext(ctx))
		})
	}
	defer crowd.Wait()
	defer cancel()
	here := netip.MustParsePrefix("192.0.2.1/32")
	for end := time.Now().Add(time.Minute); l.guard.addresses.wait(here, noon) <= patience; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the guesses do not use up the address")
		}
	}
	l.login(t, post("", loginForm("ann", goodPassword)))
	l.browser(t, "command=listKubernetesClusters&sessionkey="+goodKey, "JSESSIONID", sessionID, "sessionkey", goodKey).wantOK(t)
}

// Unknown sessions are guesses as well.
func TestSessionGuessesAreSlowed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	statuses := []int{}
	for range 130 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond) // nobody waits for his turn here
		r := get("command=listKubernetesClusters&sessionkey=k").WithContext(ctx)
		r.AddCookie(&nethttp.Cookie{Name: "JSESSIONID", Value: "guess"})
		rec := httptest.NewRecorder()
		l.serve(rec, r)
		cancel()
		statuses = append(statuses, rec.Code)
		if rec.Code != 401 {
			break
		}
	}
	if len(statuses) != 101 || slices.Contains(statuses[:100], 503) {
		t.Errorf("answered by %v", statuses)
	}
}

// Second factors are not asked for: an account is in when its signature is
// right, and no answer is 511 (cks.md §1.8).
//
// Keeps: §1.8/two-factor.
func TestNoSecondFactorIsAskedFor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.do(t, get(signedAs(userKey, userSecret, "command", "listKubernetesClusters"))).wantOK(t)
	for code, wire := range wireCodes {
		if wire.status == 511 {
			t.Errorf("%s is 511", code)
		}
	}
}

// Keys are good from any address, as with CloudStack's defaults (cks.md §1.9).
//
// Keeps: §1.9/cidr.
func TestAnyAddressIsServed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, address := range []string{"192.0.2.1:1", "127.0.0.1:1", "[2001:db8::1]:1", "@"} {
		r := get(signedQuery("command", "listKubernetesClusters"))
		r.RemoteAddr = address
		r.Header.Set("X-Forwarded-For", "198.51.100.7")
		l.do(t, r).wantOK(t)
	}
}
