package http

import (
	"context"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ckscale/internal/cks"
)

// Of several faults the one that CloudStack finds first is told: who asks,
// role, signature, text, maps, parameters, and only then the command's own.
// All of it is found at submission: the service is not asked (cks.md §1.5,
// §1.7).
//
// Keeps: §1.5/order, §1.5/at-submission, §1.7/role-before-signature.
func TestFaultsAreFoundInOrder(t *testing.T) {
	t.Parallel()
	const forAdmins = "configureSimulator"
	role := "The API [" + forAdmins + "] does not exist or is not available for the account for user id [" + userID + "]."
	key := responseKey(forAdmins)
	for name, c := range map[string]struct {
		query  string
		status int
		key    string
		cs     int
		text   string
	}{
		"command before key":      {signedAs("nobody", "x", "command", "foo"), 401, errorKey, 0, denied},
		"expiry before role":      {signedAs(userKey, userSecret, "command", forAdmins, "signatureVersion", "3"), 401, key, 0, denied},
		"key before role":         {signedAs("nobody", "x", "command", forAdmins), 401, key, 0, denied},
		"role before signature":   {signedAs(userKey, "wrong", "command", forAdmins), 432, errorKey, 9999, role},
		"role before text":        {signedAs(userKey, userSecret, "command", forAdmins, "x", "\x00"), 432, errorKey, 9999, role},
		"signature before text":   {signedAs(adminKey, "wrong", "command", "scaleKubernetesCluster", "x", "\x00"), 401, scaleKey, 0, denied},
		"text before maps":        {scaleQuery("x", "\x00", "a[0]", "b"), 431, scaleKey, 9999, illegal + "x"},
		"maps before presence":    {signedQuery("command", "scaleKubernetesCluster", "a[0]", "b"), 430, scaleKey, 9999, malformed("a[0]")},
		"maps before types":       {scaleQuery("size", "x", "a[0]", "b"), 430, scaleKey, 9999, malformed("a[0]")},
		"presence before service": {signedQuery("command", "scaleKubernetesCluster", "size", "3"), 431, scaleKey, 9999, unable + "missing parameter id"},
		"types before service":    {scaleQuery("size", "x"), 431, scaleKey, 9999, unable + "invalid value x for parameter size"},
	} {
		l := newLab(t)
		asked := false
		l.svc.scale = func(context.Context) error { asked = true; return errors.New("the command's own fault") }
		l.do(t, get(c.query)).want(t, c.status, c.key, c.cs, c.text)
		if asked {
			t.Errorf("%s: the service was asked", name)
		}
	}
}

// The four names that belong to the signature are known in any case, as those
// of a command's parameters are; they are signed as they were sent (cks.md
// §1.2).
//
// Keeps: §1.2/auth-names, §1.2/param-names.
func TestNamesOfTheSignatureHaveAnyCase(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, n := range [][5]string{
		{"apiKey", "signature", "signatureVersion", "expires", "size"},
		{"APIKEY", "SIGNATURE", "SIGNATUREVERSION", "EXPIRES", "SIZE"},
		{"apikey", "Signature", "signatureversion", "eXpIrEs", "sIzE"},
	} {
		signed := func(expires string) string {
			ps := params("command", "scaleKubernetesCluster", "id", clusterID, n[0], adminKey, n[2], "3", n[3], expires, n[4], "3")
			return encode(append(ps, pair{n[1], sign(canonicalString(ps, false), adminSecret)}))
		}
		l.do(t, get(signed("2026-11-07T12:00:01Z"))).wantOK(t)
		l.do(t, get(signed("2026-11-07T11:59:59Z"))).want(t, 401, scaleKey, 0, denied)
	}
	if len(l.svc.scaled) != 3 || slices.ContainsFunc(l.svc.scaled, func(r cks.ScaleRequest) bool { return r.Size == nil || *r.Size != 3 }) {
		t.Errorf("scaled by %+v", l.svc.scaled)
	}
}

// "expires" counts with version 3 only, but is signed with every version
// (cks.md §1.7).
//
// Keeps: §1.7/expires-other-version.
func TestExpiresIsSignedWithEveryVersion(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, version := range []string{"", "1", "2", "4", "03"} {
		signed := params("command", "scaleKubernetesCluster", "id", clusterID, "apiKey", adminKey, "signatureVersion", version, "expires", "2020-01-01")
		signature := pair{"signature", sign(canonicalString(signed, false), adminSecret)}
		l.do(t, get(encode(append(signed, signature)))).wantOK(t)
		signed[len(signed)-1].value = "2099-01-01"
		l.do(t, get(encode(append(signed, signature)))).want(t, 401, scaleKey, 0, denied)
	}
}

