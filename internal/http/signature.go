package http

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the dialect's signature is HMAC-SHA1
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// canonical is what a client signs (cks.md §1.7): every parameter but the
// signature, sorted by name as sent, names as they are, values percent-encoded
// but for letters, digits, ".-_" and the characters in bare, all in lower case.
func canonical(params []pair, bare string) string {
	signed := slices.DeleteFunc(slices.Clone(params), func(p pair) bool {
		return strings.EqualFold(p.name, "signature")
	})
	slices.SortStableFunc(signed, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	for i, p := range signed {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.name)
		b.WriteByte('=')
		escape(&b, p.value, ".-_"+bare)
	}
	return strings.ToLower(b.String())
}

func escape(b *strings.Builder, s, bare string) {
	const hex = "0123456789abcdef"
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(bare, c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
}

// sign returns the signature of a canonical string.
func sign(canonical, secret string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(canonical))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// bareForms are what clients leave bare in the values that they sign: Java's
// form encoder "*", cloudstack-go, cmk and Python's cs "~" too, the
// cluster-autoscaler only "~" (A09). No two values look alike in them.
var bareForms = []string{"*", "*~", "~"}

// signedBy reports whether signature is that of params under secret, in the
// encoding of any client.
func signedBy(params []pair, secret, signature string) bool {
	return slices.ContainsFunc(bareForms, func(bare string) bool {
		return hmac.Equal([]byte(sign(canonical(params, bare), secret)), []byte(signature))
	})
}

// expiryLayouts are the forms of "expires"; Go's parser takes fractions of a
// second with each.
var expiryLayouts = []string{
	time.RFC3339,                // 2026-11-07T18:39:31+00:00, …Z
	"2006-01-02T15:04:05-0700",  // 2026-11-07T18:39:31+0000
	"2006-01-02T15:04:05-07",    // 2026-11-07T18:39:31+00
	"2006-01-02T15:04:05Z-0700", // the legacy 2026-11-07T18:39:31Z+0000
}

// maxValidity is how far ahead "expires" may be where that is enforced.
const maxValidity = 15 * time.Minute

// lapsed reports whether a value of "expires" is missing, unreadable or past.
func lapsed(expires string, now time.Time) bool {
	t, ok := parseTime(expires, expiryLayouts)
	return !ok || !t.After(now)
}

func parseTime(s string, layouts []string) (time.Time, bool) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
