package main

import (
	"strings"
	"testing"
	"time"
)

// request is what a create request needs, and more.
func (c *client) request(name string, more ...string) []string {
	c.Helper()
	return append([]string{
		"name=" + name,
		"zoneid=" + c.call("listZones").list("zone")[0].text("id"),
		"kubernetesversionid=" + c.call("listKubernetesSupportedVersions").list("kubernetessupportedversion")[0].text("id"),
		"serviceofferingid=" + c.call("listServiceOfferings", "name=small").list("serviceoffering")[0].text("id"),
	}, more...)
}

// made creates a cluster, and returns its id when it runs.
func (c *client) made(name string, more ...string) string {
	c.Helper()
	a := c.call("createKubernetesCluster", c.request(name, more...)...)
	if job := c.ended(a.text("jobid")); job["jobstatus"] != 1.0 {
		c.Fatalf("create %s: %v", name, job)
	}
	return a.text("id")
}

// only checks what a list shows, by id.
func (c *client) only(want map[string]bool, command, list string, params ...string) {
	c.Helper()
	got := c.sees(command, list, "id", params...)
	for id := range want {
		if !got[id] {
			c.Errorf("%s %q does not show %s", command, params, id)
		}
	}
	if len(got) != len(want) {
		c.Errorf("%s %q shows %v, want %v", command, params, got, want)
	}
}

func ids(list ...string) map[string]bool {
	set := map[string]bool{}
	for _, id := range list {
		set[id] = true
	}
	return set
}

// What belongs to a project is its members' to see and to use, with its id or
// with -1 for all, and nobody else's but a root admin's. It is a project's, not an
// account's, wherever it is shown (cks.md §2.6, §3.1).
//
// Keeps: §2.6/projects, §2.6/project-fields, §2.6/projectid-all, §2.6/skip-projects, §3.1/5-projects.
func TestProjectsBelongToTheirMembers(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	ann, bob, eve := l.account("ann"), l.account("bob"), l.account("eve")
	l.operate("project", "create", "shop", "ann")
	l.operate("project", "create", "bank", "eve")
	l.operate("project", "add", "shop", "bob")
	shop := ann.call("listProjects", "name=shop").list("project")[0]
	project := shop.text("id")
	bank := eve.call("listProjects").list("project")[0].text("id")
	if owner := shop.list("owner"); len(owner) != 1 || owner[0].text("account") != "ann" || shop.text("state") != "Active" {
		t.Errorf("the project is %v", shop)
	}
	own := ann.made("own")
	id := bob.made("shared", "projectid="+project) // a member, not the owner

	const list, key = "listKubernetesClusters", "kubernetescluster"
	ann.only(ids(own), list, key)
	ann.only(ids(own), list, key, "listall=true")
	ann.only(ids(id), list, key, "projectid="+project)
	ann.only(ids(own, id), list, key, "projectid=-1")
	ann.only(ids(id), list, key, "id="+id)
	ann.only(ids(id), list, key, "projectid=-1", "name=shared")
	bob.only(ids(), list, key)
	bob.only(ids(id), list, key, "projectid=-1", "listall=true")
	eve.only(ids(), list, key, "projectid=-1")
	eve.only(ids(), list, key, "projectid="+bank)
	l.only(ids(l.id(), own), list, key, "listall=true")
	l.only(ids(l.id(), id), list, key, "projectid=-1")
	l.only(ids(l.id(), own, id), list, key, "projectid=-1", "listall=true")
	l.only(ids(id), list, key, "projectid="+project)

	cluster := bob.call(list, "id="+id).list(key)[0]
	cluster.wants(t, "cluster", map[string]any{"project": "shop", "projectid": project, "account": nil, "domain": "ROOT"})
	for _, vm := range cluster.list("virtualmachines") {
		vm.wants(t, "VM", map[string]any{"project": "shop", "projectid": project, "account": nil})
	}
	if vms := ann.call("listVirtualMachines", "projectid="+project).list("virtualmachine"); len(vms) != 2 || vms[0].text("project") != "shop" {
		t.Errorf("the project's VMs: %v", vms)
	}
	if vms := ann.call("listVirtualMachines").list("virtualmachine"); len(vms) != 2 || vms[0].text("account") != "ann" {
		t.Errorf("ann's VMs: %v", vms)
	}
	if networks := ann.call("listNetworks", "projectid="+project).list("network"); len(networks) != 1 || networks[0].text("project") != "shop" || networks[0]["account"] != nil {
		t.Errorf("the project's networks: %v", networks)
	}
	if networks := ann.call("listNetworks").list("network"); len(networks) != 1 || networks[0].text("account") != "ann" {
		t.Errorf("ann's networks: %v", networks)
	}
	events := ann.call("listEvents", "projectid="+project, "type=KUBERNETES.CLUSTER.CREATE").list("event")
	if len(events) != 4 || events[0].text("project") != "shop" || events[0].text("username") != "bob" || events[3].text("username") != "bob" {
		t.Errorf("the project's events: %v", events)
	}

	ann.do("scaleKubernetesCluster", "id="+id, "size=2")
	const no = "Caller does not have permission to operate with provided resource."
	for command, params := range map[string][]string{
		"scaleKubernetesCluster": {"id=" + id, "size=3"}, "deleteKubernetesCluster": {"id=" + id}, list: {"id=" + id},
		"listVirtualMachines": {"projectid=" + project}, "listEvents": {"projectid=" + project}, "listProjects": {"id=" + project},
		"createKubernetesCluster": eve.request("hers", "projectid="+project),
	} {
		eve.denied(no, command, params...)
	}
	l.do("scaleKubernetesCluster", "id="+id, "size=1")

	l.operate("project", "remove", "shop", "bob")
	l.until("bob is no member", time.Minute, func() bool {
		status, _ := bob.send("scaleKubernetesCluster", "id="+id, "size=1")
		return status == 531
	})
	bob.denied(no, list, "projectid="+project)
	bob.only(ids(), "listProjects", "project")
	ann.do("deleteKubernetesCluster", "id="+id)
	l.consistent()
}

