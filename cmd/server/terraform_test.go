package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// resource is what somebody has written for a cloudstack_kubernetes_cluster,
// by the names of its arguments; zone, offering and version are names or ids.
type resource map[string]string

// terraform plays the Terraform provider with cloudstack-go (clients.md §4),
// for one cluster: its requests in their order, and the state that it reads.
type terraform struct {
	*client
	id    string
	state resource // as it was read last
	posts []string // the changes that it sent
}

// goStyle is how cloudstack-go writes requests.
var goStyle = dialects[1]

// request makes one request; the error is what cloudstack-go makes of its
// status, and the answer is what it would decode.
func (tf *terraform) request(command string, params ...string) (reply, error) {
	tf.Helper()
	r := tf.speak(goStyle, command, params...)
	if r.status != http.StatusOK {
		return r, fmt.Errorf("CloudStack API error %v (CSExceptionErrorCode: %v): %v", r.answer["errorcode"], r.answer["cserrorcode"], r.answer["errortext"])
	}
	return r, nil
}

// change sends a change and waits for its job. Whatever is the only value in
// the result is decoded into v, unless that is nil.
func (tf *terraform) change(v any, command string, params ...string) error {
	tf.Helper()
	tf.posts = append(tf.posts, command+" "+strings.Join(names(params), " "))
	r, err := tf.request(command, params...)
	if err != nil {
		return err
	}
	job := tf.polled(goStyle, r.answer.text("jobid"))
	if *job.JobStatus != 1 {
		return fmt.Errorf("Undefined error: %s", job.JobResult["errortext"]) //nolint:staticcheck // cloudstack-go's words
	}
	if len(job.JobResult) != 1 {
		tf.Fatalf("result %s", job.JobResult)
	}
	if v == nil {
		return nil
	}
	for _, raw := range job.JobResult {
		if err := json.Unmarshal(raw, v); err != nil {
			tf.Fatalf("result %s: %v", raw, err)
		}
	}
	return nil
}

// names are those of parameters, without their values.
func names(params []string) []string {
	var list []string
	for _, p := range pairs(params) {
		list = append(list, p.name)
	}
	slices.Sort(list)
	return list
}

// resolve finds the id for the name of a zone, an offering or a version, which
// may be an id already: one row, or the one of that very name.
func (tf *terraform) resolve(value, command, by string) string {
	tf.Helper()
	if isUUID.MatchString(value) {
		return value
	}
	r, err := tf.request(command, by+"="+value)
	if err != nil {
		tf.Fatal(err)
	}
	var found struct {
		Count                                             int
		Zone, ServiceOffering, KubernetesSupportedVersion []struct{ ID, Name string }
	}
	r.into(tf, &found)
	for _, row := range slices.Concat(found.Zone, found.ServiceOffering, found.KubernetesSupportedVersion) {
		if found.Count == 1 || row.Name == value {
			return row.ID
		}
	}
	tf.Fatalf("Could not find an exact match for %s: %s", value, r.raw)
	return ""
}

func (tf *terraform) offering(value string) string {
	tf.Helper()
	return tf.resolve(value, "listServiceOfferings", "name")
}

func (tf *terraform) version(value string) string {
	tf.Helper()
	return tf.resolve(value, "listKubernetesSupportedVersions", "keyword")
}

// create makes the cluster. When that fails it adopts what was half made.
func (tf *terraform) create(want resource) error {
	tf.Helper()
	params := []string{
		"serviceofferingid=" + tf.offering(want["service_offering"]),
		"zoneid=" + tf.resolve(want["zone"], "listZones", "name"),
		"kubernetesversionid=" + tf.version(want["kubernetes_version"]),
		"name=" + want["name"], "description=" + want["description"], "size=" + want["size"],
	}
	for argument, param := range map[string]string{"control_nodes_size": "controlnodes", "keypair": "keypair", "network_id": "networkid"} {
		if want[argument] != "" {
			params = append(params, param+"="+want[argument])
		}
	}
	var made typedCluster
	err := tf.change(&made, "createKubernetesCluster", params...)
	if err != nil {
		clusters, count := tf.halfMade(want["name"])
		if count == 1 {
			tf.id = clusters[0].ID
		}
		return err
	}
	tf.id = made.ID
	if want["autoscaling_enabled"] == "true" {
		err = tf.autoscale(want)
	}
	tf.read(want)
	return err
}

// halfMade lists by name; such clusters may lack VMs.
func (tf *terraform) halfMade(name string) ([]typedCluster, int) {
	tf.Helper()
	r, err := tf.request("listKubernetesClusters", "name="+name)
	if err != nil {
		tf.Fatal(err)
	}
	var list struct {
		Count             int
		KubernetesCluster []typedCluster
	}
	r.into(tf, &list)
	return list.KubernetesCluster, list.Count
}

// autoscale sends the setting and both bounds, which are 0 when they are not
// set.
func (tf *terraform) autoscale(want resource) error {
	tf.Helper()
	bound := func(name string) string {
		if want[name] == "" {
			return "0"
		}
		return want[name]
	}
	return tf.change(nil, "scaleKubernetesCluster", "id="+tf.id, "autoscalingenabled="+strconv.FormatBool(want["autoscaling_enabled"] == "true"),
		"minsize="+bound("min_size"), "maxsize="+bound("max_size"))
}

