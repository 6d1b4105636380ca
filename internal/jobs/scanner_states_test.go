package jobs

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// What the scanner makes of what it sees (cks.md §6), beside scanner_test.go.

// TestEveryOtherVMStateMeansAlert: one VM in any state but Running moves a
// Running cluster to Alert, Migrating and Unknown as well, and it comes back.
//
// Keeps: §6/1, §6/exactly, §6/3-reconcile.
func TestEveryOtherVMStateMeansAlert(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 1000)
	w := b.workers()[0]
	for _, s := range cks.VMStates {
		if s == cks.VMRunning {
			continue
		}
		b.set(w, s)
		b.scan()
		if got := b.view(); got.Cluster.State != cks.Alert || b.workers()[0].State != s {
			t.Errorf("%s, and %s with a VM in %s", b.workers()[0].State, got.Cluster.State, s)
		}
		b.set(w, cks.VMRunning)
		b.until("it is Running again after "+string(s), func() bool {
			b.scan()
			return b.view().Cluster.State == cks.Running
		})
	}
}

// TestVMThatIsGoneMeansAlert: one that the cloud does not have any more is kept
// in the list as Expunging, and counts as down.
//
// Keeps: §6/gone.
func TestVMThatIsGoneMeansAlert(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	w := b.workers()[0]
	b.must(b.world.Destroy(b.ctx, b.id, w.ID))
	b.scan()
	if got := b.workers(); b.view().Cluster.State != cks.Alert || len(got) != 2 || got[0].State != cks.VMExpunging {
		t.Errorf("%s with %v", b.view().Cluster.State, got)
	}
	if job := b.alone(b.ask(cks.ScaleDown, cks.Args{Size: 1})); job.Status != cks.JobSucceeded || b.calls("node.drain", "") != 0 {
		t.Errorf("status %d, %d drains: %s", job.Status, b.calls("node.drain", ""), job.ErrorText)
	}
	b.consistent()
}

// TestClusterWithEtcdRecovers: etcd nodes are VMs that must run, and no
// Kubernetes nodes that could be Ready.
//
// Keeps: §6/3-etcd.
func TestClusterWithEtcdRecovers(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Alert, Control: 3, Etcd: 3, Workers: 1}, 1000)
	etcd := b.view().VMs[1]
	b.set(etcd, cks.VMStopped)
	b.scan()
	if s := b.view().Cluster.State; s != cks.Alert {
		t.Errorf("%s with an etcd node down", s)
	}
	b.set(etcd, cks.VMRunning)
	b.scan()
	if s := b.view().Cluster.State; s != cks.Running {
		t.Errorf("%s", s)
	}
}

// TestAlertStaysWhileTheAPIIsSilent: a cluster whose API does not answer is not
// well, though all its VMs run; when it answers, it is.
//
// Keeps: §6/3-api.
func TestAlertStaysWhileTheAPIIsSilent(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Alert, Control: 1, Workers: 1}, 100)
	b.fault(cks.Fault{Operation: "node.list", Value: "fail:connection refused"})
	err := NewScanner(b.st, b.world, b.world, ScanConfig{}).Scan(b.ctx, b.id)
	if err == nil || !strings.Contains(err.Error(), "connection refused") || b.view().Cluster.State != cks.Alert {
		t.Errorf("%s; %v", b.view().Cluster.State, err)
	}
	b.fault(cks.Fault{Operation: "node.list", Value: "clear"})
	b.scan()
	if s := b.view().Cluster.State; s != cks.Running {
		t.Errorf("%s", s)
	}
}

// lines is a log of which the last lines can be read.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// TestScannerLooksOnItsTimer, also at what happened before it was there and
// what nobody tells of, and logs what it could not see, with the cluster.
//
// Keeps: §6/timer, §6/errors.
func TestScannerLooksOnItsTimer(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 2}, 100)
	blind := storetest.Fixture(t, b.st, storetest.Spec{State: cks.Stopped, Control: 1}).Cluster.ID
	b.unsettled = true // the other one has no machines
	b.fault(cks.Fault{Operation: "vm.list", Value: "fail:no route to host", ClusterID: blind})
	b.set(b.workers()[0], cks.VMStopped)
	ctx, stop := context.WithCancel(b.ctx)
	log, done := make(lines, 100), make(chan error)
	go func() { // without a bus: nothing is heard
		s := NewScanner(b.st, b.world, b.world, ScanConfig{Interval: time.Second, Log: slog.New(slog.NewTextHandler(log, nil))})
		done <- s.Run(ctx)
	}()
	b.inState(cks.Alert)
	b.until("the other cluster's failure is logged", func() bool {
		select {
		case line := <-log:
			return strings.Contains(line, "scan failed") && strings.Contains(line, blind) && strings.Contains(line, "no route to host")
		default:
			return false
		}
	})
	stop()
	b.must(<-done)
}
