package cks

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// UpgradeFacts is all that CheckUpgrade has to know.
type UpgradeFacts struct {
	View ClusterView        // the zero value: no such cluster
	To   *KubernetesVersion // the version asked for; nil: no such version
}

// upgrading is an upgrade that is being checked.
type upgrading struct{ UpgradeFacts }

// upgradeChecks are asked in this order; the first that fails refuses the
// request.
var upgradeChecks = []func(upgrading) error{
	upgrading.checkCluster,
	upgrading.checkState,
	upgrading.checkVersion,
	upgrading.checkOfferings,
	upgrading.checkStep,
	upgrading.checkNodes,
}

// CheckUpgrade says what an upgrade needs to know, or refuses it with the text
// for the client.
func CheckUpgrade(f UpgradeFacts) (Args, error) {
	for _, check := range upgradeChecks {
		if err := check(upgrading{f}); err != nil {
			return Args{}, err
		}
	}
	return Args{VersionID: f.To.ID, Version: f.To.Version}, nil
}

func (u upgrading) checkCluster() error { return checkManaged(u.View.Cluster, "Upgrade") }

func (u upgrading) checkState() error {
	if c := u.View.Cluster; c.State != Running {
		return Errorf(Conflict, "Kubernetes cluster : %s is not in running state, it is in %s state", c.Name, c.State)
	}
	return nil
}

func (u upgrading) checkVersion() error {
	switch {
	case u.To == nil:
		return Errorf(Invalid, "Invalid Kubernetes version ID")
	case !u.To.Enabled:
		return Errorf(Invalid, "Kubernetes version ID: %s for upgrade is in Disabled state", u.To.ID)
	case u.View.Version == nil:
		return Errorf(Invalid, "Invalid Kubernetes version associated with cluster : %s", u.View.Cluster.Name)
	}
	return nil
}

// checkOfferings wants every node of the cluster's own that is to be upgraded, and
// those to come, to be large enough for the version. CloudStack looks at the
// default offering only.
func (u upgrading) checkOfferings() error {
	c := u.View.Cluster
	used := []string{c.OfferingFor(Control), c.OfferingFor(Worker)}
	for _, v := range u.View.VMs {
		if v.Upgradable() && !v.External {
			used = append(used, v.OfferingID)
		}
	}
	for _, id := range used {
		o, ok := u.View.Offerings[id]
		const needs = "Kubernetes cluster : %s cannot be upgraded with Kubernetes version : %s which needs minimum %d %s while associated service offering : %s offers only %d %s"
		switch {
		case !ok:
		case o.Cores < u.To.MinCores:
			return Errorf(Invalid, needs, c.Name, u.To.Name, u.To.MinCores, "vCPUs", o.Name, o.Cores, "vCPUs")
		case o.MemoryMB < u.To.MinMemoryMB:
			return Errorf(Invalid, needs, c.Name, u.To.Name, u.To.MinMemoryMB, "MB RAM", o.Name, o.MemoryMB, "MB RAM")
		}
	}
	return nil
}

// checkStep: only to a newer version, and past no minor one.
func (u upgrading) checkStep() error {
	from, to := u.View.Version.Version, u.To.Version
	why := ""
	switch {
	case from == to:
		why = "can not be upgraded"
	case !versionAtLeast(to, from):
		why = "can not be downgraded"
	case !nextMinor(from, to):
		why = "can be upgraded between next minor or patch version releases"
	default:
		return nil
	}
	return Errorf(Invalid, "Kubernetes clusters %s, current version: %s, upgrade version: %s", why, from, to)
}

// checkNodes: an upgrade that failed may have left nodes at another version
// than the one that is recorded for the cluster. None goes back.
func (u upgrading) checkNodes() error {
	for _, v := range u.View.VMs {
		if at := strings.TrimPrefix(v.NodeVersion, "v"); v.Upgradable() && !versionAtLeast(u.To.Version, at) {
			return Errorf(Invalid, "Kubernetes clusters can not be downgraded, node %s has version: %s, upgrade version: %s",
				v.NodeName(), at, u.To.Version)
		}
	}
	return nil
}

// nextMinor reports whether to is of from's minor release or of the next one,
// given that it is newer.
func nextMinor(from, to string) bool {
	was, is := strings.Split(from, "."), strings.Split(to, ".")
	if part(was, 0) != part(is, 0) || len(was) < 2 || len(is) < 2 {
		return false
	}
	before, err := strconv.Atoi(was[1])
	after, err2 := strconv.Atoi(is[1])
	return err == nil && err2 == nil && after-before <= 1
}

// UpgradeOrder returns the VMs whose nodes still have to get a version, the
// next one first: control nodes, then workers, each the oldest first.
func UpgradeOrder(vms []VM, version string) []VM {
	todo := slices.DeleteFunc(slices.Clone(vms), func(v VM) bool {
		return !v.Upgradable() || v.Phase != Member || v.HasVersion(version)
	})
	slices.SortFunc(todo, func(a, b VM) int {
		return cmp.Or(cmp.Compare(controlFirst(a), controlFirst(b)), cmp.Compare(a.Seq, b.Seq))
	})
	return todo
}

func controlFirst(v VM) int {
	if v.Role == Control {
		return 0
	}
	return 1
}
