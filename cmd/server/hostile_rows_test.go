package main

import (
	"fmt"
	"strings"
)

// badInput is one request that must be refused: at once with status and text,
// or, status 200, by a failed job with the text.
type badInput struct {
	ref     string
	command string
	params  string // separated by spaces; {NAME} stands for an id, ␣ for a space
	status  int
	text    string
}

const (
	scale    = "scaleKubernetesCluster"
	list     = "listKubernetesClusters"
	create   = "createKubernetesCluster"
	noNumber = "Unable to execute API command scalekubernetescluster due to invalid value "
	noEntity = " due to incorrect long value format, or entity does not exist"
	noMap    = "Unable to decode parameter "
	mixed    = "nodeids can not be passed along with clustersize or service offering"
	unknown  = "00000000-0000-4000-8000-000000000000"
	valid    = "name=x zoneid={zone} kubernetesversionid={version} serviceofferingid={small} "
)

var badInputs = []badInput{
	// Ids
	{"A06", list, "id=" + unknown, 431, "Invalid parameter id value=" + unknown + noEntity},
	{"A06", list, "id=not-a-uuid", 431, "Invalid parameter id value=not-a-uuid" + noEntity},
	{"A06", scale, "id=" + unknown + " size=3", 431, "Invalid parameter id value=" + unknown + noEntity},
	{"A06", scale, "id={cluster}x size=3", 431, noEntity},
	{"§2.9", scale, "size=3", 431, "Unable to execute API command scalekubernetescluster due to missing parameter id"},
	{"§2.9", scale, "id= size=3", 431, "Invalid value provided for API arg: id"},
	{"§1.3", scale, "id=-1 size=3", 200, "Invalid Kubernetes cluster ID"},
	{"§1.3", scale, "id=0 size=3", 200, "Invalid Kubernetes cluster ID"},
	{"§1.3", scale, "id=9223372036854775807 size=3", 200, "Invalid Kubernetes cluster ID"},
	{"§1.3", scale, "id=9223372036854775808 size=3", 431, noEntity},
	{"ids", scale, "id={cluster},{other} size=3", 431, noEntity},
	{"ids", scale, "id=' size=3", 431, noEntity},
	{"ids", scale, "id={cluster};DROP␣TABLE␣clusters size=3", 431, noEntity},
	{"ids", scale, "id={worker1} size=3", 431, noEntity},
	{"ids", "deleteKubernetesCluster", "id=" + unknown, 431, noEntity},
	{"ids", "deleteKubernetesCluster", "id=-1", 200, "Invalid Kubernetes cluster ID"},
	{"ids", "startKubernetesCluster", "", 431, "missing parameter id"},
	{"ids", "startKubernetesCluster", "id={worker1}", 431, noEntity},
	{"ids", "startKubernetesCluster", "id=-1", 200, "Invalid Kubernetes cluster ID"},
	{"ids", "stopKubernetesCluster", "id=", 431, "Invalid value provided for API arg: id"},
	{"ids", "stopKubernetesCluster", "id=" + unknown, 431, noEntity},
	{"ids", "stopKubernetesCluster", "id=0", 200, "Invalid Kubernetes cluster ID"},
	{"ids", "upgradeKubernetesCluster", "id={cluster}", 431, "missing parameter kubernetesversionid"},
	{"ids", "upgradeKubernetesCluster", "id={cluster} kubernetesversionid=1.34.1", 431, "Invalid parameter kubernetesversionid value=1.34.1" + noEntity},
	{"ids", "upgradeKubernetesCluster", "id={cluster} kubernetesversionid={zone}", 431, noEntity},
	{"ids", "upgradeKubernetesCluster", "id={cluster} kubernetesversionid=-1", 200, "Invalid Kubernetes version ID"},
	{"§4", "upgradeKubernetesCluster", "id={cluster} kubernetesversionid={version}", 200, "Kubernetes clusters can not be downgraded"},
	{"ids", "queryAsyncJobResult", "jobid=" + unknown, 431, "Invalid parameter jobid value=" + unknown + noEntity},
	{"ids", "queryAsyncJobResult", "jobid={cluster}", 431, noEntity},
	{"ids", "queryAsyncJobResult", "", 431, "missing parameter jobid"},
	{"ids", "stopVirtualMachine", "id={cluster}", 431, noEntity},
	{"ids", "startVirtualMachine", "id=999999", 431, noEntity},
	{"ids", "listVirtualMachines", "id={worker1} ids={worker2}", 431, "either id or ids"},
	{"ids", "listVirtualMachines", "ids={worker1},x", 431, noEntity},
	{"ids", list, "domainid=" + unknown, 431, noEntity},
	{"ids", list, "projectid=" + unknown, 431, noEntity},
	{"§2.6", list, "account=nobody", 530, "Unable to find account by name nobody"},
	{"ids", "listAsyncJobs", "account=nobody", 431, "Unable to find account by name nobody"},
	{"ids", list, "clustertype=Bogus", 530, "Unable to resolve cluster type Bogus to a supported value"},
	{"ids", "listApis", "name=nope", 530, "unable to find an api by that name"},
	{"§1.10", scale, "id={cluster} size=3 customjobid=x", 431, "UUID: x doesn't follow the UUID format"},
	{"§1.10", scale, "id={cluster} size=3 customjobid=0000000A-0000-4000-8000-000000000000", 431, "doesn't follow the UUID format"},
	{"§1.10", scale, "id={cluster} size=3 customjobid={job}", 431, "already exists so can't create/update with custom id"},

	// Numbers
	{"A14", scale, "id={cluster} size=0", 200, "cannot be scaled for size, 0"},
	{"A14", scale, "id={cluster} size=-1", 200, "cannot be scaled for size, -1"},
	{"A14", scale, "id={cluster} size=1.5", 431, noNumber + "1.5 for parameter size"},
	{"A14", scale, "id={cluster} size=abc", 431, noNumber + "abc for parameter size"},
	{"A14", scale, "id={cluster} size=", 431, noNumber + " for parameter size"},
	{"A14", scale, "id={cluster} size=99999999999999999999", 431, noNumber + "99999999999999999999 for parameter size"},
	{"A14", scale, "id={cluster} size=9223372036854775808", 431, noNumber},
	{"A14", scale, "id={cluster} size=9223372036854775807", 200, "Maximum cluster size can not exceed 10"},
	{"A14", scale, "id={cluster} size=-9223372036854775808", 200, "cannot be scaled for size, -9223372036854775808"},
	{"A14", scale, "id={cluster} size=4294967299", 200, "Maximum cluster size can not exceed 10"}, // 3 in 32 bits
	{"A14", scale, "id={cluster} size=0x3", 431, noNumber},
	{"A14", scale, "id={cluster} size=3␣", 431, noNumber},
	{"A14", scale, "id={cluster} size=1_0", 431, noNumber},
	{"A14", scale, "id={cluster} size=３", 431, noNumber},
	{"A14", scale, "id={cluster} size=NaN", 431, noNumber},
	{"A14", scale, "id={cluster} size=3,3", 431, noNumber},
	{"A15", scale, "id={cluster} size=8", 200, "Maximum cluster size can not exceed 10. Please contact your administrator"},
	{"A14", scale, "id={cluster} size=3 starteventid=x", 431, "for parameter starteventid"},

	// Autoscaling
	{"A16", scale, "id={cluster} autoscalingenabled=true", 200, "Autoscaling requires minsize and maxsize to be passed"},
	{"A16", scale, "id={cluster} autoscalingenabled=true maxsize=3", 200, "Autoscaling requires minsize and maxsize to be passed"},
	{"A16", scale, "id={cluster} autoscalingenabled=true minsize=1", 200, "Autoscaling requires minsize and maxsize to be passed"},
	{"A16", scale, "id={cluster} autoscalingenabled=true minsize=0 maxsize=3", 200, "Minsize must be at least than 1"},
	{"A16", scale, "id={cluster} autoscalingenabled=true minsize=3 maxsize=3", 200, "Maxsize must be greater than minsize"},
	{"A16", scale, "id={cluster} autoscalingenabled=TRUE minsize=4 maxsize=3", 200, "Maxsize must be greater than minsize"},
	{"A16", scale, "id={cluster} autoscalingenabled=true minsize=1 maxsize=3 size=2", 200, "Autoscaling can not be passed along with nodeids or clustersize"},
	{"A16", scale, "id={cluster} autoscalingenabled=true minsize=1 maxsize=3 nodeids={worker1}", 200, "Autoscaling can not be passed along"},
	{"A15", scale, "id={cluster} autoscalingenabled=true minsize=1 maxsize=8", 200, "Maximum cluster size can not exceed 10"},
	{"A16", scale, "id={cluster} autoscalingenabled=true minsize=x maxsize=8", 431, "invalid value x for parameter minsize"},
	{"A16", scale, "id={cluster} minsize=1 maxsize=3", 200, "either service offering or cluster size or nodeids"},

	// What is asked at once
	{"A17", scale, "id={cluster} size=2 nodeids={worker1}", 200, mixed},
	{"A17", scale, "id={cluster} size=1 nodeids={worker1}", 200, mixed},
	{"A17", scale, "id={cluster} nodeids={worker1} serviceofferingid={large}", 200, mixed},
	{"A17", scale, "id={cluster} nodeids={worker1} nodeofferings[0].node=worker nodeofferings[0].offering={large}", 200, mixed},
	{"A17", scale, "id={cluster}", 200, "either service offering or cluster size or nodeids to be removed or autoscaling must be passed"},
	{"A17", scale, "id={cluster} sizes=3 node_ids={worker1}", 200, "must be passed"}, // unknown names are ignored

	// nodeids
	{"A18", scale, "id={cluster} nodeids={worker1},{stranger}", 200, "Invalid node ids"},
	{"A18", scale, "id={other} nodeids={worker1}", 200, "Invalid node ids"},
	{"A18", scale, "id={cluster} nodeids={worker1},{worker1}", 200, "Invalid node ids"},
	{"A18", scale, "id={cluster} nodeids={worker1}," + unknown, 431, "Invalid parameter nodeids value=" + unknown + noEntity},
	{"A18", scale, "id={cluster} nodeids={worker1},x", 431, noEntity},
	{"A18", scale, "id={cluster} nodeids={worker1};{worker2}", 431, noEntity},
	{"A18", scale, "id={cluster} nodeids={cluster}", 431, noEntity},
	{"A18", scale, "id={cluster} nodeids=999999", 200, "Invalid node ids"},
	{"A18", scale, "id={cluster} nodeids=", 200, "Invalid node ids"},
	{"A18", scale, "id={cluster} nodeids=,,␣,", 200, "Invalid node ids"},
	{"A18", scale, "id={cluster} nodeids=" + strings.Repeat("1,", 1001), 431, "more than 1000 elements"},
	{"A19", scale, "id={cluster} nodeids={worker1},{worker2}", 200, "Can not remove all nodes from a cluster"},
	{"A19", scale, "id={cluster} nodeids={control1},{control2},{control3}", 200, "Can not remove all control nodes from a cluster"},
	{"§4.3", scale, "id={cluster} nodeids={control1}", 200, "scaling removes only worker nodes"},

	// Offerings
	{"A34", scale, "id={cluster} serviceofferingid=" + unknown, 431, "Invalid parameter serviceofferingid value=" + unknown + noEntity},
	{"A34", scale, "id={cluster} serviceofferingid={worker1}", 431, noEntity},
	{"A34", scale, "id={cluster} size=1 serviceofferingid={tiny}", 200, "needs minimum 2 vCPUs and 2048 MB RAM"},
	{"§3.1", scale, "id={cluster} serviceofferingid={custom}", 200, "Custom service offerings are not supported"},
	{"§3.1", scale, "id={cluster} serviceofferingid=", 431, noEntity},
	{"§3.1", scale, "id={cluster} serviceofferingid=999999", 200, "Failed to find service offering ID: 999999"},

	// Maps
	{"§1.4", scale, "id={cluster} nodeofferings=abc", 431, noNumber + "abc for parameter nodeofferings"},
	{"§1.4", scale, "id={cluster} nodeofferings=", 431, noNumber + " for parameter nodeofferings"},
	{"§1.4", scale, "id={cluster} nodeofferings[0]=worker", 430, noMap},
	{"§1.4", scale, "id={cluster} nodeofferings[].node=worker", 430, noMap},
	{"§1.4", scale, "id={cluster} nodeofferings[x].node=worker", 430, noMap},
	{"§1.4", scale, "id={cluster} nodeofferings[0.node=worker", 430, noMap},
	{"§1.4", scale, "id={cluster} nodeofferings]0[.node=worker", 430, noMap},
	{"§1.4", scale, "id={cluster} nodeofferings[0]node=worker", 430, noMap},
	{"§1.4", scale, "id={cluster} nodeofferings[0][1].node=worker", 430, noMap},
	{"§1.4", scale, "id={cluster} nodeofferings[0].a[1]=worker", 430, noMap},
	{"§1.4", scale, "id={cluster} nodeofferings[0.5].node=worker", 430, noMap},
	{"§1.4", scale, "id={cluster} nodeofferings.x[0].node=worker", 430, noMap},
	{"§1.4", scale, "id={cluster} nodeofferings[99999999999].node=worker", 430, noMap},
	{"§1.4", scale, "id={cluster} other[x=1 size=3", 430, noMap}, // of a parameter that nobody knows, too
	{"§1.4", scale, "id={cluster} [0].node=worker", 200, "must be passed"},
	{"§1.4", scale, "id={cluster} size[0].x=3", 431, "for parameter size"},
	{"§3.1", scale, "id={cluster} nodeofferings[0].node=worker", 200, "Incomplete Node Type to Service Offering ID mapping: 'worker' -> 'null'"},
	{"§3.1", scale, "id={cluster} nodeofferings[0].Node=worker nodeofferings[0].offering={large}", 200, "mapping: 'null' -> '{large}'"},
	{"§3.1", scale, "id={cluster} nodeofferings[0].node=worker nodeofferings[1].offering={large}", 200, "Incomplete Node Type"},
	{"§3.1", scale, "id={cluster} nodeofferings[0].node= nodeofferings[0].offering=", 200, "mapping: '' -> ''"},
	{"§3.1", scale, "id={cluster} nodeofferings[7].node=alien nodeofferings[7].offering={large}", 200, "The provided value 'alien' for Node Type is invalid"},
	{"§3.1", scale, "id={cluster} nodeofferings[0].node=worker nodeofferings[0].offering=" + unknown, 200, "Cannot find a service offering with ID " + unknown},
	{"§3.1", scale, "id={cluster} nodeofferings[0].node=worker nodeofferings[0].offering=x", 200, "Cannot find a service offering with ID x"},

	// Pages
	{"A23", list, "page=1", 431, `"pagesize" parameter is required when "page" is specified`},
	{"A23", list, "pagesize=10", 431, `"page" parameter is required when "pagesize" is specified`},
	{"A23", list, "page=1 pagesize=-1", 530, "Can't specify page parameter when pagesize is -1 (Unlimited)"},
	{"A23", list, "page=1 pagesize=501", 530, "Page size can't exceed max allowed page size value: 500"},
	{"A23", "listVirtualMachines", "page=1 pagesize=501", 431, "Page size can't exceed max allowed page size value: 500"},
	{"A23", "listZones", "page=1 pagesize=-1", 431, "Can't specify page parameter when pagesize is -1 (Unlimited)"},
	{"A23", list, "page=x pagesize=2", 431, "invalid value x for parameter page"},
	{"A23", list, "page=1 pagesize=2.5", 431, "invalid value 2.5 for parameter pagesize"},
	{"A23", list, "page=-1 pagesize=2", 431, "invalid value -1 for parameter page"},
	{"A23", list, "page=1 pagesize=-2", 431, "invalid value -2 for parameter pagesize"},
	{"A23", list, "page=2147483648 pagesize=2", 431, "for parameter page"},
	{"A23", "listAsyncJobs", "page=99999999999999999999 pagesize=2", 431, "for parameter page"},

	// Dates
	{"A12", "listAsyncJobs", "startdate=yesterday", 431, "Unable to parse date yesterday for command listasyncjobs"},
	{"A12", "listAsyncJobs", "startdate=2026-13-01", 431, "Unable to parse date"},
	{"A12", "listAsyncJobs", "startdate=2026-02-30T00:00:00+0000", 431, "Unable to parse date"},
	{"A12", "listAsyncJobs", "startdate=2026-01-08T08:10:00␣0000", 431, "Unable to parse date"}, // a + that was not encoded
	{"A12", "listAsyncJobs", "startdate=99999-01-01", 431, "Unable to parse date"},
	{"A12", "listAsyncJobs", "startdate=1", 431, "Unable to parse date"},

	// Commands
	{"§2.9", "scalekubernetescluster", "id={cluster} size=3", 401, "unable to verify user credentials"},
	{"§2.9", "scaleKubernetesCluster␣", "id={cluster} size=3", 401, "unable to verify user credentials"},
	{"§2.9", "dropEverything", "", 401, "unable to verify user credentials"},
	{"§2.9", "", "id={cluster} size=3", 401, "unable to verify user credentials"},

	// Creating
	{"create", create, "", 431, "missing parameter"},
	{"create", create, valid + "size=0", 431, "Invalid cluster size: 0"},
	{"create", create, valid + "size=-3", 431, "Invalid cluster size: -3"},
	{"create", create, valid + "size=9223372036854775807 controlnodes=9223372036854775807", 431, "Maximum cluster size can not exceed 10"},
	{"create", create, valid + "controlnodes=0", 431, "control nodes count: 0"},
	{"create", create, valid + "etcdnodes=-1", 431, "etcd nodes count: -1"},
	{"create", create, valid + "etcdnodes=9223372036854775807", 431, "Maximum cluster size can not exceed 10"},
	{"create", create, valid + "size=x", 431, "invalid value x for parameter size"},
	{"create", create, valid + "zoneid=" + unknown, 431, noEntity},
	{"create", create, valid + "kubernetesversionid={zone}", 431, noEntity},
	{"create", create, valid + "serviceofferingid={tiny}", 431, "vCPUs"},
	{"create", create, valid + "name=", 431, "Invalid value provided for API arg: name"},
	{"create", create, valid + "name=" + strings.Repeat("x", 64), 431, "Invalid name for the Kubernetes cluster"},
	{"create", create, valid + "name=␣", 431, "Invalid name for the Kubernetes cluster"},
	{"create", create, valid + "name=a\nb", 431, "Invalid name for the Kubernetes cluster"},
	{"create", create, valid + "nodetemplates[0].node=worker", 431, "Incomplete Node Type to template ID mapping: 'worker' -> 'null'"},
	{"create", create, valid + "nodetemplates[0].node=worker nodetemplates[0].template={zone}", 431, "Cannot find a template with ID"},
	{"create", create, valid + "nodetemplates=x", 431, "invalid value x for parameter nodetemplates"},
	{"create", create, valid + "noderootdisksize=0", 431, "Invalid value for noderootdisksize"},
	{"create", create, valid + "noderootdisksize=x", 431, "invalid value x for parameter noderootdisksize"},
	{"create", create, valid + "dockerregistryurl=https://r.test", 431, "All the docker private registry parameters"},
	{"create", create, valid + "networkid={zone}", 431, noEntity},
	{"create", create, valid + "clustertype=externalmanaged", 431, "Unable to resolve cluster type externalmanaged"},
	{"create", create, valid + "account=nobody", 431, "Unable to find account by name nobody"},
	{"create", create, valid + "networkid=x", 431, noEntity},

	// Kubeconfigs, templates, networks, versions
	{"config", "getKubernetesClusterConfig", "", 431, "missing parameter id"},
	{"config", "getKubernetesClusterConfig", "id=" + unknown, 431, noEntity},
	{"config", "getKubernetesClusterConfig", "id=x", 431, noEntity},
	{"templates", "listTemplates", "", 431, "missing parameter templatefilter"},
	{"templates", "listTemplates", "templatefilter=x", 431, "Please specify a valid templatefilter"},
	{"templates", "listTemplates", "templatefilter=all ids={zone}", 431, noEntity},
	{"networks", "listNetworks", "id={cluster}", 431, noEntity},
	{"networks", "listNetworks", "zoneid={cluster}", 431, noEntity},
	{"versions", "addKubernetesSupportedVersion", "semanticversion=1.35 mincpunumber=2 minmemory=2048 url=u", 431, "Invalid version format for 1.35"},
	{"versions", "addKubernetesSupportedVersion", "semanticversion=1.33.1 mincpunumber=2 minmemory=2048 url=u", 431, "There is a Kubernetes version with the name v1.33.1 already"},
	{"versions", "updateKubernetesSupportedVersion", "id={version} state=off", 431, "Invalid value for state parameter: off"},
	{"versions", "updateKubernetesSupportedVersion", "id={cluster} state=Disabled", 431, noEntity},
	{"versions", "deleteKubernetesSupportedVersion", "id={cluster}", 431, noEntity},
	{"versions", "deleteKubernetesSupportedVersion", "id={version}", 200, "Existing clusters currently using the version."},

	// Simulator
	{"§6", "configureSimulator", "name=vm.explode value=fail", 431, "vm.explode"},
	{"§6", "configureSimulator", "name=vm.create", 431, "value"},
	{"§6", "configureSimulator", "name=vm.create value=delay:soon", 431, "delay:soon"},
	{"§6", "configureSimulator", "name=vm.create value=fail count=-1", 431, "count"},
	{"§6", "configureSimulator", "name=vm.set value=Running vmid=" + unknown, 431, noEntity},
	{"§6", "configureSimulator", "name=vm.set value=Broken vmid={worker1}", 431, "Broken"},
	{"§6", "configureSimulator", "name=capacity value=many", 431, "many"},
	{"§6", "querySimulator", "clusterid=x", 431, noEntity},

	// Text
	{"A20", list, "keyword=a\x00b", 431, "illegal ASCII non-printable characters for parameter"},
	{"A20", list, "id=\x00", 431, "illegal ASCII non-printable characters for parameter"},
	{"A20", scale, "id={cluster} nodeids={worker1}\x00", 431, "illegal ASCII non-printable characters for parameter"},
	{"A20", scale, "id={cluster} size=3 whatever=\x7f", 431, "illegal ASCII non-printable characters for parameter"},
	{"A20", scale, "id={cluster} size=3 x=\x1b[31m", 431, "illegal ASCII non-printable characters for parameter"},
	{"A20", list, "keyword=\xff\xfe", 431, "is not valid UTF-8"},
	{"A20", list, "keyword=\xc0\x80", 431, "is not valid UTF-8"},     // an overlong NUL
	{"A20", list, "keyword=\xed\xa0\x80", 431, "is not valid UTF-8"}, // half a surrogate pair
	{"A20", scale, "id={cluster} size=3 \xff=1", 431, "is not valid UTF-8"},
	{"§1.3", list, "keyword=" + strings.Repeat("ü", 256), 431, "Value greater than max allowed length 255"},
	{"huge", list, "name=" + strings.Repeat("x", 9000), 431, "Value greater than max allowed length"},
	{"huge", scale, "id=" + strings.Repeat("f", 9000) + " size=3", 431, noEntity},
	{"huge", scale, "id={cluster} size=" + strings.Repeat("9", 9000), 431, "for parameter size"},
	{"huge", scale, "id={cluster} nodeofferings[0].node=" + strings.Repeat("x", 9000) + " nodeofferings[0].offering=x", 200, "The provided value 'xxxx"},
	{"huge", scale, "id={cluster} " + strings.Repeat("x", 9000) + "[=1", 430, noMap},
	{"huge", list, strings.Repeat("a=1 ", 2) + manyNames(1100), 431, "more than 1000 parameters"},
}

// manyNames are n different parameters.
func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "p%d=1 ", i)
	}
	return b.String()
}
