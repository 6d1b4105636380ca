package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	nethttp "net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"ckscale/internal/cks"
)

// The accounts that fakeService knows.
const (
	adminKey, adminSecret = "TestApiKey-01_abc", "TestSecret-01_xyz"
	userKey, userSecret   = "user-key", "user-secret"
	keylessKey            = "account-without-secret"
	userID                = "5b1ffd4c-3f5c-4d7c-9a50-3c8b6ac2e5c1"
)

// noon is when all tests take place.
var noon = time.Date(2026, 11, 7, 12, 0, 0, 0, time.UTC)

// fakeService answers what a test needs; the methods that no test here needs
// are not there.
type fakeService struct {
	Service
	mu     sync.Mutex
	scaled []cks.ScaleRequest
	caller cks.Account
	scale  func(context.Context) error
	lookup error // of Authenticate
	asked  int   // how often Authenticate was
	list   error // of Clusters
	await  func(context.Context, time.Duration) error
	ready  error

	logins   []cks.LoginRequest
	sessions map[string]string // keys by id
	who      cks.Account       // of the sessions
	broken   error             // of Login, Session and Logout
}

func (f *fakeService) Authenticate(_ context.Context, key string) (cks.Account, string, error) {
	f.mu.Lock()
	f.asked++
	f.mu.Unlock()
	if f.lookup != nil {
		return cks.Account{}, "", f.lookup
	}
	if !utf8.ValidString(key) || strings.Contains(key, "\x00") {
		return cks.Account{}, "", errors.New("invalid byte sequence") // as PostgreSQL says
	}
	switch key {
	case adminKey:
		return cks.Account{ID: "1", Name: "admin", Admin: true}, adminSecret, nil
	case "stub-api-key":
		return cks.Account{ID: "2", Name: "admin", Admin: true}, "stub-secret", nil
	case userKey:
		return cks.Account{ID: "3", Name: "ann", UserID: userID}, userSecret, nil
	case keylessKey:
		return cks.Account{ID: "4", Name: "none"}, "", nil
	}
	return cks.Account{}, "", cks.Errorf(cks.Unauthorized, "no such key")
}

// What fakeService lets log in, and the session that it opens.
const (
	goodPassword = "correct horse"
	sessionID    = "THESESSION"
	goodKey      = "0bAiw8pEVq3mLZtNcJ5x7yHdUfk"
)

func (f *fakeService) Login(_ context.Context, req cks.LoginRequest) (cks.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logins = append(f.logins, req)
	switch {
	case f.broken != nil:
		return cks.Session{}, f.broken
	case req.Password != goodPassword:
		return cks.Session{}, cks.Errorf(cks.BadLogin, "Failed to authenticate user %s", req.Username)
	}
	f.who = cks.Account{ID: "3", Name: req.Username, UserID: userID, Admin: req.Username == "admin"}
	f.sessions = map[string]string{sessionID: goodKey}
	return cks.Session{ID: sessionID, Key: goodKey, Account: f.who, Idle: time.Minute}, nil
}

func (f *fakeService) Session(_ context.Context, id, key string) (cks.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	want, open := f.sessions[id]
	switch {
	case f.broken != nil:
		return cks.Account{}, f.broken
	case !open:
		return cks.Account{}, cks.Errorf(cks.Unauthorized, denied)
	case want != key:
		delete(f.sessions, id)
		return cks.Account{}, cks.Errorf(cks.Unauthorized, "unable to verify user credentials")
	}
	return f.who, nil
}

func (f *fakeService) Logout(ctx context.Context, id, key string) error {
	if _, open := f.sessions[id]; !open {
		return f.broken
	}
	_, err := f.Session(ctx, id, key)
	delete(f.sessions, id)
	return err
}

