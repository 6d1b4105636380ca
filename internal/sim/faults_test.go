package sim

import (
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
)

// What can be ordered, and what is refused with a text that lists what is
// allowed (design.md §6).
func TestOrdersAreChecked(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault cks.Fault
		says  string // of the error; "" = accepted
	}{
		{cks.Fault{Operation: "vm.start", Value: "fail"}, ""},
		{cks.Fault{Operation: "vm.start", Value: "fail:no: really", Count: 3}, ""},
		{cks.Fault{Operation: "iso.attach", Value: "hang"}, ""},
		{cks.Fault{Operation: "node.list", Value: "delay:1.5s"}, ""},
		{cks.Fault{Operation: "autoscaler.set", Value: "panic"}, ""},
		{cks.Fault{Operation: "node.drain", Value: "budget"}, ""},
		{cks.Fault{Operation: "node.join", Value: "clear"}, ""},
		{cks.Fault{Operation: "capacity", Value: "0"}, ""},
		{cks.Fault{Operation: "capacity", Value: "clear"}, ""},
		{cks.Fault{Operation: "vm.set", Value: "migrating"}, ""},
		{cks.Fault{Operation: "node.set", Value: "NotReady"}, ""},
		{cks.Fault{Operation: "node.forget"}, ""},
		{cks.Fault{Operation: "vm.explode", Value: "fail"}, "vm.create, vm.start"},
		{cks.Fault{Operation: "", Value: "fail"}, "node.forget"},
		{cks.Fault{Operation: "vm.start", Value: "failure"}, "fail[:text], hang, delay:<duration>, panic, clear"},
		{cks.Fault{Operation: "vm.start", Value: "budget"}, "allowed: fail[:text]"},
		{cks.Fault{Operation: "vm.start", Value: "delay:soon"}, "delay:<duration>"},
		{cks.Fault{Operation: "vm.start", Value: "delay:-1s"}, "delay:<duration>"},
		{cks.Fault{Operation: "vm.start", Value: "hang", Count: -1}, "count -1"},
		{cks.Fault{Operation: "node.join", Value: "panic"}, "fail[:text], hang, delay:<duration>, clear"},
		{cks.Fault{Operation: "capacity", Value: "-1"}, "a number of VMs, clear"},
		{cks.Fault{Operation: "capacity", Value: "fail"}, "a number of VMs, clear"},
		{cks.Fault{Operation: "vm.set", Value: "Sleeping"}, "Starting, Running"},
		{cks.Fault{Operation: "node.set", Value: "False"}, "Ready, NotReady"},
	} {
		_, err := parse(test.fault)
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%+v: %v", test.fault, err)
		case test.says != "" && (cks.CodeOf(err) != cks.Invalid || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%+v: error %v, want one that says %q", test.fault, err, test.says)
		}
	}
}

// The fault set last strikes, alone, while it has strikes left; selectors
// narrow it in any case of letters.
func TestLatestFaultStrikes(t *testing.T) {
	t.Parallel()
	var s settings
	s.set(cks.Fault{Operation: opStart, Value: "fail:replaced"})
	s.set(cks.Fault{Operation: opStart, Value: "fail:twice", Count: 2})
	s.set(cks.Fault{Operation: opStart, Value: "fail:k", ClusterID: "K"})
	s.set(cks.Fault{Operation: opStart, Value: "fail:v", VMID: "V", Count: 1})
	for i, step := range []struct{ cluster, vm, want string }{
		{"k", "v", "fail:v"},
		{"k", "v", "fail:k"},
		{"other", "v", "fail:twice"},
		{"other", "w", "fail:twice"},
		{"other", "w", ""},
		{"k", "w", "fail:k"},
	} {
		got := ""
		if f := s.strike(opStart, step.cluster, step.vm); f != nil {
			got = f.Value
		}
		if got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	if f := s.strike(opStop, "k", "v"); f != nil {
		t.Errorf("another operation meets %+v", f)
	}
	s.clear(cks.Fault{Operation: opStart, ClusterID: "k"})
	if f := s.strike(opStart, "k", "w"); f != nil {
		t.Errorf("after clearing those of k: %+v", f)
	}
	s.set(cks.Fault{Operation: opStart, Value: "hang"})
	s.set(cks.Fault{Operation: opStart, Value: "hang", VMID: "w"})
	s.clear(cks.Fault{Operation: opStart})
	if len(s.Faults) != 0 {
		t.Errorf("left: %d", len(s.Faults))
	}
}

// A counted fault strikes so many attempts to join, and each attempt always
// hears the same.
func TestCountedJoinFaultStrikesAttempts(t *testing.T) {
	t.Parallel()
	var s settings
	s.set(cks.Fault{Operation: opJoin, Value: "fail", Count: 1})
	if v := s.join("k", "a", "a/1"); !v.undecided {
		t.Fatalf("before: %+v", v)
	}
	for range 2 { // two servers ask
		s.decide("k", "a", "a/1")
	}
	for range 2 {
		if v := s.join("k", "a", "a/1"); !v.hold {
			t.Errorf("the attempt that was struck: %+v", v)
		}
		if v := s.join("k", "b", "b/1"); v != (verdict{}) {
			t.Errorf("another one: %+v", v)
		}
	}
	s.set(cks.Fault{Operation: opJoin, Value: "delay:5s"})
	if v := s.join("k", "b", "b/1"); v.delay != 5*time.Second {
		t.Errorf("under a later fault: %+v", v)
	}
}
