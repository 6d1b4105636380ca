package cks

import (
	"fmt"
	"regexp"
)

// VersionRequest is addKubernetesSupportedVersion as sent.
type VersionRequest struct {
	Name        string // empty: made of the version and the zone
	Version     string
	ZoneID      string
	MinCores    int
	MinMemoryMB int
}

// minVersion is the oldest Kubernetes that can be added.
const minVersion = "1.11.0"

var semanticVersion = regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}$`)

// CheckVersion decides what a new version is, or why it is refused, by
// CloudStack's rules. zone is the name of the one asked for, or empty.
func CheckVersion(r VersionRequest, zone string) (KubernetesVersion, error) {
	switch {
	case r.MinCores < minCores:
		return KubernetesVersion{}, Errorf(Invalid, "Invalid value for mincpunumber parameter. Minimum %d vCPUs required.", minCores)
	case r.MinMemoryMB < minMemoryMB:
		return KubernetesVersion{}, Errorf(Invalid, "Invalid value for minmemory parameter. Minimum %dMB memory required", minMemoryMB)
	case !semanticVersion.MatchString(r.Version):
		return KubernetesVersion{}, Errorf(Invalid, "Invalid version format for %s", r.Version)
	case !versionAtLeast(r.Version, minVersion):
		return KubernetesVersion{}, Errorf(Invalid, "New supported Kubernetes version cannot be added as %s is minimum version supported by Kubernetes Service", minVersion)
	}
	name := r.Name
	if name == "" {
		name = "v" + r.Version
		if zone != "" {
			name += "-" + zone
		}
	}
	if !printable(name, maxClusterName) {
		return KubernetesVersion{}, Errorf(Invalid, "Invalid name for the Kubernetes version (it needs 1 to %d printable characters)", maxClusterName)
	}
	return KubernetesVersion{
		Name: name, Version: r.Version, ISOName: fmt.Sprintf("%s-Kubernetes-Binaries-ISO", name),
		MinCores: r.MinCores, MinMemoryMB: r.MinMemoryMB, Enabled: true,
	}, nil
}

// VersionStates are the values of updateKubernetesSupportedVersion's state.
var VersionStates = map[string]bool{"Enabled": true, "Disabled": false}
