package http

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// apisFor returns what listApis shows to an account, by command.
func apisFor(t *testing.T, account cks.Account, query string) map[string]api.ApiCommand {
	t.Helper()
	raw := answerOf(t, canned{account: account}, "command=listApis"+query)
	var body api.ListApisAnswer
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	out := make(map[string]api.ApiCommand)
	for _, c := range body.Listapisresponse.Api {
		out[c.Name] = c
	}
	if len(out) != body.Listapisresponse.Count {
		t.Errorf("count is %d for %d commands", body.Listapisresponse.Count, len(out))
	}
	return out
}

// cmk stops with a panic when one of these is missing or of another type
// (clients.md §5).
func TestListApisIsWhatCMKReads(t *testing.T) {
	t.Parallel()
	var body struct {
		Inner struct {
			Count float64
			API   []map[string]any
		} `json:"listapisresponse"`
	}
	raw := answerOf(t, canned{}, "command=listApis&listall=true")
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	if int(body.Inner.Count) != len(body.Inner.API) || len(body.Inner.API) == 0 {
		t.Fatalf("count is %v for %d commands", body.Inner.Count, len(body.Inner.API))
	}
	need := func(where string, object map[string]any, fields map[string]string) {
		for field, kind := range fields {
			if !kinds[kind](object[field]) {
				t.Errorf("%s: %s is %#v, no %s", where, field, object[field], kind)
			}
		}
	}
	for _, c := range body.Inner.API {
		name, _ := c["name"].(string)
		need(name, c, map[string]string{
			"name": "string", "description": "string", "isasync": "bool", "params": "objects", "response": "objects",
		})
		for _, p := range c["params"].([]any) {
			need(name, p.(map[string]any), map[string]string{
				"name": "string", "type": "string", "description": "string", "required": "bool",
			})
		}
		for _, f := range c["response"].([]any) {
			need(name, f.(map[string]any), map[string]string{"name": "string", "type": "string", "description": "string"})
		}
	}
}

// listApis shows each command, parameter and field of the document, read here
// without loadCommands.
func TestListApisAgreesWithTheDocument(t *testing.T) {
	t.Parallel()
	doc := document(t)
	got := apisFor(t, admin, "")
	for path, item := range doc.Paths.Map() {
		name := strings.TrimPrefix(path, commandPath)
		c, ok := got[name]
		if !ok {
			t.Errorf("%s is not listed", name)
			continue
		}
		delete(got, name)
		for _, op := range item.Operations() {
			compareParams(t, name, op, c)
			compareFields(t, name, given(doc, name, op), c)
		}
	}
	for name := range got {
		t.Errorf("%s is listed and not in the document", name)
	}
}

func compareParams(t *testing.T, name string, op *openapi3.Operation, c api.ApiCommand) {
	t.Helper()
	if len(op.Parameters) != len(c.Params) {
		t.Errorf("%s: %d parameters, %d are listed", name, len(op.Parameters), len(c.Params))
		return
	}
	for i, want := range op.Parameters {
		got := c.Params[i]
		if got.Name != want.Value.Name || got.Required != want.Value.Required || !fits(got.Type, want.Value) {
			t.Errorf("%s: parameter %s is listed as %s, %s, required %v", name, want.Value.Name, got.Name, got.Type, got.Required)
		}
	}
}

// fits reports whether a parameter of the document may have that type.
func fits(kind string, p *openapi3.Parameter) bool {
	if p.Content != nil {
		return kind == "map"
	}
	s := p.Schema.Value
	switch kind {
	case "uuid", "string", "date":
		return s.Type.Is("string") && (kind == "date") == (s.Format == "date-time") && (kind == "uuid") == (s.Extensions["x-cloudstack-type"] == "uuid")
	case "long", "integer":
		return s.Type.Is("integer") && (kind == "long") == (s.Format == "int64")
	case "boolean":
		return s.Type.Is("boolean")
	case "list":
		return s.Type.Is("array")
	}
	return false
}

// given is the schema of what a command gives.
func given(doc *openapi3.T, name string, op *openapi3.Operation) *openapi3.Schema {
	if result, ok := op.Extensions["x-cloudstack-result"].(string); ok {
		return doc.Components.Schemas[result].Value
	}
	inner := op.Responses.Status(200).Value.Content.Get(jsonType).Schema.Value.Properties[strings.ToLower(name)+"response"].Value
	if inner.Properties["count"] != nil {
		for _, p := range inner.Properties {
			if p.Value.Items != nil {
				return p.Value.Items.Value
			}
		}
	}
	return inner
}

func compareFields(t *testing.T, name string, want *openapi3.Schema, c api.ApiCommand) {
	t.Helper()
	var got []string
	for _, f := range c.Response {
		got = append(got, f.Name)
		if nested := want.Properties[f.Name].Value; nested.Items != nil && len(nested.Items.Value.Properties) != len(f.Response) {
			t.Errorf("%s: %s has %d fields, %d are listed", name, f.Name, len(nested.Items.Value.Properties), len(f.Response))
		}
	}
	if fields := slices.Sorted(maps.Keys(want.Properties)); !slices.Equal(fields, got) {
		t.Errorf("%s gives %v, listed are %v", name, fields, got)
	}
}

// What a job's command gives is its result, and other commands that give the
// same are related to it: clients complete ids from them.
func TestListApisRelated(t *testing.T) {
	t.Parallel()
	got := apisFor(t, admin, "&name=scaleKubernetesCluster")["scaleKubernetesCluster"]
	if !got.Isasync || got.Related != "addNodesToKubernetesCluster,createKubernetesCluster,listKubernetesClusters,removeNodesFromKubernetesCluster,startKubernetesCluster,upgradeKubernetesCluster" {
		t.Errorf("async %v, related to %s", got.Isasync, got.Related)
	}
	if id := got.Params[0]; id.Related != "listKubernetesClusters" {
		t.Errorf("id is related to %s", id.Related)
	}
}

// An account sees the commands that it may use; a name that is none of them
// fails as in CloudStack.
//
// Keeps: §1.9/root-admin, §1.9/roles.
func TestListApisShowsWhatTheCallerMayUse(t *testing.T) {
	t.Parallel()
	ann := cks.Account{Name: "ann"}
	all, hers := apisFor(t, admin, ""), apisFor(t, ann, "")
	commands, err := loadCommands()
	if err != nil {
		t.Fatal(err)
	}
	forAdmins := 0
	for _, c := range commands {
		if c.AdminOnly {
			forAdmins++
		}
	}
	if len(all) != len(commands) || forAdmins < 2 || len(hers) != len(commands)-forAdmins {
		t.Errorf("an admin sees %d commands, a user %d", len(all), len(hers))
	}
	for _, name := range []string{"configureSimulator", "querySimulator", "listConfigurations", "updateConfiguration"} {
		if hers[name].Name != "" || all[name].Name == "" {
			t.Errorf("%s is shown to a user: %v, to an admin: %v", name, hers[name].Name != "", all[name].Name != "")
		}
	}
	if one := apisFor(t, ann, "&name=listZones"); len(one) != 1 || one["listZones"].Name == "" {
		t.Errorf("name=listZones gives %v", one)
	}
	for _, name := range []string{"querySimulator", "listzones", "nonsense"} {
		raw := string(answerOf(t, canned{account: ann}, "command=listApis&name="+name))
		if !strings.Contains(raw, `"errorcode":530`) || !strings.Contains(raw, "unable to find an api by that name") {
			t.Errorf("name=%s gives %s", name, raw)
		}
	}
}
