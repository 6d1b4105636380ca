package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// Bad input of every kind gets its error and changes nothing (reports.md A.1,
// A.2). How bytes can be wrong is in raw_test.go.

// records are the clusters, VMs and jobs under way as they are kept, but for
// the times at which somebody looked.
func records(t testing.TB, db *pgx.Conn) string {
	t.Helper()
	var all []string
	for _, sql := range []string{
		`SELECT coalesce(jsonb_agg(to_jsonb(c) - 'scan_due' ORDER BY seq), '[]')::text FROM clusters c`,
		`SELECT coalesce(jsonb_agg(to_jsonb(v) - 'observed' ORDER BY seq), '[]')::text FROM vms v`,
		`SELECT coalesce(jsonb_agg(id ORDER BY seq), '[]')::text FROM jobs WHERE status = 0`,
		`SELECT count(*)::text FROM accounts`,
	} {
		all = append(all, ask[string](t, db, sql))
	}
	return strings.Join(all, "\n")
}

// everything is what bad input must leave alone: the records, what is listed,
// and what the simulated cloud holds and was asked for. The scanner looks at
// the cloud as well; it changes nothing.
func (l *lab) everything(db *pgx.Conn) string {
	l.Helper()
	world := l.call("querySimulator")
	calls := slices.DeleteFunc(world.list("call"), func(a answer) bool { return strings.HasSuffix(a.text("operation"), ".list") })
	return fmt.Sprintf("%s\n%v\n%v\n%v\n%v\n%v", records(l, db), l.call("listKubernetesClusters", "listall=true"),
		l.call("listVirtualMachines", "listall=true"), calls, world.list("vm"), world.list("node"))
}

// same checks that nothing has changed, and shows where it has.
func same(t testing.TB, before, after string) {
	t.Helper()
	if before == after {
		return
	}
	i := 0
	for i < min(len(before), len(after)) && before[i] == after[i] {
		i++
	}
	around := func(s string) string { return s[max(0, i-200):min(len(s), i+200)] }
	t.Errorf("changed from\n%s\nto\n%s", around(before), around(after))
}

// spelling is one way to write the same request.
type spelling struct {
	name  string
	write func(ctx context.Context, base string, k keys, command string, params []pair) (*http.Request, error)
}

var spellings = []spelling{
	{"get", func(ctx context.Context, base string, k keys, command string, params []pair) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, "GET", base+"?"+join(k.sign(command, params), escape), nil)
	}},
	{"get, every byte escaped, names in upper case", func(ctx context.Context, base string, k keys, command string, params []pair) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, "GET", base+"?"+join(k.sign(command, shout(params)), escapeAll), nil)
	}},
	{"form", func(ctx context.Context, base string, k keys, command string, params []pair) (*http.Request, error) {
		return newForm(ctx, base, join(k.sign(command, params), url.QueryEscape))
	}},
	{"form, command and signature in the query", func(ctx context.Context, base string, k keys, command string, params []pair) (*http.Request, error) {
		all := k.sign(command, params)
		return newForm(ctx, base+"?"+join(all[len(params):], escape), join(all[:len(params)], escapeAll))
	}},
	{"form to the path of the command", func(ctx context.Context, base string, k keys, command string, params []pair) (*http.Request, error) {
		all := k.sign(command, params)
		return newForm(ctx, base+"/"+command, join(all, url.QueryEscape))
	}},
}

func newForm(ctx context.Context, address, body string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", address, strings.NewReader(body))
	if err == nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")
	}
	return req, err
}

// sign returns params and, after them, what makes them a signed request.
func (k keys) sign(command string, params []pair) []pair {
	all := append(slices.Clone(params), pair{"command", command}, pair{"response", "json"}, pair{"apiKey", k.API})
	return append(all, pair{"signature", k.signature(all)})
}

func join(params []pair, escape func(string) string) string {
	var parts []string
	for _, p := range params {
		parts = append(parts, escape(p.name)+"="+escape(p.value))
	}
	return strings.Join(parts, "&")
}

func escapeAll(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02x", c)
	}
	return b.String()
}

// shout writes names as A10 has it; the fields of maps have a case.
func shout(params []pair) []pair {
	out := slices.Clone(params)
	for i, p := range out {
		head, _, _ := strings.Cut(p.name, "[")
		out[i].name = upper(head) + p.name[len(head):]
	}
	return out
}

