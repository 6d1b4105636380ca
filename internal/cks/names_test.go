package cks

import (
	"regexp"
	"strings"
	"testing"
)

const uuid = "7944A42F-fcf2-4f4e-932a-e7b59e0724b1"

// Host names are CloudStack's (cks.md §8.1).
//
// Keeps: §8.1/prefix, §8.1/prefix-cleaned, §8.1/etcd.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("abcde", 12) // 60
	for _, c := range []struct{ name, prefix, etcd string }{
		{"demo", "demo", "demo-etcd"},
		{"a", "a", "a-etcd"},
		{"Demo", "demo", "demo-etcd"},
		{"Prod_A 01", "k8s-proda01", "proda01-etcd"},
		{"9lives", "k8s-9lives", "9lives-etcd"},
		{"-x", "k8s--x", "x-etcd"},
		{"x-", "k8s-x-", "x--etcd"},
		{"a.b", "k8s-ab", "ab-etcd"},
		{"a\n", "k8s-a", "a-etcd"},
		{"Ünïcode", "k8s-ncode", "ncode-etcd"},
		{"日本", "k8s-7944a42f-fcf2-4f4e-932a-e7b59e0724b1", "7944a42f-fcf2-4f4e-932a-e7b59e0724b1-etc"},
		{"", "k8s-7944a42f-fcf2-4f4e-932a-e7b59e0724b1", "7944a42f-fcf2-4f4e-932a-e7b59e0724b1-etc"},
		{"---", "k8s----", "7944a42f-fcf2-4f4e-932a-e7b59e0724b1-etc"},
		{long, long[:43], long[:40]},
		{long + "abc", long[:43], long[:40]},                    // 63
		{long + "abcd", "k8s-" + long[:39], long[:40]},          // 64: no label
		{long[:38], long[:38], long[:38] + "-e"},                //
		{"_" + long[:38], "k8s-" + long[:38], long[:38] + "-e"}, //
	} {
		if got := NamePrefix(c.name, uuid); got != c.prefix {
			t.Errorf("NamePrefix(%q) = %q, want %q", c.name, got, c.prefix)
		}
		if got := EtcdPrefix(c.name, uuid); got != c.etcd {
			t.Errorf("EtcdPrefix(%q) = %q, want %q", c.name, got, c.etcd)
		}
	}
}

// A name up to its hexadecimal digits, by role (cks.md §8.1).
//
// Keeps: §8.1/control-worker, §8.1/etcd.
func TestStem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		role  Role
		index int
		want  string
	}{{Worker, 1, "demo-node"}, {Control, 2, "demo-control"}, {Etcd, 1, "demo-etcd-1"}, {Etcd, 12, "demo-etcd-12"}} {
		if got := Stem("demo", uuid, c.role, c.index); got != c.want {
			t.Errorf("%s %d: %q, want %q", c.role, c.index, got, c.want)
		}
	}
}

var rfc1123 = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Whatever a cluster is called, its VMs have lower-case RFC 1123 host names
// (A13).
//
// Keeps: §8.1/etcd.
// Keeps: A13.
func FuzzStem(f *testing.F) {
	for _, name := range []string{"demo", "", "-", "Prod_A 01", "9", "ſ", "K", strings.Repeat("x", 300), strings.Repeat("-", 70), "\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, r := range Roles {
			for _, index := range []int{1, 99999999} {
				if host := Stem(name, uuid, r, index) + "-197eb5e9290"; !rfc1123.MatchString(host) {
					t.Errorf("%q: %s", name, host)
				}
			}
		}
	})
}
