package http

import (
	"bytes"
	"compress/gzip"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

// fetch gets a path the way a browser does, with or without packing.
func (l *lab) fetch(t *testing.T, target string, packed bool) (*nethttp.Response, []byte) {
	t.Helper()
	r := httptest.NewRequest(nethttp.MethodGet, target, nil)
	if packed {
		r.Header.Set("Accept-Encoding", "gzip, deflate, br")
	}
	rec := httptest.NewRecorder()
	l.serve(rec, r)
	body := rec.Body.Bytes()
	if rec.Header().Get("Content-Encoding") == "gzip" {
		reader, err := gzip.NewReader(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		if body, err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
	return rec.Result(), body
}

// link is what makes a browser ask for something more.
var link = regexp.MustCompile(`(?:src|href|action|srcset|data|poster)\s*=\s*["']?([^"'\s>]*)`)

// The page of documents needs nothing from elsewhere: whatever it refers to is
// served here, as what it is, and its scripts may load nothing from other hosts
// nor run what is in the page. All other answers stay as strict as they are.
//
// Keeps: ours/docs, ours/docs-policy.
func TestDocsPageLoadsFromThisServerOnly(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	resp, page := l.fetch(t, "/docs", false)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	kinds := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".png": "image/png", ".yaml": "application/yaml"}
	links := link.FindAllSubmatch(page, -1)
	if len(links) < 5 {
		t.Fatalf("the page refers to %q", links)
	}
	for _, m := range links {
		target := string(m[1])
		if strings.Contains(target, ":") || strings.HasPrefix(target, "/") || strings.HasPrefix(target, ".") {
			t.Errorf("%s is not relative to the page", target)
			continue
		}
		resp, body := l.fetch(t, "/"+target, false)
		if resp.StatusCode != 200 || len(body) == 0 || resp.Header.Get("Content-Type") != kinds[path.Ext(target)] || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v, %d bytes", target, resp.StatusCode, resp.Header, len(body))
		}
		packed, unpacked := l.fetch(t, "/"+target, true)
		if !bytes.Equal(body, unpacked) {
			t.Errorf("%s is another one when it is packed (%v)", target, packed.Header)
		}
	}
	if regexp.MustCompile(`(?i)<script(?:[^>]*[^"'])?>[^<]|\son\w+\s*=|<style|@import`).Match(page) {
		t.Errorf("something in the page would not run:\n%s", page)
	}
	_, start := l.fetch(t, "/docs/start.js", false)
	if !bytes.Contains(start, []byte(`url: "openapi.yaml"`)) || !bytes.Contains(start, []byte("validatorUrl: null")) || bytes.Contains(start, []byte("//")) && bytes.Contains(start, []byte("://")) {
		t.Errorf("it starts with\n%s", start)
	}
	policy := resp.Header.Values("Content-Security-Policy")
	if len(policy) != 1 || policy[0] != "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'" {
		t.Errorf("the policy is %q", policy)
	}
	other, _ := l.fetch(t, "/openapi.yaml", false)
	if got := other.Header.Values("Content-Security-Policy"); len(got) != 2 || got[0] != "default-src 'none'" {
		t.Errorf("the document's policy is %q", got)
	}
}

// The page is found with a slash behind it, too; only GET and HEAD are served,
// and what is not one of its files is not there.
func TestDocsPaths(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if resp, _ := l.fetch(t, "/docs/", false); resp.StatusCode != 302 || resp.Header.Get("Location") != "/docs" {
		t.Errorf("/docs/: %d %v", resp.StatusCode, resp.Header)
	}
	for target, want := range map[string]int{"/docs/page.html": 404, "/docs/../server.go": 404, "/docs/swagger-ui.js": 404, "/docs/start.js/": 404} {
		if resp, _ := l.fetch(t, target, false); resp.StatusCode != want {
			t.Errorf("%s: %d", target, resp.StatusCode)
		}
	}
	l.do(t, httptest.NewRequest(nethttp.MethodPost, "/docs", nil)).want(t, 405, errorKey, 9999, "The method POST is not allowed here, only GET, HEAD")
}

func TestTakesGzip(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"": false, "gzip": true, "br, GZIP": true, "gzip;q=0": false, "gzip; q=0.000": false, "gzip; q=0.5": true, "deflate": false, "x-gzip": false, "gzip;q=1": true,
	} {
		r := httptest.NewRequest(nethttp.MethodGet, "/docs", nil)
		r.Header.Set("Accept-Encoding", header)
		if takesGzip(r) != want {
			t.Errorf("%q: %t", header, !want)
		}
	}
}