// upper leaves alone what is not ASCII, which may not even be text.
func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// TestBadInputChangesNothing sends every bad input in every encoding.
//
// Keeps: A14, A15, A16, A17, A18, A19, A20, §3/failed-job, §3/changes-nothing, §3.1/1-incomplete, §3.1/1-type.
// Keeps: §3.1/1-offering, §3.1/2-number, §3.1/4-nothing, §3.1/4-bounds, §3.1/10b-repeated.
// Keeps: §3.1/10b-empty, §3.1/10-kinds, §3.1/11a, §3.1/11b.
// Keeps: §1.2/map-fields, §1.2/command-value, §1.3/string-length, §1.3/uuid, §1.3/uuid-minus-one, §1.3/number.
// Keeps: §1.4/malformed, §1.4/bare, §1.10/customjobid-form, §1.10/customjobid-used, §2.9/missing-id, §2.9/bad-size.
// Keeps: §2.9/unknown-id, §2.9/empty-id, §2.9/failed-job.
// Keeps: A06, A12, A23, §2.3/jobid, §2.4/validation, §2.4/submission, §2.6/clustertype, §2.6/page-pair.
// Keeps: §2.6/page-size, §2.6/service-errors.
func TestBadInputChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h", "CKSCALE_LOG_LEVEL": "DEBUG"})
	db := connect(t, l.url)
	ids := l.names(db)
	before := l.everything(db)
	var group errgroup.Group
	group.SetLimit(4)
	for i, in := range badInputs {
		group.Go(func() error {
			t.Run(fmt.Sprintf("%03d %s", i, in.ref), func(t *testing.T) { l.in(t).refuses(in, ids) })
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	l.unharmed(db, before)
}

// names are what {NAME} stands for in params.
func (l *lab) names(db *pgx.Conn) *strings.Replacer {
	l.Helper()
	other := l.create("other")[0]
	w, k := l.workers(), l.controls()
	id := func(sql string, args ...any) string { return ask[string](l, db, sql, args...) }
	names := []string{
		"{cluster}", l.id(), "{other}", other, "{worker1}", w[0], "{worker2}", w[1], "{control1}", k[0], "{control2}", k[1], "{control3}", k[2],
		"{stranger}", id("SELECT id::text FROM vms WHERE cluster_id = $1 AND role = 'worker'", other), "{job}", id("SELECT id::text FROM jobs LIMIT 1"),
		"{zone}", id("SELECT id::text FROM zones"), "{version}", id("SELECT id::text FROM kubernetes_versions ORDER BY seq LIMIT 1"), "␣", " ",
	}
	for _, o := range l.call("listServiceOfferings").list("serviceoffering") {
		names = append(names, "{"+o.text("name")+"}", o.text("id"))
	}
	return strings.NewReplacer(names...)
}

// refuses checks the answers to one bad input.
func (c *client) refuses(in badInput, ids *strings.Replacer) {
	c.Helper()
	var params []pair
	at := map[string]int{} // a name that is sent again replaces the earlier one
	for _, p := range strings.Split(strings.TrimSpace(in.params), " ") {
		name, value, ok := strings.Cut(ids.Replace(p), "=")
		if i, again := at[name]; again {
			params[i].value = value
		} else if ok {
			at[name] = len(params)
			params = append(params, pair{name, value})
		}
	}
	command := ids.Replace(in.command)
	for _, e := range spellings {
		if e.name == "form to the path of the command" && strings.TrimSpace(command) != command {
			continue
		}
		req, err := e.write(c.Context(), c.url, c.keys, command, params)
		if err != nil {
			c.Fatal(err)
		}
		c.refusal(e.name, c.fetch(req), command, in.status, ids.Replace(in.text))
	}
}

// refusal checks that r is the error, or leads to the failed job, that is
// wanted.
func (c *client) refusal(how string, r reply, command string, status int, text string) {
	c.Helper()
	if status == http.StatusOK {
		id, _ := r.answer["jobid"].(string)
		if r.status != status || id == "" {
			c.Errorf("%s: %d %.300s", how, r.status, r.raw)
			return
		}
		if got := c.failed(c.polled(dialects[0], id)); !strings.Contains(strings.ToLower(got), strings.ToLower(text)) {
			c.Errorf("%s: the job says %.300q", how, got)
		}
		return
	}
	_, hasCode := r.answer["cserrorcode"].(float64)
	_, hasList := r.answer["uuidList"].([]any)
	if r.status != status || r.answer["errorcode"] != float64(status) || hasCode == (status == 401) || !hasList || len(r.raw) > 9000 {
		c.Errorf("%s: %d %.300s", how, r.status, r.raw)
	}
	if got := r.answer.text("errortext"); got == "" || !strings.Contains(strings.ToLower(got), strings.ToLower(text)) {
		c.Errorf("%s: %.300q", how, got)
	}
	if want := strings.ToLower(command) + "response"; r.key != want && r.key != "errorresponse" {
		c.Errorf("%s: key %q", how, r.key)
	}
	if r.header.Get("X-Content-Type-Options") != "nosniff" {
		c.Errorf("%s: header %v", how, r.header)
	}
}

// unharmed checks that nothing has changed, that the server is well, has told
// nothing, and still does its work.
func (l *lab) unharmed(db *pgx.Conn, before string) {
	l.Helper()
	same(l, before, l.everything(db))
	for _, path := range []string{"/healthz", "/readyz"} {
		if resp, err := http.Get(strings.TrimSuffix(l.client.url, "/client/api") + path); err != nil || resp.StatusCode != http.StatusOK || resp.Body.Close() != nil {
			l.Errorf("%s: %v %v", path, resp, err)
		}
	}
	l.do("scaleKubernetesCluster", "id="+l.id(), "size=3")
	l.consistent()
	log := l.server.stdout.String()
	for _, secret := range []string{adminKeys.API, adminKeys.Secret, "signature", "panic"} {
		if strings.Contains(log, secret) {
			l.Errorf("the log has %q", secret)
		}
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"level":"ERROR"`) {
			l.Errorf("logged: %.1000s", line)
		}
	}
}

// A NUL and bytes that are no UTF-8 are refused in every parameter of every
// command of the document, and makes no job (A20).
//
// Keeps: A20.
func TestNoParameterTakesWhatIsNoText(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h"})
	db := connect(t, l.url)
	l.do("scaleKubernetesCluster", "id="+l.id(), "size=2") // {job}
	before := l.everything(db)
	const jobs = "SELECT count(*)::int FROM jobs"
	made := ask[int](t, db, jobs)
	tried := 0
	for command, valid := range l.everyCommand(db) {
		for _, p := range l.call("listApis", "name="+command).list("api")[0].list("params") {
			name := p.text("name")
			if p.text("type") == "map" {
				name += "[0].node"
			}
			for _, bad := range []struct{ value, text string }{
				{"\x00", "illegal ASCII non-printable characters for parameter " + name},
				{"x\x00y", "illegal ASCII non-printable characters for parameter " + name},
				{"\xff\xfe", "is not valid UTF-8"},
			} {
				params := slices.DeleteFunc(pairs(valid), func(p pair) bool { return p.name == name })
				params = append(params, pair{name, bad.value})
				for _, e := range []spelling{spellings[0], spellings[2]} {
					if command == "login" && e.name == spellings[0].name {
						continue // it is refused by GET, whatever it says
					}
					req, err := e.write(t.Context(), l.client.url, l.keys, command, params)
					if err != nil {
						t.Fatal(err)
					}
					l.refusal(command+" "+name+" "+e.name, l.fetch(req), command, 431, bad.text)
					tried++
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d requests", tried)
	}
	if n := ask[int](t, db, jobs); n != made {
		t.Errorf("%d jobs were made", n-made)
	}
	l.unharmed(db, before)
}

// everyCommand returns the commands of listApis with what each needs.
func (l *lab) everyCommand(db *pgx.Conn) map[string][]string {
	l.Helper()
	id := func(table string) string {
		return ask[string](l, db, "SELECT id::text FROM "+table+" ORDER BY seq LIMIT 1")
	}
	values := map[string]string{
		"id": l.id(), "jobid": id("jobs"), "name": "vm.start", "value": "clear", "zoneid": id("zones"), "description": "x", "size": "2",
		"kubernetesversionid": id("kubernetes_versions"), "serviceofferingid": id("service_offerings"),
		"semanticversion": "1.35.0", "mincpunumber": "2", "minmemory": "2048", "url": "https://example.test/iso", "state": "Enabled",
		"templatefilter": "featured", "templateid": id("templates"), "nodeids": l.workers()[0], "virtualmachineids": l.workers()[0],
		"username": "nobody", "password": "nothing",
	}
	settings := map[string]string{"name": "cloud.kubernetes.cluster.max.size", "value": "10"}
	commands := map[string][]string{}
	for _, a := range l.call("listApis").list("api") {
		name, params := a.text("name"), []string{}
		for _, p := range a.list("params") {
			value := values[p.text("name")]
			if strings.HasSuffix(name, "VirtualMachine") && p.text("name") == "id" {
				value = l.workers()[0]
			}
			if own, ok := settings[p.text("name")]; ok && name == "updateConfiguration" {
				value = own
			}
			if p["required"] == true {
				if value == "" {
					l.Fatalf("%s needs %s", name, p.text("name"))
				}
				params = append(params, p.text("name")+"="+value)
			}
		}
		if name == "configureSimulator" {
			params = append(params, "value=clear")
		}
		commands[name] = params
	}
	if len(commands) < 14 {
		l.Errorf("commands: %v", commands)
	}
	return commands
}

// A stopped cluster is not resized; its present size changes nothing (A21).
//
// Keeps: A21, §3.1/12a, §3.1/12-same, §3.1/10-state, §3.3/nodeids-stopped, §3.4/stopped, §8.6/stop.
func TestStoppedClusterIsNotResized(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	db := connect(t, l.url)
	for _, vm := range append(l.workers(), l.controls()...) {
		l.do("stopVirtualMachine", "id="+vm)
	}
	l.inState("Stopped")
	before, made := records(t, db), l.calls("vm.create")
	for _, size := range []string{"1", "3"} {
		l.refused("is in Stopped state", "scaleKubernetesCluster", "id="+l.id(), "size="+size)
	}
	l.refused("is in Stopped state", "scaleKubernetesCluster", "id="+l.id(), "nodeids="+l.workers()[0])
	l.do("scaleKubernetesCluster", "id="+l.id(), "size=2")
	same(t, before, records(t, db))
	if n := l.calls("vm.create"); n != made {
		t.Errorf("%d VMs were made", n-made)
	}
	l.consistent()
}
