package http

import (
	"context"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ckscale/internal/cks"
)

// guarded runs test in a bubble where time passes when everybody waits.
func guarded(t *testing.T, test func(t *testing.T, l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.now = time.Now
		test(t, l)
	})
}

// from sends a request as if from another address.
func (l *lab) from(t *testing.T, addr string, r *nethttp.Request) answered {
	t.Helper()
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(addr), 1).String()
	return l.do(t, r)
}

// tried is what became of many attempts.
type tried struct {
	judged  int // 401: wrong
	refused int // 429: not looked at
	took    time.Duration
}

// flood sends what make makes, so many at once and each time again, for that
// long.
func (l *lab) flood(t *testing.T, atOnce int, long time.Duration, make func(i int) (addr string, r *nethttp.Request)) tried {
	t.Helper()
	begin := time.Now()
	var mu sync.Mutex
	var all tried
	n := 0
	var crowd sync.WaitGroup
	for range atOnce {
		crowd.Go(func() {
			for time.Since(begin) < long {
				mu.Lock()
				i := n
				n++
				mu.Unlock()
				addr, r := make(i)
				a := l.from(t, addr, r)
				mu.Lock()
				switch a.status {
				case 401:
					all.judged++
				case 429:
					all.refused++
				default:
					t.Errorf("got %s", a.raw)
				}
				mu.Unlock()
				if a.status == 429 {
					time.Sleep(time.Second) // or time would never pass
				}
			}
		})
	}
	crowd.Wait()
	all.took = time.Since(begin)
	return all
}

// most is how many may be judged in that time at a pace.
func (p pace) most(long time.Duration) int { return p.burst + int(long/p.every) + 1 }

const listing = "listKubernetesClusters"

// From one address hardly anything can be guessed, however many try at once, be
// it a secret, a signature or a key: after the first hundred, one attempt in
// two seconds is looked at. The others are refused by 429, with the time to
// wait; not even the right secret is told from a wrong one then.
//
// Keeps: §1.7/guesses, §2.9/cs-4545.
func TestGuessesFromOneAddressAreSlowed(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"a known key": userKey, "an unknown key": "nobody", "ever other keys": "%d"} {
		for way := range byBoth("", "", listing) {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				guarded(t, func(t *testing.T, l *lab) {
					guess := func(i int) (string, *nethttp.Request) {
						k := key
						if strings.Contains(k, "%") {
							k = fmt.Sprintf(k, i)
						}
						return "192.0.2.1", byBoth(k, fmt.Sprint("guess", i), listing)[way]()
					}
					begin := time.Now()
					for i := range 100 {
						addr, r := guess(i)
						l.from(t, addr, r).want(t, 401, listKey, 0, denied)
					}
					if took := time.Since(begin); took != 0 {
						t.Errorf("a hundred mistakes took %s", took)
					}
					got := l.flood(t, 20, 3*time.Minute, guess)
					if most := addressPace.most(got.took); got.judged > most || got.judged < most-110 || got.refused < 1_000 {
						t.Errorf("%+v, at most %d", got, most)
					}
					if n := l.svc.asked; n > got.judged+100+got.refused/10 {
						t.Errorf("%d keys were looked up: %+v", n, got)
					}
					// In the second between two turns:
					crowd := sync.WaitGroup{}
					for i := range 3 {
						crowd.Go(func() { addr, r := guess(i); l.from(t, addr, r) })
					}
					synctest.Wait()
					a := l.from(t, "192.0.2.1", byBoth(adminKey, adminSecret, listing)[way]())
					if a.status != 429 || a.csCode != 4545 || !strings.HasPrefix(a.text, "Too many failed authentications, please retry after [") || a.header.Get("Retry-After") == "" {
						t.Errorf("the right secret: %s", a.raw)
					}
					crowd.Wait()
				})
			})
		}
	}
}

