package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// asking is one request as if by a proxy, which names whom it comes from.
func (c *client) asking(from, query string, k keys) reply {
	c.Helper()
	req, err := http.NewRequestWithContext(c.Context(), http.MethodGet, c.url+"?"+query, nil)
	if err != nil {
		c.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", from)
	if k != (keys{}) {
		req.SetBasicAuth(k.API, k.Secret)
	}
	return c.fetch(req)
}

// On a whole server, behind a proxy: who guesses at the admin's key is soon
// refused, by signature and by HTTP Basic, and the admin is served meanwhile,
// wherever he is. The log has the address, and no key (issue 4, security).
//
// Keeps: §1.7/guesses, §1.7/guesses-owner.
func TestGuessingIsHopeless(t *testing.T) {
	t.Parallel()
	s := launch(t, childEnv(t, map[string]string{"CKSCALE_TRUSTED_PROXIES": "127.0.0.0/8", "CKSCALE_DEMO": "false", "CKSCALE_LOG_LEVEL": "DEBUG"}))
	c := &client{t, apiURL(s.serving(t)), adminKeys}
	const stranger, office, home = "203.0.113.5", "198.51.100.1", "198.51.100.2"
	c.asking(office, "command=listZones", adminKeys)
	var mu sync.Mutex
	count := map[int]int{}
	var crowd sync.WaitGroup
	for i := range 400 {
		crowd.Go(func() {
			wrong := keys{adminKeys.API, "guess"}
			query, k := wrong.signed("listZones"), keys{}
			if i%2 == 0 {
				query, k = "command=listZones", wrong
			}
			r := c.asking(stranger, query, k)
			mu.Lock()
			defer mu.Unlock()
			count[r.status]++
			if r.status == 429 && (r.answer["errorcode"] != 429.0 || r.answer["cserrorcode"] != 4545.0 || r.header.Get("Retry-After") == "") {
				t.Errorf("answered by %v %s", r.header, r.raw)
			}
		})
	}
	crowd.Wait()
	if count[401]+count[429] != 400 || count[401] < 100 || count[401] > 150 {
		t.Errorf("answered by %v", count)
	}
	begin := time.Now()
	for _, from := range []string{office, home} {
		if r := c.asking(from, adminKeys.signed("listZones"), keys{}); r.status != 200 {
			t.Errorf("the owner, signed, from %s: %s", from, r.raw)
		}
		if r := c.asking(from, "command=listZones", adminKeys); r.status != 200 {
			t.Errorf("the owner, Basic, from %s: %s", from, r.raw)
		}
	}
	if r := c.asking(stranger, "command=listZones", adminKeys); r.status != 429 && time.Since(begin) < time.Second {
		t.Errorf("the right secret of a guesser is known at once: %s", r.raw)
	}
	log := s.stdout.String()
	if !strings.Contains(log, "slowed down") || !strings.Contains(log, stranger) {
		t.Errorf("the log does not tell: %s", log)
	}
	for _, secret := range []string{adminKeys.API, adminKeys.Secret, "guess"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// CKSCALE_RATE_LIMIT is kept to, in both ways to say who asks.
//
// Keeps: §1.9/rate-limit, §2.9/429, §2.9/cs-4545.
func TestRateLimitIsKeptTo(t *testing.T) {
	t.Parallel()
	s := launch(t, childEnv(t, map[string]string{"CKSCALE_RATE_LIMIT": "2", "CKSCALE_DEMO": "false"}))
	c := &client{t, apiURL(s.serving(t)), adminKeys}
	const text = "The given user has reached his/her account api limit, please retry after ["
	for name, ask := range map[string]func() reply{
		"signed": func() reply { return c.asking("x", adminKeys.signed("listZones"), keys{}) },
		"Basic":  func() reply { return c.asking("x", "command=listZones", adminKeys) },
	} {
		served := 0
		c.until("a request is refused, "+name, time.Minute, func() bool {
			var all [10]reply
			var crowd sync.WaitGroup
			for i := range all {
				crowd.Go(func() { all[i] = ask() })
			}
			crowd.Wait()
			refused := false
			for _, r := range all {
				switch {
				case r.status == 200:
					served++
				case r.status != 429 || r.key != "listzonesresponse" || !strings.HasPrefix(r.answer.text("errortext"), text):
					t.Fatalf("%s: %d %s", name, r.status, r.raw)
				default:
					refused = true
				}
			}
			return refused
		})
		c.until("a request is served, "+name, time.Minute, func() bool { return ask().status == 200 })
	}
}

// Proxies are given as addresses and networks.
func TestProxiesAreRead(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"": "[]", " , ": "[]", "10.0.0.0/8,192.0.2.1": "[10.0.0.0/8 192.0.2.1/32]", "fd00::/8 , ::1": "[fd00::/8 ::1/128]",
	} {
		if got, err := parseNetworks(list); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
}
