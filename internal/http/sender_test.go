package http

import (
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// A request comes from its peer, whatever it says itself; of our proxies we
// believe whom they heard, and of those in front of them only if these are
// ours, too. In IPv6 a whole network is one sender.
func TestSender(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		peer, want string
		forwarded  []string
	}{
		{"192.0.2.1:1234", "192.0.2.1/32", nil},
		{"192.0.2.1:1234", "192.0.2.1/32", []string{"198.51.100.7"}},
		{"[::ffff:192.0.2.1]:1", "192.0.2.1/32", nil},
		{"[2001:db8::1:2:3:4]:1", "2001:db8::/64", nil},
		{"[fe80::1%eth0]:1", "fe80::/64", nil},
		{"10.0.0.1:1", "10.0.0.1/32", nil},
		{"10.0.0.1:1", "198.51.100.7/32", []string{"198.51.100.7"}},
		{"10.0.0.1:1", "198.51.100.7/32", []string{"203.0.113.9, 198.51.100.7"}},
		{"10.0.0.1:1", "198.51.100.7/32", []string{"203.0.113.9", "198.51.100.7,10.0.0.2"}},
		{"[fd00::1]:1", "2001:db8:1:2::/64", []string{"[2001:db8:1:2::3]:80"}},
		{"10.0.0.1:1", "10.0.0.1/32", []string{"198.51.100.7, unknown"}},
		{"10.0.0.1:1", "10.0.0.3/32", []string{"10.0.0.3"}},
		{"10.0.0.1:1", "10.0.0.1/32", []string{""}},
		{"@", "invalid Prefix", []string{"198.51.100.7"}},
	} {
		r := httptest.NewRequest(nethttp.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		for _, f := range c.forwarded {
			r.Header.Add("X-Forwarded-For", f)
		}
		if got := l.sender(r).String(); got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}
