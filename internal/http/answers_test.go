package http

import (
	"bytes"
	"encoding/json"
	"flag"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

var update = flag.Bool("update", false, "write the golden files of the answers anew")

// answerCase is an answer that has a golden file.
type answerCase struct {
	golden  string // its name
	request string
	svc     canned
}

var answerCases = []answerCase{
	{"scale", "command=scaleKubernetesCluster&size=3&id=" + clusterID, canned{job: sampleJob("", 0)}},
	{"dryrun", "command=scaleKubernetesCluster&dryrun=true&size=1&id=" + clusterID, canned{dry: sampleDryRun()}},
	{"dryrun_refused", "command=scaleKubernetesCluster&dryrun=true&size=99&id=" + clusterID, canned{dry: cks.DryRun{Refusal: "too <large>"}}},
	{"create", "command=createKubernetesCluster&name=demo&zoneid=1&kubernetesversionid=1&serviceofferingid=1", canned{job: sampleJob("", 0)}},
	{"delete", "command=deleteKubernetesCluster&id=" + clusterID, canned{job: sampleJob("", 0)}},
	{"start_cluster", "command=startKubernetesCluster&id=" + clusterID, canned{job: sampleJob("", 0)}},
	{"stop_cluster", "command=stopKubernetesCluster&id=" + clusterID, canned{job: sampleJob("", 0)}},
	{"upgrade", "command=upgradeKubernetesCluster&kubernetesversionid=1&id=" + clusterID, canned{job: sampleJob("", 0)}},
	{"start", "command=startVirtualMachine&id=" + workerVM, canned{job: sampleJob("", 0)}},
	{"stop", "command=stopVirtualMachine&id=" + workerVM, canned{job: sampleJob("", 0)}},
	{"deploy", "command=deployVirtualMachine&serviceofferingid=1&templateid=1&zoneid=1&name=box", canned{job: sampleJob("", 0)}},
	{"destroy", "command=destroyVirtualMachine&expunge=true&id=" + workerVM, canned{job: sampleJob("", 0)}},
	{"add_nodes", "command=addNodesToKubernetesCluster&id=" + clusterID + "&nodeids=" + workerVM, canned{job: sampleJob("", 0)}},
	{"remove_nodes", "command=removeNodesFromKubernetesCluster&id=" + clusterID + "&nodeids=" + workerVM, canned{job: sampleJob("", 0)}},
	{"link", "command=addVirtualMachinesToKubernetesCluster&id=" + clusterID + "&virtualmachineids=" + workerVM, canned{}},
	{"unlink", "command=removeVirtualMachinesFromKubernetesCluster&id=" + clusterID + "&virtualmachineids=" + workerVM + ",1",
		canned{unlinked: []cks.Unlinked{{VMID: workerVM}, {VMID: clusterID, Why: "VM is not part of the cluster"}}}},
	{"clusters", "command=listKubernetesClusters", canned{total: 2, clusters: []cks.ClusterView{fullCluster(), bareCluster()}}},
	{"clusters_none", "command=listKubernetesClusters", canned{}},
	{"clusters_past_end", "command=listKubernetesClusters&page=9&pagesize=2", canned{total: 5}},
	{"job_waiting", "command=queryAsyncJobResult&jobid=" + jobID, canned{job: sampleJob("scaleKubernetesCluster", cks.JobPending)}},
	{"job_executing", "command=queryAsyncJobResult&jobid=" + jobID, canned{job: runningJob()}},
	{"job_progress", "command=queryAsyncJobResult&jobid=" + jobID, canned{job: shownJob(runningJob())}},
	{"job_failed", "command=queryAsyncJobResult&jobid=" + jobID, canned{job: failedJob()}},
	{"job_cluster", "command=queryAsyncJobResult&jobid=" + jobID, canned{job: clusterJob()}},
	{"job_vm", "command=queryAsyncJobResult&jobid=" + jobID, canned{job: vmJob()}},
	{"job_success", "command=queryAsyncJobResult&jobid=" + jobID,
		canned{job: doneJob("deleteKubernetesCluster", cks.JobResult{Success: true})}},
	{"jobs", "command=listAsyncJobs", canned{total: 2, jobs: []cks.Job{runningJob(), sampleJob("createKubernetesCluster", 0)}}},
	{"jobs_none", "command=listAsyncJobs", canned{}},
	{"cancel", "command=cancelAsyncJob&jobid=" + jobID, canned{}},
	{"events", "command=listEvents", canned{total: 2, events: []cks.AuditEvent{fullEvent(), bareEvent()}}},
	{"events_none", "command=listEvents", canned{}},
	{"event_types", "command=listEventTypes", canned{}},
	{"vms", "command=listVirtualMachines", canned{total: 2, vms: []cks.VMView{fullVM(), newVM()}}},
	{"vms_none", "command=listVirtualMachines", canned{}},
	{"offerings", "command=listServiceOfferings", canned{total: 2, offers: []cks.Offering{small, custom}}},
	{"versions", "command=listKubernetesSupportedVersions", canned{total: 2, versions: []cks.KubernetesVersion{version, oldVersion}}},
	{"config", "command=getKubernetesClusterConfig&id=" + clusterID,
		canned{config: cks.ClusterConfig{ID: clusterID, Name: "demo", Data: "apiVersion: v1\nkind: Config\n"}}},
	{"version_added", "command=addKubernetesSupportedVersion&semanticversion=1.33.1&mincpunumber=2&minmemory=2048&url=u", canned{}},
	{"version_updated", "command=updateKubernetesSupportedVersion&id=7&state=Disabled", canned{}},
	{"version_deleted", "command=deleteKubernetesSupportedVersion&id=7", canned{job: sampleJob("", 0)}},
	{"templates", "command=listTemplates&templatefilter=featured", canned{total: 2, images: []cks.Template{template, {ID: smallID, Name: "raw", Created: submitted}}}},
	{"templates_none", "command=listTemplates&templatefilter=self", canned{}},
	{"networks", "command=listNetworks", canned{total: 2, networks: []cks.NetworkView{network, {Account: admin, Zone: zone, Network: cks.Network{ID: smallID, Name: "spare", Created: submitted}}}}},
	{"networks_none", "command=listNetworks", canned{}},
	{"zones", "command=listZones", canned{total: 1, zones: []cks.Zone{zone}}},
	{"login", "command=login&username=ann&password=secret-of-ann", canned{session: cks.Session{
		ID: "the-id", Key: "0bAiw8pEVq3mLZtNcJ5x7yHdUfk", Account: annEntry.Account, Idle: 30 * time.Minute, Server: "server-1"}}},
	{"logout", "command=logout", canned{}},
	{"capabilities", "command=listCapabilities", canned{}},
	{"users", "command=listUsers", canned{total: 2, accounts: []cks.AccountEntry{adminEntry, annEntry}}},
	{"accounts", "command=listAccounts", canned{total: 2, accounts: []cks.AccountEntry{adminEntry, annEntry}}},
	{"projects", "command=listProjects", canned{total: 1, projects: []cks.Project{shop}}},
	{"projects_none", "command=listProjects", canned{}},
	{"configurations", "command=listConfigurations", canned{total: 2, settings: sampleSettings()}},
	{"configuration", "command=updateConfiguration&name=cloud.kubernetes.cluster.max.size&value=20", canned{settings: sampleSettings()[1:]}},
	{"cluster_of_project", "command=listKubernetesClusters", canned{total: 1, clusters: []cks.ClusterView{clusterOfProject()}}},
	{"event_of_project", "command=listEvents", canned{total: 1, events: []cks.AuditEvent{{ID: jobID, Account: shop.Account, Created: submitted}}}},
	{"configure_simulator", "command=configureSimulator&name=vm.start&value=fail&count=1", canned{}},
	{"simulator", "command=querySimulator", canned{world: cks.Simulation{
		Calls:       []cks.Calls{{Operation: "node.drain", ClusterID: clusterID, VMID: workerVM, Count: 1}, {Operation: "node.list", ClusterID: clusterID, Count: 9}},
		Nodes:       []cks.SimulatedNode{{Node: cks.Node{Name: "demo-node-197eb5e9290", VMID: workerVM, Ready: cks.NodeUnknown, Version: "v1.33.1"}, ClusterID: clusterID}},
		Machines:    []cks.Machine{{ID: workerVM, ClusterID: clusterID, Name: "demo-node-197eb5e9290", State: cks.VMStopped}},
		Autoscalers: []cks.SimulatedAutoscaler{{ClusterID: clusterID, Autoscaling: cks.Autoscaling{Enabled: true, Min: 1, Max: 3}}},
	}}},
	{"simulator_empty", "command=querySimulator", canned{}},
	{"api", "command=listApis&name=deleteKubernetesCluster", canned{}},
}

// answerOf sends a request of the admin and returns the answer's body.
func answerOf(t *testing.T, svc canned, query string) []byte {
	t.Helper()
	if svc.account.Name == "" {
		svc.account = admin
	}
	return sendTo(t, &svc, query)
}

func sendTo(t *testing.T, svc *canned, query string) []byte {
	t.Helper()
	h, err := NewHandler(svc, Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(nethttp.MethodGet, "/client/api?response=json&"+query, nil)
	if commandOf(query) == "login" {
		r = post("", query)
	}
	r.SetBasicAuth(adminKey, adminSecret)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Body.Bytes()
}

// The exact answers of cks.md §2: golden files, which fit the document. They
// change by "go test ./internal/http -run TestAnswers -update".
//
// Keeps: §1.10/result, §1.10/no-instance, §1.10/response-name.
// Keeps: A02, §2.1/key, §2.1/no-null, §2.1/booleans, §2.1/dates, §2.1/html, §2.2/jobid-only, §2.3/unwrapped.
// Keeps: §2.3/account, §2.3/domain, §2.3/userid, §2.3/cmd, §2.3/jobprocstatus, §2.3/jobresultcode, §2.3/jobresulttype.
// Keeps: §2.3/jobresult, §2.3/instance, §2.3/managementserverid, §2.3/managementservername, §2.3/created.
// Keeps: §2.3/completed, §2.3/id, §2.3/jobstatus, §2.3/success, §2.3/failure, §2.5/answer, §2.6/answer, §2.6/empty.
// Keeps: §2.6/past-end, §2.6/identity, §2.6/zone, §2.6/default-offering, §2.6/type-offerings, §2.6/template.
// Keeps: §2.6/network, §2.6/version, §2.6/account, §2.6/domain, §2.6/keypair, §2.6/projects, §2.6/cni.
// Keeps: §2.6/state-field, §2.6/consoleendpoint, §2.6/virtualmachines, §2.6/ipaddress, §2.6/etcdips, §2.6/bounds.
// Keeps: §2.6/csienabled, §2.6/clustertype-field, §2.6/created, §2.6/hasannotations, §2.7/identity, §2.7/owner.
// Keeps: §2.7/lost, §2.7/times, §2.7/state, §2.7/zone, §2.7/hypervisor, §2.7/keypairs, §2.7/vmtype, §2.7/ipaddress.
// Keeps: §2.7/nic, §2.7/not-here, §2.7/unmodelled, §2.7/kubernetesnodeversion, §2.8/answer, §2.8/cloud-controller.
// Keeps: §2.8/one-nic, §2.8/hostname, §2.8/iso.
// Keeps: §2.6/etcdnodes, §2.6/autoscalingenabled, §2.6/masternodes, §2.6/controlnodes, §2.6/size, §2.6/cpunumber.
// Keeps: §2.6/memory, §2.7/flags, §2.7/isexternalnode, §2.7/isetcdnode.
func TestAnswers(t *testing.T) {
	t.Parallel()
	doc := strictDocument(t)
	for _, c := range answerCases {
		t.Run(c.golden, func(t *testing.T) {
			t.Parallel()
			raw := answerOf(t, c.svc, c.request)
			if bytes.Contains(raw, []byte("null")) || bytes.Contains(raw, []byte(`\u00`)) {
				t.Errorf("null, or HTML characters escaped, in %s", raw)
			}
			checkAgainst(t, doc, c.request, raw)
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, raw, "", "  "); err != nil {
				t.Fatalf("%v in %s", err, raw)
			}
			checkGolden(t, c.golden, pretty.String())
		})
	}
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-%s +answer:\n%s", file, diff)
	}
}

