package http

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// A07: what reaches no command.
//
// Keeps: §1.1/methods, §2.9/405.
// Keeps: A07.
func TestPathsAndMethods(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	at := func(method, path string) answered {
		return l.do(t, httptest.NewRequest(method, path, nil))
	}
	for _, path := range []string{"/", "/client", "/client/api/a/b", "/clients/api", "/metrics", "/client/api/../x", "//client/api"} {
		at(nethttp.MethodGet, path).want(t, 404, errorKey, 9999, "There is nothing at "+path+"; commands are at /client/api")
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "CONNECT", "BREW"} {
		for _, path := range []string{"/client/api", "/client/api/", "/client/api/scaleKubernetesCluster"} {
			a := at(method, path+"?"+scaleQuery())
			a.want(t, 405, errorKey, 9999, "The method "+method+" is not allowed here, only GET, POST")
			if a.header.Get("Allow") != "GET, POST" {
				t.Errorf("%s: Allow is %q", method, a.header.Get("Allow"))
			}
		}
	}
	at(nethttp.MethodPost, "/healthz").want(t, 405, errorKey, 9999, "The method POST is not allowed here, only GET, HEAD")
	if len(l.svc.scaled) != 0 {
		t.Error("a wrong method was carried out")
	}
}

// A07: bodies that are no form, or too large.
//
// Keeps: §1.1/post.
// Keeps: A07.
func TestBodies(t *testing.T) {
	t.Parallel()
	const why = `; send the parameters in the query string or as application/x-www-form-urlencoded`
	l := newLab(t)
	l.maxBody = 1000
	typed := func(kind, body string) answered {
		r := post("command=scaleKubernetesCluster", body)
		r.Header.Set("Content-Type", kind)
		return l.do(t, r)
	}
	typed("application/json", `{"size":3}`).want(t, 431, scaleKey, 9999, `Content-Type "application/json" is not supported`+why)
	typed("multipart/form-data; boundary=x", "--x--").want(t, 431, scaleKey, 9999,
		`Content-Type "multipart/form-data; boundary=x" is not supported`+why)
	typed("", "size=3").want(t, 431, scaleKey, 9999, `Content-Type "" is not supported`+why)
	typed("a/b/c", "size=3").want(t, 431, scaleKey, 9999, `Content-Type "a/b/c" is not supported`+why)
	typed("application/x-www-form-urlencoded", strings.Repeat("x", 1001)).want(t, 431, scaleKey, 9999,
		"The request body is larger than 1000 bytes")
	typed("application/x-www-form-urlencoded", "a=%f").want(t, 431, scaleKey, 9999,
		`The value of the parameter a cannot be decoded: "%f" is no escape`)

	cut := post("command=scaleKubernetesCluster", "")
	cut.Body = io.NopCloser(io.MultiReader(strings.NewReader("a=1"), failingReader{}))
	l.do(t, cut).want(t, 431, scaleKey, 9999, "The request body could not be read")

	ignored := get(scaleQuery())
	ignored.Body = io.NopCloser(strings.NewReader("size=3"))
	l.do(t, ignored).wantOK(t)
	if l.svc.scaled[0].Size != nil {
		t.Error("the body of a GET was read")
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Whatever the generated router complains of ends in fail.
func TestGeneratedFunnels(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.commands["scaleKubernetesCluster"]
	funnel := func(r *nethttp.Request) error {
		x := &exchange{command: s}
		ctx := context.WithValue(r.Context(), exchangeKey{}, x)
		l.operations.ServeHTTP(&answerBuffer{header: make(nethttp.Header)}, r.WithContext(ctx))
		return x.err
	}
	for _, c := range []struct {
		method, target string
		code           cks.Code
		text           string
	}{
		{"POST", "/client/api/scaleKubernetesCluster?id=1&size=x", cks.Parameter, unable + "invalid value for parameter size"},
		{"POST", "/client/api/scaleKubernetesCluster?id=1&nodeofferings=x", cks.Parameter, unable + "invalid value for parameter nodeofferings"},
		{"POST", "/client/api/scaleKubernetesCluster", cks.Parameter, unable + "missing parameter id"},
		{"GET", "/client/api/scaleKubernetesCluster?id=1", cks.Internal, "no operation for GET /client/api/scaleKubernetesCluster"},
		{"GET", "/client/api/foo", cks.Internal, "no operation for GET /client/api/foo"},
	} {
		err := funnel(httptest.NewRequest(c.method, c.target, nil))
		if err == nil || cks.CodeOf(err) != c.code || err.Error() != c.text {
			t.Errorf("%s %s: %v", c.method, c.target, err)
		}
	}
	if err := (&exchange{}).unbound(errors.New("x")); cks.CodeOf(err) != cks.Internal {
		t.Errorf("without a command: %v", err)
	}
	if err := (&exchange{command: s}).unbound(&api.TooManyValuesForParamError{}); err.Error() != unable+"invalid parameters" {
		t.Errorf("another error: %v", err)
	}
}

// An operation that answers nothing is a failure, not an empty success; one
// that dies half-way leaves no half answer.
func TestAnswersAreWhole(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.operations = nethttp.HandlerFunc(func(nethttp.ResponseWriter, *nethttp.Request) {})
	l.do(t, get(scaleQuery())).want(t, 530, scaleKey, 4250, internalText)
	l.operations = nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.WriteHeader(nethttp.StatusOK)
		_, _ = io.WriteString(w, `{"half":`)
		panic("boom")
	})
	l.do(t, get(scaleQuery())).want(t, 530, scaleKey, 4250, internalText)
	l.operations = nethttp.HandlerFunc(func(_ nethttp.ResponseWriter, r *nethttp.Request) {
		exchangeFrom(r.Context()).err = errors.New("encode")
	})
	l.do(t, get(scaleQuery())).want(t, 530, scaleKey, 4250, internalText)
}

// A panic after the answer has begun cuts the connection.
func TestPanicAfterTheAnswerCutsIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, h := range []nethttp.HandlerFunc{
		func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, "half"); panic("boom") },
		func(nethttp.ResponseWriter, *nethttp.Request) { panic(nethttp.ErrAbortHandler) },
	} {
		l.routes = h
		func() {
			defer func() {
				if v := recover(); v != nethttp.ErrAbortHandler { //nolint:errorlint // panicked as it is
					t.Errorf("panicked with %v", v)
				}
			}()
			l.serve(httptest.NewRecorder(), get(""))
		}()
	}
}

// A07, through a real connection: an oversized form gets its answer in JSON,
// and so does a request for no API at all.
//
// Keeps: A07.
func TestOverTheWire(t *testing.T) {
	t.Parallel()
	h, err := NewHandler(&fakeService{}, Config{
		Log: slog.New(slog.DiscardHandler), MaxBody: 10, Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	resp, err := srv.Client().Post(srv.URL+"/client/api?command=listZones", "application/x-www-form-urlencoded",
		strings.NewReader(strings.Repeat("x", 100_000)))
	if err != nil {
		t.Fatal(err)
	}
	body := readAll(t, resp)
	read(t, resp, body).want(t, 431, "listzonesresponse", 9999, "The request body is larger than 10 bytes")

	conn, err := net.DialTimeout("tcp", srv.Listener.Addr().String(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "BREW /client/api HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err = nethttp.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	read(t, resp, readAll(t, resp)).want(t, 405, errorKey, 9999, "The method BREW is not allowed here, only GET, POST")
}

func readAll(t *testing.T, resp *nethttp.Response) []byte {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
