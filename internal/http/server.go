// Package http speaks CloudStack's wire format: it reads requests, checks who
// asks, calls one method of Service for each, and encodes answers and errors.
package http

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	openapi "ckscale/api"
	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// Config is what NewHandler may be told. The zero value works.
type Config struct {
	Log        *slog.Logger          // default: slog.Default
	Metrics    nethttp.Handler       // serves /metrics; nil = the path is not served
	Registerer prometheus.Registerer // for this package's own metrics; nil = they are not shown
	MaxBody    int64                 // largest form, in bytes; default 1 MiB
	Now        func() time.Time      // default: time.Now
	// EnforcePost is CloudStack's enforce.post.requests.and.timestamps: changes
	// have to be sent by POST, and signatures have to expire within 15 minutes.
	EnforcePost bool
	// RateLimit is how many requests an account may make in a second; 0 = any
	// number (CloudStack's api.throttling.max, by default off as there).
	RateLimit int
	// Proxies are believed when they say whom a request comes from.
	Proxies []netip.Prefix
	// Stopping reports whether jobs are not accepted any more; nil = they are.
	Stopping func() bool
}

// accountRoom is how many accounts are kept to their pace at once.
const accountRoom = 10_000

type server struct {
	svc         Service
	commands    map[string]*command // by name
	doc         []byte              // the API document
	docs        map[string]nethttp.HandlerFunc
	log         *slog.Logger
	now         func() time.Time
	maxBody     int64
	enforcePost bool
	stopping    func() bool
	proxies     []netip.Prefix
	guard       *guard
	accounts    *paces[string] // by id; nil = they are not limited
	metrics     *metrics
	routes      nethttp.Handler // what clients reach
	operations  nethttp.Handler // the generated router, reached with canonical requests only
}

// NewHandler returns the whole API: /client/api and what watches over it
// (/healthz, /readyz, /metrics, /openapi.yaml, /docs). It fails if the embedded
// document is wrong or the metrics are registered already.
func NewHandler(svc Service, cfg Config) (nethttp.Handler, error) {
	s, err := newServer(svc, cfg)
	if err != nil {
		return nil, err
	}
	return nethttp.HandlerFunc(s.serve), nil
}