// At one key hardly anything can be guessed from ever so many addresses.
//
// Keeps: §1.7/guesses-key.
func TestGuessesAtOneKeyAreSlowed(t *testing.T) {
	t.Parallel()
	for way := range byBoth("", "", listing) {
		guarded(t, func(t *testing.T, l *lab) {
			got := l.flood(t, 200, 30*time.Second, func(i int) (string, *nethttp.Request) {
				return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255), byBoth(userKey, fmt.Sprint("guess", i), listing)[way]()
			})
			if most := keyPace.most(got.took); got.judged > most || got.judged < most/2 || got.refused < 1_000 {
				t.Errorf("%s: %+v, at most %d", way, got, most)
			}
		})
	}
}

// Nobody elsewhere can keep the owner of a key out or slow him down where he
// has used it before, nor can somebody at the same address who tries other
// keys: also while whoever is new there is refused.
//
// Keeps: §1.7/guesses-owner.
func TestStrangersDoNotLockOwnersOut(t *testing.T) {
	t.Parallel()
	for way, owner := range byBoth(userKey, userSecret, listing) {
		guarded(t, func(t *testing.T, l *lab) {
			l.from(t, "192.0.2.1", owner()).wantOK(t)
			strangers := func(i int) (string, *nethttp.Request) {
				if i%3 == 0 {
					return "192.0.2.1", byBoth("nobody", "x", listing)[way]()
				}
				return fmt.Sprintf("10.0.%d.%d", i>>8&255, i&255), byBoth(userKey, "x", listing)[way]()
			}
			crowd := sync.WaitGroup{}
			crowd.Go(func() { l.flood(t, 200, time.Minute, strangers) })
			newcomers := 0
			for i := range 50 {
				time.Sleep(time.Second)
				begin := time.Now()
				l.from(t, "192.0.2.1", owner()).wantOK(t)
				if took := time.Since(begin); took != 0 {
					t.Fatalf("%s: the owner waits %s", way, took)
				}
				if l.from(t, fmt.Sprintf("198.51.100.%d", i), owner()).status == 429 {
					newcomers++
				}
			}
			if newcomers < 5 {
				t.Errorf("%s: a newcomer is refused %d times only: nothing was proved", way, newcomers)
			}
			crowd.Wait()
		})
	}
}

// One stranger who guesses at a key, alone or by a hundred connections, does not
// keep its owner out anywhere else, not even where the key is new.
//
// Keeps: §1.7/guesses-owner.
func TestOneStrangerDoesNotLockTheOwnerOut(t *testing.T) {
	t.Parallel()
	for way, owner := range byBoth(userKey, userSecret, listing) {
		guarded(t, func(t *testing.T, l *lab) {
			crowd := sync.WaitGroup{}
			crowd.Go(func() {
				l.flood(t, 40, time.Minute, func(int) (string, *nethttp.Request) {
					return "192.0.2.1", byBoth(userKey, "x", listing)[way]()
				})
			})
			for i := range 50 {
				time.Sleep(time.Second)
				begin := time.Now()
				l.from(t, fmt.Sprintf("198.51.100.%d", i), owner()).wantOK(t)
				if took := time.Since(begin); took != 0 {
					t.Fatalf("%s: the owner waits %s", way, took)
				}
			}
			crowd.Wait()
		})
	}
}

// Beside somebody who guesses at the same key from the same address, one guess
// after the other, the owner waits for his turn and is served.
//
// Keeps: §1.7/guesses-turns.
func TestOwnersTakeTurnsWithWhoeverIsAtTheirAddress(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} {
		for way, owner := range byBoth(userKey, userSecret, listing) {
			guarded(t, func(t *testing.T, l *lab) {
				if before {
					l.do(t, owner()).wantOK(t)
				}
				crowd := sync.WaitGroup{}
				crowd.Go(func() {
					begin := time.Now()
					for i := 0; time.Since(begin) < 5*time.Minute; i++ {
						l.do(t, byBoth(userKey, fmt.Sprint(i), listing)[way]()).want(t, 401, listKey, 0, denied)
					}
				})
				var longest time.Duration
				for range 100 {
					time.Sleep(1700 * time.Millisecond)
					begin := time.Now()
					l.do(t, owner()).wantOK(t)
					longest = max(longest, time.Since(begin))
				}
				if longest == 0 || longest > patience {
					t.Errorf("%s: the owner waits %s", way, longest)
				}
				crowd.Wait()
				time.Sleep(5 * time.Minute)
				begin := time.Now()
				l.do(t, owner()).wantOK(t)
				if took := time.Since(begin); took != 0 {
					t.Errorf("%s: the owner waits %s afterwards", way, took)
				}
			})
		}
	}
}

