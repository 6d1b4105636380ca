package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ckscale/internal/store/storetest"
)

// What the clients of clients.md send and read, through HTTP on whole servers.

// lab is a server with the demo cluster, and a client of the account admin.
type lab struct {
	*client
	server *instance
	url    string // of the database
}

// newLab is demo for tests that need more than a client.
func newLab(t testing.TB, env map[string]string) *lab {
	t.Helper()
	all := map[string]string{
		"DATABASE_URL": storetest.URL(t), "CKSCALE_DEMO": "true", "CKSCALE_DATA_DIR": t.TempDir(),
		"CKSCALE_ADMIN_API_KEY": adminKeys.API, "CKSCALE_ADMIN_SECRET_KEY": adminKeys.Secret, "CKSCALE_RETRY_WAIT": "50ms",
	}
	for name, value := range env {
		all[name] = value
	}
	s := launch(t, all)
	c := &client{t, apiURL(s.serving(t)), adminKeys}
	c.settles()
	return &lab{c, s, all["DATABASE_URL"]}
}

// in is the same client in a subtest.
func (c *client) in(t testing.TB) *client { return &client{t, c.url, c.keys} }

// as is the same client for another account.
func (c *client) as(k keys) *client { return &client{c.TB, c.url, k} }

// pair is one parameter of a request.
type pair struct{ name, value string }

func pairs(params []string) []pair {
	var out []pair
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		out = append(out, pair{name, value})
	}
	return out
}

// escape is how clients write values, in requests and in what they sign.
func escape(s string) string {
	return strings.NewReplacer("+", "%20", "%2A", "*").Replace(url.QueryEscape(s))
}

// signature signs as clients.md §1 says: names as they are, in byte order.
func (k keys) signature(params []pair) string {
	sorted := slices.SortedStableFunc(slices.Values(params), func(a, b pair) int { return strings.Compare(a.name, b.name) })
	var parts []string
	for _, p := range sorted {
		parts = append(parts, p.name+"="+escape(p.value))
	}
	mac := hmac.New(sha1.New, []byte(k.Secret))
	mac.Write([]byte(strings.ToLower(strings.Join(parts, "&"))))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// reply is an answer that any client can read.
type reply struct {
	status int
	header http.Header
	key    string
	raw    json.RawMessage // what is under key
	answer answer
}

// fetch makes a request and checks what holds of every answer: JSON, one key
// that ends in "response", an object under it, no null (clients.md §1).
func (c *client) fetch(req *http.Request) reply {
	c.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	return c.read(resp)
}

func (c *client) read(resp *http.Response) reply {
	c.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json; charset=UTF-8" {
		c.Fatalf("%s: Content-Type %q", body, got)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil || len(top) != 1 {
		c.Fatalf("%s: %v", body, err)
	}
	if bytes.Contains(body, []byte(":null")) {
		c.Errorf("a null in %s", body)
	}
	r := reply{status: resp.StatusCode, header: resp.Header}
	for r.key, r.raw = range top {
	}
	if err := json.Unmarshal(r.raw, &r.answer); err != nil || !strings.HasSuffix(r.key, "response") {
		c.Fatalf("%s: %v", body, err)
	}
	return r
}

// into decodes what is under the one key as a typed client does.
func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.raw, v); err != nil {
		t.Fatalf("%s: %v", r.raw, err)
	}
}

// dialect is how one client writes requests (clients.md §2-§6).
type dialect struct {
	name          string
	reads, writes string // methods
	rawNames      bool   // a query has the brackets of names as they are
	adds          func(command string) []string
}

const expiry = "2006-01-02T15:04:05"

var dialects = []dialect{
	{name: "cluster-autoscaler", reads: "GET", writes: "GET"},
	{name: "cloudstack-go", reads: "GET", writes: "POST", adds: goAdds},
	{name: "cmk", reads: "GET", writes: "GET", rawNames: true, adds: func(command string) []string {
		if isRead.MatchString(command) {
			return []string{"filter=id,name,size,state"} // A11
		}
		return nil
	}},
	{name: "csbench", reads: "GET", writes: "POST", adds: func(command string) []string {
		add := []string{"listall=true", "signatureVersion=3", "expires=" + time.Now().UTC().Add(10*time.Minute).Format(expiry+"Z")}
		if isRead.MatchString(command) {
			add = append(add, "page=1", "pagesize=5")
		}
		return add
	}},
	{name: "python-cs", reads: "GET", writes: "GET", adds: pythonAdds},
	{name: "python-cs by POST", reads: "POST", writes: "POST", adds: pythonAdds},
	{name: "cloudstack-go with HTTPGETOnly", reads: "GET", writes: "GET", adds: goAdds}, // Terraform's http_get_only
}

