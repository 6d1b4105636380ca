package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// ScanConfig is how a Scanner works. Fields that are zero get their defaults.
type ScanConfig struct {
	Interval    time.Duration // between two looks at a cluster about which nothing was heard; 30 s
	CallTimeout time.Duration // limit of a call to the world; 10 s
	KeepEvents  time.Duration // how long; 0 = for ever
	Log         *slog.Logger
}

// Scanner keeps the recorded states true to the world: it records VM states,
// moves clusters between Running, Alert and Stopped, wakes the jobs that wait
// for a change, destroys what a job could not, and deletes old events. It acts
// on changes as they happen and on a timer. Scanners in several processes share
// the timer's work and need not know of each other, since every write is
// conditional on what was read (A48).
type Scanner struct {
	store *store.Store
	vms   VMs
	nodes Nodes
	cfg   ScanConfig

	slots chan struct{} // one for each scan under way

	mu    sync.Mutex
	again map[string]bool // clusters that are being scanned; true: once more after that
	wg    sync.WaitGroup
}

// maxScans is how many clusters are looked at at once. Those whose cloud hangs
// give their place up after CallTimeout.
const maxScans = 64

// NewScanner returns a Scanner that does nothing until Run or Scan.
func NewScanner(st *store.Store, vms VMs, nodes Nodes, cfg ScanConfig) *Scanner {
	if cfg.Interval == 0 {
		cfg.Interval = 30 * time.Second
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = 10 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Scanner{store: st, vms: vms, nodes: nodes, cfg: cfg, slots: make(chan struct{}, maxScans), again: map[string]bool{}}
}

// Run scans until ctx ends.
func (s *Scanner) Run(ctx context.Context) error {
	defer s.settle()
	vms, nodes := s.vms.WatchVMs(ctx), s.nodes.WatchNodes(ctx)
	tick := time.NewTicker(max(s.cfg.Interval/10, 10*time.Millisecond))
	defer tick.Stop()
	for {
		var id string
		open := true
		select {
		case <-ctx.Done():
			return nil
		case id, open = <-vms:
			if !open {
				vms = nil
			}
		case id, open = <-nodes:
			if !open {
				nodes = nil
			}
		case <-tick.C:
			s.scanDue(ctx)
			s.purge(ctx)
			continue
		}
		switch {
		case !open:
		case id == "":
			s.scanAll(ctx)
		default:
			s.request(ctx, id)
		}
	}
}

// settle waits for the scans under way, whose calls end with Run's context. One
// that does not even then is left behind.
func (s *Scanner) settle() {
	settled := make(chan struct{})
	go func() { s.wg.Wait(); close(settled) }()
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-settled:
	case <-timer.C:
	}
}

// scanDue scans the clusters whose turn it is.
func (s *Scanner) scanDue(ctx context.Context) {
	const batch = 100
	for {
		ids, err := s.store.ClustersToScan(ctx, batch, s.cfg.Interval)
		if err != nil {
			s.report(ctx, "", err)
			return
		}
		for _, id := range ids {
			s.request(ctx, id)
		}
		if len(ids) < batch {
			break
		}
	}
	s.scanDueVMs(ctx)
}

// purge deletes events that are older than they are kept, a few on each tick.
func (s *Scanner) purge(ctx context.Context) {
	const batch = 1000
	if s.cfg.KeepEvents <= 0 {
		return
	}
	if _, err := s.store.PurgeEvents(ctx, s.cfg.KeepEvents, batch); err != nil {
		s.report(ctx, "", err)
	}
}

// scanAll scans every cluster, because changes may have been missed.
func (s *Scanner) scanAll(ctx context.Context) {
	ids, err := s.store.LiveClusters(ctx)
	if err != nil {
		s.report(ctx, "", err)
		return
	}
	vms, err := s.store.LivePlainVMs(ctx)
	if err != nil {
		s.report(ctx, "", err)
		return
	}
	for _, id := range append(ids, vms...) {
		s.request(ctx, id)
	}
}

// request scans a cluster in the background: one scan of it at a time, and one
// more when something changed meanwhile. A cluster whose world hangs delays
// nobody else (design.md §4.10).
func (s *Scanner) request(ctx context.Context, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, busy := s.again[id]; busy {
		s.again[id] = true
		return
	}
	s.again[id] = false
	s.wg.Go(func() {
		for more := true; more && ctx.Err() == nil; {
			s.slots <- struct{}{}
			s.report(ctx, id, s.Scan(ctx, id))
			<-s.slots
			s.mu.Lock()
			if more = s.again[id]; more {
				s.again[id] = false
			} else {
				delete(s.again, id)
			}
			s.mu.Unlock()
		}
		if ctx.Err() != nil {
			s.mu.Lock()
			delete(s.again, id)
			s.mu.Unlock()
		}
	})
}

func (s *Scanner) report(ctx context.Context, id string, err error) {
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.WarnContext(ctx, "scan failed", "cluster", id, "err", err)
	}
}

// verdict is a move that the scanner makes.
type verdict struct {
	from   cks.State
	when   func(*sighting, context.Context) (bool, error)
	events []cks.Event
}

// verdicts are tried in order; the first that applies is carried out
// (cks.md §6, design.md §4.10).
var verdicts = []verdict{
	{cks.Running, (*sighting).notAllRunning, []cks.Event{cks.FaultsDetected}},
	{cks.Alert, (*sighting).allStopped, []cks.Event{cks.StopRequested, cks.OperationSucceeded}},
	{cks.Alert, (*sighting).healthy, []cks.Event{cks.RecoveryRequested, cks.OperationSucceeded}},
}