// read lists the cluster by its id, and takes it for gone when there is none.
// Where an id was written, it reads the id, else the name.
func (tf *terraform) read(want resource) (gone bool) {
	tf.Helper()
	clusters, count := tf.listed(goStyle, "id="+tf.id)
	if count == 0 {
		tf.state = nil
		return true
	}
	c := clusters[0]
	as := func(argument, name, id string) string {
		if isUUID.MatchString(want[argument]) {
			return id
		}
		return name
	}
	tf.state = resource{
		"name": c.Name, "description": c.Description, "state": c.State, "network_id": c.NetworkID, "ip_address": c.IPAddress,
		"size": fmt.Sprint(*c.Size), "control_nodes_size": fmt.Sprint(*c.ControlNodes), "etcd_nodes_size": fmt.Sprint(*c.EtcdNodes),
		"account": c.Account, "domain_id": c.DomainID, "keypair": c.Keypair, "autoscaling_enabled": strconv.FormatBool(c.AutoscalingEnabled),
		"kubernetes_version": as("kubernetes_version", c.KubernetesVersionName, c.KubernetesVersionID),
		"service_offering":   as("service_offering", c.ServiceOfferingName, c.ServiceOfferingID),
		"zone":               as("zone", c.ZoneName, c.ZoneID),
	}
	if c.AutoscalingEnabled {
		tf.state["min_size"], tf.state["max_size"] = fmt.Sprint(c.MinSize), fmt.Sprint(c.MaxSize)
	}
	return false
}

// plan reads the cluster and returns the arguments that are not as they were
// written: what the next update would change.
func (tf *terraform) plan(want resource) map[string]bool {
	tf.Helper()
	if tf.read(want) {
		tf.Fatalf("the cluster %s is gone", want["name"])
	}
	changed := map[string]bool{}
	for argument, value := range want {
		if tf.state[argument] != value {
			changed[argument] = true
		}
	}
	return changed
}

// apply brings the cluster to what is written, in the provider's order, and
// plans anew: nothing may be left, and what was not written may not change.
func (tf *terraform) apply(want resource) {
	tf.Helper()
	changed := tf.plan(want)
	before := tf.state
	if err := tf.update(want, changed); err != nil {
		tf.Errorf("update of %v: %v", slices.Sorted(maps.Keys(changed)), err)
	}
	if drift := tf.plan(want); len(drift) != 0 {
		tf.Errorf("after the update of %v the plan has %v: %v", changed, drift, tf.state)
	}
	for argument, value := range before {
		_, still := tf.state[argument]
		if written := want[argument] != ""; argument != "state" && !written && still && tf.state[argument] != value {
			tf.Errorf("%s was %q and is %q", argument, value, tf.state[argument])
		}
	}
}

func (tf *terraform) update(want resource, changed map[string]bool) error {
	tf.Helper()
	if changed["service_offering"] || changed["size"] { // both are sent, whichever has changed
		err := tf.change(nil, "scaleKubernetesCluster", "id="+tf.id, "serviceofferingid="+tf.offering(want["service_offering"]), "size="+want["size"])
		if err != nil {
			return err
		}
	}
	if changed["autoscaling_enabled"] || changed["min_size"] || changed["max_size"] {
		if err := tf.autoscale(want); err != nil {
			return err
		}
	}
	if changed["kubernetes_version"] {
		if err := tf.change(nil, "upgradeKubernetesCluster", "id="+tf.id, "kubernetesversionid="+tf.version(want["kubernetes_version"])); err != nil {
			return err
		}
	}
	switch {
	case changed["state"] && want["state"] == "Running":
		return tf.change(nil, "startKubernetesCluster", "id="+tf.id)
	case changed["state"] && want["state"] == "Stopped":
		return tf.change(nil, "stopKubernetesCluster", "id="+tf.id)
	}
	return nil
}

// delete deletes the cluster. An error that says that it does not exist is
// none.
func (tf *terraform) delete() error {
	tf.Helper()
	err := tf.change(nil, "deleteKubernetesCluster", "id="+tf.id)
	if err != nil && strings.Contains(err.Error(), "Invalid parameter id value="+tf.id+" due to incorrect long value format, or entity does not exist") {
		return nil
	}
	return err
}

var goForm = regexp.MustCompile(`^apiKey=[^&]+&command=scaleKubernetesCluster&expires=\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\dZ&id=1&` +
	`nodeofferings%5B0%5D\.node=control&nodeofferings%5B0%5D\.offering=o2&response=json&signature=[^&]+&signatureversion=3&size=3$`)

// cloudstack-go's changes are POSTs of a sorted form (clients.md §6), its reads
// are GETs.
func TestTerraformAsksAsTheRealOne(t *testing.T) {
	t.Parallel()
	k := keys{"stub-api-key", "stub-secret"}
	req, err := goStyle.request(t.Context(), "http://h/client/api", k, "scaleKubernetesCluster", "size=3", "id=1",
		"nodeofferings[0].node=control", "nodeofferings[0].offering=o2")
	if err != nil {
		t.Fatal(err)
	}
	var body strings.Builder
	if err := req.Write(&body); err != nil {
		t.Fatal(err)
	}
	_, sent, _ := strings.Cut(body.String(), "\r\n\r\n")
	if req.Method != "POST" || req.URL.RawQuery != "" || !goForm.MatchString(sent) {
		t.Errorf("%s %s %s", req.Method, req.URL, sent)
	}
	req, err = goStyle.request(t.Context(), "http://h/client/api", k, "queryAsyncJobResult", "jobid=1")
	if err != nil {
		t.Fatal(err)
	}
	if q := req.URL.Query(); req.Method != "GET" || q.Get("signatureversion") != "3" || !strings.Contains(req.URL.RawQuery, "&signature=") {
		t.Errorf("%s %s", req.Method, req.URL)
	}
	expires, err := time.Parse(time.RFC3339, req.URL.Query().Get("expires"))
	if in := time.Until(expires); err != nil || in < 14*time.Minute || in > 15*time.Minute {
		t.Errorf("it expires in %s: %v", in, err)
	}
}
