package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// hurried is how many times shorter the limits of time are in these tests.
const hurried = 20

// limitedServer serves with the real limits, those of time shortened; nothing
// is behind it. secure gives it a certificate.
func limitedServer(t *testing.T, secure bool) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	var cfg config
	if secure {
		files := newCertFiles(t, newPEMs(t, 1))
		cfg.TLSCert, cfg.TLSKey = files.cert, files.key
	}
	srv, err := newHTTP(&front{}, cfg, prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []*time.Duration{&srv.ReadHeaderTimeout, &srv.ReadTimeout, &srv.WriteTimeout, &srv.IdleTimeout} {
		if *limit <= 0 || *limit > 2*time.Minute {
			t.Errorf("a limit is %s", *limit)
		}
		*limit /= hurried
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if srv.TLSConfig, err = cfg.tlsConfig(listener.Addr(), log); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- (&server{http: srv}).listen(listener) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// dial connects. Whatever takes longer than a minute then has no limit.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// timedOut reports whether our own deadline has passed.
func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// sendForever writes head and then piece again and again, every pause, until
// the server has answered or hung up. It returns the answer, nil if there was
// none, and how much was written.
func sendForever(t *testing.T, conn net.Conn, head, piece string, pause time.Duration) (*http.Response, int) {
	t.Helper()
	var written int
	stop, writer := make(chan struct{}), sync.WaitGroup{}
	writer.Go(func() {
		for next := head; ; next = piece {
			n, err := io.WriteString(conn, next)
			written += n
			if err != nil {
				if timedOut(err) {
					t.Error("the server takes it for ever")
				}
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(pause):
			}
		}
	})
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		if _, err = io.Copy(io.Discard, resp.Body); err != nil && !timedOut(err) {
			err = nil // hung up on a client that went on sending
		}
	} else if !timedOut(err) {
		err = nil
	}
	if err != nil {
		t.Errorf("the server waits for ever: %v", err)
	}
	close(stop)
	conn.Close()
	writer.Wait()
	return resp, written
}

const formHead = "POST /client/api?command=listZones HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"

// A client that takes its time, with the handshake, headers, body or the next
// request, or does not read its answers, is not waited for (issue 4, security).
func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	plain, secure := limitedServer(t, false), limitedServer(t, true)
	drop := 50 * time.Millisecond
	many(t, 8, map[string]func(*testing.T){
		"no request": func(t *testing.T) { sendForever(t, dial(t, plain), "", "", time.Hour) },
		"slow headers": func(t *testing.T) {
			sendForever(t, dial(t, plain), "GET /healthz HTTP/1.1\r\nHost: x\r\n", "X: x\r\n", drop)
		},
		"slow request line": func(t *testing.T) { sendForever(t, dial(t, plain), "GET /", "x", drop) },
		"slow body": func(t *testing.T) {
			resp, _ := sendForever(t, dial(t, plain), formHead+"Content-Length: 100000\r\n\r\n", "x", drop)
			if resp == nil || resp.StatusCode != 431 {
				t.Errorf("answered by %v", resp)
			}
		},
		"slow chunks": func(t *testing.T) {
			resp, _ := sendForever(t, dial(t, plain), formHead+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", drop)
			if resp == nil || resp.StatusCode != 431 {
				t.Errorf("answered by %v", resp)
			}
		},
		"slow handshake": func(t *testing.T) {
			sendForever(t, dial(t, secure), "\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03", "\x00", drop)
		},
		"no next request": func(t *testing.T) {
			conn := dial(t, plain)
			if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); timedOut(err) {
				t.Error("an idle connection is kept for ever")
			}
		},
		"answers not read": func(t *testing.T) {
			conn := dial(t, plain)
			if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
				t.Fatal(err)
			}
			for {
				if _, err := io.WriteString(conn, "GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n"); timedOut(err) {
					t.Fatal("the server waits for ever")
				} else if err != nil {
					return
				}
			}
		},
	})
}

// Requests that are too large, in headers, body or number of parameters, are
// refused, and no more of them is read than there is room for (issue 4,
// security).
func TestGiantRequestsAreRefused(t *testing.T) {
	t.Parallel()
	addr := limitedServer(t, false)
	const kernel = 16 << 20 // what may be on its way in the buffers of two sockets
	chunk := strings.Repeat("x", 64<<10)
	for name, c := range map[string]struct {
		head, piece string
		status      int
	}{
		"header of 300 kB":       {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 300_000) + "\r\n\r\n", "", 431},
		"headers, 300 kB in all": {"GET /healthz HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: x\r\n", 50_000) + "\r\n", "", 431},
		"header without end":     {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ", chunk, 431},
		"headers without end":    {"GET /healthz HTTP/1.1\r\nHost: x\r\n", strings.Repeat("X: x\r\n", 10_000), 431},
		"URL without end":        {"GET /client/api?x=", chunk, 431},
		"body of 1 GB":           {formHead + "Content-Length: 1000000000\r\n\r\n", chunk, 431},
		"body without end":       {formHead + "Transfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\n%s\r\n", len(chunk), chunk), 431},
		"1001 parameters":        {form(strings.Repeat("a=1&", 1001)), "", 431},
		"100,000 separators":     {form(strings.Repeat("&", 100_000)), "", 431},
		"1000 parameters":        {form(strings.Repeat("a=1&", 999)), "", 401},
		"headers of 200 kB":      {"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: " + strings.Repeat("x", 200_000) + "\r\n\r\n", "", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pause := time.Duration(0)
			if c.piece == "" {
				pause = time.Hour
			}
			resp, written := sendForever(t, dial(t, addr), c.head, c.piece, pause)
			whole := c.piece == "" && len(c.head) < 250_000 // what is left unread may cut off the answer
			if resp == nil && whole || resp != nil && resp.StatusCode != c.status {
				t.Errorf("answered by %v", resp)
			}
			if written > kernel {
				t.Errorf("%d bytes were taken", written)
			}
		})
	}
}

// form is a whole request with a form.
func form(body string) string {
	return formHead + fmt.Sprintf("Connection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// Clients that send nothing, or too much, take nothing from the others.
func TestHostileConnectionsDoNotKeepOthersOut(t *testing.T) {
	t.Parallel()
	addr := limitedServer(t, false)
	for i := range 200 {
		conn := dial(t, addr)
		if _, err := io.WriteString(conn, []string{"", "GET /", formHead, formHead + "Content-Length: 900000\r\n\r\n"}[i%4]); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	if status, body := get(t, "http://"+addr+"/healthz", keys{}); status != 200 || time.Since(begin) > 20*time.Second {
		t.Errorf("%d %s after %s", status, body, time.Since(begin))
	}
}
