package http

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	openapi "ckscale/api"
	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// document is api/openapi.yaml, read by itself.
func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openapi.Document)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// The document is valid, and its examples fit its schemas, which allow no
// other fields than they list.
func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	if err := document(t).Validate(t.Context()); err != nil {
		t.Error(err)
	}
	if err := strictDocument(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

// reads are the commands that change nothing (cks.md §1.1).
var reads = regexp.MustCompile(`^(get|list|query|find)\w+$`)

// Every command tells what it does, what it takes and gives, how it fails, and
// shows an example; what it is called in the document is what clients send.
//
// Keeps: §1.1/reads.
func TestEveryCommandIsDescribed(t *testing.T) {
	t.Parallel()
	doc := document(t)
	for path, item := range doc.Paths.Map() {
		name := strings.TrimPrefix(path, commandPath)
		if len(item.Operations()) != 1 {
			t.Errorf("%s has %d methods", name, len(item.Operations()))
		}
		for method, op := range item.Operations() {
			if op.OperationID != name || op.Summary == "" || op.Description == "" || len(op.Tags) != 1 {
				t.Errorf("%s: operationId %q, summary %q, description %q, tags %v", name, op.OperationID, op.Summary, op.Description, op.Tags)
			}
			if want := map[bool]string{true: "GET", false: "POST"}[reads.MatchString(name)]; method != want {
				t.Errorf("%s is %s, want %s", name, method, want)
			}
			for _, p := range op.Parameters {
				if p.Value.Description == "" {
					t.Errorf("%s: parameter %s has no description", name, p.Value.Name)
				}
			}
			ok := op.Responses.Status(200).Value.Content.Get(jsonType)
			if ok.Example == nil && len(ok.Examples) == 0 {
				t.Errorf("%s has no example", name)
			}
			if failure := op.Responses.Default(); failure == nil || failure.Value.Content.Get(jsonType).Example == nil {
				t.Errorf("%s does not tell how it fails", name)
			}
		}
	}
	commands, err := loadCommands()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range commands {
		if len(c.Response) == 0 {
			t.Errorf("%s gives nothing", name)
		}
		checkDescribed(t, name, c.Response)
	}
}

func checkDescribed(t *testing.T, where string, fields []field) {
	t.Helper()
	for _, f := range fields {
		if f.Description == "" {
			t.Errorf("%s: field %s has no description", where, f.Name)
		}
		checkDescribed(t, where+"."+f.Name, f.Fields)
	}
}

// The commands that this server is for are all in the document, and no others.
//
// Keeps: §1.10/async.
func TestCommands(t *testing.T) {
	t.Parallel()
	commands, err := loadCommands()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for name, c := range commands {
		got[name] = map[bool]string{true: "async ", false: "sync "}[c.Async] + c.Method
		if c.AdminOnly {
			got[name] += " admin"
		}
		if _, known := cks.Classes[name]; known != c.Async {
			t.Errorf("%s: async %v, but it has a class name: %v", name, c.Async, known)
		}
	}
	if diff := cmp.Diff(map[string]string{
		"scaleKubernetesCluster":                     "async POST",
		"createKubernetesCluster":                    "async POST",
		"deleteKubernetesCluster":                    "async POST",
		"startKubernetesCluster":                     "async POST",
		"stopKubernetesCluster":                      "async POST",
		"upgradeKubernetesCluster":                   "async POST",
		"startVirtualMachine":                        "async POST",
		"stopVirtualMachine":                         "async POST",
		"listKubernetesClusters":                     "sync GET",
		"listKubernetesSupportedVersions":            "sync GET",
		"queryAsyncJobResult":                        "sync GET",
		"listAsyncJobs":                              "sync GET",
		"cancelAsyncJob":                             "sync POST",
		"listEvents":                                 "sync GET",
		"listEventTypes":                             "sync GET",
		"listVirtualMachines":                        "sync GET",
		"listServiceOfferings":                       "sync GET",
		"listZones":                                  "sync GET",
		"listApis":                                   "sync GET",
		"configureSimulator":                         "sync POST admin",
		"querySimulator":                             "sync GET admin",
		"addKubernetesSupportedVersion":              "sync POST admin",
		"updateKubernetesSupportedVersion":           "sync POST admin",
		"deleteKubernetesSupportedVersion":           "async POST admin",
		"getKubernetesClusterConfig":                 "sync GET",
		"listTemplates":                              "sync GET",
		"listNetworks":                               "sync GET",
		"addNodesToKubernetesCluster":                "async POST",
		"removeNodesFromKubernetesCluster":           "async POST",
		"addVirtualMachinesToKubernetesCluster":      "sync POST",
		"removeVirtualMachinesFromKubernetesCluster": "sync POST",
		"deployVirtualMachine":                       "async POST",
		"destroyVirtualMachine":                      "async POST",
		"login":                                      "sync POST",
		"logout":                                     "sync POST",
		"listCapabilities":                           "sync GET",
		"listUsers":                                  "sync GET",
		"listAccounts":                               "sync GET",
		"listProjects":                               "sync GET",
		"listConfigurations":                         "sync GET admin",
		"updateConfiguration":                        "sync POST admin",
	}, got); diff != "" {
		t.Errorf("-want +document:\n%s", diff)
	}
}

// The parameters of scaleKubernetesCluster, with CloudStack's types (cks.md
// §1.10).
//
// Keeps: §1.10/parameters.
func TestScaleParameters(t *testing.T) {
	t.Parallel()
	commands, err := loadCommands()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, p := range commands["scaleKubernetesCluster"].Params {
		got[p.Name] = strings.TrimSpace(p.Type + " " + p.ElementType + " " + p.Since)
		if p.Required != (p.Name == "id") {
			t.Errorf("%s is required: %v", p.Name, p.Required)
		}
	}
	if diff := cmp.Diff(map[string]string{
		"id":                 "uuid",
		"serviceofferingid":  "uuid",
		"nodeofferings":      "map  4.21.0",
		"size":               "long",
		"nodeids":            "list uuid",
		"autoscalingenabled": "boolean",
		"minsize":            "long",
		"maxsize":            "long",
		"dryrun":             "boolean",
		"customjobid":        "string",
		"starteventid":       "long",
	}, got); diff != "" {
		t.Errorf("-want +document:\n%s", diff)
	}
}

// The command says what CloudStack's does, and that a cluster in Alert can be
// scaled as well (cks.md §1.10; design.md §4.1).
//
// Keeps: §1.10/description, §1.10/async.
func TestScaleIsDescribed(t *testing.T) {
	t.Parallel()
	got := apisFor(t, admin, "&name=scaleKubernetesCluster")["scaleKubernetesCluster"]
	if want := "Scales a created, running, stopped or alert CloudManaged Kubernetes cluster"; !strings.HasPrefix(got.Description, want) || !got.Isasync {
		t.Errorf("async %v: %s", got.Isasync, got.Description)
	}
}

// The generated code belongs to the document as it is now.
func TestGeneratedCodeIsUpToDate(t *testing.T) {
	t.Parallel()
	embedded, err := api.GetSpecJSON()
	if err != nil {
		t.Fatal(err)
	}
	current, err := document(t).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var was, is any
	if err := json.Unmarshal(embedded, &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(current, &is); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(was, is) {
		t.Errorf("run go generate ./internal/http/api: -generated +document:\n%s", cmp.Diff(was, is))
	}
}

// Generating again changes nothing.
func TestGenerateIsReproducible(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the generator")
	}
	config, err := os.ReadFile("api/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, other := filepath.Join(dir, "api.gen.go"), filepath.Join(dir, "config.yaml")
	config = bytes.Replace(config, []byte("output: api.gen.go"), []byte("output: "+out), 1)
	if err := os.WriteFile(other, config, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../../../tools/go.mod",
		"oapi-codegen", "-config", other, "../../../api/openapi.yaml")
	cmd.Dir = "api"
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	fresh, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("api/api.gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(fresh, kept) {
		t.Error("api.gen.go is not what go generate ./internal/http/api makes")
	}
}
