package http

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"io/fs"
	nethttp "net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
	"github.com/swaggest/swgui/v5/static"
)

// The page at /docs shows the API document by Swagger UI, whose files are in
// this program: a browser asks nobody else for anything.

//go:embed docs
var docsFiles embed.FS

// pagePolicy is the page's own Content-Security-Policy: scripts, and what they
// ask for, come from this server only. Swagger UI sets styles in elements, and
// its style sheet has pictures in it.
var pagePolicy = []string{strings.Join([]string{
	"default-src 'none'", "script-src 'self'", "style-src 'self' 'unsafe-inline'", "img-src 'self' data:", "connect-src 'self'",
	"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
}, "; ")}

// docsFile is one file of the page.
type docsFile struct {
	kind   string // its Content-Type
	body   []byte
	packed []byte // by gzip; nil = it is not worth it
}

// loadDocs returns the handlers of the page and its files, by path, which nobody
// may change.
var loadDocs = sync.OnceValues(readDocsPage)

func readDocsPage() (map[string]nethttp.HandlerFunc, error) {
	paths := map[string]nethttp.HandlerFunc{
		"/docs/": func(w nethttp.ResponseWriter, r *nethttp.Request) {
			nethttp.Redirect(w, r, "../docs", nethttp.StatusFound)
		},
	}
	for _, f := range []struct {
		path, kind string
		files      fs.FS
		name       string
	}{
		{"/docs", "text/html; charset=utf-8", docsFiles, "docs/page.html"},
		{"/docs/start.js", "text/javascript; charset=utf-8", docsFiles, "docs/start.js"},
		{"/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8", static.FS, "swagger-ui-bundle.js.gz"},
		{"/docs/swagger-ui.css", "text/css; charset=utf-8", static.FS, "swagger-ui.css.gz"},
		{"/docs/favicon-32x32.png", "image/png", static.FS, "favicon-32x32.png"},
	} {
		file, err := readDocs(f.files, f.name)
		if err != nil {
			return nil, fmt.Errorf("page of documents: %w", err)
		}
		file.kind = f.kind
		paths[f.path] = file.serve
	}
	return paths, nil
}

func readDocs(files fs.FS, name string) (docsFile, error) {
	body, err := fs.ReadFile(files, name)
	if err != nil || !strings.HasSuffix(name, ".gz") {
		return docsFile{body: body}, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return docsFile{}, err
	}
	plain, err := io.ReadAll(reader)
	return docsFile{body: plain, packed: body}, err
}

func (f docsFile) serve(w nethttp.ResponseWriter, r *nethttp.Request) {
	header, body := w.Header(), f.body
	header.Set("Content-Type", f.kind)
	header["Content-Security-Policy"] = pagePolicy
	if f.packed != nil {
		header.Set("Vary", "Accept-Encoding")
		if takesGzip(r) {
			header.Set("Content-Encoding", "gzip")
			body = f.packed
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // fails only when the client is gone
}

// takesGzip reports whether the client says that it can unpack.
func takesGzip(r *nethttp.Request) bool {
	for coding := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

// routeDocs adds the page to r.
func routeDocs(r chi.Router, paths map[string]nethttp.HandlerFunc) {
	for path, h := range paths {
		r.Get(path, h)
		r.Head(path, h)
	}
}
