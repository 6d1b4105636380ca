package http

import (
	"fmt"
	nethttp "net/http"

	"ckscale/internal/cks"
)

// serveHealth says that the process is alive. It asks nobody.
func (s *server) serveHealth(w nethttp.ResponseWriter, _ *nethttp.Request) {
	writeJSON(w, nethttp.StatusOK, []byte(`{"healthresponse":{"status":"ok"}}`+"\n"))
}

// serveReady says whether requests can be served now. Anybody may ask, so what
// the database says of itself goes to the log only.
func (s *server) serveReady(w nethttp.ResponseWriter, r *nethttp.Request) {
	err := s.svc.Ready(r.Context())
	if cks.CodeOf(err) == cks.Internal && err != nil {
		err = fmt.Errorf("%w: %w", cks.Errorf(cks.Unavailable, "not ready"), err)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, nethttp.StatusOK, []byte(`{"readyresponse":{"status":"ready"}}`+"\n"))
}

// serveDocument serves the API document as it is kept in the source.
func (s *server) serveDocument(w nethttp.ResponseWriter, _ *nethttp.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Content-Length", fmt.Sprint(len(s.doc)))
	_, _ = w.Write(s.doc) // fails only when the client is gone
}
