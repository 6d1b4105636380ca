package http

import (
	"errors"
	nethttp "net/http"
	"strings"
	"testing"

	"ckscale/internal/cks"
)

// Both verbs, both paths, signed by the rules of cks.md §1.7; clients.md §1
// says who needs which.
//
// Keeps: §1.1/endpoint, §1.1/get, §1.1/post, §1.2/unknown-parameters, §1.10/response-name.
func TestSignedRequestsAreServed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	slash := get(scaleQuery("size", "3"))
	slash.URL.Path = "/client/api/"
	charset := post("", scaleQuery("size", "3"))
	charset.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	plain := get(scaleQuery("size", "3"))
	plain.Method, plain.Body = nethttp.MethodPost, nethttp.NoBody
	for name, r := range map[string]*nethttp.Request{
		"GET":                get(scaleQuery("size", "3")),
		"POST":               post("", scaleQuery("size", "3")),
		"POST, query only":   plain,
		"with charset":       charset,
		"trailing slash":     slash,
		"capital name":       get(scaleQuery("SIZE", "3")),
		"unknown parameter":  get(scaleQuery("size", "3", "filter", "id,size")),
		"capital JSON":       get(signedAs(adminKey, adminSecret, "command", "scaleKubernetesCluster", "id", clusterID, "size", "3")),
		"with expiry":        get(scaleQuery("size", "3", "signatureVersion", "3", "expires", "2026-11-07T12:00:01Z")),
		"version 2, expired": get(scaleQuery("size", "3", "signatureVersion", "2", "expires", "2020-01-01T00:00:00Z")),
		"name in lower case": get(strings.ReplaceAll(scaleQuery("size", "3"), "signature=", "SIGNATURE=")),
	} {
		a := l.do(t, r)
		a.wantOK(t)
		if a.key != scaleKey || !strings.Contains(a.raw, `"jobid":"8f8c699e-beab-4ccb-a71c-233416e9db59"`) {
			t.Errorf("%s: %s", name, a.raw)
		}
	}
	for _, got := range l.svc.scaled {
		if got.Cluster != clusterID || got.Size == nil || *got.Size != 3 {
			t.Errorf("scaled by %+v", got)
		}
	}
	if l.svc.caller.Name != "admin" {
		t.Errorf("the caller is %+v", l.svc.caller)
	}
}

// cks.md §1.7: one answer to every doubt, in order, without a cserrorcode; the
// key is the command's, if there is such a command (§2.9).
//
// Keeps: §1.1/integration-port, §1.2/command-name, §1.2/command-value, §1.7/6, §1.7/one-answer, §1.7/no-command.
// Keeps: §1.7/unknown-command, §1.7/no-signature, §1.7/expires, §1.7/unknown-key, §1.7/no-secret, §1.7/mismatch.
// Keeps: §1.9/no-role, §2.9/401, §2.9/401-without-cserrorcode, §2.9/bad-signature, §2.9/key-unknown.
// Keeps: §2.9/key-no-command, §2.9/unknown-command-signed, §2.9/no-command-signed.
func TestUnsignedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	good := scaleQuery()
	for name, c := range map[string]struct{ query, key string }{
		"nothing":              {"", errorKey},
		"no command":           {signedQuery("id", clusterID), errorKey},
		"command in capitals":  {signedQuery("Command", "listZones"), errorKey},
		"unknown command":      {signedQuery("command", "foo"), errorKey},
		"lower-case command":   {signedQuery("command", "scalekubernetescluster"), errorKey},
		"unsigned":             {"command=scaleKubernetesCluster&id=" + clusterID, scaleKey},
		"no signature":         {"command=scaleKubernetesCluster&apiKey=" + adminKey, scaleKey},
		"empty signature":      {"command=scaleKubernetesCluster&signature=&apiKey=" + adminKey, scaleKey},
		"no key":               {"command=scaleKubernetesCluster&signature=x", scaleKey},
		"wrong signature":      {"command=scaleKubernetesCluster&signature=x&apiKey=" + adminKey, scaleKey},
		"unknown key":          {signedAs("nobody", adminSecret, "command", "scaleKubernetesCluster"), scaleKey},
		"key with NUL":         {signedAs("a\x00b", adminSecret, "command", "scaleKubernetesCluster"), scaleKey},
		"another's secret":     {signedAs(adminKey, userSecret, "command", "scaleKubernetesCluster"), scaleKey},
		"no secret":            {signedAs(keylessKey, "", "command", "scaleKubernetesCluster"), scaleKey},
		"expired":              {scaleQuery("signatureVersion", "3", "expires", "2026-11-07T12:00:00Z"), scaleKey},
		"no expiry":            {scaleQuery("signatureVersion", "3"), scaleKey},
		"unreadable expiry":    {scaleQuery("signatureversion", "3", "expires", "soon"), scaleKey},
		"added parameter":      {good + "&size=9", scaleKey},
		"other capitals":       {strings.Replace(good, "&id=", "&ID=", 1), scaleKey},
		"value changed":        {strings.Replace(good, clusterID, strings.Replace(clusterID, "7", "8", 1), 1), scaleKey},
		"signature not quoted": {scaleUnquoted(), scaleKey},
	} {
		l := newLab(t)
		a := l.do(t, get(c.query))
		a.want(t, 401, c.key, 0, denied)
		if strings.Contains(a.raw, "cserrorcode") {
			t.Errorf("%s: %s", name, a.raw)
		}
		if a.header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: a browser is asked to remember keys", name)
		}
		if len(l.svc.scaled) != 0 {
			t.Errorf("%s: was carried out", name)
		}
	}
}

