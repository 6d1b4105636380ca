package http

import (
	"errors"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ckscale/internal/cks"
)

// design.md §7: alive is not ready, and neither asks who wants to know.
func TestHealth(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	at := func(path string) answered { return l.do(t, httptest.NewRequest(nethttp.MethodGet, path, nil)) }
	at("/healthz").wantOK(t)
	at("/readyz").wantOK(t)
	l.svc.ready = cks.Errorf(cks.Unavailable, "database is not available")
	at("/readyz").want(t, 503, errorKey, 9999, "database is not available")
	l.svc.ready = errors.New("permission denied for table jobs (SQLSTATE 42501)")
	at("/readyz").want(t, 503, errorKey, 9999, "not ready") // the rest is not for everybody
	at("/healthz").wantOK(t)
	l.do(t, httptest.NewRequest(nethttp.MethodHead, "/healthz", nil)).wantOK(t)
}

// The document is served as it is written.
func TestDocument(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	rec := httptest.NewRecorder()
	l.serve(rec, httptest.NewRequest(nethttp.MethodGet, "/openapi.yaml", nil))
	if rec.Code != nethttp.StatusOK || !strings.HasPrefix(rec.Body.String(), "openapi: 3") ||
		rec.Header().Get("Content-Type") != "application/yaml" {
		t.Errorf("got %d %v %.100s", rec.Code, rec.Header(), rec.Body)
	}
}

// Requests are counted by command and status; a name that is not known is no
// label.
func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	h, err := NewHandler(&fakeService{}, Config{Registerer: reg, Metrics: promhttp.HandlerFor(reg, promhttp.HandlerOpts{})})
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"command=listZones", "command=listZones", "command=made-up"} {
		h.ServeHTTP(httptest.NewRecorder(), get(query))
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(nethttp.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`ckscale_http_requests_total{command="listZones",status="401"} 2`,
		`ckscale_http_requests_total{command="none",status="401"} 1`,
		`ckscale_http_request_seconds_count{command="listZones",status="401"} 2`,
	} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("no %s in\n%s", want, rec.Body)
		}
	}
	if strings.Contains(rec.Body.String(), "made-up") {
		t.Error("a client chose a label")
	}
	if _, err := NewHandler(&fakeService{}, Config{Registerer: reg}); err == nil {
		t.Error("the same metrics twice")
	}
}
