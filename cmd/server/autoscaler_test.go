package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// group is what the cluster-autoscaler decodes of a cluster, and all that it
// knows of its one node group (clients.md §3). It ignores the cluster's state.
type group struct {
	ID              string
	MinSize         int
	MaxSize         int
	Size            int
	MasterNodes     int
	VirtualMachines []struct{ ID, Name, State string }
}

// autoscaler plays the cluster-autoscaler with its cloudstack provider: its
// requests, what it believes, and what it refuses by itself. Only its polls come
// faster than every 10 s. Between two of them it looks whether each node of the
// cluster has a VM that is listed: one without stops the real one for good.
type autoscaler struct {
	*client
	id       string
	min, max int // of --nodes
	picture  group
	sent     []string // the scales that it asked for, without their signature
	lingered int      // looks at a VM that was listed after its node had gone
}

// autoscale starts an autoscaler with --nodes=min:max:id.
func (c *client) autoscale(id string, lo, hi int) *autoscaler {
	c.Helper()
	a := &autoscaler{client: c, id: id, min: lo, max: hi}
	a.refresh()
	return a
}

// query is the query string of a request: sorted, with names and values
// escaped, and the signature last.
func (k keys) query(command string, args ...string) string {
	values := url.Values{"command": {command}, "response": {"json"}, "apiKey": {k.API}}
	var params []pair
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		values.Set(name, value)
	}
	for name := range values {
		params = append(params, pair{name, values.Get(name)})
	}
	return values.Encode() + "&signature=" + url.QueryEscape(k.signature(params))
}

// ask makes a request by GET and returns what is under the key that ends in
// "response". It looks at no status, only for an errorcode.
func (a *autoscaler) ask(command string, args ...string) (answer, error) {
	a.Helper()
	req, err := http.NewRequestWithContext(a.Context(), http.MethodGet, a.url+"?"+a.keys.query(command, args...), nil)
	if err != nil {
		a.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.Fatal(err)
	}
	var top map[string]any
	if err := json.Unmarshal(body, &top); err != nil {
		a.Fatalf("%s: %v", body, err)
	}
	for key, value := range top {
		under, ok := value.(map[string]any)
		if !strings.HasSuffix(key, "response") || !ok {
			continue
		}
		if code, failed := under["errorcode"]; failed {
			return nil, fmt.Errorf("(HTTP %v, error code %v) %v", code, under["cserrorcode"], under["errortext"])
		}
		return under, nil
	}
	a.Fatalf("no response in %s", body)
	return nil, nil
}

// decode reads a cluster as the autoscaler does, but for errors: it would not
// see them, and believe in zeros.
func (a *autoscaler) decode(cluster any) (g group) {
	a.Helper()
	doc, err := json.Marshal(cluster)
	if err == nil {
		err = json.Unmarshal(doc, &g)
	}
	if err != nil {
		a.Fatalf("cluster %s: %v", doc, err)
	}
	return g
}

// refresh lists the cluster, as before every loop.
func (a *autoscaler) refresh() {
	a.Helper()
	list, err := a.ask("listKubernetesClusters", "id="+a.id)
	if err != nil || len(list.list("kubernetescluster")) != 1 {
		a.Fatalf("refresh: %v %v", list, err)
	}
	a.picture = a.decode(list.list("kubernetescluster")[0])
}

// bounds are the cluster's; those of --nodes if it has not both.
func (a *autoscaler) bounds() (lo, hi int) {
	if a.picture.MinSize == 0 || a.picture.MaxSize == 0 {
		return a.min, a.max
	}
	return a.picture.MinSize, a.picture.MaxSize
}

// scale asks for a job, follows it, and takes its result for the cluster.
func (a *autoscaler) scale(arg string) error {
	a.Helper()
	signed := a.keys.query("scaleKubernetesCluster", "id="+a.id, arg)
	a.sent = append(a.sent, signed[:strings.Index(signed, "&signature=")])
	accepted, err := a.ask("scaleKubernetesCluster", "id="+a.id, arg)
	if err != nil {
		return err
	}
	job := accepted["jobid"].(string) // the real one panics as well
	var ended answer
	a.until("job ended", time.Minute, func() bool {
		a.look()
		if ended, err = a.ask("queryAsyncJobResult", "jobid="+job); err != nil {
			a.Fatal(err)
		}
		return ended["jobstatus"].(float64) != 0
	})
	result := ended["jobresult"].(map[string]any)
	if ended["jobstatus"].(float64) != 1 {
		return fmt.Errorf("%v", ended)
	}
	a.picture = a.decode(result["kubernetescluster"])
	return nil
}

// IncreaseSize asks for n more workers than the picture has.
func (a *autoscaler) IncreaseSize(n int) error {
	a.Helper()
	if _, hi := a.bounds(); n <= 0 || a.picture.Size+n > hi {
		return fmt.Errorf("size increase is not possible: %d and %d, at most %d", a.picture.Size, n, hi)
	}
	return a.scale(fmt.Sprintf("size=%d", a.picture.Size+n))
}

