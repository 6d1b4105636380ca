package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"
)

// cmk plays CloudMonkey (clients.md §5): it knows the commands that sync has
// told it, and no others, and carries out lines such as
// "list kubernetesclusters state=Alert".
type cmk struct {
	*client
	apis map[string]cmkAPI // by "verb noun"
}

// cmkAPI is what cmk keeps of a command.
type cmkAPI struct {
	name, verb, noun string
	async            bool
	args             []cmkArg
}

type cmkArg struct {
	name, kind string
	required   bool
	related    []string
}

// cmkStyle is its requests: GETs with the names as they are.
var cmkStyle = dialect{name: "cmk", reads: http.MethodGet, writes: http.MethodGet, rawNames: true}

// is takes a value for what cmk takes it for; the real one panics.
func is[T any](t testing.TB, what string, value any) T {
	t.Helper()
	v, ok := value.(T)
	if !ok {
		t.Fatalf("%s is %#v, not a %T", what, value, v)
	}
	return v
}

// sync learns the commands from listApis.
func (c *client) sync() *cmk {
	c.Helper()
	r := c.speak(cmkStyle, "listApis", "listall=true")
	m := &cmk{c, map[string]cmkAPI{}}
	apis := is[[]any](c, "api", r.answer["api"])
	if n := is[float64](c, "count", r.answer["count"]); int(n) != len(apis) {
		c.Errorf("count %v of %d", n, len(apis))
	}
	for _, entry := range apis {
		m.learn(is[map[string]any](c, "api", entry))
	}
	return m
}

// learn keeps a command: its verb is all before the first capital letter.
func (m *cmk) learn(entry map[string]any) {
	m.Helper()
	a := cmkAPI{name: is[string](m, "name", entry["name"])}
	a.async = is[bool](m, a.name+": isasync", entry["isasync"])
	if is[string](m, a.name+": description", entry["description"]) == "" {
		m.Errorf("%s has no description", a.name)
	}
	for _, p := range is[[]any](m, a.name+": params", entry["params"]) {
		arg := is[map[string]any](m, a.name+": parameter", p)
		known := cmkArg{name: is[string](m, a.name+": name", arg["name"])}
		what := a.name + " " + known.name
		known.kind, known.required = is[string](m, what+": type", arg["type"]), is[bool](m, what+": required", arg["required"])
		is[string](m, what+": description", arg["description"])
		if arg["related"] != nil {
			known.related = strings.Split(is[string](m, what+": related", arg["related"]), ",")
		}
		a.args = append(a.args, known)
	}
	for _, f := range is[[]any](m, a.name+": response", entry["response"]) {
		is[string](m, a.name+": name of a field", is[map[string]any](m, a.name+": field", f)["name"])
	}
	capital := strings.IndexFunc(a.name+"X", unicode.IsUpper)
	a.verb, a.noun = a.name[:capital], strings.ToLower(a.name[capital:])
	line := strings.TrimSpace(a.verb + " " + a.noun)
	if _, twice := m.apis[line]; twice || a.verb == "" {
		m.Errorf("%s is the line %q", a.name, line)
	}
	m.apis[line] = a
}

// run carries out a line and returns what is printed: the answer, or the
// result of the job.
func (m *cmk) run(line string) (answer, error) {
	m.Helper()
	words := strings.Fields(line)
	api, known := m.apis[strings.Join(words[:min(2, len(words))], " ")]
	if !known {
		return nil, fmt.Errorf("unknown command %q", line)
	}
	var missing []string
	for _, arg := range api.args {
		if arg.required && !slices.ContainsFunc(words[2:], func(w string) bool { return strings.HasPrefix(w, arg.name+"=") }) {
			missing = append(missing, arg.name)
		}
	}
	if len(missing) > 0 { // nothing is sent
		return nil, fmt.Errorf("missing arguments: %s", strings.Join(missing, ", "))
	}
	a, err := m.ask(api.name, words[2:]...)
	if err != nil || !api.async {
		return a, err
	}
	job := is[string](m, "jobid", a["jobid"])
	m.until("job ended", time.Minute, func() bool {
		a, err = m.ask("queryAsyncJobResult", "jobid="+job)
		return err != nil || is[float64](m, "jobstatus", a["jobstatus"]) != 0
	})
	if err != nil {
		return nil, err
	}
	result := is[map[string]any](m, "jobresult", a["jobresult"])
	if a["jobstatus"] != 1.0 {
		return nil, fmt.Errorf("async API failed for job %s: %v", job, result["errortext"])
	}
	return result, nil
}

// errLogin is what cmk says when its login has failed, too.
var errLogin = errors.New("failed to authenticate, please check the credentials")

// ask makes one request. After any 401 it logs in, as admin with the password
// that its configuration begins with, and panics if that succeeds.
func (m *cmk) ask(command string, params ...string) (answer, error) {
	m.Helper()
	r := m.speak(cmkStyle, command, params...)
	if r.status == http.StatusUnauthorized {
		return nil, m.login("admin", "password")
	}
	if code, failed := r.answer["errorcode"]; failed {
		return nil, fmt.Errorf("(HTTP %v, error code %v) %v", code, r.answer["cserrorcode"], r.answer["errortext"])
	}
	return r.answer, nil
}

func (m *cmk) login(user, password string) error {
	m.Helper()
	form := "command=login&domain=%2F&password=" + escape(password) + "&response=json&username=" + escape(user)
	req, err := http.NewRequestWithContext(m.Context(), http.MethodPost, m.url, strings.NewReader(form))
	if err != nil {
		m.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r := m.fetch(req)
	if r.status == http.StatusOK || len(r.header.Values("Set-Cookie")) > 0 {
		m.Errorf("%s logs in with the password %q: %d %s %q", user, password, r.status, r.raw, r.header.Values("Set-Cookie"))
	}
	return errLogin
}

// document is the API document that the server serves.
func (c *client) document() *openapi3.T {
	c.Helper()
	req, err := http.NewRequestWithContext(c.Context(), http.MethodGet, strings.TrimSuffix(c.url, "/client/api")+"/openapi.yaml", nil)
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
	doc, err := openapi3.NewLoader().LoadFromData(body)
	if err != nil {
		c.Fatalf("the document: %v", err)
	}
	return doc
}
