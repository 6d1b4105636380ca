package http

import (
	"strings"
	"testing"
	"time"
)

// The vectors of cks.md §1.7, made with Java, and of clients.md §6, seen from
// the cluster-autoscaler.
//
// Keeps: §1.7/1, §1.7/2, §1.7/3, §1.7/5, §1.7/vectors.
func TestSignatureVectors(t *testing.T) {
	t.Parallel()
	own := func(nv ...string) []pair { return params(append(nv, "apiKey", adminKey, "response", "json")...) }
	for name, v := range map[string]struct {
		params    []pair
		secret    string
		signature string
	}{
		"scale": {own("command", "scaleKubernetesCluster", "id", clusterID, "size", "3"), adminSecret, "dTjjK2SjisVgti+4nL9dE5UM96U="},
		"map and expiry": {own("command", "scaleKubernetesCluster", "id", clusterID,
			"nodeofferings[0].node", "worker", "nodeofferings[0].offering", "d7892a54-8604-44ab-8892-dcd1357571a0",
			"signatureVersion", "3", "expires", "2026-11-07T18:39:31+0000"), adminSecret, "yHy+RjEJyoPjslwsDcUrnZPbIa8="},
		"escapes": {own("command", "listKubernetesClusters", "name", "my cluster *~(1)/é"), adminSecret, "lts3wIhbS0k68blLx88l9iSEor8="},
		"case-sensitive order": {own("command", "scaleKubernetesCluster", "id", clusterID, "Size", "3"), adminSecret,
			"Y0zYy2hZtRDVv6toDj5w+TpaztY="},
		"cluster-autoscaler": {params("apiKey", "stub-api-key", "command", "scaleKubernetesCluster",
			"id", "11111111-2222-3333-4444-555555555555", "response", "json", "size", "3"), "stub-secret", "8kO+u8QdSxFR1uPzVp2Ojxe882Y="},
	} {
		if got := sign(canonicalString(v.params, false), v.secret); got != v.signature {
			t.Errorf("%s: signed %s as %s, want %s", name, canonicalString(v.params, false), got, v.signature)
		}
		if !signedBy(append(v.params, pair{"Signature", v.signature}), v.secret, v.signature) {
			t.Errorf("%s: the signature itself is signed", name)
		}
	}
}

// cks.md §1.7 quotes the string that is signed for its third vector.
//
// Keeps: §1.7/1, §1.7/3, §1.7/4.
func TestCanonicalString(t *testing.T) {
	t.Parallel()
	in := params("name", "my cluster *~(1)/é", "command", "listKubernetesClusters", "apiKey", adminKey, "response", "json")
	want := "apikey=testapikey-01_abc&command=listkubernetesclusters&name=my%20cluster%20*%7e%281%29%2f%c3%a9&response=json"
	if got := canonicalString(in, false); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if in[0].name != "name" {
		t.Error("the caller's parameters were reordered")
	}
}

// Go and Python leave "~" bare, Java does not (clients.md §1): both sign.
//
// Keeps: §1.7/tilde.
func TestTildeIsSignedEitherWay(t *testing.T) {
	t.Parallel()
	in := params("keyword", "a~b")
	for _, bare := range []bool{true, false} {
		if !signedBy(in, "s", sign(canonicalString(in, bare), "s")) {
			t.Errorf("bare=%v is refused", bare)
		}
	}
	if signedBy(in, "s", sign("keyword=a%7eb ", "s")) {
		t.Error("another string is accepted")
	}
}

// The forms of "expires" in cks.md §1.7 and clients.md §1.
//
// Keeps: §1.7/expires, §1.7/expires-forms.
func TestExpires(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 7, 18, 39, 30, 0, time.UTC)
	for value, lapses := range map[string]bool{
		"2026-11-07T18:39:31Z":             false,
		"2026-11-07T18:39:31+00:00":        false,
		"2026-11-07T18:39:31+0000":         false,
		"2026-11-07T18:39:31.123456+0000":  false,
		"2026-11-07T18:39:31.123456+00:00": false,
		"2026-11-07T18:39:31Z+0000":        false,
		"2026-11-07T19:39:31+0100":         false,
		"2026-11-07T19:39:29+0100":         true,
		"2026-11-07T18:39:30Z":             true, // now is not the future
		"2026-11-07T18:39:29Z":             true,
		"2026-11-07 18:39:31":              true,
		"2026-11-07T18:39:31 0000":         true, // "+" sent bare
		"soon":                             true,
		"":                                 true,
	} {
		if got := lapsed(value, now); got != lapses {
			t.Errorf("lapsed(%q) = %v", value, got)
		}
	}
}

// What is signed never depends on the order sent, and is in lower case.
func FuzzCanonicalString(f *testing.F) {
	f.Add("size", "3", "apiKey", "a~*/é")
	f.Add("a", "&=", "signature", "x")
	f.Fuzz(func(t *testing.T, n1, v1, n2, v2 string) {
		one := canonicalString(params(n1, v1, n2, v2), false)
		if n1 != n2 && one != canonicalString(params(n2, v2, n1, v1), false) {
			t.Errorf("the order sent counts: %s", one)
		}
		if one != strings.ToLower(one) {
			t.Errorf("not in lower case: %s", one)
		}
		if bare := canonicalString(params(n1, v1, n2, v2), true); strings.Count(bare, "=") != strings.Count(one, "=") {
			t.Errorf("values are not escaped: %s", bare)
		}
	})
}
