package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// command runs the program as an operator does, beside the running server, and
// returns what it prints. More environment may be given.
func (s *instance) command(t testing.TB, more map[string]string, args ...string) (string, error) {
	t.Helper()
	env := maps.Clone(s.env)
	maps.Copy(env, more)
	out := newTranscript("never")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := process{getenv: environment(env), stdout: out, stderr: io.Discard}.run(ctx, args)
	return out.String(), err
}

// operate runs a command that must succeed.
func (l *lab) operate(args ...string) string {
	l.Helper()
	out, err := l.server.command(l, nil, args...)
	if err != nil {
		l.Fatal(err)
	}
	return out
}

// printedKeys are those that "account create" and "account rotate" print.
func printedKeys(out string) (k keys) {
	for line := range strings.Lines(out) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "apikey":
			k.API = value
		case "secretkey":
			k.Secret = value
		}
	}
	return k
}

// account makes an account, and returns a client of it.
func (l *lab) account(name string) *client {
	l.Helper()
	return l.as(printedKeys(l.operate("account", "create", name)))
}

// tenant is an account that has a cluster, on which a job is under way.
type tenant struct {
	*client
	name          string
	cluster, job  string
	vms           []string
	clusterNumber string // internal
	vmNumber      string
	jobNumber     string
}

func (l *lab) tenant(db *pgx.Conn, name string) *tenant {
	l.Helper()
	a := &tenant{client: l.account(name), name: name}
	a.cluster = a.create(name + "-cluster")[0]
	l.simulate("node.join", "fail", "clusterid="+a.cluster) // the job waits until it is cleared
	a.job = a.start("scaleKubernetesCluster", "id="+a.cluster, "size=2")
	for _, vm := range a.call("listVirtualMachines").list("virtualmachine") {
		a.vms = append(a.vms, vm.text("id"))
	}
	number := func(table, id string) string {
		return ask[string](l, db, "SELECT seq::text FROM "+table+" WHERE id = $1", id)
	}
	a.clusterNumber, a.vmNumber, a.jobNumber = number("clusters", a.cluster), number("vms", a.vms[0]), number("jobs", a.job)
	return a
}

// sees is what a list command shows, by the named field.
func (c *client) sees(command, list, field string, params ...string) map[string]bool {
	c.Helper()
	a := c.call(command, params...)
	seen := map[string]bool{}
	for _, item := range a.list(list) {
		seen[item.text(field)] = true
	}
	if n, _ := a["count"].(float64); int(n) != len(seen) {
		c.Errorf("%s %q counts %v and lists %d", command, params, a["count"], len(seen))
	}
	return seen
}

// denied checks that a request is refused with 531, and tells nothing of what
// it was about.
func (c *client) denied(want, command string, params ...string) {
	c.Helper()
	status, a := c.send(command, params...)
	if status != 531 || a["errorcode"] != 531.0 || a["cserrorcode"] != 4365.0 || a.text("errortext") != want {
		c.Errorf("%s %q: %d %v", command, params, status, a)
	}
}

// Neither of two accounts sees or touches what is the other's; a root admin
// sees everything when he asks for it (cks.md §2.3, §2.6, §2.9; design.md §3).
//
// Keeps: §3.1/5.
// Keeps: §1.9/refusal, §1.10/id-access, §2.9/531, §2.9/job-of-another.
// Keeps: §2.3/access, §2.3/access-admin, §2.4/denied, §2.5/account, §2.5/listall, §2.6/isrecursive.
// Keeps: §2.6/projectid-all, §2.6/user, §2.6/others, §2.6/admin-own, §2.6/admin-listall, §2.6/admin-id, §2.8/listall.
// Keeps: E12.
func TestAccountsAreKeptApart(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1h"})
	db := connect(t, l.url)
	ann, bob := l.tenant(db, "ann"), l.tenant(db, "bob")
	l.until("both jobs wait", 20*time.Second, func() bool {
		return ask[int](t, db, `SELECT count(*)::int FROM jobs WHERE status = 0 AND owner IS NULL
			AND EXISTS (SELECT FROM vms WHERE job_id = jobs.id AND vms.state = 'Running')`) == 2
	})
	before := records(t, db)
	for _, pair := range [][2]*tenant{{ann, bob}, {bob, ann}} {
		pair[0].seesOwn()
		pair[0].keepsOff(pair[1])
	}
	l.seesAll(ann, bob)
	same(t, before, records(t, db))
	for _, a := range []*tenant{ann, bob} {
		l.simulate("node.join", "clear", "clusterid="+a.cluster)
		if job := a.ended(a.job); job["jobstatus"] != 1.0 {
			t.Errorf("%s's job: %v", a.name, job)
		}
	}
	l.consistent()
}

