package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	nethttp "net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ckscale/internal/cks"
)

func panicking(context.Context) error { panic("boom") }

// The case table of cks.md §2.9, row by row, and what stands beside it in
// §1.1, §1.4, §1.6, §1.9 and A14, A20.
//
// Keeps: §1.3/uuid, §1.3/list-elements, §1.4/malformed, §1.4/bare, §2.9/status, §2.9/body, §2.9/uuidlist, §2.9/key.
// Keeps: §2.9/430, §2.9/431, §2.9/missing-id, §2.9/bad-size, §2.9/unknown-id, §2.9/empty-id.
// Keeps: §2.9/unknown-command-signed, §2.9/no-command-signed.
// Keeps: A07.
func TestErrorCases(t *testing.T) {
	t.Parallel()
	unknown := func(param, value string) string {
		return unable + "invalid value. " + cks.UnknownEntity(param, value).Message
	}
	for name, c := range map[string]struct {
		query  string
		status int
		key    string
		cs     int
		text   string
	}{
		"missing id":       {signedQuery("command", "scaleKubernetesCluster"), 431, scaleKey, 9999, unable + "missing parameter id"},
		"size=abc":         {scaleQuery("size", "abc"), 431, scaleKey, 9999, unable + "invalid value abc for parameter size"},
		"size=":            {scaleQuery("size", ""), 431, scaleKey, 9999, unable + "invalid value  for parameter size"},
		"no uuid":          {signedQuery("command", "scaleKubernetesCluster", "id", "x<&>"), 431, scaleKey, 9999, unknown("id", "x<&>")},
		"nodeid no uuid":   {scaleQuery("nodeids", "7,x"), 431, scaleKey, 9999, unknown("nodeids", "x")},
		"offering no uuid": {scaleQuery("serviceofferingid", "x"), 431, scaleKey, 9999, unknown("serviceofferingid", "x")},
		"empty id":         {signedQuery("command", "scaleKubernetesCluster", "id", ""), 431, scaleKey, 4350, "Invalid value provided for API arg: id"},
		"map syntax": {scaleQuery("nodeofferings[0]", "worker"), 430, scaleKey, 9999, "Unable to decode parameter nodeofferings[0]; " +
			"if specifying an object array, please use parameter[index].field=XXX, e.g. userGroupList[0].group=httpGroup"},
		"bare map":                {scaleQuery("nodeofferings", "abc"), 431, scaleKey, 9999, unable + "invalid value abc for parameter nodeofferings"},
		"no signature":            {"command=scaleKubernetesCluster", 401, scaleKey, 0, denied},
		"unknown command, signed": {signedQuery("command", "foo"), 401, errorKey, 0, denied},
		"no command, signed":      {signedQuery(), 401, errorKey, 0, denied},
		"NUL":                     {scaleQuery("keyword", "a\x00b"), 431, scaleKey, 9999, illegal + "keyword"},
		"NUL in an id":            {signedQuery("command", "scaleKubernetesCluster", "id", "\x00"), 431, scaleKey, 9999, illegal + "id"},
		"NUL in nodeids":          {scaleQuery("nodeids", clusterID+"\x00"), 431, scaleKey, 9999, illegal + "nodeids"},
		"TAB":                     {scaleQuery("x", "\t"), 431, scaleKey, 9999, illegal + "x"},
		"DEL":                     {scaleQuery("x", "\x7f"), 431, scaleKey, 9999, illegal + "x"},
		"no UTF-8": {"command=scaleKubernetesCluster&keyword=%ff%fe", 431, scaleKey, 9999,
			"The value of the parameter keyword cannot be decoded: it is not valid UTF-8"},
		"no escape": {"command=scaleKubernetesCluster&keyword=%zz", 431, scaleKey, 9999,
			`The value of the parameter keyword cannot be decoded: "%zz" is no escape`},
		"long query": {"command=scaleKubernetesCluster&x=" + strings.Repeat("x", 64<<10), 431, errorKey, 9999,
			"The query string is longer than 65536 bytes; send the parameters as a form by POST"},
		"many parameters": {"command=scaleKubernetesCluster" + strings.Repeat("&x=1", 1001), 431, errorKey, 9999,
			"The request has more than 1000 parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.do(t, get(c.query)).want(t, c.status, c.key, c.cs, c.text)
			if len(l.svc.scaled) != 0 {
				t.Error("it was carried out all the same")
			}
		})
	}
	l := newLab(t)
	l.do(t, get(scaleQuery("x", "line\r\nbreak"))).wantOK(t)
}

