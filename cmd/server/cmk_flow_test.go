package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// cmk learns every command of the document, and nothing else, with its
// parameters, those that are required, and whether it has a job.
//
// Keeps: cmk/sync.
func TestCmkLearnsTheDocument(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	m := c.sync()
	learnt := map[string]cmkAPI{}
	for _, a := range m.apis {
		learnt[a.name] = a
	}
	for path, item := range c.document().Paths.Map() {
		name := strings.TrimPrefix(path, "/client/api/")
		a, known := learnt[name]
		if !known {
			t.Errorf("%s is not learnt", name)
			continue
		}
		delete(learnt, name)
		for method, op := range item.Operations() {
			if _, async := op.Extensions["x-cloudstack-result"]; async != a.async {
				t.Errorf("%s waits for a job: %t", name, a.async)
			}
			for _, p := range op.Parameters {
				i := slices.IndexFunc(a.args, func(arg cmkArg) bool { return arg.name == p.Value.Name })
				if i < 0 || a.args[i].required != p.Value.Required {
					t.Errorf("%s %s: %s is not learnt as it is", method, name, p.Value.Name)
				}
			}
		}
	}
	if len(learnt) != 0 {
		t.Errorf("learnt and not in the document: %v", learnt)
	}
}

func (m *cmk) names() (names []string) {
	for _, a := range m.apis {
		names = append(names, a.name)
	}
	slices.Sort(names)
	return names
}

func (m *cmk) api(name string) cmkAPI {
	for _, a := range m.apis {
		if a.name == name {
			return a
		}
	}
	return cmkAPI{}
}

// completed is how cmk completes an argument: from the list of what its name
// says, else from that of a related command. "" is not at all.
func (m *cmk) completed(a cmkAPI, arg cmkArg) string {
	noun := strings.TrimSuffix(strings.TrimSuffix(arg.name, "s"), "id") + "s"
	if arg.name == "id" || arg.name == "ids" {
		noun = strings.TrimSuffix(a.noun, "s") + "s"
	}
	if list, known := m.apis["list "+noun]; known {
		return list.name
	}
	for _, name := range arg.related {
		if strings.HasPrefix(name, "list") {
			return name
		}
	}
	return ""
}