// DeleteNodes asks for the removal of nodes, by their names. The autoscaler's
// core calls it for one node at a time.
func (a *autoscaler) DeleteNodes(names ...string) error {
	a.Helper()
	if lo, _ := a.bounds(); a.picture.Size-len(names) < lo {
		return fmt.Errorf("min size reached: %d without %d, at least %d", a.picture.Size, len(names), lo)
	}
	var ids []string
	for _, name := range names {
		i := slices.IndexFunc(a.picture.VirtualMachines, func(v struct{ ID, Name, State string }) bool { return v.Name == name })
		if i < 0 {
			a.Fatalf("Unable to find node %s in cluster", name)
		}
		ids = append(ids, a.picture.VirtualMachines[i].ID)
	}
	return a.scale("nodeids=" + strings.Join(ids, ","))
}

// look checks that every node has a VM in the list. The list is read before the
// nodes and after them: a new node's VM may be in the second one only.
func (a *autoscaler) look() {
	a.Helper()
	listed := map[string]string{}
	list := func() {
		for _, vm := range a.byID(a.id).list("virtualmachines") {
			listed[vm.text("id")] = vm.text("name")
		}
	}
	list()
	before := len(listed)
	nodes := a.nodes()
	list()
	for id, name := range nodes {
		if listed[id] != name {
			a.Errorf("Unable to find node %s in cluster", name)
		}
	}
	if before > len(nodes) && before == len(listed) {
		a.lingered++
	}
}

// nodes are the names of the nodes that Kubernetes knows, by the id of their VM,
// which is their systemUUID.
func (a *autoscaler) nodes() map[string]string {
	a.Helper()
	names := map[string]string{}
	for _, n := range a.call("querySimulator", "clusterid="+a.id).list("node") {
		names[n.text("vmid")] = n.text("name")
	}
	return names
}

// believes checks the picture that the autoscaler has: the size, a VM for each
// node and a node for each VM, and nothing that the next refresh will change.
func (a *autoscaler) believes(size int) {
	a.Helper()
	known, nodes := map[string]string{}, a.nodes()
	for _, vm := range a.picture.VirtualMachines {
		known[vm.ID] = vm.Name
	}
	if !reflect.DeepEqual(known, nodes) {
		a.Errorf("it believes in %v, and the nodes are %v", known, nodes)
	}
	if g := a.picture; g.Size != size || len(g.VirtualMachines) != size+g.MasterNodes {
		a.Errorf("it believes in %d workers and %d VMs, not %d workers", g.Size, len(g.VirtualMachines), size)
	}
	was := a.picture
	if a.refresh(); !reflect.DeepEqual(was, a.picture) {
		a.Errorf("it believed in %+v, and the cluster is listed as %+v", was, a.picture)
	}
}

// workers are the names of the group's workers, oldest first.
func (a *autoscaler) workers() (names []string) {
	for _, vm := range a.picture.VirtualMachines {
		if strings.Contains(vm.Name, "-node-") {
			names = append(names, vm.Name)
		}
	}
	return names
}

// The player's requests are the real one's to the letter (clients.md §6).
func TestAutoscalerAsksAsTheRealOne(t *testing.T) {
	t.Parallel()
	k := keys{"stub-api-key", "stub-secret"}
	const id = "id=11111111-2222-3333-4444-555555555555"
	for want, got := range map[string]string{
		"apiKey=stub-api-key&command=listKubernetesClusters&id=11111111-2222-3333-4444-555555555555&response=json" +
			"&signature=EwmiajFQ3BpGdM0HeN8cNAUPSaI%3D": k.query("listKubernetesClusters", id),
		"apiKey=stub-api-key&command=scaleKubernetesCluster&id=11111111-2222-3333-4444-555555555555&response=json&size=3" +
			"&signature=8kO%2Bu8QdSxFR1uPzVp2Ojxe882Y%3D": k.query("scaleKubernetesCluster", id, "size=3"),
		"apiKey=stub-api-key&command=queryAsyncJobResult&jobid=bbbbbbbb-0000-4000-8000-000000000001&response=json" +
			"&signature=Ztovmk%2FNXjGFiC2rSIY5pFmtjYU%3D": k.query("queryAsyncJobResult", "jobid=bbbbbbbb-0000-4000-8000-000000000001"),
		"apiKey=stub-api-key&command=scaleKubernetesCluster&id=11111111-2222-3333-4444-555555555555" +
			"&nodeids=aaaaaaaa-0000-4000-8000-000000000011&response=json" +
			"&signature=te8zQ8kQKyzL8d267xFwjFVHmD0%3D": k.query("scaleKubernetesCluster", id, "nodeids=aaaaaaaa-0000-4000-8000-000000000011"),
	} {
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