// Only what is wrong counts: neither what is right, in one reading of a request
// or the other, nor what is no attempt, nor what could not be looked up, nor
// who went away while he waited.
//
// Keeps: §1.7/guesses.
func TestOnlyFailedAttemptsCount(t *testing.T) {
	t.Parallel()
	right := signedAs(userKey, userSecret, "command", listing)
	basic := byBoth(userKey, userSecret, listing)["Basic"]
	for name, c := range map[string]struct {
		r      func() *nethttp.Request
		status int
		lookup error
	}{
		"signed":                  {r: func() *nethttp.Request { return get(right) }, status: 200},
		"Basic":                   {r: basic, status: 200},
		"the first of two":        {r: func() *nethttp.Request { return get(right + "&command=listZones") }, status: 200},
		"the last of two":         {r: func() *nethttp.Request { return get("command=listZones&" + right) }, status: 200},
		"no signature":            {r: func() *nethttp.Request { return get("command=" + listing + "&apiKey=" + userKey) }, status: 401},
		"unknown command, signed": {r: func() *nethttp.Request { return get(signedAs(userKey, "x", "command", "foo")) }, status: 401},
		"expired": {r: func() *nethttp.Request {
			return get(signedAs(userKey, "x", "command", listing, "signatureVersion", "3"))
		}, status: 401},
		"database lost, signed": {r: func() *nethttp.Request { return get(right) }, status: 503, lookup: cks.Errorf(cks.Unavailable, "lost")},
		"database lost, Basic":  {r: basic, status: 503, lookup: cks.Errorf(cks.Unavailable, "lost")},
	} {
		guarded(t, func(t *testing.T, l *lab) {
			l.svc.lookup = c.lookup
			begin := time.Now()
			for range 1000 {
				if a := l.do(t, c.r()); a.status != c.status {
					t.Fatalf("%s: %s", name, a.raw)
				}
			}
			if took := time.Since(begin); took != 0 {
				t.Errorf("%s: took %s", name, took)
			}
		})
	}
	guarded(t, func(t *testing.T, l *lab) {
		wrong := byBoth(userKey, "x", listing)["Basic"]
		for range 101 {
			l.do(t, wrong()) // the last one waits
		}
		begin := time.Now()
		for range 50 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("gone"))
			l.do(t, wrong().WithContext(ctx))
			cancel()
		}
		l.do(t, basic()).wantOK(t)
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("those who went away count: took %s", took)
		}
	})
}

// A request whose two readings are two guesses at one key is one attempt, and
// one that names two keys is one at each: a hundred are free.
func TestReadingsAreOneAttemptAtEachKey(t *testing.T) {
	t.Parallel()
	for more, free := range map[string]int{"&x=1&x=2": 100, "&apiKey=other": 50} {
		guarded(t, func(t *testing.T, l *lab) {
			begin, n := time.Now(), 0
			for ; time.Since(begin) == 0; n++ {
				l.do(t, get(signedAs(userKey, "x", "command", listing)+more)).want(t, 401, listKey, 0, denied)
			}
			if n != free+1 {
				t.Errorf("%s: number %d waits", more, n)
			}
		})
	}
}

