package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// apiURL is the address of the API without TLS.
func apiURL(addr string) string { return config{}.apiURL(addr) }

// pems are a certificate for this machine and its key, as files hold them.
type pems struct{ cert, key []byte }

func newPEMs(t *testing.T, serial int64) pems {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "ckscale"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pems{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

// certFiles are the two files of a certificate.
type certFiles struct{ cert, key string }

func newCertFiles(t *testing.T, p pems) certFiles {
	t.Helper()
	dir := t.TempDir()
	f := certFiles{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	f.hold(t, p)
	return f
}

func (f certFiles) hold(t *testing.T, p pems) {
	t.Helper()
	for file, content := range map[string][]byte{f.cert: p.cert, f.key: p.key} {
		if err := writeFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// trusting are the settings of a client that believes in p.
func trusting(t *testing.T, p pems) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(p.cert) {
		t.Fatal("no certificate")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10}
}

// secureClient trusts p. It asks for HTTP/2, as browsers and curl do.
func secureClient(t *testing.T, p pems) *http.Client {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(t, p), ForceAttemptHTTP2: true}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// fetched gets a URL and returns the answer, read to its end.
func fetched(t *testing.T, c *http.Client, url string, k keys) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if k != (keys{}) {
		req.SetBasicAuth(k.API, k.Secret)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// launchTLS starts a server on a database of its own, with a certificate.
func launchTLS(t *testing.T, f certFiles, env map[string]string) (s *instance, addr string) {
	t.Helper()
	all := childEnv(t, map[string]string{"CKSCALE_TLS_CERT": f.cert, "CKSCALE_TLS_KEY": f.key, "CKSCALE_DEMO": "false"})
	for name, value := range env {
		all[name] = value
	}
	s = launch(t, all)
	return s, s.serving(t)
}

// With a certificate the server speaks TLS of version 1.2 at least and nothing
// else, for both ways to say who asks, and says so in its own URLs (issue 4,
// security).
func TestTLSIsServed(t *testing.T) {
	t.Parallel()
	p := newPEMs(t, 1)
	s, addr := launchTLS(t, newCertFiles(t, p), nil)
	url := "https://" + addr + "/client/api?"
	c := secureClient(t, p)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		c := secureClient(t, p)
		c.Transport.(*http.Transport).TLSClientConfig.MaxVersion = version
		if resp, body := fetched(t, c, url+"command=listZones", adminKeys); resp.StatusCode != 200 || resp.TLS.Version != version || resp.ProtoMajor != 1 {
			t.Errorf("%s by %s: %d %s", tls.VersionName(version), resp.Proto, resp.StatusCode, body)
		}
	}
	if resp, body := fetched(t, c, url+adminKeys.signed("listZones"), keys{}); resp.StatusCode != 200 {
		t.Errorf("signed: %s", body)
	}
	old := trusting(t, p)
	old.MaxVersion = tls.VersionTLS11
	if conn, err := tls.Dial("tcp", addr, old); err == nil {
		t.Errorf("version 1.1 is served: %v", conn.Close())
	}
	if status, body := get(t, "http://"+addr+"/healthz", keys{}); status != http.StatusBadRequest {
		t.Errorf("without TLS: %d %s", status, body)
	}
	if want := "ckscale serves https://" + addr + "/client/api"; !strings.Contains(s.stderr.String(), want) {
		t.Errorf("the banner does not say %q: %s", want, s.stderr)
	}
	if err := s.process().run(t.Context(), []string{"healthcheck"}); err != nil {
		t.Errorf("healthcheck: %v", err)
	}
	out := newTranscript("never")
	env := process{getenv: environment(s.env), stdout: out, stderr: io.Discard}
	if err := env.run(t.Context(), []string{"account", "create", "ann"}); err != nil || !strings.Contains(out.String(), "'https://") {
		t.Errorf("account create: %v %s", err, out)
	}
}

// A certificate that is renewed is used for new connections without a restart,
// and none that is open is dropped. Files that are no pair change nothing, and
// that is logged, without the key (issue 4, security).
func TestCertificateIsReplacedWhileServing(t *testing.T) {
	t.Parallel()
	first, second := newPEMs(t, 1), newPEMs(t, 2)
	files := newCertFiles(t, first)
	s, addr := launchTLS(t, files, nil)
	kept := secureClient(t, first) // fails if it had to connect anew once the second is shown
	served := func() {
		t.Helper()
		resp, body := fetched(t, kept, "https://"+addr+"/healthz", keys{})
		if resp.StatusCode != 200 || resp.TLS.PeerCertificates[0].SerialNumber.Int64() != 1 {
			t.Fatalf("the open connection: %d %s", resp.StatusCode, body)
		}
	}
	shown := func() int64 { // to a new connection
		t.Helper()
		insecure := &tls.Config{InsecureSkipVerify: true}
		conn, err := tls.Dial("tcp", addr, insecure)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	client := &client{TB: t}
	served()
	const broken = "the new TLS certificate cannot be used"
	for what, bad := range map[string]pems{
		"no pair": {second.cert, first.key}, "no key": {second.cert, nil}, "no certificate": {[]byte("x"), second.key}, "half": {second.cert[:300], second.key},
	} {
		n := strings.Count(s.stdout.String(), broken)
		files.hold(t, bad)
		client.until("it is noticed: "+what, time.Minute, func() bool {
			if got := shown(); got != 1 {
				t.Fatalf("%s: certificate %d", what, got)
			}
			return strings.Count(s.stdout.String(), broken) > n
		})
	}
	if err := os.Remove(files.cert); err != nil {
		t.Fatal(err)
	}
	served()
	files.hold(t, second)
	client.until("the new certificate is shown", time.Minute, func() bool { return shown() == 2 })
	served()
	if resp, body := fetched(t, secureClient(t, second), "https://"+addr+"/readyz", keys{}); resp.StatusCode != 200 {
		t.Errorf("ready: %d %s", resp.StatusCode, body)
	}
	for _, secret := range []string{string(first.key), string(second.key), strings.Split(string(second.key), "\n")[1]} {
		if strings.Contains(s.stdout.String(), secret) {
			t.Error("the log has a private key")
		}
	}
}

// A file that stays wrong is logged once, not at every connection, and so is
// its mending; the files are looked at once in a second at most.
func TestCertificateIsNotReadAtEveryConnection(t *testing.T) {
	t.Parallel()
	first, second := newPEMs(t, 1), newPEMs(t, 2)
	files := newCertFiles(t, first)
	log := newTranscript("never")
	cert, err := loadCertificate(files.cert, files.key, slog.New(slog.NewJSONHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	now := cert.looked
	cert.now = func() time.Time { return now }
	serial := func() int64 {
		c, err := cert.get(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.Int64()
	}
	files.hold(t, second)
	if serial() != 1 {
		t.Error("the files were read within a second")
	}
	now = now.Add(lookAgain)
	if serial() != 2 {
		t.Error("the files were not read after a second")
	}
	files.hold(t, pems{first.cert, second.key})
	for range 10 {
		now = now.Add(lookAgain)
		if serial() != 2 {
			t.Error("what is no pair is shown")
		}
	}
	files.hold(t, second)
	for range 10 {
		now = now.Add(lookAgain)
		serial()
	}
	if n := strings.Count(log.String(), "cannot be used"); n != 1 {
		t.Errorf("logged %d times that it is wrong", n)
	}
	if n := strings.Count(log.String(), "was read anew"); n != 2 {
		t.Errorf("logged %d times that it is well:\n%s", n, log)
	}
}

// Without TLS the server starts on this machine's own addresses only, unless it
// is told that this is meant; it says what to set, and has touched nothing then
// (issue 4, security).
func TestOthersAreServedByTLSOnly(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		dir := filepath.Join(t.TempDir(), "state")
		env := map[string]string{"CKSCALE_ADDR": addr, "CKSCALE_DATA_DIR": dir, "CKSCALE_INSECURE": "false"}
		err := process{getenv: environment(env), stdout: io.Discard, stderr: io.Discard}.run(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "CKSCALE_TLS_CERT") || !strings.Contains(err.Error(), "CKSCALE_INSECURE=true") {
			t.Errorf("%s: %v", addr, err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: the data directory was made: %v", addr, err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	for ip, alone := range map[string]bool{
		"127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"0.0.0.0": false, "::": false, "192.0.2.1": false, "10.0.0.1": false, "fe80::1": false, "fd00::1": false,
	} {
		listening := &net.TCPAddr{IP: net.ParseIP(ip), Port: 80}
		if _, err := (config{}).tlsConfig(listening, log); (err == nil) != alone {
			t.Errorf("%s: %v", ip, err)
		}
		if _, err := (config{Insecure: true}).tlsConfig(listening, log); err != nil {
			t.Errorf("%s, meant: %v", ip, err)
		}
	}
	p := newPEMs(t, 1)
	_, addr := launchTLS(t, newCertFiles(t, p), map[string]string{"CKSCALE_ADDR": "0.0.0.0:0"})
	if resp, body := fetched(t, secureClient(t, p), "https://"+reachable(addr)+"/readyz", keys{}); resp.StatusCode != 200 {
		t.Errorf("with TLS: %d %s", resp.StatusCode, body)
	}
	meant := launch(t, childEnv(t, map[string]string{"CKSCALE_ADDR": ":0", "CKSCALE_INSECURE": "true", "CKSCALE_DEMO": "false"}))
	if status, body := get(t, "http://"+reachable(meant.serving(t))+"/readyz", keys{}); status != 200 {
		t.Errorf("without TLS, as meant: %d %s", status, body)
	}
	if !strings.Contains(meant.stdout.String(), "it serves without TLS") {
		t.Errorf("no warning in the log: %s", meant.stdout)
	}
}

// A certificate that is none stops the start, before a database is touched.
func TestCertificateHasToBeGoodAtTheStart(t *testing.T) {
	t.Parallel()
	p := newPEMs(t, 1)
	good := newCertFiles(t, p)
	for name, f := range map[string]certFiles{
		"no file": {filepath.Join(t.TempDir(), "none"), good.key}, "no pair": {good.cert, newCertFiles(t, newPEMs(t, 2)).key}, "swapped": {good.key, good.cert},
	} {
		dir := filepath.Join(t.TempDir(), "state")
		env := map[string]string{"CKSCALE_ADDR": "127.0.0.1:0", "CKSCALE_DATA_DIR": dir, "CKSCALE_TLS_CERT": f.cert, "CKSCALE_TLS_KEY": f.key}
		err := process{getenv: environment(env), stdout: io.Discard, stderr: io.Discard}.run(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "CKSCALE_TLS_CERT") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: the data directory was made: %v", name, err)
		}
	}
}
