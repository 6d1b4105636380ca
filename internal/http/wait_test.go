package http

import (
	"context"
	"fmt"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// wait is a number of seconds from 0 to 60; nothing and 0 are no wait, and
// anything else is refused before the job is looked at.
//
// Keeps: ours/wait-limit.
func TestWaitIsChecked(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]any{
		"":    jobID,
		"0":   jobID,
		"1":   awaited{jobID, time.Second},
		"+30": awaited{jobID, 30 * time.Second},
		"60":  awaited{jobID, time.Minute},
		"61":  nil, "-1": nil, "x": nil, "1.5": nil, "2147483647": nil, "99999999999": nil,
	} {
		svc := canned{account: admin, job: runningJob()}
		body := string(sendTo(t, &svc, "command=queryAsyncJobResult&jobid="+jobID+"&wait="+strings.ReplaceAll(value, "+", "%2B")))
		if svc.asked != want {
			t.Errorf("wait=%s asked %v, want %v", value, svc.asked, want)
		}
		if refused := strings.Contains(body, `"errorcode":431`) && strings.Contains(body, "wait"); refused != (want == nil) {
			t.Errorf("wait=%s: %s", value, body)
		}
	}
}

const jobKey = "queryasyncjobresultresponse"

// A request that waits has the time for it besides what every request has.
//
// Keeps: ours/wait-limit.
func TestWaitsHaveTimeOfTheirOwn(t *testing.T) {
	t.Parallel()
	guarded(t, func(t *testing.T, l *lab) {
		query := signedQuery("command", "queryAsyncJobResult", "jobid", jobID, "wait", "60")
		l.svc.await = func(ctx context.Context, wait time.Duration) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(wait):
				return nil
			}
		}
		begin := time.Now()
		l.do(t, get(query)).wantOK(t)
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("took %s", took)
		}
		l.svc.await = func(ctx context.Context, _ time.Duration) error {
			<-ctx.Done()
			return fmt.Errorf("read the job: %w", ctx.Err())
		}
		begin = time.Now()
		l.do(t, get(query)).want(t, 503, jobKey, 9999, "the request took too long")
		if took := time.Since(begin); took != time.Minute+requestTime {
			t.Errorf("took %s", took)
		}
	})
}

// The wait ends when the client hangs up.
//
// Keeps: ours/wait-client.
func TestWaitsEndWithTheConnection(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	waits, gone := make(chan struct{}), make(chan error, 1)
	l.svc.await = func(ctx context.Context, _ time.Duration) error {
		close(waits)
		<-ctx.Done()
		gone <- ctx.Err()
		return ctx.Err()
	}
	s := httptest.NewServer(nethttp.HandlerFunc(l.serve))
	defer s.Close()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	query := signedQuery("command", "queryAsyncJobResult", "jobid", jobID, "wait", "60")
	if _, err := fmt.Fprintf(conn, "GET /client/api?%s HTTP/1.1\r\nHost: x\r\n\r\n", query); err != nil {
		t.Fatal(err)
	}
	<-waits
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-gone:
		if err != context.Canceled { //nolint:errorlint // as a context gives it
			t.Errorf("got %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it still waits")
	}
}
