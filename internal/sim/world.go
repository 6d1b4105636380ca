// Package sim is a simulated cloud: machines, their clusters' Kubernetes APIs,
// and faults to order. All of it lives in documents that every server shares,
// and what happens by itself is computed from stored times: it survives
// restarts, serves several servers, and costs no goroutine per VM.
//
// It keeps the facts that make scaling hard (spec/seed.txt): a node joins only
// while the binaries ISO is attached; a stopped VM's node stays Ready for the
// grace period; pods on a node that cannot confirm their end hang a drain; the
// hosts have room for so many VMs.
package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The keys of the documents that are no cluster. Every other key is a
// cluster's id.
const (
	keySettings = "simulator"
	keyHosts    = "simulator/hosts"
	keyCalls    = "simulator/calls/" // and the cluster's id
)

// isCluster reports whether a key is a cluster's.
func isCluster(key string) bool { return !strings.HasPrefix(key, keySettings) }

// World is the simulated cloud. It is the machines and the Kubernetes API that
// jobs act on, and takes the orders of configureSimulator. All its methods may
// be called at the same time, and by several servers on one Memory.
//
// Every call but a list is counted, with or without success, before it meets a
// fault. Lists only read.
type World struct {
	mem Memory
	cfg Config
}

// New returns the simulated cloud that mem remembers.
func New(mem Memory, cfg Config) *World {
	return &World{mem: mem, cfg: cfg.withDefaults()}
}

// Run lets what is due happen, so that watchers hear of it, until ctx ends; it
// returns nil then. Without it the world is the same to who looks, but nobody
// is told. Any number of servers may run it.
func (w *World) Run(ctx context.Context) error {
	const soonest, latest = 100 * time.Millisecond, 5 * time.Second
	changes := w.changes(ctx)
	pause := soonest
	for ctx.Err() == nil {
		in, err := w.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			w.cfg.Log.ErrorContext(ctx, "simulated cloud stands still", "err", err, "retry_in", pause.String())
			in, pause = pause, min(2*pause, latest)
			wait(ctx, nil, in)
		default:
			pause = soonest
			wait(ctx, changes, in)
		}
	}
	return nil
}

// step advances the cluster whose time has come, and returns how long to wait
// for the next; a change may make it earlier.
func (w *World) step(ctx context.Context) (time.Duration, error) {
	key, in, ok, err := w.mem.NextDocument(ctx)
	switch {
	case err != nil:
		return 0, fmt.Errorf("find the next simulated event: %w", err)
	case !ok:
		return w.idle(), nil
	case in > 0:
		return min(in, w.idle()), nil
	}
	return 0, w.change(ctx, key, func(*cluster, time.Time) error { return nil })
}

// idle is how long to wait when nothing is due: long where changes are told.
func (w *World) idle() time.Duration {
	if w.cfg.Changes == nil {
		return 100 * time.Millisecond
	}
	return 5 * time.Second
}

// changes subscribes to the documents' changes; nil if nobody tells.
func (w *World) changes(ctx context.Context) <-chan string {
	if w.cfg.Changes == nil {
		return nil
	}
	return w.cfg.Changes(ctx)
}

// wait waits for a change, the time, or the end of ctx.
func wait(ctx context.Context, changes <-chan string, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changes:
	case <-ctx.Done():
	}
}

// watch yields the ids of changed clusters until ctx ends.
func (w *World) watch(ctx context.Context) <-chan string {
	changes := w.changes(ctx)
	ids := make(chan string)
	go func() {
		defer close(ids)
		for {
			var id string
			select {
			case <-ctx.Done():
				return
			case key, ok := <-changes:
				if !ok {
					return
				}
				if !isCluster(key) {
					continue
				}
				id = key
			}
			select {
			case <-ctx.Done():
				return
			case ids <- id:
			}
		}
	}()
	return ids
}

// errUndecided gives a change up because a counted fault must be asked first.
var errUndecided = errors.New("a join is undecided")

// change lets what is due in a cluster happen, and then fn. A change that fn
// fails is not kept, and its error is returned as it is. fn may run more than
// once.
func (w *World) change(ctx context.Context, clusterID string, fn func(c *cluster, now time.Time) error) error {
	for {
		set, err := w.settings(ctx)
		if err != nil {
			return err
		}
		var c *cluster
		var failed error
		err = w.mem.ChangeDocument(ctx, clusterID, func(doc []byte, now time.Time) (newDoc []byte, due time.Time, err error) {
			c, newDoc, due, failed = w.changed(clusterID, doc, now, set, fn)
			return newDoc, due, failed
		})
		switch {
		case errors.Is(failed, errUndecided):
			if err := w.decide(ctx, c); err != nil {
				return err
			}
		case failed != nil:
			return failed
		case err != nil:
			return fmt.Errorf("change simulated cluster %s: %w", clusterID, err)
		default:
			return nil
		}
	}
}

// changed is a cluster's document after what is due and fn.
func (w *World) changed(id string, doc []byte, now time.Time, set *settings, fn func(*cluster, time.Time) error) (
	c *cluster, newDoc []byte, due time.Time, err error,
) {
	c, err = w.open(id, doc, set)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	c.advance(now)
	if len(c.undecided) > 0 {
		return c, nil, time.Time{}, errUndecided
	}
	if err := fn(c, now); err != nil {
		return c, nil, time.Time{}, err
	}
	newDoc, err = c.encode()
	return c, newDoc, c.soonest().at, err
}

// open reads a cluster under the faults of set.
func (w *World) open(id string, doc []byte, set *settings) (*cluster, error) {
	return decode(id, doc, w.cfg.Timings, func(m *machine) verdict { return set.join(id, m.ID, m.attempt()) })
}

// look returns a cluster as it is now, without writing. A join that a counted
// fault may strike has not happened yet.
func (w *World) look(ctx context.Context, clusterID string) (*cluster, error) {
	set, err := w.settings(ctx)
	if err != nil {
		return nil, err
	}
	doc, now, err := w.mem.ReadDocument(ctx, clusterID)
	if err != nil {
		return nil, fmt.Errorf("read simulated cluster %s: %w", clusterID, err)
	}
	c, err := w.open(clusterID, doc, set)
	if err != nil {
		return nil, err
	}
	c.advance(now)
	return c, nil
}

// clusters lists the ids of the clusters that id, "" for all, selects.
func (w *World) clusters(ctx context.Context, id string) ([]string, error) {
	keys, err := w.keys(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, key := range keys {
		if isCluster(key) && narrows(id, key) {
			ids = append(ids, key)
		}
	}
	return ids, nil
}

func (w *World) keys(ctx context.Context) ([]string, error) {
	keys, err := w.mem.DocumentKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list simulated clusters: %w", err)
	}
	return keys, nil
}