// An account is somebody, a project is none: it cannot be given keys or a
// password, nor be found among the accounts.
func TestProjectsAreNoAccounts(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	l.account("ann")
	l.operate("project", "create", "shop", "ann")
	const hidden = "PrjAcct-shop"
	if out := l.operate("account", "list"); strings.Contains(out, hidden) {
		t.Errorf("listed:\n%s", out)
	}
	if out := l.operate("project", "list"); !strings.Contains(out, "shop") || !strings.Contains(out, "ann") {
		t.Errorf("listed:\n%s", out)
	}
	for _, args := range []string{
		"account rotate " + hidden, "account password " + hidden, "account disable " + hidden, "account create " + hidden,
		"project create shop ann", "project create other nobody", "project create other " + hidden, "project create", "project create a",
		"project add shop nobody", "project add nothing ann", "project add shop " + hidden, "project remove shop ann", "project remove shop nobody",
	} {
		if out, err := l.server.command(t, nil, strings.Fields(args)...); err == nil {
			t.Errorf("%s was taken: %s", args, out)
		}
	}
	for _, account := range l.call("listAccounts", "listall=true").list("account") {
		if account.text("name") == hidden {
			t.Errorf("listed: %v", account)
		}
	}
	id := ask[string](t, connect(t, l.url), `SELECT account_id::text FROM projects`)
	if status, a := l.send("listAccounts", "id="+id); status != 431 {
		t.Errorf("by id: %d %v", status, a)
	}
	l.operate("project", "add", "shop", "admin")
	l.operate("project", "add", "shop", "admin") // is one already
}

