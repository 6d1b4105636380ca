package cks

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata and docs/lifecycle.md")

// golden fails the test unless the file holds got; with -update it writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(got)) {
		t.Errorf("%s is not what the code says; run go test ./internal/cks -update and review the difference\n%s", file, got)
	}
}

// Every pair of state and event, and where it leads (cks.md §4).
//
// Keeps: §4/words, §4/table, §4/Created, §4/Starting, §4/Running, §4/Stopping, §4/Stopped, §4/Scaling.
// Keeps: §4/ScalingStoppedCluster, §4/Upgrading, §4/Importing, §4/RemovingNodes, §4/Alert, §4/Alert-scales.
// Keeps: §4/Recovering, §4/Destroying, §4/Destroying-failed, §4/Error, §4/Destroyed, §4/refused.
// Keeps: seed/alert-to-scaling, seed/scaling-to-running, seed/scaling-to-alert.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, s := range States {
		for _, e := range Events {
			to, err := s.On(e)
			if err != nil {
				to = "-"
				if CodeOf(err) != Conflict || err.Error() != fmt.Sprintf("cluster is in %s state and cannot take %s", s, e) {
					t.Errorf("%s + %s: %v", s, e, err)
				}
			}
			fmt.Fprintf(&b, "%-21s  %-19s  %s\n", s, e, to)
		}
	}
	golden(t, "testdata/lifecycle.txt", b.String())
}

// The picture of the lifecycle is drawn from the table.
func TestLifecycleDiagram(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# The lifecycle of a cluster\n\n" +
		"Drawn from `Transitions` in `internal/cks/lifecycle.go`; `go test ./internal/cks -update` draws it anew.\n" +
		"A job holds the cluster in every state of the class `busy`, and in no other.\n\n" +
		"```mermaid\nstateDiagram-v2\n    [*] --> " + string(Created) + "\n")
	for _, from := range States {
		var targets []State
		events := map[State][]string{}
		for _, tr := range Transitions {
			if tr.From != from {
				continue
			}
			if !slices.Contains(targets, tr.To) {
				targets = append(targets, tr.To)
			}
			events[tr.To] = append(events[tr.To], string(tr.On))
		}
		for _, to := range targets {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", from, to, strings.Join(events[to], ", "))
		}
	}
	fmt.Fprintf(&b, "    %s --> [*]\n", Destroyed)
	var held []string
	for _, s := range States {
		if s.Busy() {
			held = append(held, string(s))
		}
	}
	b.WriteString("    classDef busy font-style:italic\n    class " + strings.Join(held, ", ") + " busy\n```\n")
	golden(t, "../../docs/lifecycle.md", b.String())
}

// The table names each pair once, and only states and events that there are.
//
// Keeps: §4/unambiguous.
func TestTransitionsAreUnambiguous(t *testing.T) {
	t.Parallel()
	seen := map[Transition]bool{}
	for _, tr := range Transitions {
		pair := Transition{From: tr.From, On: tr.On}
		if seen[pair] {
			t.Errorf("%s + %s occurs twice", tr.From, tr.On)
		}
		seen[pair] = true
		if !slices.Contains(States, tr.From) || !slices.Contains(States, tr.To) || !slices.Contains(Events, tr.On) {
			t.Errorf("%+v names what is not listed", tr)
		}
	}
}

// From every busy state a job can end well and end badly, and neither leads to
// a busy state: no state is a dead end (design.md §4.11).
//
// Keeps: §4/no-dead-end.
func TestNoBusyStateIsADeadEnd(t *testing.T) {
	t.Parallel()
	for _, s := range States {
		if !s.Busy() {
			continue
		}
		for _, e := range []Event{OperationSucceeded, OperationFailed} {
			if to, err := s.On(e); err != nil || to.Busy() {
				t.Errorf("%s + %s leads to %q, %v", s, e, to, err)
			}
		}
	}
}

// Whatever takes hold of a cluster leads to a busy state, from some state.
func TestRequestsHold(t *testing.T) {
	t.Parallel()
	for kind, e := range Requests {
		n := 0
		for _, tr := range Transitions {
			if tr.On == e {
				n++
				if !tr.To.Busy() {
					t.Errorf("%s: %s + %s leads to %s, which no job holds", kind, tr.From, e, tr.To)
				}
			}
		}
		if n == 0 {
			t.Errorf("%s: nothing takes %s", kind, e)
		}
	}
}

// On applies several events one after the other, or none of them.
func TestOnSeveralEvents(t *testing.T) {
	t.Parallel()
	if to, err := Alert.On(StopRequested, OperationSucceeded); err != nil || to != Stopped {
		t.Errorf("%q, %v", to, err)
	}
	if to, err := Alert.On(); err != nil || to != Alert {
		t.Errorf("%q, %v", to, err)
	}
	if to, err := Alert.On(StopRequested, ScaleUpRequested); err == nil || to != "" {
		t.Errorf("%q, %v", to, err)
	}
}
