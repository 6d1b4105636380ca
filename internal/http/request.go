package http

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	nethttp "net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"ckscale/internal/cks"
)

// Limits of one request. Whatever is over them is refused with cks.TooLarge.
const (
	defaultMaxBody = 1 << 20  // bytes of a form
	maxQuery       = 64 << 10 // bytes of a query string
	maxPairs       = 1000     // parameters, in query and form together
	maxListItems   = 1000     // elements of one list parameter
)

// pair is one parameter of a request: decoded, its name as sent.
type pair struct{ name, value string }

// received is a request's parameters as they were sent.
type received struct {
	path        string // the command that the path names; "" for /client/api itself
	query, form []pair
}

// readQuery decodes the parameters of the path and of the query string.
func readQuery(r *nethttp.Request) (received, error) {
	in := received{path: strings.TrimPrefix(r.URL.Path, strings.TrimSuffix(commandPath, "/"))}
	in.path = strings.TrimPrefix(in.path, "/")
	if len(r.URL.RawQuery) > maxQuery {
		return in, cks.Errorf(cks.TooLarge, "The query string is longer than %d bytes; send the parameters as a form by POST", maxQuery)
	}
	var err error
	in.query, err = parseParams(r.URL.RawQuery)
	return in, err
}

// readForm reads the parameters in the body of a POST. It is the only reader
// of the body; that of a GET is left alone.
func (s *server) readForm(w nethttp.ResponseWriter, r *nethttp.Request) ([]pair, error) {
	if r.Method != nethttp.MethodPost || r.Body == nil || r.Body == nethttp.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(nethttp.MaxBytesReader(w, r.Body, s.maxBody))
	if tooBig, ok := errors.AsType[*nethttp.MaxBytesError](err); ok {
		return nil, cks.Errorf(cks.TooLarge, "The request body is larger than %d bytes", tooBig.Limit)
	}
	if err != nil {
		return nil, cks.Errorf(cks.Parameter, "The request body could not be read")
	}
	if len(body) == 0 {
		return nil, nil
	}
	sent := r.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(sent); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, cks.Errorf(cks.Parameter, "Content-Type %q is not supported; "+
			"send the parameters in the query string or as application/x-www-form-urlencoded", clip(sent, 100))
	}
	return parseParams(string(body))
}

// parseParams splits a query string or a form body (cks.md §1.1). A piece
// without "=" is dropped. What could be decoded is returned with an error, too.
func parseParams(raw string) ([]pair, error) {
	if strings.Count(raw, "&") >= 2*maxPairs {
		return nil, tooMany()
	}
	var pairs []pair
	var first error
	for piece := range strings.SplitSeq(raw, "&") {
		name, value, ok := strings.Cut(piece, "=")
		if !ok {
			continue
		}
		p, err := decodePair(name, value)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		if pairs = append(pairs, p); len(pairs) > maxPairs {
			return nil, tooMany()
		}
	}
	return pairs, first
}

func decodePair(name, value string) (p pair, err error) {
	if p.name, err = decode(name); err != nil {
		return pair{}, cks.Errorf(cks.Parameter, "The parameter name %q cannot be decoded: %w", clip(name, 100), err)
	}
	if p.value, err = decode(value); err != nil {
		return pair{}, cks.Errorf(cks.Parameter, "The value of the parameter %s cannot be decoded: %w", clip(p.name, 100), err)
	}
	return p, nil
}

func tooMany() error {
	return cks.Errorf(cks.TooLarge, "The request has more than %d parameters", maxPairs)
}

// decode undoes URL encoding. What is not UTF-8 then is no text: it could not
// be signed the same way by two sides, nor stored (A20).
func decode(s string) (string, error) {
	out, err := url.QueryUnescape(s)
	if err != nil {
		if e, ok := errors.AsType[url.EscapeError](err); ok {
			return "", fmt.Errorf("%q is no escape", string(e))
		}
		return "", err
	}
	if !utf8.ValidString(out) {
		return "", errors.New("it is not valid UTF-8")
	}
	return out, nil
}

// readings are the ways to read a request in which no name occurs twice. The
// query string wins over the form. If a name was repeated there, the last one
// counts (cks.md §1.1), or for some clients the first (clients.md §1): the
// signature tells which, and only what was signed is used.
func (in received) readings() [][]pair {
	last := in.once(true)
	if len(last) == len(in.form)+len(in.query) {
		return [][]pair{last}
	}
	return [][]pair{last, in.once(false)}
}

// once returns the parameters without repeated names, in the order sent.
func (in received) once(lastWins bool) []pair {
	inQuery := make(map[string]bool)
	for _, p := range in.query {
		inQuery[p.name] = true
	}
	all := slices.DeleteFunc(slices.Clone(in.form), func(p pair) bool { return inQuery[p.name] })
	all = append(all, in.query...)
	if lastWins {
		slices.Reverse(all)
	}
	seen := make(map[string]bool)
	all = slices.DeleteFunc(all, func(p pair) bool {
		again := seen[p.name]
		seen[p.name] = true
		return again
	})
	if lastWins {
		slices.Reverse(all)
	}
	return all
}

// valueOf returns the value of the parameter of exactly that name.
func valueOf(params []pair, name string) (string, bool) {
	i := slices.IndexFunc(params, func(p pair) bool { return p.name == name })
	if i < 0 {
		return "", false
	}
	return params[i].value, true
}

// anyCase returns the value of a parameter whose name matches in any case,
// "" if there is none.
func anyCase(params []pair, name string) string {
	i := slices.IndexFunc(params, func(p pair) bool { return strings.EqualFold(p.name, name) })
	if i < 0 {
		return ""
	}
	return params[i].value
}

// clip returns at most n bytes of s, cut between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
