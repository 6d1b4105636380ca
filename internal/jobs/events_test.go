package jobs

import (
	"context"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// history is what events tell of b's cluster, the oldest first.
func (b *bench) history() (list []string) {
	b.Helper()
	events, _, err := b.st.Events(b.ctx, cks.EventFilter{ResourceID: b.id}, "")
	b.must(err)
	for _, e := range slices.Backward(events) {
		list = append(list, string(e.Type)+" "+string(e.State)+" "+string(e.Level)+" by "+e.Username)
	}
	return list
}

var move = regexp.MustCompile(` moved from (\w+) to (\w+): `)

// toldTruly checks, once every job has ended, that the events tell each one's
// end once, and every state that each cluster went through, up to the one that
// it is in.
func (b *bench) toldTruly() {
	b.Helper()
	ctx := context.WithoutCancel(b.ctx)
	events, _, err := b.st.Events(ctx, cks.EventFilter{Page: cks.Page{Size: -1}}, "")
	b.must(err)
	ends, at := map[string]int{}, map[string]string{}
	for _, e := range slices.Backward(events) {
		switch e.Type {
		case cks.EventNodeAdd, cks.EventNodeRemove, cks.EventJobCancel:
		case cks.EventClusterState:
			states := move.FindStringSubmatch(e.Description)
			if was := at[e.ResourceID]; was != "" && was != states[1] {
				b.Errorf("told: it was %s, and then %q", was, e.Description)
			}
			at[e.ResourceID] = states[2]
		default:
			if e.State == cks.Scheduled {
				ends[e.ID] += 0
			} else if e.State == cks.Completed {
				ends[e.ParentID]++
			}
		}
	}
	for id, n := range ends {
		if n != 1 {
			b.Errorf("told: the job of event %s ended %d times", id, n)
		}
	}
	for id, state := range at {
		if c, err := b.st.ClusterByRef(ctx, id); err != nil || string(c.State) != state {
			b.Errorf("told: cluster is %s; it is %s, %v", state, c.State, err)
		}
	}
}

// TestJobTellsItsStory: a removal that fails with the second of three nodes
// leaves the events of all that happened, in order, and nothing else; so does
// the scanner.
//
// Keeps: §1.10/events, A41.
func TestJobTellsItsStory(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 4}, 100)
	w := b.workers()
	b.fault(cks.Fault{Operation: "node.drain", Value: "fail:no", VMID: w[2].ID})
	b.alone(b.ask(cks.ScaleDown, cks.Args{Size: 1}))
	b.scan()
	b.set(w[0], cks.VMStopped)
	b.scan()
	if diff := cmp.Diff([]string{
		"KUBERNETES.CLUSTER.CREATE Created INFO by alice",
		"KUBERNETES.CLUSTER.SCALE Scheduled INFO by alice",
		"KUBERNETES.CLUSTER.STATE Completed INFO by alice", // Scaling
		"KUBERNETES.CLUSTER.SCALE Started INFO by alice",
		"KUBERNETES.CLUSTER.NODE.REMOVE Completed INFO by alice",
		"KUBERNETES.CLUSTER.STATE Completed WARN by alice", // Alert
		"KUBERNETES.CLUSTER.SCALE Completed ERROR by alice",
		"KUBERNETES.CLUSTER.STATE Completed INFO by system", // Running
		"KUBERNETES.CLUSTER.STATE Completed WARN by system", // Alert
	}, b.history()); diff != "" {
		t.Errorf("-want +told:\n%s", diff)
	}
}

// TestScannerPurgesEvents: events go when they are older than they are kept; by
// default they stay.
//
// Keeps: §1.10/events-purge.
func TestScannerPurgesEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	watched := &looks{VMs: b.world, at: map[string]int{}}
	scanFor := func(keep time.Duration, done func() bool) {
		ctx, stop := context.WithCancel(b.ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- NewScanner(b.st, watched, b.world, ScanConfig{Interval: 50 * time.Millisecond, KeepEvents: keep, Log: testLog()}).Run(ctx)
		}()
		b.until("the scanner has looked", done)
		stop()
		b.must(<-ended)
	}
	scanFor(0, func() bool { return watched.count(b.id) > 3 })
	if len(b.history()) != 1 {
		t.Errorf("%q is left", b.history())
	}
	scanFor(time.Nanosecond, func() bool { return len(b.history()) == 0 })
	b.unsettled = true // there is no history any more to be true
}
