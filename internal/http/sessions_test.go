package http

import (
	nethttp "net/http"
	"testing"
)

// Sessions are not served: login and logout are commands that do not exist, in
// any case of theirs and by any method, and a session's cookies and key open
// nothing. The answer is CloudStack's 401, which cmk takes for a failed login
// (cks.md §1.2, §1.8; clients.md §5).
//
// Keeps: §1.2/sessionkey, §1.2/authenticator-commands, §1.8/login, §1.8/login-get, §1.8/login-answer, §1.8/bad-credentials.
// Keeps: §1.8/session, §1.8/logout, §2.9/400-session, §2.9/405-login.
func TestSessionsAreNotServed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, command := range []string{"login", "LOGIN", "Login", "logout", "Logout"} {
		form := "command=" + command + "&username=admin&password=password&domain=/&response=json"
		for _, r := range []*nethttp.Request{post("", form), get(form), get(signedQuery("command", command))} {
			a := l.do(t, r)
			a.want(t, 401, errorKey, 0, denied)
			if a.header.Get("Set-Cookie") != "" {
				t.Errorf("%s sets the cookie %q", command, a.header.Get("Set-Cookie"))
			}
		}
	}
	inSession := func(query string) answered {
		r := get(query)
		r.AddCookie(&nethttp.Cookie{Name: "JSESSIONID", Value: "node01abc"})
		r.AddCookie(&nethttp.Cookie{Name: "sessionkey", Value: "k"})
		return l.do(t, r)
	}
	inSession("command=listKubernetesClusters&sessionkey=k").want(t, 401, listKey, 0, denied)
	inSession("sessionkey=k").want(t, 401, errorKey, 0, denied)
	inSession(signedQuery("command", "listKubernetesClusters", "sessionkey", "k")).wantOK(t) // a parameter like any other
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