// listUsers and listAccounts show each account itself, and a root admin all;
// listCapabilities says what is true here (issue 5).
//
// Keeps: §10/directory.
func TestAccountsAndUsersAreListed(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_RATE_LIMIT": "1000"})
	ann := l.account("ann")
	ann.made("hers", "size=2")
	l.account("bob")
	l.operate("account", "disable", "bob")
	mine := ann.call("listAccounts").list("account")
	if len(mine) != 1 {
		t.Fatalf("ann sees %v", mine)
	}
	mine[0].wants(t, "ann", map[string]any{"name": "ann", "accounttype": 0.0, "roletype": "User", "state": "enabled", "domain": "ROOT", "isdefault": false,
		"vmtotal": 3.0, "vmlimit": "Unlimited", "vmavailable": "Unlimited", "cputotal": 6.0, "memorytotal": 6144.0})
	user := ann.call("listUsers", "username=ann").list("user")[0]
	user.wants(t, "her user", map[string]any{"username": "ann", "account": "ann", "accountid": mine[0].text("id"), "state": "enabled", "accounttype": 0.0})
	if inside := mine[0].list("user"); len(inside) != 1 || inside[0].text("id") != user.text("id") {
		t.Errorf("ann's users are %v", inside)
	}
	for params, want := range map[string]int{
		"": 1, "listall=true": 3, "listall=true state=disabled": 1, "listall=true accounttype=1": 1, "listall=true accounttype=0": 2,
		"listall=true keyword=B": 1, "listall=true state=enabled keyword=n": 2, "listall=true page=2 pagesize=2": 1, "keyword=ann": 0,
	} {
		for command, key := range map[string]string{"listUsers": "user", "listAccounts": "account"} {
			if got := l.call(command, strings.Fields(params)...).list(key); len(got) != want {
				t.Errorf("%s %s shows %v", command, params, got)
			}
		}
	}
	l.only(ids(mine[0].text("id")), "listAccounts", "account", "id="+mine[0].text("id"))
	l.only(ids(user.text("id")), "listUsers", "user", "id="+user.text("id"))
	l.only(ids(user.text("id")), "listUsers", "user", "account=ann")
	const no = "Caller does not have permission to operate with provided resource."
	admin := l.call("listUsers").list("user")[0]
	ann.denied(no, "listUsers", "id="+admin.text("id"))
	ann.denied(no, "listAccounts", "id="+admin.text("accountid"))
	ann.denied(no, "listUsers", "account=bob")
	for _, command := range []string{"listUsers", "listAccounts", "listProjects"} {
		if status, a := l.send(command, "id=0f7cf3f0-8a55-4f0c-a1a0-7a7f3f9a2a55"); status != 431 {
			t.Errorf("%s of nobody: %d %v", command, status, a)
		}
	}
	ann.call("listCapabilities").object("capability").wants(t, "capabilities", map[string]any{
		"cloudstackversion": "4.22.0.0", "kubernetesserviceenabled": true, "kubernetesclusterexperimentalfeaturesenabled": false,
		"apilimitmax": 1000.0, "apilimitinterval": 1.0, "allowusercreateprojects": false})
}

// A root admin may create a cluster for another account, whose limits count and
// whose it is; others may not (issue 5).
//
// Keeps: §10/create-for.
func TestAdminCreatesForAnotherAccount(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	ann, bob := l.account("ann"), l.account("bob")
	l.call("updateConfiguration", "name="+maxSizeSetting, "value=3", "accountid="+l.accountID("ann"))
	domain := l.call("listUsers").list("user")[0].text("domainid")
	id := l.made("hers", "account=ann", "domainid="+domain, "size=2")
	ann.only(ids(id), "listKubernetesClusters", "kubernetescluster")
	ann.call("listKubernetesClusters").list("kubernetescluster")[0].wants(t, "hers", map[string]any{"account": "ann"})
	refused := func(c *client, status int, want string, more ...string) {
		t.Helper()
		if got, a := c.send("createKubernetesCluster", c.request("more", more...)...); got != status || !strings.Contains(a.text("errortext"), want) {
			t.Errorf("%q: %d %v", more, got, a)
		}
	}
	const nobody = "0f7cf3f0-8a55-4f0c-a1a0-7a7f3f9a2a55"
	refused(l.client, 431, "can not exceed 3.", "account=ann", "size=3")
	refused(l.client, 431, "Unable to find account by name nobody", "account=nobody")
	refused(l.client, 431, "Account and projectId can't be specified together", "account=ann", "projectid="+nobody)
	refused(l.client, 431, "Invalid parameter projectid value="+nobody, "projectid="+nobody)
	refused(l.client, 431, "Invalid parameter projectid value=-1", "projectid=-1")
	refused(l.client, 431, "Invalid parameter domainid value="+nobody, "account=ann", "domainid="+nobody)
	for _, name := range []string{"ann", "admin", "nobody"} {
		refused(bob, 531, "Caller does not have permission", "account="+name)
	}
	bob.only(ids(), "listKubernetesClusters", "kubernetescluster")
	l.consistent()
}