func (f *fakeService) Scale(ctx context.Context, caller cks.Account, req cks.ScaleRequest) (cks.Job, error) {
	if f.scale != nil {
		if err := f.scale(ctx); err != nil {
			return cks.Job{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scaled, f.caller = append(f.scaled, req), caller
	return cks.Job{ID: "8f8c699e-beab-4ccb-a71c-233416e9db59"}, nil
}

func (f *fakeService) Clusters(context.Context, cks.Account, cks.ClusterFilter) ([]cks.ClusterView, int, error) {
	return nil, 0, f.list
}

func (f *fakeService) AwaitJob(ctx context.Context, _ cks.Account, id string, wait time.Duration) (cks.Job, error) {
	return cks.Job{ID: id}, f.await(ctx, wait)
}

func (f *fakeService) ConfigureSimulator(context.Context, cks.Account, cks.Fault) error { return nil }

func (f *fakeService) Ready(context.Context) error { return f.ready }

// lab is a server with its log.
type lab struct {
	*server
	svc *fakeService
	log *bytes.Buffer
}

func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{svc: &fakeService{}, log: &bytes.Buffer{}}
	s, err := newServer(l.svc, Config{
		Log: slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now: func() time.Time { return noon },
	})
	if err != nil {
		t.Fatal(err)
	}
	l.server = s
	return l
}

// do sends a request and checks what holds for every answer (design.md §3,
// A07): JSON, one top-level key that ends in "response", the HTTP status as
// errorcode, a text, no null.
func (l *lab) do(t *testing.T, r *nethttp.Request) answered {
	t.Helper()
	rec := httptest.NewRecorder()
	l.serve(rec, r)
	return read(t, rec.Result(), rec.Body.Bytes())
}

// answered is an answer, taken apart.
type answered struct {
	status    int
	header    nethttp.Header
	raw       string
	key       string
	errorCode int
	csCode    int // 0 = absent
	text      string
}

func read(t *testing.T, resp *nethttp.Response, raw []byte) answered {
	t.Helper()
	a := answered{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	if got := resp.Header.Get("Content-Type"); got != "application/json; charset=UTF-8" {
		t.Fatalf("Content-Type is %q in an answer of %d: %s", got, a.status, raw)
	}
	var top map[string]map[string]any
	if err := json.Unmarshal(raw, &top); err != nil || len(top) != 1 {
		t.Fatalf("not one object under one key (%v): %s", err, raw)
	}
	for key, body := range top {
		if a.key = key; !strings.HasSuffix(key, "response") {
			t.Errorf("the key %q does not end in response", key)
		}
		code, _ := body["errorcode"].(float64)
		cs, _ := body["cserrorcode"].(float64)
		a.errorCode, a.csCode = int(code), int(cs)
		a.text, _ = body["errortext"].(string)
	}
	if strings.Contains(a.raw, "null") {
		t.Errorf("null in %s", raw)
	}
	if a.status != nethttp.StatusOK {
		if a.errorCode != a.status || a.text == "" {
			t.Errorf("status %d with errorcode %d and text %q", a.status, a.errorCode, a.text)
		}
		if a.header.Get("X-Description") == "" {
			t.Errorf("no X-Description with %s", raw)
		}
		if !strings.Contains(a.raw, `"uuidList":[]`) {
			t.Errorf("no uuidList in %s", raw)
		}
	}
	if a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error("no security headers")
	}
	return a
}

// want checks an error.
func (a answered) want(t *testing.T, status int, key string, csCode int, text string) {
	t.Helper()
	if a.status != status || a.key != key || a.csCode != csCode || a.text != text {
		t.Errorf("got %d %s %d %q\nwant %d %s %d %q", a.status, a.key, a.csCode, a.text, status, key, csCode, text)
	}
}

func (a answered) wantOK(t *testing.T) {
	t.Helper()
	if a.status != nethttp.StatusOK {
		t.Errorf("got %d: %s", a.status, a.raw)
	}
}

// params makes pairs of "name", "value", "name", …
func params(nv ...string) []pair {
	var out []pair
	for i := 0; i+1 < len(nv); i += 2 {
		out = append(out, pair{nv[i], nv[i+1]})
	}
	return out
}

// encode writes pairs as a query string.
func encode(ps []pair) string {
	var out []string
	for _, p := range ps {
		out = append(out, url.QueryEscape(p.name)+"="+url.QueryEscape(p.value))
	}
	return strings.Join(out, "&")
}

// canonicalString is what is signed, by Java or with "~" left bare.
func canonicalString(ps []pair, bareTilde bool) string {
	if bareTilde {
		return canonical(ps, "*~")
	}
	return canonical(ps, "*")
}

// signedAs returns the query string of a request with key and signature.
func signedAs(key, secret string, nv ...string) string {
	ps := append(params(nv...), pair{"apiKey", key}, pair{"response", "json"})
	return encode(append(ps, pair{"signature", sign(canonicalString(ps, false), secret)}))
}

// signedQuery is signedAs the admin.
func signedQuery(nv ...string) string { return signedAs(adminKey, adminSecret, nv...) }

func get(query string) *nethttp.Request {
	return httptest.NewRequest(nethttp.MethodGet, "/client/api?"+query, nil)
}

func post(query, form string) *nethttp.Request {
	r := httptest.NewRequest(nethttp.MethodPost, "/client/api?"+query, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

const (
	clusterID = "7944a42f-fcf2-4f4e-932a-e7b59e0724b1"
	scaleKey  = "scalekubernetesclusterresponse"
	listKey   = "listkubernetesclustersresponse"
	denied    = "unable to verify user credentials and/or request signature"
	unable    = "Unable to execute API command scalekubernetescluster due to "
	illegal   = "Received value containing illegal ASCII non-printable characters for parameter "
)

// malformed is the text about a map parameter's name.
func malformed(name string) string {
	return "Unable to decode parameter " + name +
		"; if specifying an object array, please use parameter[index].field=XXX, e.g. userGroupList[0].group=httpGroup"
}

// scaleQuery is a signed scaleKubernetesCluster of one cluster.
func scaleQuery(nv ...string) string {
	return signedQuery(append([]string{"command", "scaleKubernetesCluster", "id", clusterID}, nv...)...)
}
