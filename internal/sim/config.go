package sim

import (
	"context"
	"log/slog"
	"time"
)

// Memory is where the simulated cloud remembers itself: documents by key, each
// changed under a lock of its own, with times read off one clock that all
// servers share. *store.Store is one.
type Memory interface {
	// ChangeDocument replaces a document by what fn makes of it. fn may run
	// more than once; nil stands for no document; an unchanged document is not
	// written. due is when the document changes by itself.
	ChangeDocument(ctx context.Context, key string, fn func(doc []byte, now time.Time) (newDoc []byte, due time.Time, err error)) error
	// ReadDocument returns a document, or nil, and the time.
	ReadDocument(ctx context.Context, key string) (doc []byte, now time.Time, err error)
	// DocumentKeys lists all documents.
	DocumentKeys(ctx context.Context) ([]string, error)
	// NextDocument returns the document that changes by itself first, and in
	// what time.
	NextDocument(ctx context.Context) (key string, in time.Duration, ok bool, err error)
}

// Config says how the simulated cloud behaves. The zero value works.
type Config struct {
	// Speed divides every simulated duration; 0 stands for 1. Time limits that
	// callers give (a drain's timeout) and delays of faults are real time.
	Speed float64
	// Capacity is how many VMs the hosts hold, over all clusters: 0 stands for
	// 64, a negative number for no limit.
	Capacity int
	// Timings are the durations at speed 1; the zero value stands for
	// DefaultTimings.
	Timings Timings
	// Changes yields the keys of changed documents until ctx ends; "" stands
	// for any. Without it watchers are never told, and waits poll.
	Changes func(ctx context.Context) <-chan string
	// Log takes what Run cannot return; nil stands for slog.Default().
	Log *slog.Logger
}

// defaultCapacity is how many VMs the hosts hold unless Config says otherwise.
const defaultCapacity = 64

// Timings are the durations of the simulated cloud.
type Timings struct {
	Boot       time.Duration // Starting to Running
	Stop       time.Duration // Stopping to Stopped
	Join       time.Duration // Running with the ISO attached, to the node's registration
	FirstReady time.Duration // a new node's registration (NotReady) to Ready
	Return     time.Duration // Running again, to Ready again, of a node that joined once
	Grace      time.Duration // a node's last sign of life to Unknown
	Drain      time.Duration // moving the pods off a node
	Recreate   time.Duration // a node object's deletion to its pods' return elsewhere
	Upgrade    time.Duration // a node's upgrade: NotReady to Ready at the new version
}

// DefaultTimings are those of the lab in which the behaviour was observed,
// with boot and join shortened.
var DefaultTimings = Timings{
	Boot:       8 * time.Second,
	Stop:       time.Second,
	Join:       20 * time.Second,
	FirstReady: time.Second,
	Return:     2 * time.Second,
	Grace:      40 * time.Second,
	Drain:      2 * time.Second,
	Recreate:   5 * time.Second,
	Upgrade:    15 * time.Second,
}

// at returns the durations at a speed, in the whole microseconds that the
// memory's clock knows.
func (t Timings) at(speed float64) Timings {
	for _, d := range []*time.Duration{
		&t.Boot, &t.Stop, &t.Join, &t.FirstReady, &t.Return, &t.Grace, &t.Drain, &t.Recreate, &t.Upgrade,
	} {
		*d = time.Duration(float64(*d) / speed).Truncate(time.Microsecond)
	}
	return t
}

// withDefaults fills in what the zero value stands for.
func (c Config) withDefaults() Config {
	if c.Speed <= 0 {
		c.Speed = 1
	}
	if c.Capacity == 0 {
		c.Capacity = defaultCapacity
	}
	if c.Timings == (Timings{}) {
		c.Timings = DefaultTimings
	}
	c.Timings = c.Timings.at(c.Speed)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}
