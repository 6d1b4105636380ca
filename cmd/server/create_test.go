package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Creating clusters with all that createKubernetesCluster takes, and reading
// them, through HTTP on whole servers.

// idOf is the id of the item of a list that has the name.
func (c *client) idOf(name, command, list string, params ...string) string {
	c.Helper()
	for _, item := range c.call(command, params...).list(list) {
		if item.text("name") == name {
			return item.text("id")
		}
	}
	c.Fatalf("%s %q has no %s", command, params, name)
	return ""
}

// ha are the parameters of a highly available cluster with etcd nodes, and an
// offering and a template for each type of node.
func (c *client) ha(name string) []string {
	c.Helper()
	o := c.offeringsByName()
	return []string{"name=" + name, "description=" + name, "keypair=ops", "zoneid=" + c.idOf("zone1", "listZones", "zone"),
		"kubernetesversionid=" + c.idOf("v1.33.1", "listKubernetesSupportedVersions", "kubernetessupportedversion"),
		"size=1", "controlnodes=3", "etcdnodes=3",
		"nodeofferings[0].node=control", "nodeofferings[0].offering=" + o["medium"],
		"nodeofferings[1].node=worker", "nodeofferings[1].offering=" + o["large"],
		"nodeofferings[2].node=etcd", "nodeofferings[2].offering=" + o["small"],
		"nodeofferings[3].node=default", "nodeofferings[3].offering=" + o["medium"],
		"nodetemplates[0].node=etcd", "nodetemplates[0].template=" + c.idOf("Kubernetes etcd node", "listTemplates", "template", "templatefilter=all"),
	}
}

// order is what a cluster's nodes are, in the order of a list.
func order(vms []answer) (list []string) {
	stem := regexp.MustCompile(`^ha-(etcd-\d|control|node)-[0-9a-f]{11}$`)
	for _, vm := range vms {
		list = append(list, stem.ReplaceAllString(vm.text("name"), "$1"))
	}
	return list
}

