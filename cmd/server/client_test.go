package main

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/internal/store/storetest"
)

// client speaks to a server as the cluster-autoscaler does: signed GETs.
type client struct {
	testing.TB
	url  string
	keys keys
}

// demo starts a server with the demo cluster on a database of its own and
// returns a client of the account admin. More environment may be given. When
// the test has ended, the scenario is settled.
func demo(t testing.TB, env map[string]string) *client {
	t.Helper()
	all := map[string]string{
		"DATABASE_URL": storetest.URL(t), "CKSCALE_DEMO": "true", "CKSCALE_DATA_DIR": t.TempDir(),
		"CKSCALE_ADMIN_API_KEY": "admin-key", "CKSCALE_ADMIN_SECRET_KEY": "admin-secret", "CKSCALE_RETRY_WAIT": "50ms",
	}
	for name, value := range env {
		all[name] = value
	}
	s := launch(t, all)
	c := &client{t, apiURL(s.serving(t)), keys{"admin-key", "admin-secret"}}
	c.settles()
	return c
}

// signed is the query string of a request, as clients.md §3 has it.
func (k keys) signed(command string, params ...string) string {
	values := map[string]string{"command": command, "response": "json", "apiKey": k.API}
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		values[name] = value
	}
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, name+"="+strings.ReplaceAll(url.QueryEscape(value), "+", "%20"))
	}
	slices.Sort(pairs)
	query := strings.Join(pairs, "&")
	mac := hmac.New(sha1.New, []byte(k.Secret))
	mac.Write([]byte(strings.ToLower(query)))
	return query + "&signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// answer is what is under the one top-level key of a body.
type answer map[string]any

// send makes a request and returns its status and answer. Every answer is JSON
// with one key that ends in "response".
func (c *client) send(command string, params ...string) (int, answer) {
	c.Helper()
	req, err := http.NewRequestWithContext(c.Context(), http.MethodGet, c.url+"?"+c.keys.signed(command, params...), nil)
	if err != nil {
		c.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	return resp.StatusCode, parseAnswer(c.TB, resp.Header.Get("Content-Type"), body)
}

func parseAnswer(t testing.TB, contentType string, body []byte) answer {
	t.Helper()
	var top map[string]answer
	if err := json.Unmarshal(body, &top); err != nil || len(top) != 1 || !strings.HasPrefix(contentType, "application/json") {
		t.Fatalf("%s body %s: %v", contentType, body, err)
	}
	for key, a := range top {
		if !strings.HasSuffix(key, "response") {
			t.Fatalf("top-level key %q", key)
		}
		return a
	}
	return nil
}

// call makes a request that must be answered with 200.
func (c *client) call(command string, params ...string) answer {
	c.Helper()
	status, a := c.send(command, params...)
	if status != http.StatusOK {
		c.Fatalf("%s %q: %d %v", command, params, status, a)
	}
	return a
}

func (a answer) text(name string) string { s, _ := a[name].(string); return s }

func (a answer) list(name string) []answer {
	var list []answer
	items, _ := a[name].([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		list = append(list, m)
	}
	return list
}

func (a answer) object(name string) answer { m, _ := a[name].(map[string]any); return m }

// start sends an async command and returns its jobid.
func (c *client) start(command string, params ...string) string {
	c.Helper()
	id := c.call(command, params...).text("jobid")
	if id == "" {
		c.Fatalf("%s gave no jobid", command)
	}
	return id
}

// ended polls the job until it has ended.
func (c *client) ended(id string) answer {
	c.Helper()
	var job answer
	c.until("job ended", time.Minute, func() bool {
		job = c.call("queryAsyncJobResult", "jobid="+id)
		return job["jobstatus"].(float64) != 0
	})
	return job
}

// do carries out an async command that must succeed, and returns its result.
func (c *client) do(command string, params ...string) answer {
	c.Helper()
	job := c.ended(c.start(command, params...))
	if job["jobstatus"].(float64) != 1 {
		c.Fatalf("%s %q failed: %v", command, params, job["jobresult"])
	}
	return job.object("jobresult")
}

// refused carries out an async command that must fail with a text that holds
// want.
func (c *client) refused(want, command string, params ...string) {
	c.Helper()
	job := c.ended(c.start(command, params...))
	result := job.object("jobresult")
	if job["jobstatus"].(float64) != 2 || job["jobresultcode"].(float64) != 530 || !strings.Contains(result.text("errortext"), want) {
		c.Errorf("%s %q: want a refusal with %q, got %v", command, params, want, job)
	}
}

// until looks again and again, but most of the time it waits: several tests do
// this at once on few cores.
func (c *client) until(what string, limit time.Duration, ok func() bool) {
	c.Helper()
	end := time.After(limit)
	for {
		begin := time.Now()
		if ok() {
			return
		}
		select {
		case <-time.After(max(10*time.Millisecond, 3*time.Since(begin))):
		case <-end:
			c.Fatalf("never: %s", what)
		}
	}
}

// cluster is the demo cluster as it is listed.
func (c *client) cluster() answer {
	c.Helper()
	list := c.call("listKubernetesClusters", "name=demo").list("kubernetescluster")
	if len(list) != 1 {
		c.Fatalf("%d demo clusters", len(list))
	}
	return list[0]
}

func (c *client) id() string { c.Helper(); return c.cluster().text("id") }

func (c *client) inState(state string) {
	c.Helper()
	c.until("cluster in "+state, 20*time.Second, func() bool { return c.cluster().text("state") == state })
}

// workers are the ids of the demo cluster's workers, oldest first.
func (c *client) workers() []string {
	c.Helper()
	var ids []string
	for _, vm := range c.cluster().list("virtualmachines") {
		if strings.Contains(vm.text("name"), "-node-") {
			ids = append(ids, vm.text("id"))
		}
	}
	return ids
}

// controls are the ids of the demo cluster's control nodes.
func (c *client) controls() []string {
	c.Helper()
	var ids []string
	for _, vm := range c.cluster().list("virtualmachines") {
		if strings.Contains(vm.text("name"), "-control-") {
			ids = append(ids, vm.text("id"))
		}
	}
	return ids
}

// simulate gives an order to the simulated cloud.
func (c *client) simulate(name, value string, params ...string) {
	c.Helper()
	c.call("configureSimulator", append(params, "name="+name, "value="+value)...)
}

// calls is how often the simulated cloud was asked for an operation.
func (c *client) calls(operation string) int {
	c.Helper()
	n := 0
	for _, call := range c.call("querySimulator").list("call") {
		if call.text("operation") == operation {
			n += int(call["count"].(float64))
		}
	}
	return n
}

// ready is the status of the node of a VM in the simulated cluster; "" when
// there is no such node.
func (c *client) ready(vmID string) string {
	c.Helper()
	for _, node := range c.call("querySimulator").list("node") {
		if node.text("vmid") == vmID {
			return node.text("ready")
		}
	}
	return ""
}
