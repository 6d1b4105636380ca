package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Requests that are wrong as requests, and signatures of all kinds.

// site is the server's address and the path of a signed list.
func (c *client) site() (host, list string) {
	host = strings.TrimSuffix(strings.TrimPrefix(c.url, "http://"), "/client/api")
	return host, "/client/api?" + c.keys.signed("listKubernetesClusters")
}

// wire writes bytes to a connection of its own, and returns what is answered.
// Where the bytes have a line "--", the server must first say 100 Continue.
func (c *client) wire(text string) *http.Response {
	c.Helper()
	host, _ := c.site()
	conn, err := new(net.Dialer).DialContext(c.Context(), "tcp", host)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		c.Fatal(err)
	}
	in := bufio.NewReader(conn)
	head, body, waits := strings.Cut(text, "--")
	write := func(s string) {
		if _, err := io.WriteString(conn, s); err != nil {
			c.Fatal(err)
		}
	}
	write(head)
	if waits {
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusContinue {
			c.Fatalf("no 100 Continue: %v %v", resp, err)
		}
		write(body)
	} else if tcp, ok := conn.(*net.TCPConn); ok && strings.Contains(head, "Connection: close") {
		if err := tcp.CloseWrite(); err != nil {
			c.Fatal(err)
		}
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		c.Fatalf("%.200q: %v", text, err)
	}
	c.Cleanup(func() { resp.Body.Close() })
	return resp
}

// What is no form, no known path or method, too large or oddly transferred is
// answered in JSON all the same, and changes nothing (A07).
//
// Keeps: §1.1/endpoint, §1.1/methods.
// Keeps: A07.
func TestOddRequestsAreAnsweredInJSON(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h", "CKSCALE_LOG_LEVEL": "DEBUG"})
	db := connect(t, l.url)
	before := l.everything(db)
	l.oddBodies()
	l.oddPaths()
	l.oddWires()
	l.unharmed(db, before)
}

func (c *client) oddBodies() {
	c.Helper()
	bad := c.keys.signed("scaleKubernetesCluster", "id="+c.id(), "size=abc")
	const form = "application/x-www-form-urlencoded"
	for name, s := range map[string]struct {
		kind, query, body string
		status            int
		text              string
	}{
		"form":                    {form, "", bad, 431, "invalid value abc"},
		"form with charset":       {form + "; charset=UTF-8", "", bad, 431, "invalid value abc"},
		"JSON":                    {"application/json", "", `{"command":"scaleKubernetesCluster"}`, 431, "Content-Type"},
		"JSON beside the query":   {"application/json", bad, `{"size":3}`, 431, "Content-Type"},
		"multipart":               {"multipart/form-data; boundary=x", "", "--x\r\nContent-Disposition: form-data; name=\"command\"\r\n\r\nx\r\n--x--\r\n", 431, "Content-Type"},
		"XML":                     {"text/xml", "", "<a/>", 431, "Content-Type"},
		"no type":                 {"", "", bad, 431, "Content-Type"},
		"broken type":             {";;", "", bad, 431, "Content-Type"},
		"form that is JSON":       {form, "", `{"a":1}`, 401, ""},
		"form that is binary":     {form, "", "\x00\x01\xfe\xff", 401, ""},
		"form of separators":      {form, "", strings.Repeat("&", 1500), 401, ""},
		"2 MB in one value":       {form, "", bad + "&x=" + strings.Repeat("x", 2<<20), 431, "larger than"},
		"2 MB of separators":      {form, "", strings.Repeat("&", 2<<20), 431, "larger than"},
		"900 kB value":            {form, "", c.keys.signed("listKubernetesClusters", "keyword="+strings.Repeat("x", 900_000)), 431, "max allowed length"},
		"10,000 parameters":       {form, "", bad + "&" + strings.ReplaceAll(manyNames(10_000), " ", "&"), 431, "more than 1000 parameters"},
		"10,000 of one name":      {form, "", bad + strings.Repeat("&size=3", 10_000), 431, "more than 1000 parameters"},
		"10,000 in the query":     {form, strings.Repeat("a=1&", 10_000), "", 431, "more than 1000 parameters"},
		"100 kB query":            {form, "a=" + strings.Repeat("x", 100_000), "", 431, "query string is longer"},
		"broken escape":           {form, "", bad + "&x=%zz", 431, "cannot be decoded"},
		"half an escape":          {form, "", bad + "&x=%a", 431, "cannot be decoded"},
		"broken escape in a name": {form, "", bad + "&%=1", 431, "cannot be decoded"},
		"escape in the query":     {form, "command=listZones&x=%zz", "", 431, "cannot be decoded"},
	} {
		req, err := http.NewRequestWithContext(c.Context(), "POST", c.url+"?"+s.query, strings.NewReader(s.body))
		if err != nil {
			c.Fatal(err)
		}
		if s.kind != "" {
			req.Header.Set("Content-Type", s.kind)
		}
		r := c.fetch(req)
		if r.status != s.status || r.answer["errorcode"] != float64(s.status) || !strings.Contains(r.answer.text("errortext"), s.text) {
			c.Errorf("%s: %d %.300s", name, r.status, r.raw)
		}
	}
}

