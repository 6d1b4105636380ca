package cks

import "testing"

const (
	customText = "Custom service offerings are not supported for Kubernetes clusters. Kubernetes cluster : demo, service offering : custom"
	tinyText   = "Kubernetes cluster : demo cannot be scaled with service offering : tiny, Kubernetes cluster template(CoreOS) needs minimum 2 vCPUs and 2048 MB RAM"
	thinText   = "Kubernetes cluster : demo cannot be scaled with service offering : thin, Kubernetes cluster template(CoreOS) needs minimum 2 vCPUs and 2048 MB RAM"
	coresText  = "Kubernetes cluster : demo cannot be scaled with service offering : large, associated Kubernetes version : v1.33.1 needs minimum 9 vCPUs"
	memoryText = "Kubernetes cluster : demo cannot be scaled with service offering : large, associated Kubernetes version : v1.33.1 needs minimum 8193 MB RAM"
	lesserText = "Kubernetes cluster cannot be scaled down for service offering. Service offering : small offers lesser resources " +
		"as compared to service offering : medium of Kubernetes cluster : demo"
)

func needsCores(f *ScaleFacts)  { f.View.Version.MinCores = 9 }
func needsMemory(f *ScaleFacts) { f.View.Version.MinMemoryMB = 8193 }

var offeringRefusals = []refusal{
	{"offering of worker: found", Invalid, "Failed to find service offering ID: 99", nothing, offering("99")},
	{"offering of worker: not custom", Invalid, customText, nothing, offering("custom")},
	{"offering of worker: not custom", Invalid, customText, nothing, nodeOfferings("worker", "custom")},
	{"offering of worker: large enough", Invalid, tinyText, nothing, offering("tiny")},
	{"offering of worker: large enough", Invalid, thinText, nothing, nodeOfferings("WORKER", "thin")},
	{"offering of worker: vCPUs for the version", Invalid, coresText, needsCores, nodeOfferings("worker", "large")},
	{"offering of worker: memory for the version", Invalid, memoryText, needsMemory, nodeOfferings("worker", "large")},
	{"offering of worker: not smaller while running", Failed, lesserText, nothing, offering("small")},
	{"offering of worker: not smaller while running", Failed, lesserText, nothing, nodeOfferings("worker", "small")},
	{"offering of worker: not smaller while running", Failed, "Kubernetes cluster cannot be scaled down for service offering. " +
		"Service offering : lean offers lesser resources as compared to service offering : medium of Kubernetes cluster : demo",
		nothing, nodeOfferings("worker", "lean")},
	{"offering of worker: not smaller while running", Failed, "Kubernetes cluster cannot be scaled down for service offering. " +
		"Service offering : slow offers lesser resources as compared to service offering : medium of Kubernetes cluster : demo",
		nothing, offering("slow")},
	{"offering of worker: not smaller while running", Failed, "Kubernetes cluster cannot be scaled down for service offering. " +
		"Service offering : medium offers lesser resources as compared to service offering : large of Kubernetes cluster : demo",
		cluster(func(c *Cluster) { c.Offerings = map[Role]string{Worker: "large"} }), nodeOfferings("worker", "medium")},
	// A VM that an unfinished change has enlarged already.
	{"offering of worker: not smaller while running", Failed, "Kubernetes cluster cannot be scaled down for service offering. " +
		"Service offering : medium offers lesser resources as compared to service offering : large of Kubernetes cluster : demo",
		onVM("w1", func(v *VM) { v.OfferingID = "large" }), nodeOfferings("worker", "medium")},

	{"offering of control: found", Invalid, "Failed to find service offering ID: 99", nothing, both(nodeOfferings("worker", "medium"), offering("99"))},
	{"offering of control: not custom", Invalid, customText, nothing, nodeOfferings("worker", "medium", "control", "custom")},
	{"offering of control: large enough", Invalid, tinyText, nothing, nodeOfferings("control", "tiny")},
	{"offering of control: vCPUs for the version", Invalid, coresText, needsCores, nodeOfferings("control", "large")},
	{"offering of control: memory for the version", Invalid, memoryText, needsMemory, nodeOfferings("control", "large")},
	{"offering of control: not smaller while running", Failed, lesserText, nothing, nodeOfferings("control", "small")},

	{"offering of etcd: found", Invalid, "Failed to find service offering ID: 99", nothing,
		both(nodeOfferings("worker", "medium", "control", "medium"), offering("99"))},
	{"offering of etcd: not custom", Invalid, customText, nothing, nodeOfferings("etcd", "custom")},
	{"offering of etcd: large enough", Invalid, thinText, nothing, nodeOfferings("etcd", "thin")},
	{"offering of etcd: vCPUs for the version", Invalid, coresText, needsCores, nodeOfferings("etcd", "large")},
	{"offering of etcd: memory for the version", Invalid, memoryText, needsMemory, nodeOfferings("etcd", "large")},
	{"offering of etcd: not smaller while running", Failed, lesserText, nodesOf(1, 3, 2, 0), nodeOfferings("etcd", "small")},
}

// A smaller offering is refused only where it would shrink a running VM
// (cks.md §3.1 11f, §7 D3).
//
// Keeps: §3.1/11f, §3.1/11f-states, §3.1/11f-acted-on, §3.1/11f-none.
// Keeps: §1.10/nodeofferings-override.
func TestSmallerOffering(t *testing.T) {
	t.Parallel()
	bigWorkers := cluster(func(c *Cluster) { c.Offerings = map[Role]string{Worker: "large"} })
	for _, c := range []struct {
		name  string
		facts edit
		req   ScaleRequest
		want  Kind
	}{
		{"equal", nothing, offering("medium"), Nothing},
		{"stopped", inTheState(Stopped), offering("small"), ChangeOffering},
		{"created", inTheState(Created), offering("small"), RecordSize},
		{"the default, where workers have more", with(bigWorkers, nodesOf(3, 0, 2, 0)), both(offering("medium"), toSize(3)), ScaleUp},
		{"beside nodeofferings that override it", nothing, both(offering("small"), nodeOfferings("worker", "large")), ChangeOffering},
		{"of etcd nodes that are not there", nothing, nodeOfferings("etcd", "small"), Nothing},
		{"nothing recorded", with(cluster(func(c *Cluster) { c.DefaultOffering = "" }), nodesOf(3, 0, 2, 0)), offering("small"), ChangeOffering},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			change, err := CheckScale(newFacts(c.facts), c.req)
			if err != nil || change.Kind != c.want {
				t.Fatalf("%s, %v; want %s", change.Kind, err, c.want)
			}
		})
	}
}
