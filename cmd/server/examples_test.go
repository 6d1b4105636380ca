package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// example is what the API document shows of a command.
type example struct {
	command string
	read    bool
	params  []string
	needs   []string // those of the params that are required
	ids     []string // of what it lists
}

// demoLists are the commands that list what the demo has the same ids for
// everywhere.
var demoLists = strings.Fields(`listKubernetesClusters listKubernetesSupportedVersions listNetworks listServiceOfferings
	listTemplates listVirtualMachines listZones`)

// notOnDemo are the commands for clusters that others manage, of which the demo
// has none: that is the one thing wrong with their examples.
var notOnDemo = map[string]string{
	"addVirtualMachinesToKubernetesCluster":      "cannot be added to a CloudStack managed",
	"removeVirtualMachinesFromKubernetesCluster": "cannot be removed from a CloudStack Managed",
}

// examples are those of the document that a server serves.
func (c *client) examples() []example {
	c.Helper()
	_, text := get(c.TB, strings.TrimSuffix(c.url, "/client/api")+"/openapi.yaml", keys{})
	doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
	if err != nil {
		c.Fatal(err)
	}
	var all []example
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			e := example{command: strings.TrimPrefix(path, "/client/api/"), read: method == http.MethodGet}
			lacks := false
			for _, p := range op.Parameters {
				lacks = lacks || p.Value.Required && p.Value.Example == nil // TestEveryCommandHasExamples says so
				if p.Value.Example != nil {
					param := p.Value.Name + "=" + sent(p.Value.Example)
					e.params = append(e.params, param)
					if p.Value.Required {
						e.needs = append(e.needs, param)
					}
				}
			}
			media := op.Responses.Status(200).Value.Content.Get("application/json")
			answers := []any{media.Example}
			for _, answer := range media.Examples {
				answers = append(answers, answer.Value.Value)
			}
			if slices.Contains(demoLists, e.command) {
				e.ids = listedIDs(answers)
			}
			if !lacks {
				all = append(all, e)
			}
		}
	}
	return all
}

// sent is an example's value as it is sent: a list with commas.
func sent(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = fmt.Sprint(item)
	}
	return strings.Join(items, ",")
}

// listedIDs are the ids of the rows of lists.
func listedIDs(answers []any) (ids []string) {
	for _, a := range answers {
		top, _ := a.(map[string]any)
		for _, inner := range top {
			object, _ := inner.(map[string]any)
			for _, field := range object {
				rows, _ := field.([]any)
				for _, row := range rows {
					r, _ := row.(map[string]any)
					if id, ok := r["id"].(string); ok {
						ids = append(ids, id)
					}
				}
			}
		}
	}
	return ids
}

// Every example of the document can be sent as it is to a server with the demo
// cluster, and is answered with 200, but for those in notOnDemo: what it names is there. So are the things
// in the examples of answers. The job of the examples is made with its id.
//
// Keeps: ours/docs-examples.
func TestExamplesAreOfTheDemo(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	c.simulate("node.join", "fail") // so that the job lasts until it is cancelled
	all := c.examples()
	order := map[string]int{"scaleKubernetesCluster": -1, "cancelAsyncJob": 1, "startVirtualMachine": 3, "destroyVirtualMachine": 4,
		"deleteKubernetesSupportedVersion": 4, "deleteKubernetesCluster": 5, "logout": 6}
	slices.SortFunc(all, func(a, b example) int {
		rank := func(e example) int {
			if n, ok := order[e.command]; ok || e.read {
				return n
			}
			return 2
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.command, b.command))
	})
	job := ""
	for _, e := range all {
		for _, p := range e.params {
			if id, ok := strings.CutPrefix(p, "jobid="); ok {
				job = id
			}
		}
	}
	listed := map[string]bool{}
	for _, e := range all {
		if e.command == "login" {
			continue // nobody has a password there
		}
		params := e.params
		switch e.command {
		case "scaleKubernetesCluster":
			params = append(slices.Clone(params), "customjobid="+job)
		case "queryAsyncJobResult":
			params = append(slices.Clone(params), "wait=0") // the last one counts
		}
		status, a := c.send(e.command, params...)
		if why := notOnDemo[e.command]; why != "" {
			if status != 431 || !strings.Contains(a.text("errortext"), why) {
				t.Errorf("%s %q: %d %v, want a refusal: it %s", e.command, params, status, a, why)
			}
		} else if status != http.StatusOK {
			t.Errorf("%s %q: %d %v", e.command, params, status, a)
		}
		for _, id := range e.ids {
			listed[e.command] = true
			if status, a := c.send(e.command, append(slices.Clone(e.needs), "id="+id)...); status != http.StatusOK || a["count"] != 1.0 {
				t.Errorf("%s id=%s, as in the example of its answer: %d %v", e.command, id, status, a)
			}
		}
	}
	if got := slices.Sorted(maps.Keys(listed)); !slices.Equal(got, demoLists) {
		t.Errorf("ids were shown by %v only", got)
	}
}