func goAdds(string) []string {
	return []string{"signatureversion=3", "expires=" + time.Now().UTC().Add(15*time.Minute).Format(expiry+"Z")}
}

func pythonAdds(string) []string {
	return []string{"signatureVersion=3", "expires=" + time.Now().UTC().Add(10*time.Minute).Format(expiry+"+0000")}
}

var isRead = regexp.MustCompile(`^(get|list|query|find)`)

// request writes a request as the client does: the signature comes last in a
// query, and where it sorts in a form.
func (d dialect) request(ctx context.Context, base string, k keys, command string, params ...string) (*http.Request, error) {
	all := append(pairs(params), pair{"command", command}, pair{"response", "json"}, pair{"apiKey", k.API})
	if d.adds != nil {
		all = append(all, pairs(d.adds(command))...)
	}
	signature := k.signature(all)
	method := d.writes
	if isRead.MatchString(command) {
		method = d.reads
	}
	if method == http.MethodPost {
		form := url.Values{"signature": {signature}}
		for _, p := range all {
			form.Add(p.name, p.value)
		}
		req, err := http.NewRequestWithContext(ctx, method, base, strings.NewReader(form.Encode()))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return req, err
	}
	var parts []string
	for _, p := range all {
		name := p.name
		if !d.rawNames {
			name = escape(name)
		}
		parts = append(parts, name+"="+escape(p.value))
	}
	slices.Sort(parts)
	parts = append(parts, "signature="+escape(signature))
	return http.NewRequestWithContext(ctx, method, base+"?"+strings.Join(parts, "&"), nil)
}

// speak makes a request in the client's style.
func (c *client) speak(d dialect, command string, params ...string) reply {
	c.Helper()
	req, err := d.request(c.Context(), c.url, c.keys, command, params...)
	if err != nil {
		c.Fatal(err)
	}
	return c.fetch(req)
}

// typedVM, typedCluster and typedJob have the types that clients decode into;
// another type of one field loses them the whole answer (clients.md §1, A04).
type typedVM struct {
	ID, Name, DisplayName, State, IPAddress, Account, Created string
	ZoneID, ZoneName, Hypervisor, KubernetesNodeVersion       string
	CPUNumber, Memory, CPUSpeed                               int
	HAEnable, IsExternalNode, IsEtcdNode                      bool
	Details                                                   map[string]string
	NIC                                                       []struct {
		ID, NetworkID, IPAddress, DeviceID string
		IsDefault                          bool
		SecondaryIP                        []struct{ ID, IPAddress string }
	}
}

type typedCluster struct {
	ID, Name, Description, State, Created, ZoneID, ZoneName      string
	ServiceOfferingID, ServiceOfferingName                       string
	KubernetesVersionID, KubernetesVersionName                   string
	NetworkID, AssociatedNetworkName, IPAddress, IPAddressID     string
	Endpoint, Account, Domain, DomainID, TemplateID, ClusterType string
	Keypair, CPUNumber, Memory                                   string
	Size, MasterNodes, ControlNodes, EtcdNodes                   *int64
	MinSize, MaxSize                                             int64
	AutoscalingEnabled, CSIEnabled, HasAnnotations               bool
	EtcdIPs                                                      map[string]string
	VirtualMachines                                              []typedVM
	JobID                                                        string
	JobStatus                                                    *int
}

type typedJob struct {
	AccountID, Account, DomainID, DomainPath, UserID, Cmd string
	JobID, Created, Completed, JobResultType              string
	JobStatus, JobProcStatus, JobResultCode               *int
	JobResult                                             map[string]json.RawMessage
}

