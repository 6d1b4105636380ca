package cks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits is how much an account may use; nil is no limit.
type Limits struct {
	VMs      *int
	Cores    *int
	MemoryMB *int64
}

// Usage is how much an account uses, or what a request would add to it.
type Usage struct {
	VMs      int
	Cores    int
	MemoryMB int64
}

// Exceeded says which limit used and extra together break, for the client;
// empty when they break none.
func (l Limits) Exceeded(used, extra Usage) string {
	for _, r := range []struct {
		what        string
		limit       *int64
		used, extra int64
	}{
		{what: "VMs", limit: wide(l.VMs), used: int64(used.VMs), extra: int64(extra.VMs)},
		{what: "vCPUs", limit: wide(l.Cores), used: int64(used.Cores), extra: int64(extra.Cores)},
		{what: "MB of memory", limit: l.MemoryMB, used: used.MemoryMB, extra: extra.MemoryMB},
	} {
		if r.limit != nil && r.extra > 0 && r.extra > *r.limit-r.used {
			return fmt.Sprintf("the account may use %d %s, uses %d and needs %d more", *r.limit, r.what, r.used, r.extra)
		}
	}
	return ""
}

func wide(n *int) *int64 {
	if n == nil {
		return nil
	}
	w := int64(*n)
	return &w
}

// ScaleFacts is all that CheckScale has to know. The zero value of a field that
// does not apply is right: no limits, service enabled.
type ScaleFacts struct {
	View            ClusterView         // the zero value: no such cluster
	NodeVMs         []VM                // rows that nodeids name, one per id in the order sent: of any cluster, removed ones too
	Offerings       map[string]Offering // by id: those in use and those that the request names; a removed one is absent
	MaxSize         int                 // cloud.kubernetes.cluster.max.size for the cluster's owner
	EndpointURL     string              // endpoint.url
	Limits          Limits              // of the cluster's owner
	Used            Usage               // by the cluster's owner
	ServiceDisabled bool                // cloud.kubernetes.service.enabled is false
}

// CreateFacts is all that CheckCreate has to know.
type CreateFacts struct {
	Zone            Zone                // the zero value: no such zone
	Version         *KubernetesVersion  // nil: no such version
	Template        *Template           // what node VMs boot from; nil: there is none
	Templates       map[string]Template // by id: those that nodetemplates names
	Network         *Network            // nil: one is to be made
	Offerings       map[string]Offering // by id: those that the request names
	MaxSize         int                 // as in ScaleFacts
	Limits          Limits              // of the owner to be
	Used            Usage               // by him
	ServiceDisabled bool                // as in ScaleFacts
}

// offeringByID finds the offering with this uuid, in any case.
func offeringByID(all map[string]Offering, id string) (Offering, bool) {
	o, ok := all[strings.ToLower(strings.TrimSpace(id))]
	return o, ok
}

// offeringByRef finds an offering by uuid or by internal number, as
// serviceofferingid may name it (spec/cks.md §1.3).
func offeringByRef(all map[string]Offering, ref string) (Offering, bool) {
	if o, ok := offeringByID(all, ref); ok {
		return o, true
	}
	n, err := strconv.ParseInt(strings.TrimSpace(ref), 10, 64)
	if err != nil {
		return Offering{}, false
	}
	for _, o := range all {
		if o.Seq == n {
			return o, true
		}
	}
	return Offering{}, false
}

// nodeTypes are the values of nodeofferings[i].node. "default" is known and
// stands for no type at all: it does nothing (spec/cks.md §3.5).
var nodeTypes = map[string]Role{"control": Control, "worker": Worker, "etcd": Etcd, "default": ""}

// entryFor returns the offering that nodeofferings names for nodes of type r.
// The last entry of a type wins.
func entryFor(entries []NodeOffering, r Role) (ref string, ok bool) {
	for _, e := range slices.Backward(entries) {
		if e.Node != nil && e.Offering != nil && nodeTypes[strings.ToLower(*e.Node)] == r {
			return *e.Offering, true
		}
	}
	return "", false
}

// SupportsHA reports whether a cluster of this version can have more than one
// control node.
func (v KubernetesVersion) SupportsHA() bool { return versionAtLeast(v.Version, minVersionHA) }

// SupportsAutoscaling reports whether a cluster of this version can autoscale.
func (v KubernetesVersion) SupportsAutoscaling() bool {
	return versionAtLeast(v.Version, minVersionAutoscaling)
}

// versionAtLeast compares dotted version numbers part by part, as numbers:
// upstream compares the strings, so that 1.9.0 passes for newer than 1.15.0.
func versionAtLeast(version, least string) bool {
	v, l := strings.Split(version, "."), strings.Split(least, ".")
	for i := range max(len(v), len(l)) {
		if c := compareDigits(part(v, i), part(l, i)); c != 0 {
			return c > 0
		}
	}
	return true
}

func part(parts []string, i int) string {
	if i >= len(parts) {
		return ""
	}
	return strings.TrimLeft(parts[i], "0")
}

// compareDigits compares two numbers without leading zeros, of any length.
func compareDigits(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