// Every list that cmk completes arguments from has rows with an id and what it
// shows beside it, and in every list they are strings.
//
// Keeps: cmk/complete.
func TestCmkCompletesArguments(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.operate("project", "create", "shop", "admin")
	c := l.client
	c.do("scaleKubernetesCluster", "id="+c.id(), "size=3")
	c.simulate("node.join", "fail")
	job := c.start("scaleKubernetesCluster", "id="+c.id(), "size=4") // a job that is under way is listed as well
	m := c.sync()
	sources := map[string][]string{}
	for _, name := range m.names() {
		a := m.api(name)
		for _, arg := range a.args {
			for _, related := range arg.related {
				if m.api(related).name == "" {
					t.Errorf("%s %s: the related %s is not learnt", name, arg.name, related)
				}
			}
			switch from := m.completed(a, arg); {
			case from != "":
				sources[from] = append(sources[from], name+" "+arg.name)
			case arg.kind == "uuid" && arg.required:
				t.Errorf("%s %s is completed from nothing", name, arg.name)
			}
		}
	}
	for _, name := range m.names() {
		if !strings.HasPrefix(name, "list") || name == "listApis" {
			continue
		}
		with := []string{"listall=true"}
		if name == "listTemplates" {
			with = append(with, "templatefilter=executable")
		}
		a, err := m.ask(name, with...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		rows := 0
		for _, value := range a {
			list, _ := value.([]any)
			for _, row := range list {
				rows++
				m.completes(name, is[map[string]any](t, name, row), len(sources[name]) > 0)
			}
		}
		if rows == 0 && len(sources[name]) > 0 {
			t.Errorf("%s is empty: %q are completed from it", name, sources[name])
		}
	}
	c.simulate("node.join", "clear")
	c.ended(job)
}

// completes checks what cmk reads of a row.
func (m *cmk) completes(list string, row map[string]any, source bool) {
	m.Helper()
	for _, field := range []string{"id", "name", "displaytext", "description"} {
		if value, there := row[field]; there {
			is[string](m, list+": "+field, value)
		}
	}
	named := row["name"] != nil || row["description"] != nil || row["username"] != nil // users have no other name in CloudStack either
	if source && row["jobid"] == nil && (row["id"] == nil || !named) {                 // jobs have no more than jobid in CloudStack either
		m.Errorf("%s gives no id with a name: %v", list, row)
	}
}

// The README's lines for cmk, word for word: it waits for jobs by itself, says
// why one has failed, and sends nothing without what is required.
//
// Keeps: cmk/keys.
func TestCmkWorksWithKeys(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	m := c.sync()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer("$cluster", c.id(), "$worker", c.workers()[0])
	lines := 0
	for line := range strings.Lines(string(readme)) {
		line, ok := strings.CutPrefix(line, "$cmk ")
		if !ok || strings.TrimSpace(line) == "sync" {
			continue
		}
		lines++
		if a, err := m.run(words.Replace(line)); err != nil || len(a) == 0 {
			t.Errorf("%s gives %v, %v", line, a, err)
		}
		if strings.HasPrefix(line, "stop ") {
			c.inState("Alert")
		}
	}
	if v := c.cluster(); lines < 4 || v["size"] != 2.0 || v.text("state") != "Running" {
		t.Errorf("after %d lines: size %v, %s", lines, v["size"], v.text("state"))
	}
	for line, want := range map[string]string{
		"scale kubernetescluster size=3":                                    "missing arguments: id",
		"scale kubernetesclusters id=" + c.id():                             "unknown command",
		"scale kubernetescluster size=100 id=" + c.id():                     "async API failed for job ",
		"list kubernetesclusters id=11111111-2222-3333-4444-555555555555":   "(HTTP 431, error code 9999) Unable to execute API command listkubernetesclusters due to invalid value. Invalid parameter id value=",
		"scale kubernetescluster size=three id=" + c.id():                   "(HTTP 431, error code 9999) ",
		"query asyncjobresult jobid=11111111-2222-3333-4444-555555555555":   "(HTTP 431, error code 9999) ",
		"configure simulator name=node.join value=sulk clusterid=" + c.id(): "(HTTP 431, error code ",
	} {
		before := c.calls("vm.create")
		if _, err := m.run(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
		if c.calls("vm.create") != before {
			t.Errorf("%s made a VM", line)
		}
	}
	if _, err := m.run("list kubernetesclusters filter=id,name listall=true"); err != nil {
		t.Error(err)
	}
}

// With a wrong key or secret every command is a 401, whereupon cmk logs in as
// admin: that never succeeds, whatever the command, and no cookie is set. The
// keys are no passwords either.
//
// Keeps: cmk/login.
func TestCmkNeverLogsInAfterAWrongSignature(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	m := c.sync()
	for i, k := range []keys{{adminKeys.API, "wrong"}, {"wrong", adminKeys.Secret}, {adminKeys.API, ""}, {"", ""}} {
		wrong, names := &cmk{c.as(k), m.apis}, m.names()
		if i > 0 { // after a hundred mistakes the server takes its time
			names = []string{"scaleKubernetesCluster", "listKubernetesClusters"}
		}
		for _, name := range names {
			if name == "login" || name == "logout" {
				continue // nobody is asked who he is
			}
			var args []string
			for _, arg := range m.api(name).args {
				if arg.required {
					args = append(args, arg.name+"="+c.id())
				}
			}
			if _, err := wrong.ask(name, args...); err != errLogin {
				t.Errorf("%s with %v: %v", name, k, err)
			}
		}
	}
	for _, password := range []string{"", "admin", adminKeys.API, adminKeys.Secret} {
		if err := m.login("admin", password); err != errLogin {
			t.Error(err)
		}
	}
	if v := c.cluster(); v["size"] != 2.0 || v.text("state") != "Running" {
		t.Errorf("the cluster is %v", v)
	}
}
