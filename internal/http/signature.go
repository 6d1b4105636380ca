package http

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the dialect's signature is HMAC-SHA1
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// canonicalString is what a client signs (cks.md §1.7): every parameter but
// the signature, sorted by name as sent, names as they are, values encoded as
// Java's form encoder does but with %20 for a space, all in lower case. Java
// encodes "~", the Go and Python clients do not; bareTilde says which.
func canonicalString(params []pair, bareTilde bool) string {
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
		escapeJava(&b, p.value, bareTilde)
	}
	return strings.ToLower(b.String())
}

func escapeJava(b *strings.Builder, s string, bareTilde bool) {
	const hex = "0123456789abcdef"
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '.', c == '-', c == '*', c == '_', c == '~' && bareTilde:
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

// signedBy reports whether signature is that of params under secret, with "~"
// encoded either way.
func signedBy(params []pair, secret, signature string) bool {
	java := canonicalString(params, false)
	if hmac.Equal([]byte(sign(java, secret)), []byte(signature)) {
		return true
	}
	bare := canonicalString(params, true)
	return bare != java && hmac.Equal([]byte(sign(bare, secret)), []byte(signature))
}

// expiryLayouts are the forms of "expires"; Go's parser takes fractions of a
// second with each.
var expiryLayouts = []string{
	time.RFC3339,                // 2026-11-07T18:39:31+00:00, …Z
	"2006-01-02T15:04:05-0700",  // 2026-11-07T18:39:31+0000
	"2006-01-02T15:04:05-07",    // 2026-11-07T18:39:31+00
	"2006-01-02T15:04:05Z-0700", // the legacy 2026-11-07T18:39:31Z+0000
}

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
