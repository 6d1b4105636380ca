package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"ckscale/internal/cks"
	"ckscale/internal/sim"
	"ckscale/internal/store"
)

// clock is the simulated cloud's memory with a time of its own, which passes
// only when a script says so.
type clock struct {
	*store.Store
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) ReadDocument(ctx context.Context, key string) ([]byte, time.Time, error) {
	doc, _, err := c.Store.ReadDocument(ctx, key)
	return doc, c.read(), err
}

func (c *clock) ChangeDocument(ctx context.Context, key string,
	fn func(doc []byte, now time.Time) (newDoc []byte, due time.Time, err error)) error {
	return c.Store.ChangeDocument(ctx, key, func(doc []byte, _ time.Time) ([]byte, time.Time, error) {
		return fn(doc, c.read())
	})
}

// What ends or holds up a life.
const (
	beforeCall = "before-call"
	afterCall  = "after-call"                // it was carried out, and the answer lost
	statement  = "statement"                 // of SQL, before it is sent
	heldUp     = "pause"                     // after a call: it is carried out, and the answer comes late
	lateCreate = "late"                      // before a VM is made, as of those calls: it is made when the life goes on
	beforeJob  = "INSERT INTO jobs"          // held up before this SQL
	beforeMove = "UPDATE clusters SET state" // likewise
)

// life is a server process as the world and the database see it: it can die at
// a moment chosen beforehand, and nothing that it does reaches anybody from
// then on; or stand still there until it is woken. The zero value lives on.
type life struct {
	at string // one of the above
	n  int    // how many of them are left

	mu     sync.Mutex
	calls  int // under way, but for one that is held up
	dead   bool
	stale  bool          // its lease ran out while it stood still
	held   chan struct{} // closed when it stands still
	resume chan struct{} // closed to wake it
}

func newLife(at string, n int) *life {
	return &life{at: at, n: n, held: make(chan struct{}), resume: make(chan struct{})}
}

var errDead = errors.New("the server is dead")

// reached reports whether this is the moment.
func (l *life) reached(what string) bool {
	if l.at != what || l.n == 0 {
		return false
	}
	l.n--
	return l.n == 0
}

// call lets a call to the world through, or not.
func (l *life) call(operation string, ask func() error) error {
	late, err := l.enter(operation)
	if err != nil {
		return err
	}
	if late {
		l.hold()
	}
	err, hold := l.carryOut(ask)
	if hold {
		l.hold()
	}
	return err
}

// enter fails when no call goes through any more. late: it goes through when
// the life is woken. A lease that has run out lets none through either.
func (l *life) enter(operation string) (late bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = l.dead || l.reached(beforeCall)
	if l.dead || l.stale {
		return false, errDead
	}
	return operation == "vm.create" && l.reached(lateCreate), nil
}

// carryOut makes the call. hold: the life stands still after it.
func (l *life) carryOut(ask func() error) (err error, hold bool) {
	l.mu.Lock()
	l.calls++
	l.mu.Unlock()
	defer func() { // also when the world panics
		l.mu.Lock()
		defer l.mu.Unlock()
		l.calls--
		l.dead = l.dead || l.reached(afterCall)
		hold = l.reached(heldUp)
		if l.dead {
			err, hold = errDead, false
		}
	}()
	return ask(), false
}

// hold stands still until it is woken.
func (l *life) hold() {
	close(l.held)
	<-l.resume
}

// TraceQueryStart is asked before every statement. That of a dead process is
// never sent, and its connection is closed with whatever was open on it.
func (l *life) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	l.mu.Lock()
	l.dead = l.dead || l.reached(statement)
	dead := l.dead
	hold := (l.at == beforeJob || l.at == beforeMove) && strings.Contains(q.SQL, l.at) && l.reached(l.at)
	l.mu.Unlock()
	if hold {
		l.hold()
	}
	if !dead {
		return ctx
	}
	ended, cancel := context.WithCancelCause(ctx)
	cancel(errDead)
	return ended
}

// TraceQueryEnd makes a life a pgx.QueryTracer.
func (l *life) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// quiet waits until nothing else of a life is under way that stands still.
func (l *life) quiet() {
	for idle := 0; idle < 3; {
		time.Sleep(time.Millisecond)
		l.mu.Lock()
		idle++
		if l.calls > 0 {
			idle = 0
		}
		l.mu.Unlock()
	}
}

// wake lets a life that stands still go on.
func (l *life) wake() { close(l.resume) }

func (l *life) expired() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stale
}

func (l *life) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = true
}

// act is something that a job did to a node or its VM, and what Kubernetes and
// the cloud said of it just before.
type act struct {
	operation, clusterID, vmID string
	state                      cks.VMState // "": there was no such VM
	ready                      bool
}

// cloud is the simulated cloud as one server reaches it.
type cloud struct {
	*sim.World
	*life
	p    *player
	jobs bool // what is asked of it, a job asks
}

// brief is how long a call that cannot be answered takes.
const brief = 15 * time.Millisecond

// ask is one call. One that will hang is cut short: its caller sees what it
// sees when its time limit is over.
func (c cloud) ask(ctx context.Context, operation string, call func(context.Context) error) error {
	return c.call(operation, func() error {
		if c.p.hangs(operation) {
			short, cancel := context.WithTimeout(ctx, brief)
			defer cancel()
			ctx = short
		}
		err := call(ctx)
		if err == nil && c.p.loses(operation) {
			err = errors.New("the answer was lost")
		}
		return err
	})
}

