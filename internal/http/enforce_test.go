package http

import (
	nethttp "net/http"
	"testing"
	"time"
)

// enforced is a lab where changes have to be sent by POST and signatures have
// to expire soon.
func enforced(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.enforcePost = true
	return l
}

// timely are the parameters of a signature that expires in ahead.
func timely(ahead time.Duration) []string {
	return []string{"signatureVersion", "3", "expires", noon.Add(ahead).Format(time.RFC3339)}
}

// With enforce.post.requests.and.timestamps on, a change that is not sent by
// POST is refused, whoever asks and wherever the command is named; a read is
// not, and without the setting nothing is (cks.md §1.1, §2.9).
//
// Keeps: §1.1/enforce-post, §1.1/reads, §2.9/400.
func TestChangesMayHaveToBePosted(t *testing.T) {
	t.Parallel()
	l := enforced(t)
	by := func(name string, more ...string) string {
		return signedQuery(append(append([]string{"command", name}, timely(time.Minute)...), more...)...)
	}
	for name, c := range l.commands {
		if c.Open {
			continue // login is sent by POST anyway, and logout changes nothing but a session
		}
		a := l.do(t, get(by(name)))
		if reads.MatchString(name) {
			if a.status == nethttp.StatusBadRequest || c.Method != nethttp.MethodGet {
				t.Errorf("%s is a read: %s, %s", name, c.Method, a.raw)
			}
			continue
		}
		a.want(t, 400, responseKey(name), 9999, "State changing command "+name+" needs to be sent using POST request")
	}
	const text = "State changing command scaleKubernetesCluster needs to be sent using POST request"
	query := by("scaleKubernetesCluster", "id", clusterID)
	atPath := get(query)
	atPath.URL.Path = "/client/api/scaleKubernetesCluster"
	basic := get("command=scaleKubernetesCluster&id=" + clusterID)
	basic.SetBasicAuth(adminKey, adminSecret)
	for _, r := range []*nethttp.Request{
		get(query), atPath, basic, get(query + "x"), get("command=scaleKubernetesCluster"),
		get("command=listZones&" + query),
	} {
		l.do(t, r).want(t, 400, scaleKey, 9999, text)
	}
	l.do(t, get(query+"&command=listZones")).want(t, 401, "listzonesresponse", 0, denied) // only the change is signed
	if len(l.svc.scaled) != 0 {
		t.Error("a change by GET was carried out")
	}
	l.do(t, post("", query)).wantOK(t)
	l.do(t, post(query, "")).wantOK(t)
	l.do(t, get(by("listKubernetesClusters"))).wantOK(t)
	newLab(t).do(t, get(query)).wantOK(t)
}

// With the same setting a signature has to be of version 3 and to expire, but
// not more than 15 minutes ahead; without it both are the client's choice
// (cks.md §1.7).
//
// Keeps: §1.7/enforce-timestamps.
func TestSignaturesMayHaveToExpireSoon(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		params []string
		fresh  bool
	}{
		"no version":           {nil, false},
		"version 2":            {[]string{"signatureVersion", "2", "expires", noon.Add(time.Minute).Format(time.RFC3339)}, false},
		"only expires":         {[]string{"expires", noon.Add(time.Minute).Format(time.RFC3339)}, false},
		"in 15 minutes":        {timely(15 * time.Minute), true},
		"a second later":       {timely(15*time.Minute + time.Second), false},
		"in a year":            {timely(365 * 24 * time.Hour), false},
		"any name in any case": {[]string{"SIGNATUREVERSION", "3", "EXPIRES", noon.Add(time.Minute).Format(time.RFC3339)}, true},
	} {
		form := scaleQuery(c.params...)
		l := enforced(t)
		if a := l.do(t, post("", form)); c.fresh {
			a.wantOK(t)
		} else {
			a.want(t, 401, scaleKey, 0, denied)
			if len(l.svc.scaled) != 0 {
				t.Errorf("%s: carried out", name)
			}
		}
		newLab(t).do(t, post("", form)).wantOK(t)
	}
	l := enforced(t)
	l.do(t, post("", scaleQuery(timely(0)...))).want(t, 401, scaleKey, 0, denied)
	r := post("", "command=scaleKubernetesCluster&id="+clusterID)
	r.SetBasicAuth(adminKey, adminSecret)
	l.do(t, r).wantOK(t) // nothing is signed
}

// A server that is told to stop answers reads and refuses jobs, once the
// request is found to be right (cks.md §1.11).
//
// Keeps: §1.11/503, §2.9/503.
func TestStoppingServerAcceptsNoJobs(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	stopping := false
	l.stopping = func() bool { return stopping }
	l.do(t, get(scaleQuery("size", "3"))).wantOK(t)
	stopping = true
	const text = "Maintenance or Shutdown has been initiated on this management server. Can not accept new jobs"
	l.do(t, get(scaleQuery("size", "4"))).want(t, 503, scaleKey, 9999, text)
	l.do(t, get(scaleQuery("size", "x"))).want(t, 431, scaleKey, 9999, unable+"invalid value x for parameter size")
	l.do(t, get(signedQuery("command", "listKubernetesClusters"))).wantOK(t)
	l.do(t, get(signedQuery("command", "configureSimulator", "name", "vm.create", "value", "fail"))).wantOK(t)
	if len(l.svc.scaled) != 1 {
		t.Errorf("scaled by %+v", l.svc.scaled)
	}
}
