package http

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ckscale/internal/cks"
)

// Whatever is sent as a command's parameters is read or refused as a client's
// own mistake, and what is read stays so when it is read again: the generated
// router sees what was checked.
func FuzzCommandParameters(f *testing.F) {
	for _, seed := range []string{
		"id=7&size=3", "ID=" + sampleUUID + "&SIZE=+3", "id=-1&nodeofferings[0].node=worker&nodeofferings[0].offering=7",
		"id=7&nodeids=1,,2&autoscalingenabled=TRUE", "id=&size=", "id=7&size=99999999999999999999", "id=7&nodeofferings=x",
		"id=7&nodeofferings[a].b=c", "id=7&customjobid=%00", "page=1&pagesize=-1", "startdate=2026-01-08T08%3A10%3A00%2B0000",
	} {
		f.Add(seed)
	}
	commands := newLab(f).commands
	f.Fuzz(func(t *testing.T, raw string) {
		sent, err := parseParams(raw)
		if err != nil {
			wantClientError(t, err)
			return
		}
		for _, name := range []string{"scaleKubernetesCluster", "listAsyncJobs", "listKubernetesClusters"} {
			once, err := commands[name].canonicalQuery(sent)
			if err != nil {
				wantClientError(t, err)
				continue
			}
			read, err := url.ParseQuery(once)
			if err != nil {
				t.Fatalf("%s: %q is no query: %v", name, once, err)
			}
			for n, values := range read {
				if len(values) != 1 || n != strings.ToLower(n) || !utf8.ValidString(values[0]) {
					t.Errorf("%s: %q has %q", name, n, values)
				}
			}
		}
	})
}

// wantClientError: listKubernetesClusters answers 530 to a wrong page (cks.md
// §2.6).
func wantClientError(t *testing.T, err error) {
	t.Helper()
	code := cks.CodeOf(err)
	if status := wireCodes[code].status; status != 430 && status != 431 && code != cks.Failed {
		t.Errorf("%d for what a client sent: %v", status, err)
	}
}

// A request is accepted with the signature of each client's encoding, made
// here from the other end, and with no other value or secret.
func FuzzSignature(f *testing.F) {
	f.Add("size", "3", "secret")
	f.Add("name", "my cluster *~(1)/é", "TestSecret-01_xyz")
	f.Add("nodeofferings[0].node", "worker", "s")
	f.Add("apiKey", "", "")
	f.Fuzz(func(t *testing.T, name, value, secret string) {
		sent := params("command", "listKubernetesClusters", "apiKey", "k", name, value)
		if strings.EqualFold(name, "signature") || !utf8.ValidString(value+name) {
			return
		}
		signature := ""
		for client, encode := range clientEncodings {
			ordered := slices.SortedStableFunc(slices.Values(sent), func(a, b pair) int { return cmp.Compare(a.name, b.name) })
			var pairs []string
			for _, p := range ordered {
				pairs = append(pairs, p.name+"="+encode(p.value))
			}
			signature = sign(strings.ToLower(strings.Join(pairs, "&")), secret)
			if !signedBy(append(sent, pair{"signature", signature}), secret, signature) {
				t.Errorf("%s is refused: %q=%q", client, name, value)
			}
		}
		if signedBy(sent, secret+"x", signature) {
			t.Error("another secret will do")
		}
		sent[2].value += "x"
		if signedBy(sent, secret, signature) {
			t.Error("another value will do")
		}
	})
}

// clientEncodings are the ways in which clients write a value before they sign
// it (clients.md §6), put together from Go's encoder.
var clientEncodings = map[string]func(string) string{
	"cluster-autoscaler": func(v string) string { return strings.ReplaceAll(url.QueryEscape(v), "+", "%20") },
	"cloudstack-go":      func(v string) string { return strings.NewReplacer("+", "%20", "%2A", "*").Replace(url.QueryEscape(v)) },
	"java": func(v string) string {
		return strings.NewReplacer("+", "%20", "%2A", "*", "~", "%7E").Replace(url.QueryEscape(v))
	},
}

// Answers are valid JSON with the texts of people in them as they are, whatever
// these hold, and nothing stands beside what a client unwraps. A byte that is
// no text is shown as U+FFFD.
func FuzzAnswers(f *testing.F) {
	f.Add("demo", "drain failed: <&> \x1b[31m", 3)
	f.Add("Prod_A 01", "\x00\xff", -1)
	f.Add("\u2028", `\u003c"\`, 0)
	f.Fuzz(func(t *testing.T, name, text string, size int) {
		job := cks.Job{ID: clusterID, Created: time.Unix(0, 0), Completed: time.Unix(1, 0), Status: cks.JobFailed, ErrorText: text}
		var failed struct {
			Jobresult map[string]any
			Jobstatus int
		}
		roundTrip(t, encodeJob(job), &failed)
		if r := failed.Jobresult; len(r) > 2 || r["errorcode"] != 530.0 || text != "" && r["errortext"] != string([]rune(text)) {
			t.Errorf("%q became %v", text, r)
		}
		job.Status, job.Result = cks.JobSucceeded, &cks.JobResult{Cluster: &cks.ClusterView{Cluster: cks.Cluster{Name: name, Size: size}}}
		var done struct {
			Jobresult map[string]struct {
				Name string
				Size int
			}
		}
		roundTrip(t, encodeJob(job), &done)
		if c := done.Jobresult["kubernetescluster"]; len(done.Jobresult) != 1 || c.Size != size || c.Name != string([]rune(name)) {
			t.Errorf("%q, %d became %v", name, size, done.Jobresult)
		}
	})
}

// roundTrip encodes v as answers are, and reads it back.
func roundTrip(t *testing.T, v, into any) {
	t.Helper()
	b, err := json.Marshal(v) // as the generated code does
	if err != nil {
		t.Fatal(err)
	}
	raw := rawHTML(b)
	if err := json.Unmarshal(raw, into); err != nil || !utf8.Valid(raw) {
		t.Fatalf("%q: %v", raw, err)
	}
}