func newServer(svc Service, cfg Config) (*server, error) {
	commands, err := loadCommands()
	if err != nil {
		return nil, err
	}
	if err := checkTypes(commands); err != nil {
		return nil, err
	}
	s := &server{
		svc:         svc,
		commands:    commands,
		doc:         openapi.Document,
		log:         cmp.Or(cfg.Log, slog.Default()),
		now:         cfg.Now,
		maxBody:     cmp.Or(cfg.MaxBody, defaultMaxBody),
		enforcePost: cfg.EnforcePost,
		stopping:    cfg.Stopping,
		proxies:     cfg.Proxies,
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.stopping == nil {
		s.stopping = func() bool { return false }
	}
	s.guard = newGuard(func() time.Time { return s.now() }, func(from netip.Prefix) {
		s.log.Warn("failed attempts to authenticate are slowed down", "from", from)
	})
	if cfg.RateLimit > 0 {
		s.accounts = newPaces[string](perSecond(cfg.RateLimit), accountRoom)
	}
	if s.metrics, err = newMetrics(cfg.Registerer); err != nil {
		return nil, err
	}
	if s.docs, err = loadDocs(); err != nil {
		return nil, err
	}
	s.operations = s.newOperations()
	s.routes = s.newRoutes(cfg.Metrics)
	return s, nil
}

// newRoutes returns the paths that clients reach.
func (s *server) newRoutes(metrics nethttp.Handler) nethttp.Handler {
	r := chi.NewRouter()
	r.NotFound(s.failPath)
	r.MethodNotAllowed(s.failMethod)
	for _, path := range []string{"/client/api", "/client/api/", "/client/api/{command}"} {
		r.Get(path, s.serveCommand)
		r.Post(path, s.serveCommand)
	}
	watch := map[string]nethttp.Handler{
		"/healthz":      nethttp.HandlerFunc(s.serveHealth),
		"/readyz":       nethttp.HandlerFunc(s.serveReady),
		"/openapi.yaml": nethttp.HandlerFunc(s.serveDocument),
	}
	if metrics != nil {
		watch["/metrics"] = metrics
	}
	for path, h := range watch {
		r.Method(nethttp.MethodGet, path, h)
		r.Method(nethttp.MethodHead, path, h)
	}
	routeDocs(r, s.docs)
	return r
}

func (s *server) failPath(w nethttp.ResponseWriter, r *nethttp.Request) {
	s.fail(w, r, cks.Errorf(noPath, "There is nothing at %s; commands are at /client/api", clip(r.URL.Path, 200)))
}

// failMethod answers whatever is neither GET nor POST. HEAD of a command is
// refused, too: a command may change things.
func (s *server) failMethod(w nethttp.ResponseWriter, r *nethttp.Request) {
	methods := "GET, HEAD"
	if strings.HasPrefix(r.URL.Path, "/client/") {
		methods = "GET, POST"
	}
	w.Header().Set("Allow", methods)
	s.fail(w, r, cks.Errorf(cks.NoMethod, "The method %s is not allowed here, only %s", clip(r.Method, 20), methods))
}

// newOperations returns the generated router. Whatever goes wrong in it ends
// in the exchange's err, and from there in fail.
func (s *server) newOperations() nethttp.Handler {
	give := func(_ nethttp.ResponseWriter, r *nethttp.Request, err error) { exchangeFrom(r.Context()).err = err }
	giveUnbound := func(_ nethttp.ResponseWriter, r *nethttp.Request, err error) {
		x := exchangeFrom(r.Context())
		x.err = x.unbound(err)
	}
	noRoute := func(w nethttp.ResponseWriter, r *nethttp.Request) {
		give(w, r, fmt.Errorf("no operation for %s %s", r.Method, r.URL.Path))
	}
	r := chi.NewRouter()
	r.NotFound(noRoute)
	r.MethodNotAllowed(noRoute)
	strict := api.NewStrictHandlerWithOptions(s, nil, api.StrictHTTPServerOptions{
		RequestErrorHandlerFunc:  giveUnbound,
		ResponseErrorHandlerFunc: give,
	})
	return api.HandlerWithOptions(strict, api.ChiServerOptions{BaseRouter: r, ErrorHandlerFunc: giveUnbound})
}

// serveCommand answers one command.
func (s *server) serveCommand(w nethttp.ResponseWriter, r *nethttp.Request) {
	body, err := s.answer(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	for _, c := range exchangeFrom(r.Context()).cookies {
		nethttp.SetCookie(w, c)
	}
	writeJSON(w, nethttp.StatusOK, body)
}

// answer carries out one command in the order of cks.md §1.5: who asks, role,
// text, values; then the operation.
func (s *server) answer(w nethttp.ResponseWriter, r *nethttp.Request) ([]byte, error) {
	x := exchangeFrom(r.Context())
	in, err := readQuery(r)
	if name, e := commandName(in.path, in.query); e == nil {
		x.command = s.commands[name] // even an unreadable request is answered under its command's name
	}
	if err != nil {
		return nil, err
	}
	if in.form, err = s.readForm(w, r); err != nil {
		return nil, err
	}
	params, err := s.admit(r, in)
	if err != nil {
		return nil, err
	}
	if err := checkText(params); err != nil {
		return nil, err
	}
	if format, sent := valueOf(params, "response"); sent && !strings.EqualFold(format, "json") {
		return nil, cks.Errorf(cks.Parameter, "The response format %s is not served, only JSON: use response=json", clip(format, 100))
	}
	query, err := x.command.canonicalQuery(params)
	if err != nil {
		return nil, err
	}
	if x.command.Async && s.stopping() {
		return nil, cks.Errorf(cks.Unavailable,
			"Maintenance or Shutdown has been initiated on this management server. Can not accept new jobs")
	}
	out := &answerBuffer{header: make(nethttp.Header)}
	s.operations.ServeHTTP(out, x.command.canonicalRequest(r, query))
	if x.err == nil && out.body.Len() == 0 {
		x.err = errors.New("the operation gave no answer")
	}
	return rawHTML(out.body.Bytes()), x.err
}

// canonicalRequest is the request that the generated router gets.
func (c *command) canonicalRequest(r *nethttp.Request, query string) *nethttp.Request {
	// A routing context of its own: the one in r has the outer router's path and method.
	ctx := context.WithValue(r.Context(), chi.RouteCtxKey, chi.NewRouteContext())
	out := r.Clone(ctx)
	out.Method = c.Method
	out.URL = &url.URL{Path: commandPath + c.Name, RawQuery: query}
	out.Header = make(nethttp.Header)
	out.Body, out.ContentLength = nethttp.NoBody, 0
	return out
}

// answerBuffer takes the generated router's answer, so that nothing reaches
// the client before it is whole.
type answerBuffer struct {
	header nethttp.Header
	body   bytes.Buffer
}

func (b *answerBuffer) Header() nethttp.Header         { return b.header }
func (b *answerBuffer) WriteHeader(int)                {}
func (b *answerBuffer) Write(data []byte) (int, error) { return b.body.Write(data) }

// errPanicked is what fail is given after a panic: it looks like an internal
// error, but is logged already.
var errPanicked = cks.Errorf(cks.Failed, internalText)
