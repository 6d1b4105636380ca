package cks

import "testing"

// An account that uses more than it may, since its limit was lowered, is still
// given what takes nothing more.
func TestLimitsExceeded(t *testing.T) {
	t.Parallel()
	limits := Limits{VMs: ptr(2), MemoryMB: ptr(int64(100))}
	for _, c := range []struct {
		used, extra Usage
		want        string
	}{
		{Usage{VMs: 1, MemoryMB: 50}, Usage{VMs: 1, Cores: 1 << 40, MemoryMB: 50}, ""},
		{Usage{VMs: 9, MemoryMB: 900}, Usage{Cores: 1}, ""},
		{Usage{VMs: 9, MemoryMB: 900}, Usage{VMs: -1, MemoryMB: -1}, ""},
		{Usage{VMs: 9}, Usage{VMs: 1}, "the account may use 2 VMs, uses 9 and needs 1 more"},
		{Usage{MemoryMB: 99}, Usage{MemoryMB: 1<<63 - 1}, "the account may use 100 MB of memory, uses 99 and needs 9223372036854775807 more"},
	} {
		if got := limits.Exceeded(c.used, c.extra); got != c.want {
			t.Errorf("%+v and %+v: %q, want %q", c.used, c.extra, got, c.want)
		}
	}
}

// serviceofferingid may be a uuid in any case or an internal number (cks.md §1.3).
func TestOfferingByRef(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]string{
		"medium": "medium", " MEDIUM ": "medium", "4": "medium", "04": "medium", " 5": "large", "0": "", "-1": "", "99": "", "": "", "4.0": "",
		"99999999999999999999": "",
	} {
		if o, found := offeringByRef(testOfferings(), ref); o.ID != want || found != (want != "") {
			t.Errorf("%q is %q, %t; want %q", ref, o.ID, found, want)
		}
	}
}

// An offering that leaves any of its sizes open is custom (cks.md §3.1 11b).
func TestCustomOfferings(t *testing.T) {
	t.Parallel()
	for o, custom := range map[Offering]bool{
		{Cores: 2, SpeedMHz: 1000, MemoryMB: 2048}: false,
		{SpeedMHz: 1000, MemoryMB: 2048}:           true,
		{Cores: 2, MemoryMB: 2048}:                 true,
		{Cores: 2, SpeedMHz: 1000}:                 true,
	} {
		if o.Custom() != custom {
			t.Errorf("%+v: custom is %v", o, o.Custom())
		}
	}
}

// What is incomplete is no type's entry, whoever asks before it is refused.
func TestIncompleteEntriesArePassedOver(t *testing.T) {
	t.Parallel()
	ref, ok := entryFor([]NodeOffering{{ptr("worker"), ptr("large")}, {ptr("worker"), nil}, {nil, ptr("small")}}, Worker)
	if ref != "large" || !ok {
		t.Errorf("%q, %v", ref, ok)
	}
}