// Of the control characters only line feed and carriage return may be in a
// value, be it of a parameter that nobody knows (cks.md §1.1).
//
// Keeps: §1.1/control-characters.
func TestControlCharactersInValues(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for c := range 0x100 {
		refused := c <= 0x09 || c == 0x0b || c == 0x0c || 0x0e <= c && c <= 0x1f || c == 0x7f
		a := l.do(t, get(scaleQuery("whatever", "a"+string(rune(c))+"b")))
		if refused {
			a.want(t, 431, scaleKey, 9999, illegal+"whatever")
		} else if a.status != nethttp.StatusOK {
			t.Errorf("%#x: %s", c, a.raw)
		}
	}
}

// Every answer has the headers that keep browsers from making more of it than
// JSON, and an error its text in one (cks.md §1.6).
//
// Keeps: §1.6/headers, §1.6/x-description.
func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.svc.list = errors.New("lost")
	for _, r := range []*nethttp.Request{
		get(scaleQuery("size", "3")), get(scaleQuery("size", "x")), get(""), get(signedQuery("command", "listKubernetesClusters")),
		httptest.NewRequest(nethttp.MethodPut, "/client/api", nil), httptest.NewRequest(nethttp.MethodGet, "/nothing", nil),
		httptest.NewRequest(nethttp.MethodGet, "/healthz", nil), post("", scaleQuery("size", "3")),
	} {
		a := l.do(t, r)
		if got := a.header["X-Content-Type-Options"]; !slices.Equal(got, []string{"nosniff"}) {
			t.Errorf("%s: X-Content-Type-Options is %q", r.URL, got)
		}
		if got := a.header["X-Xss-Protection"]; !slices.Equal(got, []string{"1;mode=block"}) {
			t.Errorf("%s: X-XSS-Protection is %q", r.URL, got)
		}
		if got := a.header["Content-Security-Policy"]; len(got) < 2 {
			t.Errorf("%s: Content-Security-Policy is %q", r.URL, got)
		}
		if got := a.header.Get("X-Description"); got != a.text {
			t.Errorf("%s: X-Description is %q, want %q", r.URL, got, a.text)
		}
	}
}

// The statuses and cserrorcodes that leave the server, and no others: limits
// and capacity (532 to 537) are told by failed jobs, there are no second
// factors (511), and 540 does not exist (cks.md §2.9). 404 is ours, for paths.
//
// Keeps: §2.9/405, §2.9/430, §2.9/431, §2.9/432, §2.9/511, §2.9/530, §2.9/531, §2.9/532-537, §2.9/no-540.
// Keeps: §2.9/cs-9999, §2.9/cs-4350, §2.9/cs-4365, §2.9/cs-4250, §2.9/cs-4545, §2.9/cs-others.
func TestOnlyTheseCodesLeaveTheServer(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(map[cks.Code]wireCode{
		notPosted:        {400, 9999},
		noCommand:        {400, 0},
		cks.Unauthorized: {401, 0},
		noPath:           {404, 9999},
		cks.NoMethod:     {405, 9999},
		cks.Malformed:    {430, 9999},
		cks.Parameter:    {431, 9999},
		cks.UnknownID:    {431, 9999},
		cks.TooLarge:     {431, 9999},
		cks.Invalid:      {431, 4350},
		limited:          {429, 4545},
		cks.Unsupported:  {432, 9999},
		cks.Unavailable:  {503, 9999},
		cks.Failed:       {530, 4250},
		cks.Conflict:     {530, 4250},
		cks.Internal:     {530, 4250},
		cks.Denied:       {531, 4365},
		cks.BadLogin:     {531, 0},
	}, wireCodes, cmp.AllowUnexported(wireCode{})); diff != "" {
		t.Error(diff)
	}
}

// What a command refuses is told to everybody; an error of our own to nobody,
// the root admin included: it is in the log (cks.md §2.9).
//
// Keeps: §2.9/hidden, §2.9/hidden-from-root, §2.9/wrapped-not-hidden.
func TestOwnErrorsAreHiddenAndRefusalsAreNot(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for key, secret := range map[string]string{adminKey: adminSecret, userKey: userSecret} {
		query := signedAs(key, secret, "command", "listKubernetesClusters")
		l.svc.list = cks.Errorf(cks.Failed, "Unable to resolve cluster type")
		l.do(t, get(query)).want(t, 530, listKey, 4250, "Unable to resolve cluster type")
		l.svc.list = cks.Errorf(cks.Conflict, "it is in Scaling state")
		l.do(t, get(query)).want(t, 530, listKey, 4250, "it is in Scaling state")
		l.svc.list = fmt.Errorf("table %s is missing", key)
		l.do(t, get(query)).want(t, 530, listKey, 4250, "Internal error executing command, please contact your system administrator")
		if lines := loud(l.log.String()); len(lines) != 1 {
			t.Errorf("logged %q", lines)
		}
		l.log.Reset()
	}
}
