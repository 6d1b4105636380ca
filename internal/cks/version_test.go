package cks

import "testing"

// What is refused of a new version, and what the others become.
//
// Keeps: clients/versions.
func TestCheckVersion(t *testing.T) {
	t.Parallel()
	good := VersionRequest{Version: "1.35.0", MinCores: 2, MinMemoryMB: 2048}
	for _, c := range []struct {
		zone string
		edit func(*VersionRequest)
		name string
		text string
	}{
		{"", func(*VersionRequest) {}, "v1.35.0", ""},
		{"z", func(*VersionRequest) {}, "v1.35.0-z", ""},
		{"z", func(r *VersionRequest) { r.Name = "ours" }, "ours", ""},
		{"", func(r *VersionRequest) { r.Version = "1.11.0" }, "v1.11.0", ""},
		{"", func(r *VersionRequest) { r.MinCores = 1 }, "", "Invalid value for mincpunumber parameter. Minimum 2 vCPUs required."},
		{"", func(r *VersionRequest) { r.MinMemoryMB = 2047 }, "", "Invalid value for minmemory parameter. Minimum 2048MB memory required"},
		{"", func(r *VersionRequest) { r.Version = "1.35" }, "", "Invalid version format for 1.35"},
		{"", func(r *VersionRequest) { r.Version = "v1.35.0" }, "", "Invalid version format for v1.35.0"},
		{"", func(r *VersionRequest) { r.Version = "1.9.9" }, "", "New supported Kubernetes version cannot be added as 1.11.0 is minimum version supported by Kubernetes Service"},
		{"", func(r *VersionRequest) { r.Name = " " }, "", "Invalid name for the Kubernetes version (it needs 1 to 63 printable characters)"},
	} {
		r := good
		c.edit(&r)
		v, err := CheckVersion(r, c.zone)
		if c.text != "" {
			checkText(t, err, Invalid, c.text)
			continue
		}
		want := KubernetesVersion{Name: c.name, Version: r.Version, ISOName: c.name + "-Kubernetes-Binaries-ISO", MinCores: 2, MinMemoryMB: 2048, Enabled: true}
		if err != nil || v != want {
			t.Errorf("%v, %+v", err, v)
		}
	}
}