// seesOwn checks that a's lists show exactly what is a's, whatever is asked.
func (a *tenant) seesOwn() {
	a.Helper()
	for _, params := range [][]string{nil, {"listall=true"}, {"isrecursive=true", "listall=true"}, {"account=" + a.name}, {"projectid=-1"}, {"keyword=-cluster"}} {
		if seen := a.sees("listKubernetesClusters", "kubernetescluster", "id", params...); len(seen) != 1 || !seen[a.cluster] {
			a.Errorf("%s sees clusters %v by %q", a.name, seen, params)
		}
	}
	for _, params := range [][]string{nil, {"listall=true"}, {"account=" + a.name}, {"kubernetesclusterid=" + a.cluster}} {
		seen := a.sees("listVirtualMachines", "virtualmachine", "id", params...)
		for _, vm := range a.vms {
			if !seen[vm] {
				a.Errorf("%s does not see VM %s by %q", a.name, vm, params)
			}
		}
		for _, vm := range a.call("listVirtualMachines", params...).list("virtualmachine") {
			if vm.text("account") != a.name {
				a.Errorf("%s sees %s's VM by %q", a.name, vm.text("account"), params)
			}
		}
	}
	for _, params := range [][]string{nil, {"listall=true"}, {"account=" + a.name}} {
		if seen := a.sees("listAsyncJobs", "asyncjobs", "jobid", params...); len(seen) != 1 || !seen[a.job] {
			a.Errorf("%s sees jobs %v by %q", a.name, seen, params)
		}
	}
	for _, ref := range []string{a.job, a.jobNumber} {
		if job := a.call("queryAsyncJobResult", "jobid="+ref); job.text("account") != a.name || job["jobstatus"] != 0.0 {
			a.Errorf("%s's job: %v", a.name, job)
		}
	}
}

// keepsOff checks that a cannot read, change or end anything that is b's, by
// uuid or by internal number.
func (a *tenant) keepsOff(b *tenant) {
	a.Helper()
	const no = "Caller does not have permission to operate with provided resource."
	for _, id := range []string{b.cluster, strings.ToUpper(b.cluster), b.clusterNumber} {
		a.denied(no, "listKubernetesClusters", "id="+id)
		a.denied(no, "listKubernetesClusters", "id="+id, "listall=true")
		a.denied(no, "listVirtualMachines", "kubernetesclusterid="+id)
		a.denied(no, "scaleKubernetesCluster", "id="+id, "size=3")
		a.denied(no, "scaleKubernetesCluster", "id="+id) // before anything else is looked at
		a.denied(no, "scaleKubernetesCluster", "id="+id, "nodeids="+b.vms[1])
		a.denied(no, "deleteKubernetesCluster", "id="+id)
		a.denied(no, "startKubernetesCluster", "id="+id)
		a.denied(no, "stopKubernetesCluster", "id="+id)
		a.denied(no, "upgradeKubernetesCluster", "id="+id, "kubernetesversionid=1")
	}
	for _, id := range []string{b.vms[0], b.vmNumber} {
		a.denied(no, "listVirtualMachines", "id="+id)
		a.denied(no, "listVirtualMachines", "ids="+a.vms[0]+","+id)
		a.denied(no, "startVirtualMachine", "id="+id)
		a.denied(no, "stopVirtualMachine", "id="+id)
		a.denied(no, "stopVirtualMachine", "id="+id, "forced=true")
	}
	for _, id := range []string{b.job, b.jobNumber} {
		a.denied(fmt.Sprintf("Account %s is not authorized to see job id=%s", a.name, b.jobNumber), "queryAsyncJobResult", "jobid="+id)
	}
	for _, list := range []string{"listKubernetesClusters", "listVirtualMachines", "listAsyncJobs"} {
		for _, name := range []string{b.name, "admin", "nobody"} { // who does not exist looks the same
			a.denied(no, list, "account="+name)
		}
	}
	for _, params := range [][]string{{"name=" + b.name + "-cluster"}, {"keyword=" + b.name}} {
		if got := a.call("listKubernetesClusters", append(params, "listall=true")...); len(got) != 0 {
			a.Errorf("%s sees %v by %q", a.name, got, params)
		}
	}
	a.noSimulator(b)
}