// design.md §3: only JSON is served, and whoever asks for more is told.
//
// Keeps: §1.2/response-name, §1.6/json, §1.6/json-content-type, §1.6/default, §1.6/other-format, §2.10/xml.
func TestOnlyJSONIsServed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ask := func(query string) answered {
		r := get("command=scaleKubernetesCluster&id=" + clusterID + query)
		r.SetBasicAuth(adminKey, adminSecret)
		return l.do(t, r)
	}
	ask("").wantOK(t)
	ask("&response=JSON").wantOK(t)
	ask("&Response=xml").wantOK(t) // another parameter: this name is matched exactly
	ask("&response=xml").want(t, 431, scaleKey, 9999, "The response format xml is not served, only JSON: use response=json")
	ask("&response=").want(t, 431, scaleKey, 9999, "The response format  is not served, only JSON: use response=json")
}

// A07: whatever the service fails with, the answer is CloudStack's.
//
// Keeps: §2.9/530, §2.9/531, §2.9/503, §2.9/hidden.
// Keeps: A07, §2.4/uncaught.
func TestServiceErrors(t *testing.T) {
	t.Parallel()
	lost := errors.New("dial: connection refused")
	for name, c := range map[string]struct {
		err    error
		status int
		key    string
		cs     int
		text   string
		logged string // part of the log at warning or above; "" = nothing
	}{
		"conflict":    {cks.Errorf(cks.Conflict, "changed"), 530, scaleKey, 4250, "changed", ""},
		"failed":      {cks.Errorf(cks.Failed, "no room"), 530, scaleKey, 4250, "no room", ""},
		"invalid":     {cks.Errorf(cks.Invalid, "wrong"), 431, scaleKey, 4350, "wrong", ""},
		"denied":      {cks.Errorf(cks.Denied, "not yours"), 531, scaleKey, 4365, "not yours", ""},
		"unsupported": {cks.Errorf(cks.Unsupported, "not here"), 432, errorKey, 9999, "not here", ""},
		"unknown id": {fmt.Errorf("read: %w", cks.UnknownEntity("id", clusterID)), 431, scaleKey, 9999,
			unable + "invalid value. " + cks.UnknownEntity("id", clusterID).Message, ""},
		"database lost": {fmt.Errorf("scale: %w", cks.Errorf(cks.Unavailable, "database is not available: %w", lost)), 503, scaleKey, 9999,
			"database is not available: dial: connection refused", "connection refused"},
		"own error":      {lost, 530, scaleKey, 4250, internalText, "connection refused"},
		"coded internal": {cks.Errorf(cks.Internal, "table x"), 530, scaleKey, 4250, internalText, "table x"},
		"leaked code":    {cks.Errorf(cks.NotFound, "no row"), 530, scaleKey, 4250, internalText, "no row"},
		"no such code":   {cks.Errorf("new", "no row"), 530, scaleKey, 4250, internalText, "no row"},
		"panic":          {nil, 530, scaleKey, 4250, internalText, "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.svc.scale = func(context.Context) error { return c.err }
			if c.err == nil {
				l.svc.scale = panicking
			}
			l.do(t, get(scaleQuery())).want(t, c.status, c.key, c.cs, c.text)
			lines := loud(l.log.String())
			if (c.logged == "") != (len(lines) == 0) || len(lines) > 1 || !strings.Contains(strings.Join(lines, ""), c.logged) {
				t.Errorf("logged %q, want one line with %q", lines, c.logged)
			}
			if name == "panic" && !strings.Contains(lines[0], "errors_test.go") {
				t.Errorf("no stack in %s", lines[0])
			}
			l.svc.scale = nil
			l.do(t, get(scaleQuery())).wantOK(t) // the server lives on
		})
	}
}

