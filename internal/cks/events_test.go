package cks

import (
	"slices"
	"testing"
)

// Every command that makes jobs has its events, every type is listed once, and
// the texts are CloudStack's (cks.md §1.10).
//
// Keeps: §1.10/events.
func TestEventsOfCommands(t *testing.T) {
	t.Parallel()
	for command := range Classes {
		if _, ok := Actions[command]; !ok {
			t.Errorf("%s has no events", command)
		}
	}
	for command, a := range Actions {
		if !slices.Contains(EventTypes, a.Type) {
			t.Errorf("%s: type %s is not listed", command, a.Type)
		}
	}
	listed := slices.Sorted(slices.Values(EventTypes))
	if len(slices.Compact(listed)) != len(EventTypes) {
		t.Errorf("types are listed twice: %q", EventTypes)
	}
	a := Actions["scaleKubernetesCluster"]
	done, doneText := a.Succeeded()
	failed, failedText := a.Failed("no room")
	bare, bareText := a.Failed("")
	for _, text := range [][2]string{
		{a.Scheduled("7"), "Scaling Kubernetes cluster ID: 7"},
		{a.Scheduled(""), "Scaling Kubernetes cluster"},
		{a.Started(), "Scaling Kubernetes cluster"},
		{string(done) + " " + doneText, "INFO Successfully completed scaling Kubernetes cluster"},
		{string(failed) + " " + failedText, "ERROR Error while scaling Kubernetes cluster. no room"},
		{string(bare) + " " + bareText, "ERROR Error while scaling Kubernetes cluster"},
		{Actions["createKubernetesCluster"].Created(), "Successfully created entity for creating Kubernetes cluster"},
		{NodeAdded("n", "c"), "Node n was added to Kubernetes cluster c"},
		{NodeRemoved("n", "c"), "Node n was removed from Kubernetes cluster c"},
	} {
		if text[0] != text[1] {
			t.Errorf("%q, want %q", text[0], text[1])
		}
	}
}

// A move to a state in which something is wrong matters more than another.
func TestMovesToTroubleMatterMore(t *testing.T) {
	t.Parallel()
	for to, want := range map[State]Level{Running: LevelInfo, Scaling: LevelInfo, Stopped: LevelInfo, Destroyed: LevelInfo, Alert: LevelWarn, Error: LevelError} {
		level, text := Moved("demo", Scaling, to, RecoveryRequested, OperationFailed)
		if level != want || text != "Kubernetes cluster demo moved from Scaling to "+string(to)+": RecoveryRequested, OperationFailed" {
			t.Errorf("%s: %s %q", to, level, text)
		}
	}
}