// scaleUnquoted has a signature whose "+" is sent bare, and so means a space.
func scaleUnquoted() string {
	return "apiKey=stub-api-key&command=scaleKubernetesCluster&id=11111111-2222-3333-4444-555555555555" +
		"&response=json&size=3&signature=8kO+u8QdSxFR1uPzVp2Ojxe882Y="
}

// A request whose signature is good for one reading is carried out by that
// reading only: what was not signed is never used.
//
// Keeps: §1.1/query-over-form, §1.1/repeated, §1.1/repeated-signed.
func TestRepeatedNamesUseWhatWasSigned(t *testing.T) {
	t.Parallel()
	signedSize := func(size string) string { return scaleQuery("size", size) }
	for name, c := range map[string]struct {
		r    *nethttp.Request
		size int64
	}{
		"last signed":      {get("size=4&" + signedSize("3")), 3},
		"first signed":     {get(signedSize("3") + "&size=9"), 3},
		"in a form":        {post("", signedSize("3")+"&size=9"), 3},
		"command repeated": {get(signedSize("3") + "&command=deleteKubernetesCluster"), 3},
	} {
		l := newLab(t)
		l.do(t, c.r).wantOK(t)
		if len(l.svc.scaled) != 1 || *l.svc.scaled[0].Size != c.size {
			t.Errorf("%s: scaled by %+v", name, l.svc.scaled)
		}
	}
	l := newLab(t)
	l.do(t, post("size=9", signedSize("3"))).want(t, 401, scaleKey, 0, denied) // the query wins, and is not signed
	l.do(t, get("size=1&size=2&"+scaleQuery())).want(t, 401, scaleKey, 0, denied)
	l.do(t, get("command=listZones&command=scaleKubernetesCluster")).want(t, 401, scaleKey, 0, denied)
}

// cks.md §1.7, §1.9: the role is looked at before the signature, with its own
// text; cks.md §2.9: every 432 is under errorresponse.
//
// Keeps: §1.2/role-rules, §1.7/role-before-signature, §1.9/root-admin, §1.9/roles, §1.9/refusal, §2.9/432, §2.9/key-432.
func TestRoleCheck(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	text := "The API [configureSimulator] does not exist or is not available for the account for user id [" + userID + "]."
	l.do(t, get(signedAs(userKey, userSecret, "command", "configureSimulator"))).want(t, 432, errorKey, 9999, text)
	l.do(t, get(signedAs(userKey, "wrong", "command", "configureSimulator"))).want(t, 432, errorKey, 9999, text)
	r := get("command=configureSimulator")
	r.SetBasicAuth(userKey, userSecret)
	l.do(t, r).want(t, 432, errorKey, 9999, text)
	l.do(t, get(signedQuery("command", "configureSimulator", "name", "vm.create", "value", "fail"))).wantOK(t)
	l.do(t, get(signedAs(userKey, userSecret, "command", "CONFIGURESIMULATOR"))).want(t, 401, errorKey, 0, denied)
}

