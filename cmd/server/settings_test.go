package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"ckscale/internal/store/storetest"
)

// setting is one that is listed.
func (c *client) setting(name string, params ...string) answer {
	c.Helper()
	list := c.call("listConfigurations", append(params, "name="+name)...).list("configuration")
	if len(list) != 1 {
		c.Fatalf("%s is listed as %v", name, list)
	}
	return list[0]
}

// wants checks fields of an answer.
func (a answer) wants(t testing.TB, what string, fields map[string]any) {
	t.Helper()
	for name, want := range fields {
		if a[name] != want {
			t.Errorf("%s: %s is %v, want %v", what, name, a[name], want)
		}
	}
}

// accountID is the id of an account, as listAccounts shows it.
func (c *client) accountID(name string) string {
	c.Helper()
	list := c.call("listAccounts", "name="+name, "listall=true").list("account")
	if len(list) != 1 {
		c.Fatalf("account %s is listed as %v", name, list)
	}
	return list[0].text("id")
}

const (
	maxSizeSetting = "cloud.kubernetes.cluster.max.size"
	scaleTimeout   = "cloud.kubernetes.cluster.scale.timeout"
	drainTimeout   = "cloud.kubernetes.cluster.node.drain.timeout"
)

// A setting that is changed at one server is gone by at every other at once, and
// kept when they start anew; its default is what the environment says. An
// account may have a maximum of its own (cks.md §9, §3.1).
//
// Keeps: §9/list, §9/update, §9/environment, §9/max-size, §3.1/max-of-owner.
func TestSettingsCountAtEveryServer(t *testing.T) {
	t.Parallel()
	database := storetest.URL(t)
	l := newLab(t, map[string]string{"DATABASE_URL": database, "CKSCALE_MAX_SIZE": "7", "CKSCALE_ENCRYPTION_KEY": storetest.Key.Text()})
	other := launch(t, childEnv(t, map[string]string{"DATABASE_URL": database, "CKSCALE_MAX_SIZE": "7"}))
	there := &client{t, apiURL(other.serving(t)), adminKeys}
	there.setting(maxSizeSetting).wants(t, "at the start", map[string]any{
		"value": "7", "defaultvalue": "7", "scope": "account", "category": "Advanced", "type": "Number", "isdynamic": true, "id": nil})
	ann := l.account("ann")
	hers := ann.create("mine")[0]

	changed := l.call("updateConfiguration", "name="+maxSizeSetting, "value=4").object("configuration")
	changed.wants(t, "changed", map[string]any{"name": maxSizeSetting, "value": "4", "defaultvalue": "7"})
	there.setting(maxSizeSetting).wants(t, "elsewhere", map[string]any{"value": "4", "defaultvalue": "7"})
	const tooLarge = "Maximum cluster size can not exceed 4. Please contact your administrator"
	there.refused(tooLarge, "scaleKubernetesCluster", "id="+there.id(), "size=3") // and 3 control nodes
	there.in(t).as(ann.keys).refused(tooLarge, "scaleKubernetesCluster", "id="+hers, "size=4")

	id := l.accountID("ann")
	there.call("updateConfiguration", "name="+maxSizeSetting, "value=5", "accountid="+id).object("configuration").
		wants(t, "of ann", map[string]any{"value": "5", "id": id})
	l.setting(maxSizeSetting, "accountid="+id).wants(t, "ann's", map[string]any{"value": "5", "id": id, "defaultvalue": "7"})
	l.setting(maxSizeSetting).wants(t, "everybody's", map[string]any{"value": "4"})
	if all := l.call("listConfigurations", "accountid="+id).list("configuration"); len(all) != 1 {
		t.Errorf("an account can have %v", all)
	}
	ann.do("scaleKubernetesCluster", "id="+hers, "size=4")
	ann.refused("Maximum cluster size can not exceed 5.", "scaleKubernetesCluster", "id="+hers, "size=5")
	l.do("scaleKubernetesCluster", "id="+hers, "size=3") // it is the owner's that counts
	l.do("scaleKubernetesCluster", "id="+hers, "size=4")
	if status, a := ann.send("createKubernetesCluster", ann.request("larger", "size=5")...); status != 431 || !strings.Contains(a.text("errortext"), "can not exceed 5.") {
		t.Errorf("create: %d %v", status, a)
	}
	l.call("updateConfiguration", "name="+maxSizeSetting, "value=6", "accountid="+id)
	ann.do("scaleKubernetesCluster", "id="+hers, "size=5")

	third := launch(t, childEnv(t, map[string]string{"DATABASE_URL": database, "CKSCALE_MAX_SIZE": "8"}))
	(&client{t, apiURL(third.serving(t)), adminKeys}).setting(maxSizeSetting).wants(t, "after a start", map[string]any{"value": "4", "defaultvalue": "8"})
	events := l.call("listEvents", "type=CONFIGURATION.VALUE.EDIT").list("event")
	if len(events) != 3 || events[0].text("username") != "admin" || !strings.Contains(events[2].text("description"), maxSizeSetting) {
		t.Errorf("events: %v", events)
	}
	l.consistent()
}

