package http

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ckscale/internal/cks"
)

func ptr[T any](v T) *T { return &v }

// Every parameter reaches the service, in any case and by its meaning (cks.md
// §1.10, clients.md §4).
//
// Keeps: §8.4/not-kept.
// Keeps: §1.10/size, §1.10/nodeids, §1.10/autoscalingenabled, §1.10/bounds, §1.10/customjobid, §1.10/starteventid.
// Keeps: §2.5/managementserverid, §2.5/keyword, §2.5/domain, §2.6/domainid, §2.6/isrecursive, §2.6/projectid-all.
// Keeps: §2.8/details, §2.8/projectid.
// Keeps: §2.8/id, §2.8/ids, §2.8/name, §2.8/state, §2.8/zoneid, §2.8/networkid.
// Keeps: A10.
func TestRequestsReachTheService(t *testing.T) {
	t.Parallel()
	const uid = "0f7cf3f0-8a55-4f0c-a1a0-7a7f3f9a2a55"
	for name, c := range map[string]struct {
		query string
		want  any
	}{
		"scale to a size":      {"command=scaleKubernetesCluster&id=7&SIZE=3", cks.ScaleRequest{Cluster: "7", Size: ptr(int64(3))}},
		"scale, from an event": {"command=scaleKubernetesCluster&id=7&size=3&starteventid=12", cks.ScaleRequest{Cluster: "7", Size: ptr(int64(3))}},
		"scale to nothing":     {"command=scaleKubernetesCluster&id=-1&size=0&minsize=0", cks.ScaleRequest{Cluster: "-1", Size: ptr(int64(0)), MinSize: ptr(int64(0))}},
		"remove nodes":         {"command=scaleKubernetesCluster&id=7&nodeIds=8,,9", cks.ScaleRequest{Cluster: "7", NodeIDs: []string{"8", "9"}}},
		"remove no nodes":      {"command=scaleKubernetesCluster&id=7&nodeids=", cks.ScaleRequest{Cluster: "7", NodeIDs: []string{}}},
		"remove only commas":   {"command=scaleKubernetesCluster&id=7&nodeids=,", cks.ScaleRequest{Cluster: "7", NodeIDs: []string{}}},
		"autoscale": {"command=scaleKubernetesCluster&id=7&autoscalingEnabled=TRUE&minsize=1&maxsize=4&customjobid=" + uid,
			cks.ScaleRequest{Cluster: "7", Autoscaling: ptr(true), MinSize: ptr(int64(1)), MaxSize: ptr(int64(4)), JobID: uid}},
		"autoscale off": {"command=scaleKubernetesCluster&id=7&autoscalingenabled=no", cks.ScaleRequest{Cluster: "7", Autoscaling: ptr(false)}},
		"offerings": {"command=scaleKubernetesCluster&id=7&serviceofferingid=5&nodeofferings[4].offering=a,%22b%22&nodeofferings[2].node=worker&nodeofferings[2].offering=c&nodeofferings[9].Node=etcd",
			cks.ScaleRequest{Cluster: "7", OfferingID: ptr("5"), NodeOfferings: []cks.NodeOffering{
				{Node: ptr("worker"), Offering: ptr("c")}, {Offering: ptr(`a,"b"`)}, {},
			}}},
		"create": {"command=createKubernetesCluster&name=demo&description=a%20b&zoneid=1&kubernetesversionid=2&serviceofferingid=3&size=4&controlnodes=5&masternodes=6&etcdnodes=7" +
			"&keypair=ops&networkid=" + uid + "&enablecsi=true&clustertype=CloudManaged&account=admin&domainid=" + domainID + "&hypervisor=KVM&noderootdisksize=8" +
			"&customjobid=" + uid + "&nodeofferings[0].node=control&nodeofferings[0].offering=o&nodetemplates[1].node=worker&nodetemplates[1].template=t" +
			"&dockerregistryurl=https%3A%2F%2Fregistry.example%3A5000&dockerregistryusername=u&dockerregistrypassword=hidden",
			cks.CreateRequest{Name: "demo", Description: "a b", ZoneID: "1", VersionID: "2", OfferingID: ptr("3"), Size: ptr(int64(4)),
				ControlNodes: ptr(int64(5)), EtcdNodes: ptr(int64(7)), Keypair: "ops", NetworkID: uid, CSI: true, Account: "admin", JobID: uid,
				NodeOfferings: []cks.NodeOffering{{Node: ptr("control"), Offering: ptr("o")}},
				NodeTemplates: []cks.NodeTemplate{{Node: ptr("worker"), Template: ptr("t")}}}},
		"create by older names": {"command=createKubernetesCluster&name=demo&zoneid=1&masternodes=3",
			cks.CreateRequest{Name: "demo", ZoneID: "1", ControlNodes: ptr(int64(3))}},
		"create for a project": {"command=createKubernetesCluster&name=demo&zoneid=1&projectid=" + uid,
			cks.CreateRequest{Name: "demo", ZoneID: "1", ProjectID: uid}},
		"delete":          {"command=deleteKubernetesCluster&id=7&customjobid=" + uid, []string{"7", uid}},
		"start a cluster": {"command=startKubernetesCluster&id=7&customjobid=" + uid, []string{"7", uid}},
		"stop a cluster":  {"command=stopKubernetesCluster&id=7&customjobid=" + uid, []string{"7", uid}},
		"upgrade": {"command=upgradeKubernetesCluster&id=7&kubernetesversionid=8&customjobid=" + uid,
			cks.UpgradeRequest{Cluster: "7", Version: "8", JobID: uid}},
		"list clusters": {"command=listKubernetesClusters&id=7&name=n&state=Alert&clustertype=CloudManaged&keyword=k&account=a&listall=true&projectid=-1&page=2&pagesize=10&isrecursive=true&domainid=" + strings.ToUpper(domainID),
			cks.ClusterFilter{ID: "7", Name: "n", State: "Alert", Type: "CloudManaged", Keyword: "k", Account: "a", Project: "-1", ListAll: true, Page: cks.Page{Number: 2, Size: 10}}},
		"list all clusters": {"command=listKubernetesClusters&pagesize=-1", cks.ClusterFilter{Page: cks.Page{Size: -1}}},
		"list versions": {"command=listKubernetesSupportedVersions&id=7&keyword=k&zoneid=1&minimumsemanticversion=1.31.0&page=0&pagesize=5",
			cks.CatalogFilter{ID: "7", Keyword: "k", ZoneID: "1", MinVersion: "1.31.0", Page: cks.Page{Number: 1, Size: 5}}},
		"list offerings": {"command=listServiceOfferings&id=7&name=n&keyword=k&page=1&pagesize=5", cks.CatalogFilter{ID: "7", Name: "n", Keyword: "k", Page: cks.Page{Number: 1, Size: 5}}},
		"list zones":     {"command=listZones&id=7&name=n&keyword=k&page=1&pagesize=5", cks.CatalogFilter{ID: "7", Name: "n", Keyword: "k", Page: cks.Page{Number: 1, Size: 5}}},
		"kubeconfig":     {"command=getKubernetesClusterConfig&id=7", "7"},
		"add a version": {"command=addKubernetesSupportedVersion&name=n&semanticversion=1.35.0&zoneid=1&mincpunumber=2&minmemory=2048&url=https%3A%2F%2Fi&checksum=c&directdownload=true&arch=x86_64",
			cks.VersionRequest{Name: "n", Version: "1.35.0", ZoneID: "1", MinCores: 2, MinMemoryMB: 2048}},
		"disable a version": {"command=updateKubernetesSupportedVersion&id=7&state=Disabled", []string{"7", "Disabled"}},
		"delete a version":  {"command=deleteKubernetesSupportedVersion&id=7&customjobid=" + uid, []string{"7", uid}},
		"list templates": {"command=listTemplates&templatefilter=all&id=7&ids=8,9&name=n&keyword=k&zoneid=1&page=1&pagesize=5",
			cks.TemplateFilter{Which: "all", ID: "7", IDs: []string{"8", "9"}, Name: "n", Keyword: "k", ZoneID: "1", Page: cks.Page{Number: 1, Size: 5}}},
		"list networks": {"command=listNetworks&id=7&keyword=k&zoneid=1&account=a&listall=true&isrecursive=true&projectid=-1&page=1&pagesize=5&domainid=" + domainID,
			cks.NetworkFilter{ID: "7", Keyword: "k", ZoneID: "1", Account: "a", Project: "-1", ListAll: true, Page: cks.Page{Number: 1, Size: 5}}},
		"query a job": {"command=queryAsyncJobResult&jobid=" + jobID, jobID},
		"list jobs": {"command=listAsyncJobs&startdate=2026-11-07T18%3A39%3A39%2B0000&keyword=k&account=a&listall=true&page=1&pagesize=5&managementserverid=" + uid +
			"&isrecursive=true&domainid=" + domainID,
			cks.JobFilter{Since: time.Date(2026, 11, 7, 18, 39, 39, 0, time.UTC), Keyword: "k", Account: "a", ListAll: true, Server: uid, Page: cks.Page{Number: 1, Size: 5}}},
		"cancel a job": {"command=cancelAsyncJob&jobid=" + jobID, jobID},
		"list events": {"command=listEvents&id=7&startid=8&type=VM.START&level=ERROR&keyword=k&startdate=2026-11-07&enddate=2026-11-07&resourceid=" + clusterID +
			"&resourcetype=KubernetesCluster&account=a&listall=true&isrecursive=true&archived=true&projectid=-1&domainid=" + domainID + "&page=1&pagesize=5",
			cks.EventFilter{ID: "7", StartID: "8", Type: "VM.START", Level: "ERROR", Keyword: "k", ResourceID: clusterID, ResourceType: "KubernetesCluster",
				Since: time.Date(2026, 11, 7, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 7, 23, 59, 59, 0, time.UTC),
				Account: "a", Project: "-1", ListAll: true, Page: cks.Page{Number: 1, Size: 5}}},
		"list VMs": {"command=listVirtualMachines&id=7&name=n&keyword=k&state=Present&zoneid=1&networkid=2&kubernetesclusterid=3&account=a&listall=true&details=all&projectid=-1&page=1&pagesize=5",
			cks.VMFilter{ID: "7", Name: "n", Keyword: "k", State: "Present", ZoneID: "1", NetworkID: "2", Cluster: "3", Account: "a", Project: "-1", ListAll: true, Page: cks.Page{Number: 1, Size: 5}}},
		"list VMs by ids": {"command=listVirtualMachines&ids=7,8", cks.VMFilter{IDs: []string{"7", "8"}}},
		"start":           {"command=startVirtualMachine&id=7&customjobid=" + uid, cks.VMRequest{VM: "7", JobID: uid}},
		"stop":            {"command=stopVirtualMachine&id=7&forced=true&customjobid=" + uid, cks.VMRequest{VM: "7", Forced: true, JobID: uid}},
		"deploy": {"command=deployVirtualMachine&serviceofferingid=1&templateid=2&zoneid=3&name=n&displayname=d&networkids=" + uid + ",8&keypair=k&startvm=false" +
			"&account=ann&projectid=8&domainid=" + domainID + "&hypervisor=KVM&customjobid=" + uid,
			cks.DeployRequest{Name: "n", DisplayName: "d", ZoneID: "3", OfferingID: "1", TemplateID: "2", NetworkIDs: []string{uid, "8"}, Keypair: "k",
				KeepStopped: true, Account: "ann", ProjectID: "8", JobID: uid}},
		"deploy and start": {"command=deployVirtualMachine&serviceofferingid=1&templateid=2&zoneid=3&startvm=true",
			cks.DeployRequest{ZoneID: "3", OfferingID: "1", TemplateID: "2"}},
		"destroy": {"command=destroyVirtualMachine&id=7&expunge=true&customjobid=" + uid, cks.VMRequest{VM: "7", JobID: uid}},
		"add nodes": {"command=addNodesToKubernetesCluster&id=7&nodeids=8,,9&mountcksisoonvr=true&manualupgrade=true&customjobid=" + uid,
			cks.NodesRequest{Cluster: "7", NodeIDs: []string{"8", "9"}, ManualUpgrade: true, JobID: uid}},
		"remove external nodes": {"command=removeNodesFromKubernetesCluster&id=7&nodeids=8,9&customjobid=" + uid,
			cks.NodesRequest{Cluster: "7", NodeIDs: []string{"8", "9"}, JobID: uid}},
		"link": {"command=addVirtualMachinesToKubernetesCluster&id=7&virtualmachineids=8,9&iscontrolnode=true",
			cks.LinkRequest{Cluster: "7", VMIDs: []string{"8", "9"}, Control: true}},
		"unlink": {"command=removeVirtualMachinesFromKubernetesCluster&id=7&virtualmachineids=8", cks.LinkRequest{Cluster: "7", VMIDs: []string{"8"}}},
		"record a cluster": {"command=createKubernetesCluster&name=demo&zoneid=1&size=0&clustertype=ExternalManaged&externalloadbalanceripaddress=192.0.2.1",
			cks.CreateRequest{Name: "demo", ZoneID: "1", Size: ptr(int64(0)), Linked: true, Endpoint: "192.0.2.1"}},
		"delete with its VMs":    {"command=deleteKubernetesCluster&id=7&cleanup=true", []string{"7", "", "and VMs"}},
		"delete and expunge VMs": {"command=deleteKubernetesCluster&id=7&expunge=true", []string{"7", "", "and VMs"}},
		"log in": {"command=login&username=ann&password=p%26q&domain=%2F&domainid=" + domainID,
			cks.LoginRequest{Username: "ann", Password: "p&q", Domain: "/", DomainID: domainID, From: "192.0.2.1"}},
		"list users": {"command=listUsers&id=7&username=n&state=enabled&accounttype=1&keyword=k&account=a&listall=true&domainid=" + domainID + "&page=1&pagesize=5",
			cks.AccountFilter{UserID: "7", Name: "n", State: "enabled", Type: ptr(1), Keyword: "k", Account: "a", ListAll: true, Page: cks.Page{Number: 1, Size: 5}}},
		"list accounts": {"command=listAccounts&id=7&name=n&state=enabled&accounttype=0&keyword=k&listall=true&domainid=" + domainID + "&page=1&pagesize=5",
			cks.AccountFilter{ID: "7", Name: "n", State: "enabled", Type: ptr(0), Keyword: "k", ListAll: true, Page: cks.Page{Number: 1, Size: 5}}},
		"list projects": {"command=listProjects&id=7&name=n&displaytext=d&state=Active&keyword=k&account=a&listall=true&domainid=" + domainID + "&page=1&pagesize=5",
			cks.ProjectFilter{ID: "7", Name: "n", DisplayText: "d", State: "Active", Keyword: "k", Account: "a", ListAll: true, Page: cks.Page{Number: 1, Size: 5}}},
		"list settings": {"command=listConfigurations&name=n&category=c&keyword=k&accountid=7&page=1&pagesize=5",
			cks.SettingFilter{Name: "n", Category: "c", Keyword: "k", AccountID: "7", Page: cks.Page{Number: 1, Size: 5}}},
		"change a setting": {"command=updateConfiguration&name=n&value=v&accountid=7", []string{"n", "v", "7"}},
		"set a fault": {"command=configureSimulator&name=vm.start&value=fail:no%20power&count=2&clusterid=7&vmid=8",
			cks.Fault{Operation: "vm.start", Value: "fail:no power", Count: 2, ClusterID: "7", VMID: "8"}},
		"read the world":     {"command=querySimulator&clusterid=7", "7"},
		"read all the world": {"command=querySimulator", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := &canned{account: admin, job: sampleJob("", 0)}
			raw := sendTo(t, svc, c.query)
			if diff := cmp.Diff(c.want, svc.asked); diff != "" {
				t.Errorf("-want +asked:\n%s\nanswer: %s", diff, raw)
			}
		})
	}
}