// on is a call about a VM, or its node, that is noted.
func (c cloud) on(ctx context.Context, operation, clusterID string, is func(vmID, node string) bool, call func(context.Context) error) error {
	return c.ask(ctx, operation, func(ctx context.Context) error {
		if c.jobs {
			if err := c.p.note(operation, clusterID, is); err != nil {
				return err
			}
		}
		return call(ctx)
	})
}

func (c cloud) Room(ctx context.Context, cores, memoryMB int) (n int, err error) {
	err = c.ask(ctx, "capacity", func(ctx context.Context) (err error) {
		n, err = c.World.Room(ctx, cores, memoryMB)
		return err
	})
	return n, err
}

func (c cloud) Create(ctx context.Context, m cks.MachineSpec) error {
	return c.ask(ctx, "vm.create", func(ctx context.Context) error {
		c.p.strays(m.ID, c.expired())
		return c.World.Create(ctx, m)
	})
}

func (c cloud) Start(ctx context.Context, clusterID, vmID string) error {
	return c.ask(ctx, "vm.start", func(ctx context.Context) error { return c.World.Start(ctx, clusterID, vmID) })
}

func (c cloud) Stop(ctx context.Context, clusterID, vmID string, forced bool) error {
	return c.ask(ctx, "vm.stop", func(ctx context.Context) error { return c.World.Stop(ctx, clusterID, vmID, forced) })
}

func (c cloud) Destroy(ctx context.Context, clusterID, vmID string) error {
	is := func(id, _ string) bool { return id == vmID }
	return c.on(ctx, "vm.destroy", clusterID, is, func(ctx context.Context) error { return c.World.Destroy(ctx, clusterID, vmID) })
}

func (c cloud) Resize(ctx context.Context, clusterID, vmID string, cores, memoryMB int) error {
	return c.ask(ctx, "vm.resize", func(ctx context.Context) error { return c.World.Resize(ctx, clusterID, vmID, cores, memoryMB) })
}

func (c cloud) AttachISO(ctx context.Context, clusterID, vmID string) error {
	return c.ask(ctx, "iso.attach", func(ctx context.Context) error { return c.World.AttachISO(ctx, clusterID, vmID) })
}

func (c cloud) DetachISO(ctx context.Context, clusterID, vmID string) error {
	is := func(id, _ string) bool { return id == vmID }
	return c.on(ctx, "iso.detach", clusterID, is, func(ctx context.Context) error { return c.World.DetachISO(ctx, clusterID, vmID) })
}

func (c cloud) Machines(ctx context.Context, clusterID string) (list []cks.Machine, err error) {
	err = c.ask(ctx, "vm.list", func(ctx context.Context) (err error) {
		list, err = c.World.Machines(ctx, clusterID)
		return err
	})
	return list, err
}

func (c cloud) Nodes(ctx context.Context, clusterID string) (list []cks.Node, err error) {
	err = c.ask(ctx, "node.list", func(ctx context.Context) (err error) {
		list, err = c.World.Nodes(ctx, clusterID)
		return err
	})
	return list, err
}

// Drain is given no more time than it needs to fail where it must fail.
func (c cloud) Drain(ctx context.Context, clusterID, name string, timeout time.Duration) error {
	is := func(_, node string) bool { return node == name }
	return c.on(ctx, "node.drain", clusterID, is, func(ctx context.Context) error {
		able, err := c.p.confirms(clusterID, name)
		if err != nil {
			return err
		}
		if !able || c.p.hangs("node.drain") {
			timeout = brief
		}
		return c.World.Drain(ctx, clusterID, name, timeout)
	})
}

func (c cloud) Uncordon(ctx context.Context, clusterID, name string) error {
	return c.ask(ctx, "node.uncordon", func(ctx context.Context) error { return c.World.Uncordon(ctx, clusterID, name) })
}

func (c cloud) Delete(ctx context.Context, clusterID, name string) error {
	is := func(_, node string) bool { return node == name }
	return c.on(ctx, "node.delete", clusterID, is, func(ctx context.Context) error { return c.World.Delete(ctx, clusterID, name) })
}

func (c cloud) SetAutoscaler(ctx context.Context, clusterID string, a cks.Autoscaling) error {
	return c.ask(ctx, "autoscaler.set", func(ctx context.Context) error { return c.World.SetAutoscaler(ctx, clusterID, a) })
}

// note keeps what is so just before a job acts on a VM or its node.
func (p *player) note(operation, clusterID string, is func(vmID, node string) bool) error {
	s, err := p.world.Query(p.ctx, clusterID)
	if err != nil {
		return fmt.Errorf("look before %s: %w", operation, err)
	}
	a := act{operation: operation, clusterID: clusterID}
	for _, m := range s.Machines {
		if is(m.ID, cks.VM{Name: m.Name}.NodeName()) {
			a.vmID, a.state = m.ID, m.State
		}
	}
	for _, n := range s.Nodes {
		if is(n.VMID, n.Name) {
			a.vmID, a.ready = n.VMID, n.Ready == cks.NodeReady
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acts = append(p.acts, a)
	return nil
}

// confirms reports whether a node can tell that its pods have ended.
func (p *player) confirms(clusterID, name string) (bool, error) {
	s, err := p.world.Query(p.ctx, clusterID)
	if err != nil {
		return false, fmt.Errorf("look before a drain: %w", err)
	}
	for _, n := range s.Nodes {
		for _, m := range s.Machines {
			if n.Name == name && m.ID == n.VMID {
				return n.Ready == cks.NodeReady && running(m.State), nil
			}
		}
	}
	return true, nil // there is no such node: that is told at once
}

// running reports whether a machine in this state runs its kubelet.
func running(s cks.VMState) bool {
	return s == cks.VMRunning || s == cks.VMMigrating || s == cks.VMUnknown || s == cks.VMStopping
}
