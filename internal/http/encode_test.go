package http

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ckscale/internal/cks"
)

// The kinds of JSON values.
var kinds = map[string]func(any) bool{
	"string":  func(v any) bool { _, ok := v.(string); return ok },
	"number":  func(v any) bool { _, ok := v.(float64); return ok },
	"bool":    func(v any) bool { _, ok := v.(bool); return ok },
	"object":  isObject,
	"objects": isObjects,
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

func isObjects(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(item any) bool { return !isObject(item) })
}

// wireTypes are the types that typed clients decode; another one makes them
// drop the whole answer (clients.md §1, A04). A field with "!" must be there in
// the fullest object; the others may.
var wireTypes = map[string]map[string]string{
	"cluster": {
		"string": "!cpunumber !memory !id !name !state !created !zoneid !zonename !serviceofferingid !serviceofferingname " +
			"!kubernetesversionid !kubernetesversionname !networkid !associatednetworkname !ipaddress !ipaddressid !endpoint " +
			"consoleendpoint !keypair !account !domain !domainid !domainpath project projectid !templateid !templatename " +
			"!clustertype !description !controlofferingid !controlofferingname !workerofferingid !workerofferingname " +
			"!etcdofferingid !etcdofferingname cniconfigurationid cniconfigname jobid",
		"number":  "!size !masternodes !controlnodes !etcdnodes !minsize !maxsize jobstatus",
		"bool":    "!autoscalingenabled !csienabled !hasannotations",
		"object":  "!etcdips",
		"objects": "!virtualmachines",
	},
	"node": {
		"string": "!id !name !displayname !state hostid !ipaddress osdisplayname rootdevicetype publicip !created !lastupdated " +
			"!account !userid !username !domainid !domain !zoneid !zonename !hypervisor !keypairs !vmtype !kubernetesnodeversion",
		"number":  "cpunumber memory cpuspeed gpucount rootdeviceid",
		"bool":    "!isexternalnode !isetcdnode !haenable displayvm passwordenabled !deleteprotection !isdynamicallyscalable !hasannotations",
		"object":  "details",
		"objects": "!nic tags securitygroup affinitygroup",
	},
	"vm": {
		"string": "!id !name !displayname !state hostid !ipaddress osdisplayname rootdevicetype publicip !created !lastupdated " +
			"!account !userid !username !domainid !domain !domainpath !zoneid !zonename !hypervisor !vmtype " +
			"!serviceofferingid !serviceofferingname !templateid !templatename",
		"number":  "!cpunumber !memory !cpuspeed gpucount rootdeviceid",
		"bool":    "!haenable displayvm passwordenabled !deleteprotection !isdynamicallyscalable !hasannotations",
		"object":  "details",
		"objects": "!nic tags securitygroup affinitygroup",
	},
	"nic": {
		"string":  "!id !networkid !networkname !netmask !gateway !ipaddress !macaddress !type !traffictype !deviceid",
		"number":  "vlanid mtu isolatedpvlan",
		"bool":    "!isdefault",
		"objects": "!secondaryip !extradhcpoption",
	},
	"event": {
		"string": "!id !username !type !level !description !account !domainid !domain !domainpath project projectid !created !state " +
			"!parentid !resourceid !resourcetype !resourcename",
		"bool": "!archived",
	},
	"template": {
		"string": "!id !name !displaytext !created !status !format !hypervisor !templatetype !account !domain",
		"bool":   "!isready !ispublic !isfeatured !isextractable !isdynamicallyscalable !passwordenabled !sshkeyenabled !crossZones !forcks !hasannotations",
	},
	"network": {
		"string": "!id !name !displaytext !type !traffictype !acltype !state !broadcastdomaintype !cidr !gateway !netmask !zoneid !zonename " +
			"!account !domainid !domain !domainpath !created",
		"bool":    "!canusefordeploy !displaynetwork !isdefault !issystem !ispersistent !restartrequired !specifyipranges !strechedl2subnet !hasannotations",
		"objects": "!service",
	},
	"job": {
		"string": "!accountid !account !domainid !domainpath !userid !cmd !jobresulttype !created !completed !jobid " +
			"jobinstancetype jobinstanceid managementserverid !message",
		"number":  "!jobprocstatus !jobresultcode !jobstatus",
		"object":  "!jobresult",
		"objects": "!steps",
	},
	"step": {
		"string": "!name !state !started !ended",
	},
}