func (c *client) oddPaths() {
	c.Helper()
	host, list := c.site()
	for _, s := range []struct {
		method, path string
		status       int
	}{
		{"GET", list, 200},
		{"GET", strings.Replace(list, "?", "/?", 1), 200}, // csbench's sample configuration
		{"PUT", list, 405}, {"DELETE", list, 405}, {"PATCH", list, 405}, {"OPTIONS", list, 405}, {"TRACE", list, 405}, {"BREW", list, 405},
		{"PUT", "/client/api/listZones", 405}, {"POST", "/healthz", 405}, {"DELETE", "/readyz", 405},
		{"GET", "/", 404}, {"GET", "/client", 404}, {"GET", "/client/", 404}, {"GET", "/client/api/listZones/x", 404},
		{"GET", "/client/apis", 404}, {"GET", "/CLIENT/API", 404}, {"GET", "/favicon.ico", 404}, {"GET", "//client/api", 404},
		{"GET", "/client/../etc/passwd", 404}, {"GET", "/client/api%2f..%2f..", 404}, {"GET", "/%00", 404}, {"GET", "/debug/pprof/", 404},
		{"GET", "/client/api", 401}, {"POST", "/client/api", 401}, {"GET", "/client/api/", 401}, {"GET", "/client/api/nope", 401},
		{"GET", "/client/api/%ff", 401}, {"GET", "/client/api?command=listZones", 401}, {"GET", "/client/api?command", 401},
		{"GET", strings.Replace(list, "?", "/listZones?", 1), 431}, // two commands
	} {
		req, err := http.NewRequestWithContext(c.Context(), s.method, "http://"+host+s.path, nil)
		if err != nil {
			c.Fatal(err)
		}
		if r := c.fetch(req); r.status != s.status || s.status != 200 && r.answer["errorcode"] != float64(s.status) {
			c.Errorf("%s %.100s: %d %.300s", s.method, s.path, r.status, r.raw)
		}
	}
	req, err := http.NewRequestWithContext(c.Context(), "HEAD", "http://"+host+list, nil)
	if err != nil {
		c.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		c.Errorf("HEAD: %d", resp.StatusCode)
	}
}

func (c *client) oddWires() {
	c.Helper()
	host, list := c.site()
	bad := c.keys.signed("scaleKubernetesCluster", "id="+c.id(), "size=abc")
	good := c.keys.signed("listZones")
	post := "POST /client/api HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/x-www-form-urlencoded\r\n"
	length := func(s string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(s)) }
	chunked := func(s string) string {
		const half = 20
		return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", half, s[:half], len(s)-half, s[half:])
	}
	for name, s := range map[string]struct {
		text   string
		status int
	}{
		"HTTP/1.0":                  {"GET " + list + " HTTP/1.0\r\n\r\n", 200},
		"HTTP/1.0 form":             {"POST /client/api HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded\r\n" + length(bad) + "\r\n" + bad, 431},
		"HTTP/1.0, nothing":         {"GET /client/api HTTP/1.0\r\n\r\n", 401},
		"chunked":                   {post + chunked(good), 200},
		"chunked, bad":              {post + chunked(bad), 431},
		"a broken chunk":            {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 431},
		"100-continue":              {post + "Expect: 100-continue\r\n" + length(good) + "\r\n--" + good, 200},
		"100-continue, bad":         {post + "Expect: 100-continue\r\n" + length(bad) + "\r\n--" + bad, 431},
		"100-continue, not a form":  {strings.Replace(post, "x-www-form-urlencoded", "json", 1) + "Expect: 100-continue\r\n" + length(bad) + "\r\n--" + bad, 431},
		"a body that is cut short":  {post + "Connection: close\r\nContent-Length: 1000\r\n\r\n" + good, 431},
		"a GET with a body":         {"GET " + list + " HTTP/1.1\r\nHost: x\r\n" + length(bad) + "\r\n" + bad, 200},
		"a whole URL":               {"GET http://elsewhere.example" + list + " HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n", 200},
		"two requests in one write": {"GET " + list + " HTTP/1.1\r\nHost: x\r\n\r\nGET " + list + " HTTP/1.1\r\nHost: x\r\n\r\n", 200},
	} {
		if r := c.read(c.wire(s.text)); r.status != s.status {
			c.Errorf("%s: %d %.300s", name, r.status, r.raw)
		}
	}
	// What is no HTTP at all is answered by the library, never as our fault.
	for name, text := range map[string]string{
		"no HTTP":            "hello\r\n\r\n",
		"no Host":            "GET / HTTP/1.1\r\n\r\n",
		"a NUL":              "GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
		"a header of 2 MB":   "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
		"two lengths":        "POST /client/api HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
		"a negative length":  "POST /client/api HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"a TLS handshake":    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"HTTP/2 without TLS": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		if status := c.wire(text).StatusCode; status < 400 || status >= 500 && status != http.StatusHTTPVersionNotSupported {
			c.Errorf("%s: %d", name, status)
		}
	}
}