// TestHighlyAvailableClusterWithEtcdNodes: its etcd VMs are made first, then
// its control nodes, then its workers, each with its type's offering and
// template, and it lives as any other: it scales up and down, its etcd nodes
// are never removed, and with one of them down it cannot be scaled.
//
// Keeps: §8.1/etcd, §8.2/etcd-no-node, §8.3/order, §8.4/create, §8.5/total, §2.6/type-offerings, §2.6/etcdips, D6.
// Keeps: §2.6/keypair, §2.7/keypairs, §2.8/sizes.
func TestHighlyAvailableClusterWithEtcdNodes(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_SIM_SPEED": "50"})
	a := c.call("createKubernetesCluster", c.ha("ha")...)
	id, o := a.text("id"), c.offeringsByName()
	job := c.ended(a.text("jobid"))
	made := job.object("jobresult").object("kubernetescluster")
	if job["jobstatus"] != 1.0 || made.text("state") != "Running" || made["etcdnodes"] != 3.0 || made["controlnodes"] != 3.0 || made["size"] != 1.0 {
		t.Fatalf("created: %v", job)
	}
	if made.text("cpunumber") != "16" || made.text("memory") != "26624" { // 3·(2, 2048) + 3·(2, 4096) + (4, 8192)
		t.Errorf("%s vCPUs and %s MB", made.text("cpunumber"), made.text("memory"))
	}
	for field, want := range map[string]string{
		"controlofferingid": o["medium"], "controlofferingname": "medium", "workerofferingid": o["large"], "workerofferingname": "large",
		"etcdofferingid": o["small"], "etcdofferingname": "small", "serviceofferingid": "", "keypair": "ops", "associatednetworkname": "ha-network",
	} {
		if got := made.text(field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if ips := made.object("etcdips"); len(ips) != 1 || ips.text(made.text("ipaddressid")) != made.text("ipaddress") {
		t.Errorf("etcdips is %v", ips)
	}
	want := []string{"etcd-1", "etcd-2", "etcd-3", "control", "control", "control", "node"}
	vms := made.list("virtualmachines")
	if got := order(vms); !slices.Equal(got, want) {
		t.Fatalf("VMs are %q", got)
	}
	types := order(c.call("querySimulator", "clusterid="+id).list("vm")) // as the cloud has made them
	for i := range types {
		types[i] = strings.TrimRight(types[i], "-123")
	}
	if got := slices.Compact(types); !slices.Equal(got, []string{"etcd", "control", "node"}) {
		t.Errorf("the cloud made %q", got)
	}
	c.typesOfNodes(id, made.text("templateid"))

	etcd := vms[0].text("id")
	grown := c.do("scaleKubernetesCluster", "id="+id, "size=2").object("kubernetescluster")
	if grown.text("cpunumber") != "20" || len(grown.list("virtualmachines")) != 8 {
		t.Errorf("grown: %v", grown)
	}
	c.refused("etcd", "scaleKubernetesCluster", "id="+id, "nodeids="+etcd)
	c.do("stopVirtualMachine", "id="+etcd)
	c.become(id, "Alert")
	c.refused("Kubernetes cluster ha is in Alert state and a control or etcd node VM is down; recover the control plane before scaling the cluster",
		"scaleKubernetesCluster", "id="+id, "size=1")
	c.refused("Kubernetes cluster ha is in Alert state; only worker nodes can be removed from it",
		"scaleKubernetesCluster", "id="+id, "nodeids="+etcd)
	c.do("startVirtualMachine", "id="+etcd)
	c.become(id, "Running")
	c.do("scaleKubernetesCluster", "id="+id, "size=1")
	if got := order(c.byID(id).list("virtualmachines")); !slices.Equal(got, want) {
		t.Errorf("after growing and shrinking: %q", got)
	}
	c.consistent()
	c.do("deleteKubernetesCluster", "id="+id)
	if left := c.call("querySimulator", "clusterid="+id).list("vm"); len(left) != 0 {
		t.Errorf("VMs are left: %v", left)
	}
}

// typesOfNodes checks the offering, the template and the flags of each node of
// a cluster of ha.
func (c *client) typesOfNodes(id, template string) {
	c.Helper()
	etcdTemplate := c.idOf("Kubernetes etcd node", "listTemplates", "template", "templatefilter=featured")
	flags := map[string]bool{}
	for _, vm := range c.byID(id).list("virtualmachines") {
		flags[vm.text("id")] = vm["isetcdnode"] == true
		if (vm.text("kubernetesnodeversion") == "") != flags[vm.text("id")] || vm.text("keypairs") != "ops" {
			c.Errorf("node %v", vm)
		}
	}
	for _, vm := range c.call("listVirtualMachines", "kubernetesclusterid="+id).list("virtualmachine") {
		want := [2]string{"large", template}
		switch name := vm.text("name"); {
		case strings.Contains(name, "-etcd-"):
			want = [2]string{"small", etcdTemplate}
		case strings.Contains(name, "-control-"):
			want[0] = "medium"
		}
		if got := [2]string{vm.text("serviceofferingname"), vm.text("templateid")}; got != want || flags[vm.text("id")] != (want[1] == etcdTemplate) {
			c.Errorf("%s has %v, want %v; etcd: %t", vm.text("name"), got, want, flags[vm.text("id")])
		}
	}
}

// TestCreateRefusals: what createKubernetesCluster refuses at once, by the
// texts of upstream, and leaves nothing of.
//
// Keeps: §8.6/ha, §8.6/maximum, §8.4/not-kept.
func TestCreateRefusals(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	old := c.idOf("v1.15.12", "listKubernetesSupportedVersions", "kubernetessupportedversion")
	demoNetwork := c.cluster().text("networkid")
	nobody := "7944a42f-fcf2-4f4e-932a-e7b59e0724b1"
	for change, want := range map[string]string{
		"kubernetesversionid=" + old:          "HA support is available only for Kubernetes version 1.16.0 and above. Given version ID: " + old + " is 1.15.12",
		"size=8":                              "Maximum cluster size can not exceed 10. Please contact your administrator",
		"etcdnodes=-1":                        "Invalid cluster etcd nodes count: -1",
		"networkid=" + nobody:                 "Invalid parameter networkid value=" + nobody + " due to incorrect long value format, or entity does not exist",
		"networkid=" + demoNetwork:            "Network ID: " + demoNetwork + " is already under use by another Kubernetes cluster",
		"nodetemplates[0].template=" + nobody: "Cannot find a template with ID " + nobody,
		"nodetemplates[0].node=master":        "The provided value 'master' for Node Type is invalid",
		"noderootdisksize=0":                  "Invalid value for noderootdisksize",
		"dockerregistryurl=https://r.test":    "All the docker private registry parameters (username, password, url) required are specified",
		"cniconfigurationid=" + nobody:        "Invalid parameter cniconfigurationid value=" + nobody + " due to incorrect long value format, or entity does not exist",
		"asnumber=64512":                      "The parameter asnumber is not supported here",
	} {
		status, a := c.send("createKubernetesCluster", append(c.ha("refused"), change)...)
		if status != 431 || !strings.Contains(a.text("errortext"), want) {
			t.Errorf("%s: %d %v\nwant %s", change, status, a, want)
		}
	}
	if n := len(c.call("listKubernetesClusters", "listall=true").list("kubernetescluster")); n != 1 {
		t.Errorf("there are %d clusters", n)
	}
	if names := c.sees("listNetworks", "network", "name"); len(names) != 2 || !names["spare"] || !names["demo-network"] {
		t.Errorf("networks: %v", names)
	}
	// One control node on the old version is none of them.
	c.created("old", "kubernetesversionid="+old, "serviceofferingid="+c.offeringsByName()["small"])
}

// TestNetworksOfClusters: without networkid a cluster gets a network that goes
// with it; with it, one that stays, and that nobody else gets meanwhile.
//
// Keeps: §8.4/network, §2.6/network, clients/networks.
func TestNetworksOfClusters(t *testing.T) {
	t.Parallel()
	c := demo(t, nil)
	small := "serviceofferingid=" + c.offeringsByName()["small"]
	own := c.created("own", small)
	if names := c.sees("listNetworks", "network", "name"); !names["own-network"] || len(names) != 3 {
		t.Errorf("networks: %v", names)
	}
	spare := c.idOf("spare", "listNetworks", "network", "keyword=PAR")
	state := func() string { return c.call("listNetworks", "id="+spare).list("network")[0].text("state") }
	if s := state(); s != "Allocated" {
		t.Errorf("the spare network is %s", s)
	}
	put := c.created("put", small, "networkid="+spare)
	if n := c.byID(put); n.text("networkid") != spare || n.text("associatednetworkname") != "spare" || state() != "Implemented" {
		t.Errorf("put into %v; the network is %s", n, state())
	}
	for _, vm := range c.call("listVirtualMachines", "networkid="+spare).list("virtualmachine") {
		if nic := vm.list("nic")[0]; nic.text("networkname") != "spare" {
			t.Errorf("NIC %v", nic)
		}
	}
	gone := c.byID(own).text("networkid")
	c.do("deleteKubernetesCluster", "id="+own)
	c.do("deleteKubernetesCluster", "id="+put)
	if names := c.sees("listNetworks", "network", "name"); names["own-network"] || !names["spare"] || state() != "Allocated" {
		t.Errorf("networks: %v; the spare one is %s", names, state())
	}
	if status, a := c.send("listNetworks", "id="+gone); status != 431 || !strings.Contains(a.text("errortext"), "entity does not exist") {
		t.Errorf("%d %v", status, a)
	}
	c.created("again", small, "networkid="+spare)
}

// kubeconfig is the part of one that a client reads.
type kubeconfig struct {
	Clusters []struct {
		Name    string
		Cluster struct {
			Server string
			CA     string `yaml:"certificate-authority-data"`
		}
	}
	Contexts []struct {
		Name    string
		Context struct{ Cluster, User string }
	}
	Current string `yaml:"current-context"`
	Users   []struct {
		Name string
		User struct {
			Certificate string `yaml:"client-certificate-data"`
			Key         string `yaml:"client-key-data"`
		}
	}
}

// kubeconfig gets a cluster's, checks it as client-go does, and returns it with
// its text.
func (c *client) kubeconfig(id string) (k kubeconfig, text string) {
	c.Helper()
	config := c.call("getKubernetesClusterConfig", "id="+id).object("clusterconfig")
	text = config.text("configdata")
	if err := yaml.Unmarshal([]byte(text), &k); err != nil || config.text("id") != id || len(k.Clusters) != 1 || len(k.Users) != 1 || len(k.Contexts) != 1 {
		c.Fatalf("%v in %v", err, config)
	}
	if x := k.Contexts[0]; k.Current != x.Name || x.Context.Cluster != k.Clusters[0].Name || x.Context.User != k.Users[0].Name {
		c.Errorf("contexts do not agree: %s", text)
	}
	var pem [3][]byte
	for i, s := range []string{k.Clusters[0].Cluster.CA, k.Users[0].User.Certificate, k.Users[0].User.Key} {
		var err error
		if pem[i], err = base64.StdEncoding.DecodeString(s); err != nil {
			c.Fatal(err)
		}
	}
	pair, err := tls.X509KeyPair(pem[1], pem[2])
	if err != nil {
		c.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem[0])
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		c.Error(err)
	}
	return k, text
}

// decodedKey is the administrator's key, in PEM.
func decodedKey(t testing.TB, k kubeconfig) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(k.Users[0].User.Key)
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

// TestKubeconfig: it leads to the cluster's endpoint, is the same each time and
// another for each cluster, also while the cluster is stopped or scaled; it is
// refused while the cluster is being made, to others, and once it is gone. The
// database has no key of it in clear.
//
// Keeps: clients/config, clients/config-same, clients/config-refused, clients/config-sealed.
func TestKubeconfig(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	id := l.id()
	k, text := l.kubeconfig(id)
	if server := k.Clusters[0].Cluster.Server; server+"/" != l.cluster().text("endpoint") {
		t.Errorf("server is %q", server)
	}
	if _, again := l.kubeconfig(id); again != text {
		t.Error("it changed")
	}
	db := connect(t, l.url)
	body := strings.Split(decodedKey(t, k), "\n")[1]
	if n := ask[int](t, db, `SELECT count(*) FROM cluster_credentials c
		WHERE position($1::bytea IN key_sealed) > 0 OR row_to_json(c)::text LIKE '%PRIVATE%'`, []byte(body)); n != 0 {
		t.Error("its key is stored in clear")
	}

	a := l.account("other")
	a.denied("Caller does not have permission to operate with provided resource.", "getKubernetesClusterConfig", "id="+id)

	l.simulate("vm.create", "hang")
	made := l.call("createKubernetesCluster", l.ha("fresh")...)
	if status, a := l.send("getKubernetesClusterConfig", "id="+made.text("id")); status != 530 ||
		a.text("errortext") != "Setup is in progress for Kubernetes cluster : fresh, config not available at this moment" {
		t.Errorf("while it is made: %d %v", status, a)
	}
	l.simulate("vm.create", "clear")
	if job := l.ended(made.text("jobid")); job["jobstatus"] != 1.0 {
		t.Fatalf("create: %v", job)
	}
	if _, other := l.kubeconfig(made.text("id")); other == text {
		t.Error("two clusters have one kubeconfig")
	}
	l.do("deleteKubernetesCluster", "id="+made.text("id"))
	if status, a := l.send("getKubernetesClusterConfig", "id="+made.text("id")); status != 530 || a.text("errortext") != "Invalid Kubernetes cluster ID specified" {
		t.Errorf("of a deleted one: %d %v", status, a)
	}
	if n := ask[int](t, db, "SELECT count(*) FROM cluster_credentials"); n != 1 {
		t.Errorf("%d credentials are kept", n)
	}
}

// TestTemplates: what listTemplates shows, by filter, id, name and keyword.
//
// Keeps: clients/templates.
func TestTemplates(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	ann := l.account("ann")
	both := map[string]bool{"Kubernetes node": true, "Kubernetes etcd node": true}
	etcd := l.idOf("Kubernetes etcd node", "listTemplates", "template", "templatefilter=all")
	for params, want := range map[string]int{
		"templatefilter=featured": 2, "templatefilter=executable": 2, "templatefilter=self": 0, "templatefilter=community": 0,
		"templatefilter=featured name=Kubernetes%20node": 0, "templatefilter=featured keyword=ETCD": 1,
		"templatefilter=featured id=" + etcd: 1, "templatefilter=featured ids=" + etcd: 1, "templatefilter=featured page=2 pagesize=1": 1,
	} {
		list := ann.call("listTemplates", strings.Fields(params)...).list("template")
		if len(list) != want {
			t.Errorf("%s lists %v", params, list)
		}
		for _, item := range list {
			if !both[item.text("name")] || item["isready"] != true {
				t.Errorf("%s lists %v", params, item)
			}
		}
	}
	for params, want := range map[string]string{
		"":                    "Unable to execute API command listtemplates due to missing parameter templatefilter",
		"templatefilter=mine": "Please specify a valid templatefilter: mine is none",
		"templatefilter=all":  "Filter all can be specified by admin only",
		"templatefilter=featured id=7944a42f-fcf2-4f4e-932a-e7b59e0724b1": "Invalid parameter id value=7944a42f-fcf2-4f4e-932a-e7b59e0724b1 due to incorrect",
	} {
		if status, a := ann.send("listTemplates", strings.Fields(params)...); status != 431 || !strings.Contains(a.text("errortext"), want) {
			t.Errorf("%q: %d %v", params, status, a)
		}
	}
}

// TestVersionsAreManaged: an administrator adds a Kubernetes version, disables
// and deletes it; nobody else does, and what a cluster has is not deleted.
//
// Keeps: clients/versions.
func TestVersionsAreManaged(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	fresh := []string{"semanticversion=1.35.0", "mincpunumber=2", "minmemory=2048", "url=https://example.test/iso"}
	v := l.call("addKubernetesSupportedVersion", fresh...).object("kubernetessupportedversion")
	id := v.text("id")
	if v.text("name") != "v1.35.0" || v.text("state") != "Enabled" || v["supportsha"] != true || v["mincpunumber"] != 2.0 {
		t.Errorf("added: %v", v)
	}
	listed := func() []answer {
		return l.call("listKubernetesSupportedVersions", "minimumsemanticversion=1.35.0").list("kubernetessupportedversion")
	}
	if list := listed(); len(list) != 1 || list[0].text("id") != id {
		t.Errorf("listed: %v", list)
	}
	v = l.call("updateKubernetesSupportedVersion", "id="+id, "state=Disabled").object("kubernetessupportedversion")
	if v.text("state") != "Disabled" || v.text("id") != id {
		t.Errorf("updated: %v", v)
	}
	if status, a := l.send("createKubernetesCluster", append(l.ha("x"), "kubernetesversionid="+id)...); status != 431 || !strings.Contains(a.text("errortext"), "is in Disabled state") {
		t.Errorf("%d %v", status, a)
	}
	l.refused("Existing clusters currently using the version.", "deleteKubernetesSupportedVersion", "id="+l.cluster().text("kubernetesversionid"))
	if gone := l.do("deleteKubernetesSupportedVersion", "id="+id); gone["success"] != true || len(listed()) != 0 {
		t.Errorf("deleted: %v, listed %v", gone, listed())
	}
	ann := l.account("ann")
	for command, params := range map[string][]string{
		"addKubernetesSupportedVersion": fresh, "updateKubernetesSupportedVersion": {"id=" + id, "state=Enabled"}, "deleteKubernetesSupportedVersion": {"id=" + id},
	} {
		if status, a := ann.send(command, params...); status != 432 {
			t.Errorf("%s: %d %v", command, status, a)
		}
	}
}
