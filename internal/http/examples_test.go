package http

import (
	"fmt"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// clientCommands are the commands that the real clients send (clients.md).
var clientCommands = strings.Fields(`
	addKubernetesSupportedVersion addNodesToKubernetesCluster addVirtualMachinesToKubernetesCluster
	createKubernetesCluster deleteKubernetesCluster deleteKubernetesSupportedVersion deployVirtualMachine destroyVirtualMachine
	getKubernetesClusterConfig listAccounts listApis listAsyncJobs listCapabilities listConfigurations listEvents
	listKubernetesClusters listKubernetesSupportedVersions listNetworks listProjects listServiceOfferings listTemplates
	listUsers listVirtualMachines listZones login logout queryAsyncJobResult removeNodesFromKubernetesCluster
	removeVirtualMachinesFromKubernetesCluster scaleKubernetesCluster startKubernetesCluster startVirtualMachine
	stopKubernetesCluster stopVirtualMachine updateConfiguration updateKubernetesSupportedVersion upgradeKubernetesCluster`)

// Every command that a real client sends is in the document, and in what
// listApis shows.
//
// Keeps: ours/commands.
func TestEveryCommandOfTheClientsIsThere(t *testing.T) {
	t.Parallel()
	doc, listed := document(t), apisFor(t, admin, "")
	for _, name := range clientCommands {
		there := doc.Paths.Value(commandPath+name) != nil
		if _, shown := listed[name]; shown != there {
			t.Errorf("%s: in the document %t, in listApis %t", name, there, shown)
		}
		if !there {
			t.Errorf("%s is not in the document", name)
		}
	}
}

// exampleRequest is the query of a command's example: those of its parameters
// that have one.
func exampleRequest(op *openapi3.Operation) (params []pair, err error) {
	for _, p := range op.Parameters {
		if p.Value.Example == nil {
			if p.Value.Required {
				return nil, fmt.Errorf("parameter %s is required and has no example", p.Value.Name)
			}
			continue
		}
		value := fmt.Sprint(p.Value.Example)
		if list, ok := p.Value.Example.([]any); ok {
			value = strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
		}
		params = append(params, pair{p.Value.Name, value})
	}
	return params, nil
}

// Every command has a summary, an example of a request that is understood, and
// one of an answer that fits its schema, in which an object that lists its
// fields has no others.
//
// Keeps: ours/docs-examples.
func TestEveryCommandHasExamples(t *testing.T) {
	t.Parallel()
	commands, err := loadCommands()
	if err != nil {
		t.Fatal(err)
	}
	doc := strictDocument(t)
	for path, item := range doc.Paths.Map() {
		name := strings.TrimPrefix(path, commandPath)
		for _, op := range item.Operations() {
			if op.Summary == "" {
				t.Errorf("%s has no summary", name)
			}
			params, err := exampleRequest(op)
			if err == nil {
				_, err = commands[name].canonicalQuery(params)
			}
			if err != nil {
				t.Errorf("the example request of %s: %v", name, err)
			}
			media := op.Responses.Status(200).Value.Content.Get(jsonType)
			answers := []any{media.Example}
			if media.Example == nil {
				answers = nil
			}
			for _, e := range media.Examples {
				answers = append(answers, e.Value.Value)
			}
			if len(answers) == 0 {
				t.Errorf("%s has no example of an answer", name)
			}
			for _, answer := range answers {
				if err := media.Schema.Value.VisitJSON(answer, openapi3.MultiErrors()); err != nil {
					t.Errorf("an example of what %s answers: %v", name, err)
				}
			}
		}
	}
}