const dateForm = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+0000$`

var isDate = regexp.MustCompile(dateForm)

// check tells what a client would miss in a cluster.
func (v typedCluster) check(t testing.TB) {
	t.Helper()
	for name, got := range map[string]string{
		"id": v.ID, "name": v.Name, "state": v.State, "zoneid": v.ZoneID, "serviceofferingid": v.ServiceOfferingID, "account": v.Account,
		"kubernetesversionid": v.KubernetesVersionID, "networkid": v.NetworkID, "endpoint": v.Endpoint, "cpunumber": v.CPUNumber, "memory": v.Memory,
	} {
		if got == "" {
			t.Errorf("the cluster has no %s", name)
		}
	}
	for name, got := range map[string]*int64{"size": v.Size, "masternodes": v.MasterNodes, "controlnodes": v.ControlNodes, "etcdnodes": v.EtcdNodes} {
		if got == nil {
			t.Fatalf("the cluster has no %s", name)
		}
	}
	if v.JobID != "" || v.JobStatus != nil { // A05
		t.Errorf("the cluster has a job: %s", v.JobID)
	}
	if !isDate.MatchString(v.Created) {
		t.Errorf("created %q", v.Created)
	}
	if n := int64(len(v.VirtualMachines)); n != *v.Size+*v.ControlNodes+*v.EtcdNodes {
		t.Errorf("%d VMs for %d workers and %d control nodes", n, *v.Size, *v.ControlNodes)
	}
	for _, vm := range v.VirtualMachines {
		if vm.ID == "" || vm.Name == "" || vm.State == "" || len(vm.NIC) != 1 {
			t.Errorf("VM %+v", vm)
		}
	}
}

// polled follows a job to its end and returns it as clients need it
// (A03, A05, A08).
func (c *client) polled(d dialect, id string) typedJob {
	c.Helper()
	var job typedJob
	c.until("job ended", time.Minute, func() bool {
		job = typedJob{}
		r := c.speak(d, "queryAsyncJobResult", "jobid="+id)
		if r.status != http.StatusOK {
			c.Fatalf("%s: %d %v", d.name, r.status, r.answer)
		}
		r.into(c, &job)
		if job.JobStatus == nil || job.JobProcStatus == nil || *job.JobProcStatus != 0 || job.JobResultCode == nil ||
			job.JobID != id || job.Cmd == "" || job.AccountID == "" || job.UserID == "" || !isDate.MatchString(job.Created) {
			c.Fatalf("job %s", r.raw)
		}
		if *job.JobStatus == 0 {
			if job.JobResult != nil || job.JobResultType != "" || job.Completed != "" || *job.JobResultCode != 0 {
				c.Fatalf("a job under way: %s", r.raw)
			}
			return false
		}
		if job.JobResultType != "object" || !isDate.MatchString(job.Completed) || job.JobResult == nil {
			c.Fatalf("an ended job: %s", r.raw)
		}
		return true
	})
	return job
}

// submit sends an async command, whose answer must be 200 with a jobid and
// nothing else (A01).
func (c *client) submit(d dialect, command string, params ...string) string {
	c.Helper()
	r := c.speak(d, command, params...)
	var accepted map[string]string
	r.into(c, &accepted)
	if r.status != http.StatusOK || r.key != strings.ToLower(command)+"response" || len(accepted) != 1 || !isUUID.MatchString(accepted["jobid"]) {
		c.Fatalf("%s: %d %s %s", d.name, r.status, r.key, r.raw)
	}
	return accepted["jobid"]
}

// scaled carries out a scale that must succeed, and returns the cluster of its
// result: the only key of it, since clients take any (A02).
func (c *client) scaled(d dialect, params ...string) (v typedCluster) {
	c.Helper()
	job := c.polled(d, c.submit(d, "scaleKubernetesCluster", params...))
	if *job.JobStatus != 1 || *job.JobResultCode != 0 || len(job.JobResult) != 1 {
		c.Fatalf("%s: job %d %d %s", d.name, *job.JobStatus, *job.JobResultCode, job.JobResult)
	}
	if err := json.Unmarshal(job.JobResult["kubernetescluster"], &v); err != nil {
		c.Fatalf("%s: %v", d.name, err)
	}
	v.check(c)
	return v
}

// failed checks that a job has failed as all clients understand it, and
// returns the text (A08).
func (c *client) failed(job typedJob) (text string) {
	c.Helper()
	var code int
	if *job.JobStatus != 2 || *job.JobResultCode != 530 || len(job.JobResult) != 2 ||
		json.Unmarshal(job.JobResult["errorcode"], &code) != nil || code != 530 ||
		json.Unmarshal(job.JobResult["errortext"], &text) != nil || text == "" {
		c.Errorf("job %d %d %s", *job.JobStatus, *job.JobResultCode, job.JobResult)
	}
	return text
}

// listed is the page of clusters that a list gives, and the count.
func (c *client) listed(d dialect, params ...string) (clusters []typedCluster, count int) {
	c.Helper()
	r := c.speak(d, "listKubernetesClusters", params...)
	var list struct {
		Count             int
		KubernetesCluster []typedCluster
	}
	r.into(c, &list)
	if r.status != http.StatusOK {
		c.Fatalf("%s: %d %s", d.name, r.status, r.raw)
	}
	for _, v := range list.KubernetesCluster {
		v.check(c)
	}
	return list.KubernetesCluster, list.Count
}