// The guard remembers so much and no more, whoever tries what, and so many wait
// at once and no more.
func TestGuardIsBounded(t *testing.T) {
	t.Parallel()
	guarded(t, func(t *testing.T, l *lab) {
		const room, waiting = 50, 10
		l.guard.pairs.room, l.guard.addresses.room, l.guard.keys.room = room, room, room
		l.guard.seats = make(chan struct{}, waiting)
		for i := range 10 * room {
			addr := fmt.Sprintf("2001:db8:%x::1", i)
			l.from(t, addr, get(signedAs(strings.Repeat("k", 1000)+fmt.Sprint(i), "x", "command", listing))).want(t, 401, listKey, 0, denied)
			l.from(t, addr, byBoth(userKey, userSecret, listing)["Basic"]()).wantOK(t)
		}
		g := l.guard
		if len(g.pairs.byKey) != room || len(g.addresses.byKey) != room || len(g.keys.byKey) != room {
			t.Errorf("remembers %d pairs, %d addresses, %d keys", len(g.pairs.byKey), len(g.addresses.byKey), len(g.keys.byKey))
		}
	})
	guarded(t, func(t *testing.T, l *lab) {
		const waiting = 10
		l.guard.seats = make(chan struct{}, waiting)
		wrong := byBoth("nobody", "x", listing)["signed"]
		for a := range 20 {
			for range 100 {
				l.from(t, fmt.Sprintf("192.0.2.%d", a), byBoth(fmt.Sprint(a), "x", listing)["signed"]())
			}
		}
		var crowd sync.WaitGroup
		for a := range 20 {
			crowd.Go(func() { l.from(t, fmt.Sprintf("192.0.2.%d", a), wrong()) })
		}
		synctest.Wait()
		if n := len(l.guard.seats); n != waiting {
			t.Errorf("%d wait", n)
		}
		crowd.Wait()
		if n := len(l.guard.seats); n != 0 {
			t.Errorf("%d seats are kept", n)
		}
	})
}

// That somebody is slowed down is in the log, once a minute, with the address
// and neither key nor secret.
func TestSlowedAttemptsAreLogged(t *testing.T) {
	t.Parallel()
	guarded(t, func(t *testing.T, l *lab) {
		l.flood(t, 10, 10*time.Minute, func(i int) (string, *nethttp.Request) {
			return "192.0.2.1", byBoth(userKey, "guessed-secret", listing)["Basic"]()
		})
		lines := loud(l.log.String())
		if len(lines) < 8 || len(lines) > 11 || !strings.Contains(lines[0], "slowed down") || !strings.Contains(lines[0], "192.0.2.1") {
			t.Errorf("%d lines: %q", len(lines), lines[:min(3, len(lines))])
		}
		for _, secret := range []string{userKey, "guessed-secret", userSecret} {
			if strings.Contains(l.log.String(), secret) {
				t.Errorf("the log holds %q", secret)
			}
		}
	})
}

// A request that is held up is given up before its connection is, and the
// client is told (issue 4, security).
func TestRequestsDoNotTakeForEver(t *testing.T) {
	t.Parallel()
	guarded(t, func(t *testing.T, l *lab) {
		l.svc.scale = func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("begin: %w", ctx.Err())
		}
		begin := time.Now()
		l.do(t, get(scaleQuery())).want(t, 503, scaleKey, 9999, "the request took too long")
		if took := time.Since(begin); took != requestTime {
			t.Errorf("took %s", took)
		}
	})
}

// An attempt that is refused because of its key does not count at its address.
func TestRefusedAttemptsDoNotCount(t *testing.T) {
	t.Parallel()
	g := newGuard(func() time.Time { return noon }, func(netip.Prefix) {})
	a := g.attempts(netip.MustParsePrefix("192.0.2.1/32"))
	if err := a.at("k"); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		g.keys.take(a.key, noon, time.Hour)
	}
	for range 1000 {
		if _, ok := a.take(noon); ok {
			t.Fatal("taken")
		}
	}
	if wait := g.addresses.wait(a.from, noon); wait != 0 {
		t.Errorf("the address waits %s", wait)
	}
}