// Our extension: HTTP Basic with API key and secret key.
//
// Keeps: §1.9/scale, §2.9/key-432, §2.9/key-unknown, §2.9/unknown-command-admin, §2.9/unknown-command-other.
func TestBasic(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	basic := func(key, secret, query string) answered {
		r := get(query)
		r.SetBasicAuth(key, secret)
		return l.do(t, r)
	}
	scale := "command=scaleKubernetesCluster&id=" + clusterID
	basic(adminKey, adminSecret, scale+"&size=2").wantOK(t)
	basic(userKey, userSecret, scale).wantOK(t)
	if l.svc.caller.Name != "ann" {
		t.Errorf("the caller is %+v", l.svc.caller)
	}
	for _, c := range [][2]string{{adminKey, "x"}, {adminKey, ""}, {"nobody", adminSecret}, {keylessKey, ""}, {"", ""}, {"a\x00", "x"}, {"\xff", "x"}} {
		basic(c[0], c[1], scale).want(t, 401, scaleKey, 0, denied)
	}
	basic(adminKey, adminSecret, "command=foo").want(t, 432, errorKey, 9999, "Unknown API command: foo")
	basic(userKey, userSecret, "command=foo").want(t, 432, errorKey, 9999,
		"The API [foo] does not exist or is not available for the account for user id ["+userID+"].")
	basic(adminKey, adminSecret, "id=1").want(t, 431, errorKey, 9999, "Unable to execute API command due to missing parameter command")
	basic(adminKey, adminSecret, signedAs(userKey, "wrong", "command", "listZones")).want(t, 401, "listzonesresponse", 0, denied)

	r := get(scale)
	r.Header.Set("Authorization", "Bearer x")
	l.do(t, r).want(t, 401, scaleKey, 0, denied)
}

// For clients made from the document, the path names the command. A change
// must have it under its signature: else that would be good for another one.
func TestCommandInPath(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	at := func(r *nethttp.Request, path string) answered {
		r.URL.Path = path
		return l.do(t, r)
	}
	const scalePath, listPath = "/client/api/scaleKubernetesCluster", "/client/api/listKubernetesClusters"
	sent := params("id", clusterID, "apiKey", adminKey)
	signature := func(ps []pair) string {
		return encode(append(sent, pair{"signature", sign(canonicalString(ps, false), adminSecret)}))
	}
	bare := signature(sent)
	with := func(command string) string { return signature(append(params("command", command), sent...)) }

	at(get(scaleQuery()), scalePath).wantOK(t)
	at(get(with("scaleKubernetesCluster")), scalePath).wantOK(t)
	at(post("", with("scaleKubernetesCluster")), scalePath).wantOK(t)
	at(get(bare), listPath).wantOK(t)
	at(get(bare), scalePath).want(t, 401, scaleKey, 0, denied)
	at(get(with("listKubernetesClusters")), scalePath).want(t, 401, scaleKey, 0, denied)
	at(get(scaleQuery()), listPath).want(t, 431, errorKey, 9999,
		"The parameter command is scaleKubernetesCluster, but the path names listKubernetesClusters")
	at(get(bare), "/client/api/foo").want(t, 401, errorKey, 0, denied)

	r := post("", "id="+clusterID)
	r.SetBasicAuth(adminKey, adminSecret)
	at(r, scalePath).wantOK(t)
}

// The database is needed to know who asks: that it is lost is no 401.
func TestLookupFailureIsNoRefusal(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.svc.lookup = cks.Errorf(cks.Unavailable, "database is not available")
	l.do(t, get(scaleQuery())).want(t, 503, scaleKey, 9999, "database is not available")
	l.svc.lookup = errors.New("column missing")
	l.do(t, get(scaleQuery())).want(t, 530, scaleKey, 4250, internalText)
}

// Neither keys nor signatures nor secrets reach the log.
func TestLogHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.svc.scale = panicking
	query := scaleQuery("size", "3")
	l.do(t, get(query))
	l.do(t, post("", query))
	l.do(t, get(query+"x"))
	l.svc.lookup = errors.New("lost")
	l.do(t, get(query))
	r := get("command=scaleKubernetesCluster")
	r.SetBasicAuth(adminKey, adminSecret)
	l.do(t, r)
	for _, secret := range []string{adminKey, adminSecret, sign(canonicalString(append(params("command", "scaleKubernetesCluster",
		"id", clusterID, "size", "3"), params("apiKey", adminKey, "response", "json")...), false), adminSecret), "signature"} {
		if strings.Contains(l.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}