// The time that a job has is the one that is set when it begins; so is that of a
// drain (cks.md §9).
//
// Keeps: §9/timeouts.
func TestTimeoutsAreThoseWhenTheJobBegins(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	id := l.id()
	for name, want := range map[string]string{"start": "3600", "scale": "3600", "upgrade": "3600", "add.node": "3600", "remove.node": "900"} {
		l.setting("cloud.kubernetes.cluster."+name+".timeout").wants(t, name, map[string]any{"value": want, "defaultvalue": want, "scope": "global"})
	}
	l.simulate("node.join", "fail", "clusterid="+id)
	l.call("updateConfiguration", "name="+scaleTimeout, "value=2")
	first := l.start("scaleKubernetesCluster", "id="+id, "size=3")
	l.call("updateConfiguration", "name="+scaleTimeout, "value=3600")
	if job := l.ended(first); job["jobstatus"] != 2.0 {
		t.Errorf("the job had 2 seconds: %v", job)
	}
	l.simulate("node.join", "clear", "clusterid="+id)
	l.inState("Running")
	l.do("scaleKubernetesCluster", "id="+id, "size=3")

	l.setting(drainTimeout).wants(t, "drain", map[string]any{"value": "60"})
	l.call("updateConfiguration", "name="+drainTimeout, "value=1")
	l.simulate("node.drain", "hang", "clusterid="+id)
	begin := time.Now()
	job := l.ended(l.start("scaleKubernetesCluster", "id="+id, "size=2"))
	if took := time.Since(begin); job["jobstatus"] != 2.0 || took > 45*time.Second {
		t.Errorf("a drain that hangs took %s: %v", took, job)
	}
	l.simulate("node.drain", "clear", "clusterid="+id)
	l.inState("Running")
}

