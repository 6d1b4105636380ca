package sim

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"ckscale/internal/cks"
)

// The operations that calls are counted and struck as.
const (
	opCreate    = "vm.create"
	opStart     = "vm.start"
	opStop      = "vm.stop"
	opDestroy   = "vm.destroy"
	opResize    = "vm.resize"
	opMove      = "vm.move"
	opMachines  = "vm.list"
	opAttach    = "iso.attach"
	opDetach    = "iso.detach"
	opJoin      = "node.join"
	opDrain     = "node.drain"
	opUncordon  = "node.uncordon"
	opUpgrade   = "node.upgrade"
	opDelete    = "node.delete"
	opNodes     = "node.list"
	opAutoscale = "autoscaler.set"
)

// calls is how often each operation was asked of a cluster: by operation and
// VM. It is a document of its own, because a call that changes nothing must not
// look like a change of the cluster.
type calls map[string]map[string]int

// count records a call.
func (w *World) count(ctx context.Context, op, clusterID, vmID string) error {
	return update(ctx, w.mem, keyCalls+clusterID, func(c *calls) error {
		if *c == nil {
			*c = calls{}
		}
		if (*c)[op] == nil {
			(*c)[op] = map[string]int{}
		}
		(*c)[op][vmID]++
		return nil
	})
}

// call counts a call and carries out the fault that it meets.
func (w *World) call(ctx context.Context, op, clusterID, vmID string) error {
	if err := w.count(ctx, op, clusterID, vmID); err != nil {
		return err
	}
	return w.meet(ctx, op, clusterID, vmID)
}

// meet carries out the fault that a call meets.
func (w *World) meet(ctx context.Context, op, clusterID, vmID string) error {
	f, err := w.strike(ctx, op, clusterID, vmID)
	if err != nil || f == nil {
		return err
	}
	return f.hit(ctx)
}

func (w *World) settings(ctx context.Context) (*settings, error) {
	return peek[settings](ctx, w.mem, keySettings)
}

// strike returns the fault that a call meets, or nil. Only a fault whose
// strikes are counted takes the lock that all clusters share.
func (w *World) strike(ctx context.Context, op, clusterID, vmID string) (f *fault, err error) {
	set, err := w.settings(ctx)
	if err != nil {
		return nil, err
	}
	if f = set.strike(op, clusterID, vmID); f == nil || f.Limit == 0 {
		return f, nil
	}
	err = update(ctx, w.mem, keySettings, func(s *settings) error {
		f = s.strike(op, clusterID, vmID)
		return nil
	})
	return f, err
}

// decide asks the counted faults about c's undecided joins.
func (w *World) decide(ctx context.Context, c *cluster) error {
	return update(ctx, w.mem, keySettings, func(s *settings) error {
		for _, id := range c.undecided {
			s.decide(c.ID, id, c.machine(id).attempt())
		}
		return nil
	})
}

// attempt names a machine's present attempt to join, for ever.
func (m *machine) attempt() string { return m.ID + "/" + strconv.Itoa(m.Attempts) }

// hit does to a call what the fault says.
func (f *fault) hit(ctx context.Context) error {
	for _, does := range callFaults {
		o, ok := read(does, cks.Fault{Operation: f.Operation, Value: f.Value})
		if !ok {
			continue
		}
		switch does {
		case doFail:
			return &failure{o.text}
		case doPanic:
			panic("simulated panic in " + f.Operation)
		case doHang:
			<-ctx.Done()
			return fmt.Errorf("%s hangs: %w", f.Operation, context.Cause(ctx))
		case doDelay:
			return pause(ctx, o.delay)
		}
	}
	return fmt.Errorf("simulator: fault %s of %s is not known", f.Value, f.Operation)
}

// pause waits for d, or fails when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