// What cannot be honoured is refused before the service is asked: ignoring it
// would do something else than was asked for.
//
// Keeps: §8.4/not-kept.
// Keeps: §2.3/access-domain, §2.5/domain, §2.6/domainid, §2.6/cni.
func TestRefusesWhatItCannotHonour(t *testing.T) {
	t.Parallel()
	const (
		create = "command=createKubernetesCluster&name=demo&zoneid=1&kubernetesversionid=2&"
		uid    = "0f7cf3f0-8a55-4f0c-a1a0-7a7f3f9a2a55"
		none   = "due to incorrect long value format, or entity does not exist"

		registry = "dockerregistryusername=u&dockerregistrypassword=p&dockerregistryurl="
	)
	for query, want := range map[string]string{
		create + "domainid=" + uid:                                                               "Invalid parameter domainid value=" + uid + " " + none,
		create + "externalloadbalanceripaddress=192.0.2.1":                                       "The parameter externalloadbalanceripaddress is not supported here",
		create + "dockerregistryurl=https://r.example":                                           "All the docker private registry parameters (username, password, url) required are specified",
		create + "dockerregistryusername=u":                                                      "All the docker private registry parameters (username, password, url) required are specified",
		create + "dockerregistrypassword=p&dockerregistryurl=https://r.example":                  "All the docker private registry parameters (username, password, url) required are specified",
		create + registry + "r.example":                                                          "Invalid docker registry url specified",
		create + registry + "https:r.example":                                                    "Invalid docker registry url specified",
		create + registry + "https://%5B":                                                        "Invalid docker registry url specified",
		create + "noderootdisksize=0":                                                            "Invalid value for noderootdisksize",
		create + "noderootdisksize=-8":                                                           "Invalid value for noderootdisksize",
		create + "cniconfigurationid=" + uid:                                                     "Invalid parameter cniconfigurationid value=" + uid + " " + none,
		create + "cniconfigdetails[0].a=b":                                                       "The parameter cniconfigdetails is not supported here",
		create + "asnumber=64512":                                                                "The parameter asnumber is not supported here",
		"command=listKubernetesClusters&domainid=" + uid:                                         "Invalid parameter domainid value=" + uid + " " + none,
		"command=listAsyncJobs&domainid=" + uid:                                                  "Invalid parameter domainid value=" + uid + " " + none,
		"command=listEvents&domainid=" + uid:                                                     "Invalid parameter domainid value=" + uid + " " + none,
		"command=listNetworks&domainid=" + uid:                                                   "Invalid parameter domainid value=" + uid + " " + none,
		"command=listEvents&duration=60":                                                         "The parameter duration is not supported here",
		"command=listEvents&entrytime=60":                                                        "The parameter entrytime is not supported here",
		"command=listVirtualMachines&id=7&ids=8":                                                 "Specify either id or ids but not both parameters",
		"command=deployVirtualMachine&serviceofferingid=1&templateid=2&zoneid=3&domainid=" + uid: "Invalid parameter domainid value=" + uid + " " + none,
		create + "clustertype=Somehow":                                                           "Unable to resolve cluster type Somehow to a supported value (CloudManaged, ExternalManaged)",
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			svc := &canned{account: admin}
			raw := string(sendTo(t, svc, query))
			if !strings.Contains(raw, want) || !strings.Contains(raw, `"errorcode":431`) || svc.asked != nil {
				t.Errorf("asked %v, got %s\nwant %s", svc.asked, raw, want)
			}
		})
	}
}

// A handler hands the service's errors on as they are.
func TestHandlersReturnErrors(t *testing.T) {
	t.Parallel()
	for _, c := range answerCases {
		if slices.Contains([]string{"listApis", "listEventTypes", "listCapabilities", "logout"}, commandOf(c.request)) {
			continue // they ask no service
		}
		t.Run(c.golden, func(t *testing.T) {
			t.Parallel()
			raw := answerOf(t, canned{err: cks.Errorf(cks.Conflict, "it <moved>")}, c.request)
			key := url.QueryEscape(responseKey(commandOf(c.request)))
			if got := string(raw); !strings.HasPrefix(got, `{"`+key+`":`) || !strings.Contains(got, `"errortext":"it <moved>"`) {
				t.Errorf("got %s", got)
			}
		})
	}
}
