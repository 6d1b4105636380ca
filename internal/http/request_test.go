package http

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ckscale/internal/cks"
)

var pairs = cmp.AllowUnexported(pair{})

// cks.md §1.1: split on "&", then on the first "="; "+" is a space; a piece
// without "=" is dropped.
//
// Keeps: §1.1/split, §1.1/decoding, §1.1/no-equals.
func TestParseParams(t *testing.T) {
	t.Parallel()
	got, err := parseParams("a=1&b=x=y&junk&&c=a+b%2Bc&nodeofferings[0].node=w&d=&%41=%C3%A9&e=x;y")
	if err != nil {
		t.Fatal(err)
	}
	want := params("a", "1", "b", "x=y", "c", "a b+c", "nodeofferings[0].node", "w", "d", "", "A", "é", "e", "x;y")
	if diff := cmp.Diff(want, got, pairs); diff != "" {
		t.Error(diff)
	}
}

// A20: what is no text is 431.
//
// Keeps: §1.1/decoding.
func TestParseParamsRefuses(t *testing.T) {
	t.Parallel()
	for raw, code := range map[string]cks.Code{
		"a=%zz":                      cks.Parameter,
		"%=1":                        cks.Parameter,
		"a=%ff%fe":                   cks.Parameter,
		"%ff=1":                      cks.Parameter,
		"a=\xff":                     cks.Parameter,
		"a=%ed%a0%80":                cks.Parameter, // half a surrogate pair
		strings.Repeat("a=1&", 1001): cks.TooLarge,
		strings.Repeat("&", 5000):    cks.TooLarge,
	} {
		if _, err := parseParams(raw); err == nil || cks.CodeOf(err) != code {
			t.Errorf("%.20q: %v", raw, err)
		}
	}
	if _, err := parseParams(strings.Repeat("a=1&", 1000)); err != nil {
		t.Errorf("1000 parameters: %v", err)
	}
}

// cks.md §1.1: the query wins over the form, the last of a name over the
// others; clients.md §1 has it the other way, so that is the second reading.
//
// Keeps: §1.1/query-over-form, §1.1/repeated, §1.1/repeated-signed.
func TestReadings(t *testing.T) {
	t.Parallel()
	in := received{
		form:  params("id", "f", "size", "1", "x", "1", "x", "2"),
		query: params("size", "2", "size", "3", "command", "c"),
	}
	want := [][]pair{
		params("id", "f", "x", "2", "size", "3", "command", "c"),
		params("id", "f", "x", "1", "size", "2", "command", "c"),
	}
	if diff := cmp.Diff(want, in.readings(), pairs); diff != "" {
		t.Error(diff)
	}
	if n := len(received{query: params("a", "1", "A", "2")}.readings()); n != 1 {
		t.Errorf("%d readings without a repeated name", n)
	}
}

// Whatever is accepted is text and comes back from a query string as it was.
func FuzzParseParams(f *testing.F) {
	f.Add("a=1&b=%C3%A9&c=a+b&nodeofferings[0].node=w")
	f.Add("=&&%=&a=%00;b")
	f.Fuzz(func(t *testing.T, raw string) {
		ps, err := parseParams(raw)
		if err != nil {
			return
		}
		again, err := parseParams(encode(ps))
		if err != nil {
			t.Fatalf("cannot read back %q: %v", encode(ps), err)
		}
		if diff := cmp.Diff(ps, again, pairs); diff != "" {
			t.Error(diff)
		}
	})
}

func TestClipKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	if got := clip("aé", 2); got != "a…" {
		t.Errorf("got %q", got)
	}
	if got := clip("aé", 3); got != "aé" {
		t.Errorf("got %q", got)
	}
}

// The generated router must see exactly the values that were checked.
func TestCanonicalQueryIsAQuery(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	q, err := l.commands["listKubernetesClusters"].canonicalQuery(params("Name", "a&b=c;d+e%20é", "unknown", "1"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := url.ParseQuery(q)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(url.Values{"name": {"a&b=c;d+e%20é"}}, got); diff != "" {
		t.Error(diff)
	}
}
