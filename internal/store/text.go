package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is the longest error text that is kept, in characters.
const maxText = 4000

// clean makes s fit to be kept and shown: valid UTF-8, no control characters
// but line ends, at most maxText characters (A57).
func clean(s string) string {
	if limit := maxText * utf8.UTFMax * 2; len(s) > limit {
		s = s[:limit] // enough for maxText characters; spares the rest the work
	}
	s = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if utf8.RuneCountInString(s) > maxText {
		s = string([]rune(s)[:maxText-1]) + "…"
	}
	return strings.TrimSpace(s)
}

// storable replaces what PostgreSQL cannot keep in text, so that no client can
// make a statement fail by the bytes it sends.
func storable(args []any) []any {
	for i, a := range args {
		if s, ok := a.(string); ok && (strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s)) {
			args[i] = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
		}
	}
	return args
}

// toJSON encodes v for a jsonb column. It is a string because pgx would take
// bytes for a bytea where it does not prepare statements.
func toJSON(v any) (string, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode %T: %w", v, err)
	}
	return string(withoutNUL(doc)), nil
}

// withoutNUL replaces the escape \u0000, the one thing in valid JSON that jsonb
// refuses.
func withoutNUL(doc []byte) []byte {
	nul := []byte(`\u0000`)
	if !bytes.Contains(doc, nul) {
		return doc
	}
	out := make([]byte, 0, len(doc))
	for i := 0; i < len(doc); i++ {
		switch {
		case doc[i] != '\\' || i+1 == len(doc):
			out = append(out, doc[i])
		case bytes.HasPrefix(doc[i:], nul):
			out = append(out, `\ufffd`...)
			i += len(nul) - 1
		default: // an escape of two bytes or the start of a longer one
			out = append(out, doc[i], doc[i+1])
			i++
		}
	}
	return out
}