// clients.md §1 and cks.md §2.3, 2.6-2.8: the type of every field.
//
// Keeps: A04, §2.3/jobprocstatus, §2.3/jobresultcode, §2.3/id, §2.6/etcdnodes, §2.6/cpunumber, §2.6/memory.
// Keeps: §2.6/autoscalingenabled, §2.6/csienabled, §2.6/hasannotations, §2.6/virtualmachines, §2.6/etcdips.
// Keeps: §2.7/flags, §2.7/nic, §2.8/cloud-controller, §2.8/sizes.
func TestTypesThatBreakClients(t *testing.T) {
	t.Parallel()
	cluster := asJSON(t, encodeCluster(fullCluster()))
	node := cluster["virtualmachines"].([]any)[2].(map[string]any)
	vm := asJSON(t, encodeVM(fullVM()))
	for name, object := range map[string]map[string]any{
		"cluster": cluster,
		"node":    node,
		"vm":      vm,
		"nic":     vm["nic"].([]any)[0].(map[string]any),
		"job":     asJSON(t, encodeJob(shownJob(clusterJob()))),
		"step":    asJSON(t, encodeStep(shownJob(clusterJob()).Steps[0])),
		"event":   asJSON(t, encodeEvent(fullEvent())),

		"template": asJSON(t, encodeTemplate(template)),
		"network":  asJSON(t, encodeNetwork(network)),
	} {
		known := 0
		for kind, fields := range wireTypes[name] {
			for field := range strings.FieldsSeq(fields) {
				field, must := strings.CutPrefix(field, "!")
				value, there := object[field]
				if there {
					known++
				}
				if must && !there {
					t.Errorf("%s has no %s", name, field)
				}
				if there && !kinds[kind](value) {
					t.Errorf("%s: %s is %#v, no %s", name, field, value, kind)
				}
			}
		}
		if known != len(object) {
			t.Errorf("%s has %d fields, of which the table knows %d", name, len(object), known)
		}
	}
}

func asJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	raw, err := encodeJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A VM with an etcd role is no Kubernetes node, so it has no version, whatever
// is recorded (cks.md §2.7).
//
// Keeps: §8.2/etcd-no-node.
// Keeps: §2.7/kubernetesnodeversion.
func TestEtcdNodeHasNoVersion(t *testing.T) {
	t.Parallel()
	v := fullCluster()
	v.VMs[0].NodeVersion = "1.33.1"
	if got := encodeNode(v, v.VMs[0]); got.Kubernetesnodeversion != "" || !*got.Isetcdnode {
		t.Errorf("got %+v", got)
	}
}

// The sums are over the VMs, not the offerings that the cluster has now
// (design.md §4, rule 5).
//
// Keeps: §8.4/capacity.
// Keeps: §2.6/cpunumber, §2.6/memory.
func TestCapacityIsTheSumOverTheVMs(t *testing.T) {
	t.Parallel()
	v := fullCluster()
	v.VMs[2].Cores, v.VMs[2].MemoryMB = 100, 1000
	got := encodeCluster(v)
	if got.Cpunumber != "112" || got.Memory != "37864" {
		t.Errorf("got %s vCPUs, %s MB", got.Cpunumber, got.Memory)
	}
}

// A cluster whose autoscaler is off shows no bounds: the cluster-autoscaler
// takes its own then (clients.md §3).
//
// Keeps: §2.6/bounds.
func TestNoBoundsWithoutAutoscaling(t *testing.T) {
	t.Parallel()
	v := fullCluster()
	v.Cluster.Autoscaling.Enabled = false
	got := asJSON(t, encodeCluster(v))
	if got["minsize"] != nil || got["maxsize"] != nil || got["autoscalingenabled"] != false {
		t.Errorf("got %v to %v, %v", got["minsize"], got["maxsize"], got["autoscalingenabled"])
	}
}

// A finished job is executed by no server, and a waiting one by none either
// (cks.md §2.3).
//
// Keeps: §2.3/managementserverid.
func TestServerOnlyWhileExecuting(t *testing.T) {
	t.Parallel()
	j := failedJob()
	j.Server = "6c1f3e0a-63a0-4bb0-a58e-0f5a2c9d6b77"
	if got := encodeJob(j).Managementserverid; got != "" {
		t.Errorf("a finished job is executed by %s", got)
	}
}

// A job's result has exactly one key when it succeeded, and code and text when
// it failed (A02, cks.md §2.3).
//
// Keeps: §1.10/result.
// Keeps: A02, §2.3/success, §2.3/failure.
func TestJobResultKeys(t *testing.T) {
	t.Parallel()
	for want, j := range map[string]cks.Job{
		"kubernetescluster":   clusterJob(),
		"virtualmachine":      vmJob(),
		"success":             doneJob("deleteKubernetesCluster", cks.JobResult{Success: true}),
		"errorcode,errortext": failedJob(),
	} {
		result := asJSON(t, encodeJob(j))["jobresult"].(map[string]any)
		var keys []string
		for key := range result {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if got := strings.Join(keys, ","); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A NIC keeps its id, and no two VMs share one.
//
// Keeps: §2.7/nic-id.
func TestNICIDs(t *testing.T) {
	t.Parallel()
	a, b := fullVM(), fullVM()
	b.VM.ID = "aaaaaaaa-0000-4000-8000-000000000012"
	first, again, other := encodeVM(a).Nic[0].Id, encodeVM(a).Nic[0].Id, encodeVM(b).Nic[0].Id
	if first != again || first == other {
		t.Error("NIC ids change or repeat")
	}
}