// Scan looks at one cluster, or one VM that is in none: records its VMs' states, wakes its waiting job,
// and moves it where a verdict says so. A panic in it is an error of this
// cluster alone.
func (s *Scanner) Scan(ctx context.Context, id string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("scan panicked: %v", p)
		}
	}()
	view, err := s.store.View(ctx, id) // before the machines: a job that comes between changes the row's version (A48)
	if cks.CodeOf(err) == cks.NotFound {
		return s.scanVM(ctx, id)
	}
	if err != nil || view.Cluster.ExternalManaged { // its VMs are looked at one by one
		return err
	}
	found, err := s.machines(ctx, id)
	if err != nil {
		return err
	}
	if err := observe(ctx, s.store, view.VMs, found); err != nil {
		return err
	}
	if _, err := s.store.WakeCluster(ctx, id); err != nil {
		return err
	}
	if view.Cluster.State.Busy() {
		return nil
	}
	return errors.Join(s.judge(ctx, view, found), s.sweep(ctx, view, found))
}

// judge moves the cluster where a verdict says so.
func (s *Scanner) judge(ctx context.Context, view cks.ClusterView, found machines) error {
	seen := &sighting{Scanner: s, cluster: view.Cluster, vms: asObserved(view.VMs, found)}
	for _, v := range verdicts {
		if v.from != view.Cluster.State {
			continue
		}
		applies, err := v.when(seen, ctx)
		if err != nil {
			return err
		}
		if !applies {
			continue
		}
		moved, err := s.store.MoveCluster(ctx, view.Cluster, v.events...)
		if moved {
			s.cfg.Log.InfoContext(ctx, "cluster moved", "cluster", view.Cluster.ID, "from", v.from, "event", v.events[0])
		}
		return err
	}
	return nil
}

func (s *Scanner) machines(ctx context.Context, id string) (machines, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	return listMachines(ctx, s.store, func(ctx context.Context) ([]cks.Machine, error) {
		list, err := s.vms.Machines(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("list the VMs: %w", err)
		}
		return list, nil
	})
}

// sighting is a cluster as it was seen in one scan.
type sighting struct {
	*Scanner
	cluster cks.Cluster
	vms     []cks.VM
}

func (s *sighting) all(state cks.VMState) bool {
	for _, v := range s.vms {
		if v.State != state {
			return false
		}
	}
	return len(s.vms) >= s.cluster.Nodes()
}

func (s *sighting) notAllRunning(context.Context) (bool, error) { return !s.all(cks.VMRunning), nil }

func (s *sighting) allStopped(context.Context) (bool, error) {
	return len(s.vms) > 0 && s.all(cks.VMStopped), nil
}

// healthy: exactly the VMs there should be, all running, and every one that is
// a Kubernetes node Ready.
func (s *sighting) healthy(ctx context.Context) (bool, error) {
	if len(s.vms) != s.cluster.Nodes() || !s.all(cks.VMRunning) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	nodes, err := s.nodes.Nodes(ctx, s.cluster.ID)
	if err != nil {
		return false, fmt.Errorf("list the nodes: %w", err)
	}
	wanted := names(s.vms)
	for _, name := range wanted {
		if !cks.NodeReadyByName(nodes, name) {
			return false, nil
		}
	}
	if cks.ReadyCount(nodes) != len(wanted) {
		return false, nil
	}
	return true, s.observeVersions(ctx, nodes)
}

// observeVersions records the versions of nodes that are not as recorded: an
// upgrade that was given up may have been under way still.
func (s *sighting) observeVersions(ctx context.Context, nodes []cks.Node) error {
	for _, v := range s.vms {
		for _, n := range nodes {
			if n.Name != v.NodeName() || n.Version == "" || v.HasVersion(n.Version) {
				continue
			}
			if err := s.store.ObserveVersion(ctx, s.cluster, v.ID, n.Version); err != nil {
				return fmt.Errorf("observe the version of %s: %w", n.Name, err)
			}
		}
	}
	return nil
}

// sweep destroys what a job could not: VMs that are listed as doomed, machines
// whose row was removed while a call to make them was still under way, and nodes
// that were left. One that stays does not keep it from the next.
func (s *Scanner) sweep(ctx context.Context, view cks.ClusterView, found machines) error {
	var errs []error
	listed := map[string]bool{}
	for _, v := range view.VMs {
		listed[v.ID] = true
		if v.Phase != cks.Doomed {
			continue
		}
		err := s.destroy(ctx, view.Cluster.ID, v.ID, v.NodeName())
		if err == nil {
			err = s.store.DropDoomed(ctx, v.ID)
		}
		errs = append(errs, err)
	}
	for id, m := range found.byID {
		if listed[id] {
			continue
		}
		row, err := s.store.VMByRef(ctx, id)
		if err == nil && row.Removed {
			err = s.destroy(ctx, view.Cluster.ID, id, cks.VM{Name: m.Name}.NodeName())
		}
		errs = append(errs, gone(err)) // one that has no row is not ours
	}
	left, err := s.store.LeftNodes(ctx, view.Cluster.ID)
	errs = append(errs, err)
	for _, v := range left {
		if err = s.deleteNode(ctx, view.Cluster.ID, v.NodeName()); err == nil {
			err = s.store.NodeDeleted(ctx, v.ID)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s *Scanner) destroy(ctx context.Context, clusterID, vmID, node string) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	if err := gone(s.vms.Destroy(ctx, clusterID, vmID)); err != nil {
		return fmt.Errorf("destroy VM %s: %w", vmID, err)
	}
	return s.deleteNode(ctx, clusterID, node)
}

func (s *Scanner) deleteNode(ctx context.Context, clusterID, node string) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	if err := gone(s.nodes.Delete(ctx, clusterID, node)); err != nil {
		return fmt.Errorf("delete node %s: %w", node, err)
	}
	return nil
}
