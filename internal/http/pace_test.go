package http

import (
	"fmt"
	nethttp "net/http"
	"testing"
	"time"
)

// By default requests are not counted, as with CloudStack (cks.md §1.9).
//
// Keeps: §1.9/rate-limit-off.
func TestManyRequestsAreAllAnswered(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	query := signedAs(userKey, userSecret, "command", "listKubernetesClusters")
	for i := range 1000 {
		if a := l.do(t, get(query)); a.status != nethttp.StatusOK {
			t.Fatalf("request %d: %s", i, a.raw)
		}
	}
}

// limitedLab is a lab where an account may make n requests in a second, with a
// clock to set.
func limitedLab(t *testing.T, n int) (*lab, *time.Time) {
	t.Helper()
	l, now := newLab(t), noon
	l.now = func() time.Time { return now }
	l.accounts = newPaces[string](perSecond(n), accountRoom)
	return l, &now
}

// byBoth are the same request in both ways to say who asks.
func byBoth(key, secret, command string) map[string]func() *nethttp.Request {
	return map[string]func() *nethttp.Request{
		"signed": func() *nethttp.Request { return get(signedAs(key, secret, "command", command)) },
		"Basic": func() *nethttp.Request {
			r := get("command=" + command)
			r.SetBasicAuth(key, secret)
			return r
		},
	}
}

// An account that asks for more than it may gets CloudStack's 429, with the
// time to wait in it and in a header, and is served again then. Other accounts
// are not concerned, the root admin's is (cks.md §1.9, §2.9).
//
// Keeps: §1.9/rate-limit, §1.9/rate-limit-admin, §2.9/429, §2.9/cs-4545.
func TestAccountsAreKeptToTheirPace(t *testing.T) {
	t.Parallel()
	for _, k := range [][4]string{{userKey, userSecret, adminKey, adminSecret}, {adminKey, adminSecret, userKey, userSecret}} {
		other := byBoth(k[2], k[3], listing)
		for way, ask := range byBoth(k[0], k[1], listing) {
			l, now := limitedLab(t, 25)
			for range 25 {
				l.do(t, ask()).wantOK(t)
			}
			const text = "The given user has reached his/her account api limit, please retry after [40] ms."
			for range 3 { // to be refused costs nothing
				a := l.do(t, ask())
				a.want(t, 429, listKey, 4545, text)
				if got := a.header.Get("Retry-After"); got != "1" {
					t.Errorf("%s: Retry-After is %q", way, got)
				}
			}
			l.do(t, other[way]()).wantOK(t)
			*now = now.Add(40 * time.Millisecond)
			l.do(t, ask()).wantOK(t)
			l.do(t, ask()).want(t, 429, listKey, 4545, text)
			*now = now.Add(time.Hour)
			for range 25 {
				l.do(t, ask()).wantOK(t)
			}
			l.do(t, ask()).want(t, 429, listKey, 4545, text)
		}
	}
}

// Whoever knows an account's API key only cannot use up its requests, although
// CloudStack counts before it checks the signature; what the account gets wrong
// itself counts.
//
// Keeps: §1.9/rate-limit-owner.
func TestOnlyTheOwnerUsesUpAnAccount(t *testing.T) {
	t.Parallel()
	for way, stranger := range byBoth(userKey, "wrong", "listKubernetesClusters") {
		l, _ := limitedLab(t, 3)
		for range 20 {
			l.do(t, stranger()).want(t, 401, listKey, 0, denied)
		}
		ask := byBoth(userKey, userSecret, "listKubernetesClusters")[way]
		for range 3 {
			l.do(t, ask()).wantOK(t)
		}
		if a := l.do(t, ask()); a.status != 429 {
			t.Errorf("%s: %s", way, a.raw)
		}
	}
	l, _ := limitedLab(t, 3)
	wrong := byBoth(userKey, userSecret, "dropEverything")["Basic"]
	for range 3 {
		if a := l.do(t, wrong()); a.status != 432 {
			t.Errorf("an unknown command: %s", a.raw)
		}
	}
	l.do(t, wrong()).want(t, 429, errorKey, 4545, "The given user has reached his/her account api limit, please retry after [334] ms.")
}

// Of more keys than there is room for, those counted last are remembered, and
// no more.
func TestPacesAreBounded(t *testing.T) {
	t.Parallel()
	p := newPaces[string](pace{burst: 1, every: time.Second}, 100)
	take := func(i int) bool { _, ok := p.take(fmt.Sprint(i), noon, 0); return ok }
	for i := range 10_000 {
		if !take(i) {
			t.Fatalf("%d is refused", i)
		}
		if take(max(i-99, 0)) {
			t.Fatalf("%d is forgotten at %d", i-99, i)
		}
	}
	if len(p.byKey) != 100 || p.recent.Len() != 100 {
		t.Errorf("%d and %d are remembered", len(p.byKey), p.recent.Len())
	}
	if !take(0) {
		t.Error("the first is remembered")
	}
}

// Who goes on is not forgotten for those who come and go.
func TestPacesForgetWhoWasCountedLongestAgo(t *testing.T) {
	t.Parallel()
	p := newPaces[string](pace{burst: 10, every: time.Second}, 2)
	for _, key := range []string{"a", "b", "a", "c"} {
		p.take(key, noon, 0)
	}
	if !p.has("a") || p.has("b") || !p.has("c") {
		t.Errorf("remembers %v", p.byKey)
	}
}

// What is given back was not counted, and a refused take counts nothing.
func TestPaces(t *testing.T) {
	t.Parallel()
	p := newPaces[string](pace{burst: 2, every: time.Second}, 10)
	take := func(after, patience, want time.Duration, wantOK bool) {
		t.Helper()
		if wait, ok := p.take("a", noon.Add(after), patience); wait != want || ok != wantOK {
			t.Errorf("waits %s, %t", wait, ok)
		}
	}
	take(0, 0, 0, true)
	take(0, 0, 0, true)
	take(0, 0, time.Second, false)
	take(0, time.Second, time.Second, true)
	take(0, time.Second, 2*time.Second, false)
	p.giveBack("a")
	take(0, time.Second, time.Second, true)
	take(500*time.Millisecond, 2*time.Second, 1500*time.Millisecond, true)
	take(time.Hour, 0, 0, true)
	take(time.Hour, 0, 0, true)
	take(time.Hour, 0, time.Second, false)
	p.giveBack("nobody")
	if wait := p.wait("a", noon.Add(time.Hour)); wait != time.Second {
		t.Errorf("would wait %s", wait)
	}
	if p.has("nobody") || !p.has("a") {
		t.Error("remembers the wrong ones")
	}
}