// noSimulator: the simulated cloud is for root admins (cks.md §1.9).
func (a *tenant) noSimulator(b *tenant) {
	a.Helper()
	for command, params := range map[string][]string{
		"configureSimulator": {"name=vm.set", "value=Stopped", "vmid=" + b.vms[0]},
		"querySimulator":     {"clusterid=" + a.cluster},
	} {
		r := a.speak(dialects[0], command, params...)
		status, answer := r.status, r.answer
		want := "The API [" + command + "] does not exist or is not available for the account for user id ["
		if status != 432 || r.key != "errorresponse" || answer["cserrorcode"] != 9999.0 || !strings.HasPrefix(answer.text("errortext"), want) {
			a.Errorf("%s: %d %v", command, status, answer)
		}
		if status, _ := a.send("listApis", "name="+command); status == http.StatusOK {
			a.Errorf("listApis shows %s to %s", command, a.name)
		}
	}
}

// seesAll checks what a root admin sees: his own, and with listall everybody's.
func (l *lab) seesAll(tenants ...*tenant) {
	l.Helper()
	demo := l.id()
	if seen := l.sees("listKubernetesClusters", "kubernetescluster", "id"); len(seen) != 1 || !seen[demo] {
		l.Errorf("admin sees %v", seen)
	}
	if seen := l.sees("listAsyncJobs", "asyncjobs", "jobid"); len(seen) != 0 {
		l.Errorf("admin sees jobs %v", seen)
	}
	clusters := l.sees("listKubernetesClusters", "kubernetescluster", "id", "listall=true")
	jobs := l.sees("listAsyncJobs", "asyncjobs", "jobid", "listall=true")
	vms := l.sees("listVirtualMachines", "virtualmachine", "id", "listall=true")
	if len(clusters) != 1+len(tenants) || len(jobs) != len(tenants) || !clusters[demo] {
		l.Errorf("with listall admin sees clusters %v and jobs %v", clusters, jobs)
	}
	for _, b := range tenants {
		if !clusters[b.cluster] || !jobs[b.job] || !vms[b.vms[0]] {
			l.Errorf("with listall admin does not see %s's", b.name)
		}
		for _, id := range []string{b.cluster, b.clusterNumber} {
			if seen := l.sees("listKubernetesClusters", "kubernetescluster", "id", "id="+id); !seen[b.cluster] {
				l.Errorf("admin does not see %s's cluster %s", b.name, id)
			}
		}
		if seen := l.sees("listKubernetesClusters", "kubernetescluster", "id", "account="+b.name); len(seen) != 1 || !seen[b.cluster] {
			l.Errorf("admin sees %v as %s's", seen, b.name)
		}
		if job := l.call("queryAsyncJobResult", "jobid="+b.job); job.text("account") != b.name {
			l.Errorf("admin reads %v", job)
		}
	}
}

// A node of somebody else's cluster cannot be taken out through one's own, and
// an account's own cluster is its own to delete.
//
// Keeps: §1.9/scale, §1.10/offering-access.
func TestForeignNodeIDsAreRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	ann := l.account("ann")
	id := ann.create("mine")[0]
	before := l.calls("vm.destroy")
	for _, vm := range l.workers() {
		ann.refused("Invalid node ids", "scaleKubernetesCluster", "id="+id, "nodeids="+vm)
	}
	if l.calls("vm.destroy") != before {
		t.Error("a VM was destroyed")
	}
	l.consistent()
	ann.do("scaleKubernetesCluster", "id="+id, "size=2")
	large := ann.call("listServiceOfferings", "name=large").list("serviceoffering")[0].text("id") // admin has added it
	ann.do("scaleKubernetesCluster", "id="+id, "serviceofferingid="+large)
	ann.do("deleteKubernetesCluster", "id="+id)
	if list := ann.call("listKubernetesClusters"); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
	l.consistent()
}
