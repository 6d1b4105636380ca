package main

import (
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The signatures of these tests are those of the real clients: clients.md §6
// and cks.md §1.7.
func TestClientsSignAsTheRealOnes(t *testing.T) {
	t.Parallel()
	stub := keys{"stub-api-key", "stub-secret"}
	vector := keys{"TestApiKey-01_abc", "TestSecret-01_xyz"}
	const id = "id=7944a42f-fcf2-4f4e-932a-e7b59e0724b1"
	for want, c := range map[string]struct {
		keys   keys
		params []string
	}{
		"8kO+u8QdSxFR1uPzVp2Ojxe882Y=": {stub, []string{"command=scaleKubernetesCluster", "id=11111111-2222-3333-4444-555555555555", "size=3"}},
		"dTjjK2SjisVgti+4nL9dE5UM96U=": {vector, []string{"command=scaleKubernetesCluster", id, "size=3"}},
		"Y0zYy2hZtRDVv6toDj5w+TpaztY=": {vector, []string{"command=scaleKubernetesCluster", id, "Size=3"}},
		"yHy+RjEJyoPjslwsDcUrnZPbIa8=": {vector, []string{"command=scaleKubernetesCluster", id, "nodeofferings[0].node=worker",
			"nodeofferings[0].offering=d7892a54-8604-44ab-8892-dcd1357571a0", "signatureVersion=3", "expires=2026-11-07T18:39:31+0000"}},
	} {
		if got := c.keys.signature(append(pairs(c.params), pair{"apiKey", c.keys.API}, pair{"response", "json"})); got != want {
			t.Errorf("%q: %s, want %s", c.params, got, want)
		}
	}
}

// Every client lists, scales, follows the job, and reads refusals, in its own
// style (clients.md §2-§6, A01-A06, A08, A11).
//
// Keeps: A01, A02, A03, A04, A05, A06, A11, §2.2/jobid-only, §2.3/success.
func TestClientsScaleInTheirOwnStyle(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	var names []string
	for i := range dialects {
		names = append(names, fmt.Sprintf("style-%d", i))
	}
	ids := l.create(names...)
	offering := l.call("listServiceOfferings", "name=small").list("serviceoffering")[0].text("id")
	cases := map[string]func(*testing.T){}
	for i, d := range dialects {
		cases[d.name] = func(t *testing.T) { l.in(t).scalesLike(d, ids[i], offering) }
	}
	many(t, len(cases), cases)
	l.consistent()
}

// scalesLike is one client's whole work on a cluster of one worker.
func (c *client) scalesLike(d dialect, id, offering string) {
	c.Helper()
	list, count := c.listed(d, "id="+id)
	if len(list) != 1 || count != 1 || *list[0].Size != 1 || *list[0].MasterNodes != 1 || list[0].CPUNumber != "4" || list[0].Memory != "4096" {
		c.Fatalf("%s: listed %d %+v", d.name, count, list)
	}
	up := c.scaled(d, "id="+id, "size=3")
	if *up.Size != 3 || up.State != "Running" || len(up.VirtualMachines) != 4 {
		c.Errorf("%s: scaled up to %+v", d.name, up)
	}
	if list, _ = c.listed(d, "id="+id); len(list) != 1 || !reflect.DeepEqual(list[0], up) { // the result is the final one (A05)
		c.Errorf("%s: listed %+v after %+v", d.name, list, up)
	}
	last := up.VirtualMachines[3].ID
	down := c.scaled(d, "id="+id, "nodeids="+last)
	if *down.Size != 2 || down.State != "Running" || slices.ContainsFunc(down.VirtualMachines, func(v typedVM) bool { return v.ID == last }) {
		c.Errorf("%s: scaled down to %+v", d.name, down)
	}
	same := c.scaled(d, "id="+id, "size=2", "nodeofferings[0].node=worker", "nodeofferings[0].offering="+offering)
	if *same.Size != 2 { // a no-op has the cluster, too (A03)
		c.Errorf("%s: %+v", d.name, same)
	}
	two := same.VirtualMachines[1].ID + "," + same.VirtualMachines[2].ID
	if text := c.failed(c.polled(d, c.submit(d, "scaleKubernetesCluster", "id="+id, "nodeids="+two))); text != "Can not remove all nodes from a cluster" {
		c.Errorf("%s: refused with %q", d.name, text)
	}
	for _, gone := range []string{"11111111-2222-3333-4444-555555555555", "not-a-uuid"} { // A06
		for _, command := range []string{"listKubernetesClusters", "scaleKubernetesCluster"} {
			r := c.speak(d, command, "id="+gone)
			if r.status != 431 || r.answer["errorcode"] != 431.0 || r.answer["cserrorcode"] != 9999.0 || !strings.Contains(r.answer.text("errortext"),
				"Invalid parameter id value="+gone+" due to incorrect long value format, or entity does not exist") {
				c.Errorf("%s: %s of an unknown id: %d %s", d.name, command, r.status, r.raw)
			}
		}
	}
}

// cmk learns its commands from listApis, and knows no others (clients.md §5):
// those that clients send are among them, and it waits for their jobs.
//
// Keeps: cmk/commands.
func TestCmkLearnsEveryCommand(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	found := map[string]bool{}
	for _, a := range c.sync().apis {
		found[a.name] = a.async
	}
	for name, async := range map[string]bool{
		"scaleKubernetesCluster": true, "createKubernetesCluster": true, "deleteKubernetesCluster": true, "startVirtualMachine": true,
		"startKubernetesCluster": true, "stopKubernetesCluster": true, "upgradeKubernetesCluster": true,
		"stopVirtualMachine": true, "listKubernetesClusters": false, "queryAsyncJobResult": false, "listApis": false, "listZones": false,
		"listServiceOfferings": false, "listKubernetesSupportedVersions": false, "listVirtualMachines": false,
	} {
		if got, ok := found[name]; !ok || got != async {
			t.Errorf("%s: listed %t, async %t", name, ok, got)
		}
	}
}

// Whatever makes a scale fail, the job says so in the one way that clients
// understand, and names the cluster, the node and the cause (A08).
//
// Keeps: A08, §2.3/failure, §2.4/scaling.
// Keeps: §2.9/530, §2.9/failed-job.
// Keeps: §2.4/uncaught.
func TestFailedJobsSayWhy(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCALE_TIMEOUT": "10s"})
	ids := l.create("refused", "provisioning", "draining", "late", "panicking")
	cases := map[string]func(*testing.T){}
	for i, s := range []struct{ name, fault, want, size string }{
		{"refused", "", `^Kubernetes cluster : refused cannot be scaled for size, 0$`, "0"},
		{"provisioning", "vm.create=fail:no host left", `cluster : provisioning\b.* VM provisioning-node-[0-9a-f]{11}\b.* no host left`, "3"},
		{"draining", "node.drain=fail:budget", `cluster draining\b.* node: draining-node-[0-9a-f]{11}\b.* budget`, "1"},
		{"late", "node.join=fail", `cluster : late\b.* 0 of 2 new nodes joined: .* 2 are ready and 4 are expected\b.* late-node-[0-9a-f]{11}\b`, "3"},
		{"panicking", "vm.create=panic", `cluster : panicking\b.* VM panicking-node-[0-9a-f]{11}\b.*: the call panicked$`, "3"},
	} {
		cases[s.name] = func(t *testing.T) {
			c := l.in(t)
			if s.name == "draining" {
				c.scaled(dialects[0], "id="+ids[i], "size=2")
			}
			if name, value, _ := strings.Cut(s.fault, "="); name != "" {
				c.simulate(name, value, "clusterid="+ids[i])
			}
			text := c.failed(c.polled(dialects[1], c.submit(dialects[1], "scaleKubernetesCluster", "id="+ids[i], "size="+s.size)))
			if !regexp.MustCompile(s.want).MatchString(text) {
				t.Errorf("the job says %q", text)
			}
		}
	}
	many(t, len(cases), cases)
}

var isUUID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// VM names are host names, and those of the nodes, whatever the cluster is
// called: the autoscaler finds nodes by them (A13).
//
// Keeps: A13.
// Keeps: §8.1/node-name.
func TestNodesAreFoundByTheNamesOfVMs(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	for _, name := range []string{"Prod_A 01", "Ünïcode-" + strings.Repeat("x", 50)} {
		id := c.create(name)[0]
		v := c.scaled(dialects[0], "id="+id, "size=3")
		nodes := map[string]string{}
		for _, n := range c.call("querySimulator", "clusterid="+id).list("node") {
			nodes[n.text("vmid")] = n.text("name")
		}
		if v.Name != name || len(v.VirtualMachines) != 4 || len(nodes) != 4 {
			t.Errorf("%s: %d VMs, %d nodes", v.Name, len(v.VirtualMachines), len(nodes))
		}
		for _, vm := range v.VirtualMachines {
			if !hostName.MatchString(vm.Name) || nodes[vm.ID] != vm.Name {
				t.Errorf("%s: VM %q, node %q", name, vm.Name, nodes[vm.ID])
			}
		}
	}
}

// count is of all pages, pages are a pair, filters combine (A22, A23, A24).
//
// Keeps: A22, A23, A24.
// Keeps: §2.6/count, §2.6/empty, §2.6/past-end, §2.6/unlimited, §2.8/paging.
func TestListsCountAllPages(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	c.create("prod", "prod10", "my-prod", "other")
	d := dialects[1]
	for _, s := range []struct {
		params      string
		rows, count int
	}{
		{"", 5, 5},
		{"page=1 pagesize=2", 2, 5},
		{"page=3 pagesize=2", 1, 5},
		{"page=4 pagesize=2", 0, 5},
		{"page=0 pagesize=2", 2, 5}, // as page 1
		{"pagesize=-1", 5, 5},
		{"page=1 pagesize=500 listall=true", 5, 5}, // Python's fetch_list
		{"page=2147483647 pagesize=500", 0, 5},
		{"name=prod", 1, 1},
		{"keyword=prod", 3, 3},
		{"keyword=PROD", 3, 3},
		{"keyword=prod state=Running", 3, 3},
		{"keyword=prod state=Alert", 0, 0},
		{"keyword=prod page=2 pagesize=2", 1, 3},
		{"name=prod keyword=10", 0, 0},
		{"keyword=prod*", 0, 0}, // nothing is a pattern (A09)
		{"keyword=%", 0, 0},
		{"keyword=pro_", 0, 0},
		{"keyword=~", 0, 0},
	} {
		clusters, count := c.listed(d, strings.Fields(s.params)...)
		if len(clusters) != s.rows || count != s.count {
			t.Errorf("%q: %d of %d, want %d of %d", s.params, len(clusters), count, s.rows, s.count)
		}
	}
	if r := c.speak(d, "listKubernetesClusters", "name=none"); string(r.raw) != "{}" {
		t.Errorf("an empty list is %s", r.raw)
	}
	var vms struct {
		Count          int
		VirtualMachine []typedVM
	}
	c.speak(d, "listVirtualMachines", "page=2", "pagesize=8").into(t, &vms)
	if n := len(vms.VirtualMachine); n != 5 || vms.Count != 5+4*2 {
		t.Errorf("page 2 has %d of %d VMs", n, vms.Count)
	}
	c.speak(d, "listVirtualMachines").into(t, &vms)
	if n := len(vms.VirtualMachine); n != 5+4*2 {
		t.Errorf("%d VMs", n)
	}
	for _, vm := range vms.VirtualMachine {
		if vm.CPUNumber != 2 || vm.Memory != 2048 {
			t.Errorf("VM %+v", vm)
		}
	}
}

// The time that the API prints for a job finds the job, and what is no time is
// refused (A12).
//
// Keeps: A12, §2.1/dates, §2.5/startdate.
func TestPrintedDateIsAFilter(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	c.simulate("node.join", "fail") // until it is cleared
	id := c.start("scaleKubernetesCluster", "id="+c.id(), "size=3")
	list := c.call("listAsyncJobs").list("asyncjobs")
	if len(list) != 1 || list[0].text("jobid") != id || !isDate.MatchString(list[0].text("created")) {
		t.Fatalf("jobs under way: %v", list)
	}
	created, err := time.Parse(expiry+"-0700", list[0].text("created"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dialects {
		for date, want := range map[string]int{
			list[0].text("created"):                           1,
			created.Add(time.Minute).Format(expiry + "-0700"): 0,
			created.Add(-time.Hour).Format(expiry + "Z"):      1,
			created.Add(-24 * time.Hour).Format("2006-01-02"): 1,
		} {
			r := c.speak(d, "listAsyncJobs", "startdate="+date)
			if r.status != http.StatusOK || len(r.answer.list("asyncjobs")) != want {
				t.Errorf("%s: since %s: %d %s", d.name, date, r.status, r.raw)
			}
		}
		if r := c.speak(d, "listAsyncJobs", "startdate="+list[0].text("created")+"x"); r.status != 431 {
			t.Errorf("%s: a malformed date: %d %s", d.name, r.status, r.raw)
		}
	}
	c.simulate("node.join", "clear")
	if job := c.ended(id); job["jobstatus"] != 1.0 {
		t.Errorf("job %v", job)
	}
}

// create makes clusters of one control node and one worker, all at once, and
// returns their ids.
func (c *client) create(names ...string) []string {
	c.Helper()
	zone := c.call("listZones").list("zone")[0].text("id")
	version := c.call("listKubernetesSupportedVersions").list("kubernetessupportedversion")[0].text("id")
	offering := c.call("listServiceOfferings", "name=small").list("serviceoffering")[0].text("id")
	var ids, jobs []string
	for _, name := range names {
		a := c.call("createKubernetesCluster", "name="+name, "description="+name, "zoneid="+zone, "kubernetesversionid="+version,
			"serviceofferingid="+offering, "size=1", "controlnodes=1")
		ids, jobs = append(ids, a.text("id")), append(jobs, a.text("jobid"))
	}
	for _, job := range jobs {
		if ended := c.ended(job); ended["jobstatus"] != 1.0 {
			c.Fatalf("create: %v", ended)
		}
	}
	return ids
}
