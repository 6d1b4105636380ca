package cks

import (
	"strings"
	"testing"
)

// toVersion is a version that is asked for.
func toVersion(number string) *KubernetesVersion {
	return &KubernetesVersion{ID: "v-" + number, Name: "v" + number, Version: number, MinCores: 2, MinMemoryMB: 2048, Enabled: true}
}

// upgradeFacts are those of newFacts, with all nodes at the cluster's version,
// and the version asked for.
func upgradeFacts(number string, edits ...edit) UpgradeFacts {
	f := newFacts(edits...)
	f.View.Offerings = f.Offerings
	for i, v := range f.View.VMs {
		if v.Role != Etcd && v.NodeVersion == "" {
			f.View.VMs[i].NodeVersion = f.View.Version.Version
		}
	}
	return UpgradeFacts{View: f.View, To: toVersion(number)}
}

// What an upgrade is refused for, in this order, with CloudStack's texts.
//
// Keeps: §4/upgrade-refused, §4/upgrade.
func TestUpgradeRefusals(t *testing.T) {
	t.Parallel()
	const step = "Kubernetes clusters can be upgraded between next minor or patch version releases, current version: "
	needs := "Kubernetes cluster : demo cannot be upgraded with Kubernetes version : v1.34.1 which needs minimum "
	at := func(id, version string) edit { return onVM(id, func(v *VM) { v.NodeVersion = version }) }
	on := func(id, offering string) edit { return onVM(id, func(v *VM) { v.OfferingID = offering }) }
	for name, c := range map[string]struct {
		facts UpgradeFacts
		edit  func(*UpgradeFacts)
		want  string
	}{
		"next minor version":       {upgradeFacts("1.34.1"), nil, ""},
		"patch":                    {upgradeFacts("1.33.2"), nil, ""},
		"number, not text":         {upgradeFacts("1.33.10"), nil, ""},
		"the next of nine":         {upgradeFacts("1.10.0", version(func(v *KubernetesVersion) { v.Version = "1.9.3" })), nil, ""},
		"the same":                 {upgradeFacts("1.33.1"), nil, "Kubernetes clusters can not be upgraded, current version: 1.33.1, upgrade version: 1.33.1"},
		"lower patch":              {upgradeFacts("1.33.0"), nil, "Kubernetes clusters can not be downgraded, current version: 1.33.1, upgrade version: 1.33.0"},
		"lower minor":              {upgradeFacts("1.32.9"), nil, "Kubernetes clusters can not be downgraded, current version: 1.33.1, upgrade version: 1.32.9"},
		"lower, higher as text":    {upgradeFacts("1.4.0"), nil, "Kubernetes clusters can not be downgraded, current version: 1.33.1, upgrade version: 1.4.0"},
		"a minor version left out": {upgradeFacts("1.35.0"), nil, step + "1.33.1, upgrade version: 1.35.0"},
		"next major version":       {upgradeFacts("2.33.2"), nil, step + "1.33.1, upgrade version: 2.33.2"},
		"endless number":           {upgradeFacts("1." + strings.Repeat("9", 40) + ".0"), nil, step + "1.33.1, upgrade version: 1." + strings.Repeat("9", 40) + ".0"},
		"no such version":          {upgradeFacts("1.34.1"), func(f *UpgradeFacts) { f.To = nil }, "Invalid Kubernetes version ID"},
		"disabled version":         {upgradeFacts("1.34.1"), func(f *UpgradeFacts) { f.To.Enabled = false }, "Kubernetes version ID: v-1.34.1 for upgrade is in Disabled state"},
		"no version of its own":    {upgradeFacts("1.34.1"), func(f *UpgradeFacts) { f.View.Version = nil }, "Invalid Kubernetes version associated with cluster : demo"},
		"too few cores":            {upgradeFacts("1.34.1"), func(f *UpgradeFacts) { f.To.MinCores = 5 }, needs + "5 vCPUs while associated service offering : medium offers only 4 vCPUs"},
		"too little memory":        {upgradeFacts("1.34.1"), func(f *UpgradeFacts) { f.To.MinMemoryMB = 5000 }, needs + "5000 MB RAM while associated service offering : medium offers only 4096 MB RAM"},
		"just enough":              {upgradeFacts("1.34.1"), func(f *UpgradeFacts) { f.To.MinCores, f.To.MinMemoryMB = 4, 4096 }, ""},
		"one small worker":         {upgradeFacts("1.34.1", on("w2", "small")), func(f *UpgradeFacts) { f.To.MinCores = 3 }, needs + "3 vCPUs while associated service offering : small offers only 2 vCPUs"},
		"small for new workers":    {upgradeFacts("1.34.1", cluster(func(c *Cluster) { c.Offerings = map[Role]string{Worker: "small"} })), func(f *UpgradeFacts) { f.To.MinCores = 3 }, needs + "3 vCPUs while associated service offering : small offers only 2 vCPUs"},
		"small etcd and external":  {upgradeFacts("1.34.1", nodesOf(1, 1, 1, 1), on("etcd1", "small"), on("ext1", "small")), func(f *UpgradeFacts) { f.To.MinCores = 3 }, ""},
		"a failed one goes on":     {upgradeFacts("1.34.1", at("ctl1", "v1.34.1")), nil, ""},
		"a failed one does not go back": {upgradeFacts("1.33.2", at("ctl1", "v1.34.1")), nil,
			"Kubernetes clusters can not be downgraded, node demo-ctl1 has version: 1.34.1, upgrade version: 1.33.2"},
		"an external node is ahead": {upgradeFacts("1.33.2", nodesOf(1, 0, 1, 1), at("ext1", "1.34.1")), nil,
			"Kubernetes clusters can not be downgraded, node demo-ext1 has version: 1.34.1, upgrade version: 1.33.2"},
		"one that its owner upgrades is ahead": {upgradeFacts("1.33.2", nodesOf(1, 0, 1, 1), at("ext1", "1.34.1"), onVM("ext1", func(v *VM) { v.Manual = true })), nil, ""},
	} {
		if c.edit != nil {
			c.edit(&c.facts)
		}
		args, err := CheckUpgrade(c.facts)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != c.want || err == nil && (args.VersionID != c.facts.To.ID || args.Version != c.facts.To.Version) {
			t.Errorf("%s: %q, %+v; want %q", name, text, args, c.want)
		}
	}
}

// A cluster is upgraded in Running only; its state is looked at before the
// version (cks.md §4).
//
// Keeps: §4/upgrade.
func TestUpgradeNeedsARunningCluster(t *testing.T) {
	t.Parallel()
	for _, s := range States {
		f := upgradeFacts("1.34.1", inTheState(s))
		if _, err := CheckUpgrade(f); (err == nil) != (s == Running) {
			t.Errorf("%s: %v", s, err)
		}
		f.To = nil
		if _, err := CheckUpgrade(f); s != Running && !strings.HasPrefix(err.Error(), "Kubernetes cluster : demo is not in running state") {
			t.Errorf("%s: %v", s, err)
		}
	}
}
