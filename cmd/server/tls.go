package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lookAgain is how often the certificate's files are looked at, at most: when
// somebody connects.
const lookAgain = time.Second

// certificate is what the server shows who it is by. It follows its two files:
// a new pair is used for new connections; while they are no pair, the last good
// one is.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time
	current           atomic.Pointer[tls.Certificate]

	mu     sync.Mutex // for whoever looks; nobody waits for him
	looked time.Time
	found  [sha256.Size]byte // what, when somebody looked last
}

// loadCertificate reads the files, which have to be a pair at first.
func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, now: time.Now}
	pair, found, err := c.read()
	if err != nil {
		return nil, fmt.Errorf("CKSCALE_TLS_CERT, CKSCALE_TLS_KEY: %w", err)
	}
	c.looked, c.found = c.now(), found
	c.current.Store(&pair)
	return c, nil
}

// read returns what the files hold, as a pair and as a fingerprint of what was
// found, be it an error. No error quotes anything of the key.
func (c *certificate) read() (pair tls.Certificate, found [sha256.Size]byte, err error) {
	cert, certErr := os.ReadFile(c.certFile)
	key, keyErr := os.ReadFile(c.keyFile)
	if err = errors.Join(certErr, keyErr); err == nil {
		pair, err = tls.X509KeyPair(cert, key)
	}
	return pair, sha256.Sum256(fmt.Appendf(nil, "%q %q %v", cert, key, err)), err
}

// get returns the certificate for a new connection.
func (c *certificate) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.mu.TryLock() {
		defer c.mu.Unlock()
		if now := c.now(); now.Sub(c.looked) >= lookAgain {
			c.looked = now
			c.follow(hello.Context())
		}
	}
	return c.current.Load(), nil
}

// follow reads the files, and tells of anything new.
func (c *certificate) follow(ctx context.Context) {
	pair, found, err := c.read()
	if found == c.found {
		return
	}
	c.found = found
	if err != nil {
		c.log.ErrorContext(ctx, "the new TLS certificate cannot be used; the last good one stays", "err", err)
		return
	}
	c.current.Store(&pair)
	c.log.InfoContext(ctx, "the TLS certificate was read anew", "expires", pair.Leaf.NotAfter)
}

// tlsConfig is nil when there is no certificate. Then keys and secrets pass in
// clear text, so only this machine is served, unless we are told that somebody
// else sees to it.
func (c config) tlsConfig(listening net.Addr, log *slog.Logger) (*tls.Config, error) {
	if c.TLSCert == "" {
		tcp, ok := listening.(*net.TCPAddr)
		switch {
		case ok && tcp.IP.IsLoopback():
		case c.Insecure:
			log.Warn("other machines can reach the server, and it serves without TLS", "addr", listening.String())
		default:
			return nil, fmt.Errorf("CKSCALE_ADDR: other machines can reach %s, and keys and secrets would pass in clear text: "+
				"set CKSCALE_TLS_CERT and CKSCALE_TLS_KEY, or CKSCALE_INSECURE=true if a proxy serves TLS in front of the server "+
				"or nobody else is on the network", listening)
		}
		return nil, nil
	}
	cert, err := loadCertificate(c.TLSCert, c.TLSKey, log)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get}, nil
}

// ownClient asks the server on this machine whether it is ready. It knows that
// by the address, which no certificate is for, and tells it nothing.
func (c config) ownClient() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
}