// Settings are the root admin's, and take no value that makes no sense; what the
// environment decides is refused with the reason, and changes nothing (cks.md §9).
//
// Keeps: §9/read-only, §9/values, §9/admin.
func TestSettingsAreCheckedAndGuarded(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_ENFORCE_POST": "false"})
	ann := l.account("ann")
	before := l.call("listConfigurations")
	n := int(before["count"].(float64))
	if list := before.list("configuration"); n < 20 || len(list) != n {
		t.Errorf("%d settings, listed %d", n, len(list))
	}
	for name, value := range map[string]string{
		"cloud.kubernetes.service.enabled": "true", "cloud.kubernetes.cluster.experimental.features.enabled": "false",
		"enforce.post.requests.and.timestamps": "false", "default.page.size": "500", "api.sessionkey.check.locations": "CookieAndParameter",
		"json.content.type": "application/json; charset=UTF-8", "endpoint.url": l.client.url,
	} {
		l.setting(name).wants(t, name, map[string]any{"value": value, "defaultvalue": value, "scope": "global", "isdynamic": name == "endpoint.url"})
	}
	id := l.accountID("ann")
	const nobody = "0f7cf3f0-8a55-4f0c-a1a0-7a7f3f9a2a55"
	for _, c := range []struct{ params, want string }{
		{"name=cloud.kubernetes.service.enabled value=false", "can not be changed by updateConfiguration: it is decided by the server and its environment"},
		{"name=enforce.post.requests.and.timestamps value=true", "can not be changed"},
		{"name=no.such.setting value=1", "Config parameter with name no.such.setting doesn't exist"},
		{"name=" + maxSizeSetting + " value=0", "Please enter a whole number from 1 to"},
		{"name=" + maxSizeSetting + " value=-5", "Please enter a whole number from 1 to"},
		{"name=" + maxSizeSetting + " value=ten", "Please enter a whole number from 1 to"},
		{"name=" + maxSizeSetting + " value=99999999999", "Please enter a whole number from 1 to"},
		{"name=" + scaleTimeout + " value=1.5", "Please enter a whole number from 1 to"},
		{"name=endpoint.url value=ftp://x", "Please enter an http or https URL"},
		{"name=" + scaleTimeout + " value=5 accountid=" + id, "can not be set for an account"},
		{"name=" + maxSizeSetting + " value=5 accountid=" + nobody, "Invalid parameter accountid value=" + nobody},
		{"name=" + maxSizeSetting, "missing parameter value"},
		{"value=5", "missing parameter name"},
		{"name=" + maxSizeSetting + " value=", "Invalid value provided for API arg: value"},
	} {
		if status, a := l.send("updateConfiguration", strings.Fields(c.params)...); status != 431 || !strings.Contains(a.text("errortext"), c.want) {
			t.Errorf("%s: %d %v", c.params, status, a)
		}
	}
	if status, _ := l.send("listConfigurations", "accountid="+nobody); status != 431 {
		t.Errorf("settings of nobody: %d", status)
	}
	for _, command := range []string{"listConfigurations", "updateConfiguration"} {
		if status, a := ann.send(command, "name="+maxSizeSetting, "value=99"); status != 432 {
			t.Errorf("%s by ann: %d %v", command, status, a)
		}
	}
	same(t, fmt.Sprint(before), fmt.Sprint(l.call("listConfigurations")))
	if found := l.call("listConfigurations", "keyword=TIMEOUT", "page=1", "pagesize=2"); len(found.list("configuration")) != 2 || found["count"] != 6.0 {
		t.Errorf("by keyword: %v", found)
	}
	if found := l.call("listConfigurations", "category=Storage"); len(found) != 0 {
		t.Errorf("by category: %v", found)
	}
}

// Where clusters reach the API can be said while the server runs: then they can
// autoscale.
//
// Keeps: §3.1/9c.
func TestEndpointURLIsASetting(t *testing.T) {
	t.Parallel()
	l := newLab(t, map[string]string{"CKSCALE_ENDPOINT_URL": "http://localhost:8080/client/api"})
	on := []string{"id=" + l.id(), "autoscalingenabled=true", "minsize=1", "maxsize=3"}
	l.refused("Global setting endpoint.url has to be set to the Management Server's API end point", "scaleKubernetesCluster", on...)
	l.call("updateConfiguration", "name=endpoint.url", "value=https://cks.example.com/client/api")
	l.do("scaleKubernetesCluster", on...)
	if status, _ := l.send("updateConfiguration", "name=ENDPOINT.URL", "value=http://localhost/client/api"); status != http.StatusOK {
		t.Errorf("by another case: %d", status)
	}
	l.setting("endpoint.url").wants(t, "at the end", map[string]any{"value": "http://localhost/client/api"})
}