// Every doubt about who asks gets the same 401, and nothing that was not
// signed is used (cks.md §1.7, A09).
//
// Keeps: §1.7/one-answer, §1.7/mismatch, §2.9/bad-signature.
func TestSignaturesAreChecked(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h", "CKSCALE_LOG_LEVEL": "DEBUG"})
	db := connect(t, l.url)
	before := l.everything(db)
	id := l.id()
	up := []pair{{"id", id}, {"size", "3"}}
	with := func(params []pair, more ...string) []pair { return append(append([]pair{}, params...), pairs(more)...) }
	signed := func(k keys, params []pair) string { return join(k.sign("scaleKubernetesCluster", params), escape) }
	good := l.keys.sign("scaleKubernetesCluster", up)
	signature := good[len(good)-1].value
	bare := join(good[:len(good)-1], escape)
	at := func(d time.Duration) string { return "expires=" + time.Now().Add(d).UTC().Format(expiry+"Z") }
	for name, query := range map[string]string{
		"wrong secret":           signed(keys{adminKeys.API, "wrong"}, up),
		"empty secret":           signed(keys{adminKeys.API, ""}, up),
		"key as secret":          signed(keys{adminKeys.API, adminKeys.API}, up),
		"unknown key":            signed(keys{"unknown", adminKeys.Secret}, up),
		"empty key":              signed(keys{"", adminKeys.Secret}, up),
		"key with a NUL":         signed(keys{adminKeys.API + "\x00", adminKeys.Secret}, up),
		"key in other case":      signed(keys{strings.ToUpper(adminKeys.API), adminKeys.Secret}, up),
		"key with SQL":           signed(keys{"' OR '1'='1", adminKeys.Secret}, up),
		"huge key":               signed(keys{strings.Repeat("k", 9000), adminKeys.Secret}, up),
		"no signature":           bare,
		"empty signature":        bare + "&signature=",
		"truncated":              bare + "&signature=" + escape(signature[:len(signature)-2]),
		"lengthened":             bare + "&signature=" + escape(signature+"="),
		"in lower case":          bare + "&signature=" + escape(strings.ToLower(signature)),
		"not encoded, + is lost": bare + "&signature=" + strings.NewReplacer("+", "%20", "/", "%20").Replace(signature[:4]+"+"+signature[5:]),
		"of nothing":             bare + "&signature=" + escape(l.keys.signature(nil)),
		"of another command":     strings.Replace(signed(l.keys, up), "scaleKubernetesCluster", "deleteKubernetesCluster", 1),
		"of another size":        strings.Replace(signed(l.keys, up), "size=3", "size=4", 1),
		"a parameter added":      signed(l.keys, up) + "&nodeids=x",
		"a parameter removed":    strings.Replace(signed(l.keys, up), "size=3&", "", 1),
		"expired":                signed(l.keys, with(up, "signatureVersion=3", at(-time.Minute))),
		"expired, other names":   signed(l.keys, with(up, "SIGNATUREVERSION=3", strings.Replace(at(-time.Hour), "expires", "Expires", 1))),
		"no expires":             signed(l.keys, with(up, "signatureversion=3")),
		"empty expires":          signed(l.keys, with(up, "signatureversion=3", "expires=")),
		"unreadable expires":     signed(l.keys, with(up, "signatureversion=3", "expires=tomorrow")),
		"a number expires":       signed(l.keys, with(up, "signatureversion=3", "expires=4102444800")),
		"expires put off":        strings.Replace(signed(l.keys, with(up, "signatureversion=3", "expires=2020-01-01T00:00:00Z")), "2020", "2099", 1),
	} {
		for _, post := range []bool{false, true} {
			req, err := http.NewRequestWithContext(t.Context(), "GET", l.client.url+"?"+query, nil)
			if post {
				req, err = newForm(t.Context(), l.client.url, query)
			}
			if err != nil {
				t.Fatal(err)
			}
			r := l.fetch(req)
			if want := `"errorcode":401,"errortext":"unable to verify user credentials and/or request signature"`; r.status != 401 ||
				!strings.Contains(string(r.raw), want) || r.answer["cserrorcode"] != nil {
				t.Errorf("%s: %d %.300s", name, r.status, r.raw)
			}
		}
	}
	l.doublesUseWhatWasSigned(id)
	l.basicIsChecked(id)
	l.unharmed(db, before)
}

