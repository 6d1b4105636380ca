package jobs

import (
	"context"
	"sync"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store/storetest"
)

// deafWorld has a list of VMs that comes when it is told to, whoever gives up
// waiting.
type deafWorld struct {
	*sim.World
	once  sync.Once
	asked chan struct{}
	goOn  chan struct{}
}

func (w *deafWorld) Machines(ctx context.Context, id string) ([]cks.Machine, error) {
	w.once.Do(func() { close(w.asked) })
	<-w.goOn
	return w.World.Machines(ctx, id)
}

// TestScannerEndsThoughACallDoesNot: a call to the world that ignores that it is
// given up does not keep the server from ending.
//
// Keeps: A52.
func TestScannerEndsThoughACallDoesNot(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Spec{State: cks.Running, Control: 1, Workers: 1}, 100)
	w := &deafWorld{World: b.world, asked: make(chan struct{}), goOn: make(chan struct{})}
	s := NewScanner(b.st, w, w, ScanConfig{Interval: 50 * time.Millisecond})
	ctx, stop := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-w.asked
	stop()
	select {
	case err := <-ended:
		b.must(err)
	case <-time.After(20 * time.Second):
		t.Error("it waits for the call")
	}
	close(w.goOn)
	s.wg.Wait()
}
