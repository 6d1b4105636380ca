package http

import (
	"context"
	"fmt"
	nethttp "net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ckscale/internal/cks"
)

// exchange is what is known of a request so far.
type exchange struct {
	command *command    // nil until a known command is named
	caller  cks.Account // zero until the caller is known
	err     error       // what the generated router's funnels were given
	// longer gives a request that waits on purpose the time for it besides: a
	// context in place of its own, and the connection's patience.
	longer func(wait time.Duration) (context.Context, context.CancelFunc)

	// Of login and logout.
	session session // that the request shows
	tries   *attempts
	secure  bool              // the client speaks TLS
	cookies []*nethttp.Cookie // to be set with the answer
}

type exchangeKey struct{}

// exchangeFrom returns the exchange of a request's context; an empty one of
// its own to a context that has none.
func exchangeFrom(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// name is the command as logs and metrics show it. Names that are not known
// are not shown: whoever sends requests would choose the label.
func (x *exchange) name() string {
	if x.command == nil {
		return "none"
	}
	return x.command.Name
}

// metrics counts requests.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	waits    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	labels := []string{"command", "status"}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ckscale_http_requests_total",
			Help: "Requests answered, by command and HTTP status.",
		}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ckscale_http_request_seconds",
			Help:    "Time to answer a request, by command and HTTP status.",
			Buckets: prometheus.DefBuckets,
		}, labels),
		waits: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ckscale_job_waits",
			Help: "Requests that wait for a job to end.",
		}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.waits} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register HTTP metrics: %w", err)
		}
	}
	return m, nil
}

// statusWriter remembers the status that was written: 0 before.
type statusWriter struct {
	nethttp.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = nethttp.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() nethttp.ResponseWriter { return w.ResponseWriter }

// requestTime is how long a request may take; what holds it up is given up then.
const requestTime = 50 * time.Second

// answerTime is how long a client may take to receive the answer to a request
// that took all its time.
const answerTime = 10 * time.Second

// serve is the outermost handler: it gives the request its exchange, catches
// panics, and counts and logs the answer.
func (s *server) serve(w nethttp.ResponseWriter, r *nethttp.Request) {
	start := time.Now()
	x := &exchange{}
	unlimited := context.WithValue(r.Context(), exchangeKey{}, x)
	ctx, cancel := context.WithTimeout(unlimited, requestTime)
	defer cancel()
	r = r.WithContext(ctx)
	sw := &statusWriter{ResponseWriter: w}
	x.longer = func(wait time.Duration) (context.Context, context.CancelFunc) {
		// Where there is no connection, as in tests, there is no deadline either.
		_ = nethttp.NewResponseController(sw).SetWriteDeadline(time.Now().Add(wait + requestTime + answerTime))
		return context.WithTimeout(unlimited, wait+requestTime)
	}
	defer func() { s.observe(r, x, sw.status, time.Since(start)) }()
	defer s.catch(sw, r)
	for name, values := range securityHeaders {
		w.Header()[name] = values
	}
	s.routes.ServeHTTP(sw, r)
}

// securityHeaders are on every answer (cks.md §1.6). Answers depend on who
// asks, so that nobody on the way may keep them.
var securityHeaders = nethttp.Header{
	"X-Content-Type-Options":  {"nosniff"},
	"X-Xss-Protection":        {"1;mode=block"},
	"Content-Security-Policy": {"default-src 'none'", "frame-ancestors 'none'"},
	"Cache-Control":           {"no-store"},
}

// catch ends a panic: one log line with the stack, and an answer if none was
// begun; else the connection is cut, so that half an answer is not taken for a
// whole one.
func (s *server) catch(w *statusWriter, r *nethttp.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == nethttp.ErrAbortHandler { //nolint:errorlint // the documented sentinel, panicked as it is
		panic(v)
	}
	s.log.ErrorContext(r.Context(), "panic while serving a request",
		"command", exchangeFrom(r.Context()).name(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	if w.status != 0 {
		panic(nethttp.ErrAbortHandler)
	}
	s.fail(w, r, errPanicked)
}

// observe counts and logs a request. Its query is not logged: it holds keys
// and signatures.
func (s *server) observe(r *nethttp.Request, x *exchange, status int, took time.Duration) {
	label := strconv.Itoa(status)
	s.metrics.requests.WithLabelValues(x.name(), label).Inc()
	s.metrics.seconds.WithLabelValues(x.name(), label).Observe(took.Seconds())
	s.log.DebugContext(r.Context(), "request", "method", r.Method, "path", clip(r.URL.Path, 200),
		"command", x.name(), "account", x.caller.Name, "status", status, "took", took)
}
