package cks

import (
	"fmt"
	"regexp"
	"strings"
)

// Lengths that leave room for what follows within the 63 characters of a host
// name: "-control-" and eleven hex digits, or the index and eleven hex digits.
const (
	maxPrefix     = 43
	maxEtcdPrefix = 40
)

var (
	hostLabel = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	notInHost = regexp.MustCompile(`[^a-z0-9-]+`)
)

// NamePrefix is what the host names of a cluster's control and worker VMs begin
// with (spec/cks.md §8.1).
func NamePrefix(clusterName, clusterID string) string {
	name := strings.ToLower(clusterName)
	if !hostLabel.MatchString(name) {
		name = "k8s-" + cleaned(name, clusterID)
	}
	return cut(name, maxPrefix)
}

// EtcdPrefix is what the host names of a cluster's etcd VMs begin with. Unlike
// upstream's it is in lower case (A13) and never begins with a hyphen.
func EtcdPrefix(clusterName, clusterID string) string {
	name := strings.ToLower(clusterName)
	if !hostLabel.MatchString(name) {
		name = strings.TrimLeft(cleaned(name, clusterID), "-")
		if name == "" {
			name = strings.ToLower(clusterID)
		}
	}
	return cut(name+"-etcd", maxEtcdPrefix)
}

// cleaned drops what a host name cannot have; the cluster's id stands in if
// nothing is left.
func cleaned(name, clusterID string) string {
	if name = notInHost.ReplaceAllString(name, ""); name == "" {
		return strings.ToLower(clusterID)
	}
	return name
}

func cut(s string, n int) string { return s[:min(len(s), n)] }

// Stem is a VM's host name up to the hyphen and the hex digits that make it
// unique: "demo-control", "demo-node", "demo-etcd-1". index, from 1, matters to
// etcd VMs only. With eleven hex digits the name is a lower-case RFC 1123 label.
func Stem(clusterName, clusterID string, r Role, index int) string {
	switch r {
	case Control:
		return NamePrefix(clusterName, clusterID) + "-control"
	case Etcd:
		return fmt.Sprintf("%s-%d", EtcdPrefix(clusterName, clusterID), index)
	default:
		return NamePrefix(clusterName, clusterID) + "-node"
	}
}