// strictDocument is the document, where every object that lists its fields
// has no others.
func strictDocument(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := api.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	no := false
	for _, ref := range doc.Components.Schemas {
		if s := ref.Value; len(s.Properties) > 0 && s.AdditionalProperties.Schema == nil {
			s.AdditionalProperties.Has = &no
		}
	}
	return doc
}

// checkAgainst checks an answer with the schema that the document gives for
// its command.
func checkAgainst(t *testing.T, doc *openapi3.T, request string, raw []byte) {
	t.Helper()
	var body any
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if err := answerSchema(doc, commandOf(request)).VisitJSON(body, openapi3.MultiErrors()); err != nil {
		t.Errorf("the answer does not fit the document: %v", err)
	}
}

func commandOf(request string) string {
	command, _, _ := strings.Cut(strings.TrimPrefix(request, "command="), "&")
	return command
}

func answerSchema(doc *openapi3.T, command string) *openapi3.Schema {
	for _, op := range doc.Paths.Value(commandPath + command).Operations() {
		return op.Responses.Status(nethttp.StatusOK).Value.Content.Get(jsonType).Schema.Value
	}
	return nil
}

// Every command of the document is answered in TestAnswers.
func TestEveryCommandIsAnswered(t *testing.T) {
	t.Parallel()
	commands, err := loadCommands()
	if err != nil {
		t.Fatal(err)
	}
	for name := range commands {
		if !slices.ContainsFunc(answerCases, func(c answerCase) bool { return commandOf(c.request) == name }) {
			t.Errorf("no answer of %s is tested", name)
		}
	}
}