// loud are the lines of a log at warning and above.
func loud(log string) []string {
	var out []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			out = append(out, line)
		}
	}
	return out
}

// A client that is gone is not our failure.
func TestClientGone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	l.svc.scale = func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return fmt.Errorf("begin: %w", ctx.Err())
	}
	l.do(t, get(scaleQuery()).WithContext(ctx)).want(t, 503, scaleKey, 9999, "the request was cancelled")
	if lines := loud(l.log.String()); len(lines) != 0 {
		t.Errorf("logged %q", lines)
	}
}

// cks.md §2.1: HTML characters are raw, in errors and in answers.
//
// Keeps: §1.6/encode.
// Keeps: §2.1/html.
func TestHTMLIsRaw(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if a := l.do(t, get(signedQuery("command", "scaleKubernetesCluster", "id", "<&>"))); !strings.Contains(a.raw, "<&>") {
		t.Errorf("escaped: %s", a.raw)
	}
	l.operations = nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{scaleKey: map[string]string{"name": `<a&b> \u003c`}})
	})
	if a := l.do(t, get(scaleQuery())); !strings.Contains(a.raw, `"<a&b> \\u003c"`) {
		t.Errorf("escaped: %s", a.raw)
	}
}

// Unescaping changes the spelling of JSON, never its meaning.
func FuzzRawHTML(f *testing.F) {
	f.Add(`<a&b> \u003c \\u003e "`)
	f.Add("\u2028\x00é\\")
	f.Fuzz(func(t *testing.T, s string) {
		escaped, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want, got string
		if err := json.Unmarshal(escaped, &want); err != nil {
			t.Fatal(err)
		}
		raw := rawHTML(escaped)
		if err := json.Unmarshal(raw, &got); err != nil || got != want {
			t.Errorf("%s became %s: %v", escaped, raw, err)
		}
		plain, err := encodeJSON(s)
		if diff := cmp.Diff(string(bytes.TrimSpace(plain)), string(raw)); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

// Every code of cks has a row, except the one that never leaves the server.
func TestEveryCodeIsTranslated(t *testing.T) {
	t.Parallel()
	for _, code := range []cks.Code{
		cks.Internal, cks.Failed, cks.Conflict, cks.Invalid, cks.Parameter, cks.UnknownID, cks.Malformed, cks.Unauthorized,
		cks.Unsupported, cks.Denied, cks.NoMethod, cks.TooLarge, cks.Unavailable,
	} {
		if wireCodes[code] == (wireCode{}) {
			t.Errorf("%s has no row", code)
		}
	}
	if wireCodes[cks.NotFound] != (wireCode{}) {
		t.Error("not_found leaves the server")
	}
}

// A text can quote what was sent, but not without end, nor break a header.
func TestLongAndOddTexts(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.svc.scale = func(context.Context) error {
		return cks.Errorf(cks.Failed, "%s", "a\r\nSet-Cookie: é"+strings.Repeat("x", 1<<20))
	}
	a := l.do(t, get(scaleQuery()))
	if n := len(a.text); n < 4000 || n > 4010 {
		t.Errorf("the text has %d bytes", n)
	}
	if got := a.header.Get("X-Description"); len(got) > 1010 || !strings.HasPrefix(got, "a  Set-Cookie:  xx") {
		t.Errorf("X-Description is %.40q, %d bytes", got, len(got))
	}
}