// doublesUseWhatWasSigned: a name that occurs twice means what was signed, or
// nothing.
func (c *client) doublesUseWhatWasSigned(id string) {
	c.Helper()
	refused := c.keys.signed("scaleKubernetesCluster", "id="+id, "size=0") // by a failed job that names size 0
	for name, s := range map[string]struct {
		query, form string
		status      int
	}{
		"appended":             {refused + "&size=3", "", 200},
		"put before":           {"size=3&" + refused, "", 200},
		"a thousand times":     {refused + strings.Repeat("&size=3", 900), "", 200},
		"in both":              {refused, "size=3", 200}, // the query wins
		"query over form":      {"size=3", refused, 401},
		"another case":         {refused + "&SIZE=3", "", 401},
		"signature twice":      {refused + "&signature=x", "", 200},
		"command twice":        {refused + "&command=deleteKubernetesCluster", "", 200},
		"another response":     {refused + "&response=xml", "", 200},
		"id of another case":   {refused + "&Id=" + id, "", 401},
		"key of another case":  {refused + "&APIKEY=x", "", 401},
		"sizes of a different": {strings.Replace(refused, "size=0", "size=3&size=1", 1), "", 401},
	} {
		req, err := newForm(c.Context(), c.url+"?"+s.query, s.form)
		if err != nil {
			c.Fatal(err)
		}
		r := c.fetch(req)
		if r.status != s.status {
			c.Errorf("%s: %d %.300s", name, r.status, r.raw)
		} else if s.status == http.StatusOK {
			if text := c.failed(c.polled(dialects[0], r.answer.text("jobid"))); !strings.Contains(text, "for size, 0") {
				c.Errorf("%s: %s", name, text)
			}
		}
	}
}

// basicIsChecked: HTTP Basic knows who asks before it looks at the command.
func (c *client) basicIsChecked(id string) {
	c.Helper()
	for name, s := range map[string]struct {
		user, password, query string
		status                int
		text                  string
	}{
		"right":           {adminKeys.API, adminKeys.Secret, "command=scaleKubernetesCluster&size=x&id=" + id, 431, "invalid value x"},
		"wrong secret":    {adminKeys.API, "wrong", "command=scaleKubernetesCluster&size=3&id=" + id, 401, "unable to verify"},
		"no secret":       {adminKeys.API, "", "command=scaleKubernetesCluster&size=3&id=" + id, 401, "unable to verify"},
		"unknown key":     {"admin", "password", "command=scaleKubernetesCluster&size=3&id=" + id, 401, "unable to verify"},
		"no text":         {"\xff\x00", adminKeys.Secret, "command=listZones", 401, "unable to verify"},
		"unknown command": {adminKeys.API, adminKeys.Secret, "command=foo", 432, "Unknown API command: foo"},
		"no command":      {adminKeys.API, adminKeys.Secret, "size=3&id=" + id, 431, "missing parameter command"},
		"XML":             {adminKeys.API, adminKeys.Secret, "command=listZones&response=xml", 431, "only JSON"},
		"bad signature":   {adminKeys.API, adminKeys.Secret, "command=listZones&signature=x&apiKey=" + adminKeys.API, 401, "unable to verify"},
	} {
		req, err := http.NewRequestWithContext(c.Context(), "GET", c.url+"?"+s.query, nil)
		if err != nil {
			c.Fatal(err)
		}
		req.SetBasicAuth(s.user, s.password)
		if r := c.fetch(req); r.status != s.status || !strings.Contains(r.answer.text("errortext"), s.text) {
			c.Errorf("Basic, %s: %d %.300s", name, r.status, r.raw)
		}
	}
}
