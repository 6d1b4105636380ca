package http

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"sync/atomic"
	"time"

	"ckscale/internal/cks"
)

// How many attempts to authenticate may fail. An address and a key that belong
// together, since the key was once used from there, answer for themselves
// only: nobody elsewhere can use up their attempts. All others answer for the
// address and for the key, whoever else tries them.
//
// An attempt that is over the pace waits for its turn before it is judged, and
// is refused unjudged if that would be too long. So the owner of a key is slowed
// by whoever guesses at it from the same address, and served all the same.
var (
	pairPace    = pace{burst: 100, every: time.Second}
	addressPace = pace{burst: 100, every: 2 * time.Second}
	keyPace     = pace{burst: 300, every: 50 * time.Millisecond}
)

const (
	guardRoom = 10_000          // of pairs, of addresses and of keys that are remembered
	patience  = 5 * time.Second // how long an attempt waits at most
	guardSeat = 256             // attempts that wait at once
	tellAgain = time.Minute     // between two lines in the log
)

// digest stands for an API key: it has one size, and is no key.
type digest [sha256.Size]byte

func keyDigest(key string) digest { return sha256.Sum256([]byte(key)) }

// pairing is a key and where it is used.
type pairing struct {
	key  digest
	from netip.Prefix
}

// guard slows down those who guess at secrets.
type guard struct {
	pairs     *paces[pairing] // that have been right
	addresses *paces[netip.Prefix]
	keys      *paces[digest]
	seats     chan struct{}
	now       func() time.Time
	tell      func(from netip.Prefix) // that somebody is slowed down
	told      atomic.Int64            // when, last
}

func newGuard(now func() time.Time, tell func(netip.Prefix)) *guard {
	return &guard{
		pairs:     newPaces[pairing](pairPace, guardRoom),
		addresses: newPaces[netip.Prefix](addressPace, guardRoom),
		keys:      newPaces[digest](keyPace, guardRoom),
		seats:     make(chan struct{}, guardSeat),
		now:       now,
		tell:      tell,
	}
}

// attempts are those that one request makes: at one key, as a rule. They have
// failed unless they are said to be right.
type attempts struct {
	*guard
	pairing
	known   bool
	counted bool
}

func (g *guard) attempts(from netip.Prefix) *attempts {
	return &attempts{guard: g, pairing: pairing{from: from}}
}

// at says which key comes next. It fails when an attempt would have to wait
// for too long, so that nothing has to be looked up for it.
func (a *attempts) at(key string) error {
	if next := keyDigest(key); next != a.key {
		a.key, a.counted = next, false
		a.known = a.pairs.has(a.pairing)
	}
	if a.counted {
		return nil // both readings of a request are one attempt
	}
	now, wait := a.now(), time.Duration(0)
	if a.known {
		wait = a.pairs.wait(a.pairing, now)
	} else {
		wait = max(a.addresses.wait(a.from, now), a.keys.wait(a.key, now))
	}
	if wait > patience {
		return a.tooMany(wait)
	}
	return nil
}

// turn counts the attempt, and returns when it may be judged.
func (a *attempts) turn(ctx context.Context) error {
	if a.counted {
		return nil
	}
	wait, ok := a.take(a.now())
	if !ok {
		return a.tooMany(wait)
	}
	a.counted = true
	if wait == 0 {
		return nil
	}
	a.warn()
	select {
	case a.seats <- struct{}{}:
		defer func() { <-a.seats }()
	default:
		a.giveBack()
		return a.tooMany(wait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		a.giveBack()
		return ctx.Err()
	}
}

func (a *attempts) take(now time.Time) (wait time.Duration, ok bool) {
	if a.known {
		return a.pairs.take(a.pairing, now, patience)
	}
	wait, ok = a.addresses.take(a.from, now, patience)
	if !ok {
		return wait, false
	}
	more, ok := a.keys.take(a.key, now, patience)
	if !ok {
		a.addresses.giveBack(a.from)
	}
	return max(wait, more), ok
}

func (a *attempts) giveBack() {
	a.counted = false
	if a.known {
		a.pairs.giveBack(a.pairing)
		return
	}
	a.addresses.giveBack(a.from)
	a.keys.giveBack(a.key)
}

// right says that the attempt was right, so that it does not count.
func (a *attempts) right() {
	a.giveBack()
	a.pairs.add(a.pairing)
}

// belongs says that the key was right, of an attempt that was never counted.
func (a *attempts) belongs() { a.pairs.add(a.pairing) }

func (a *attempts) tooMany(wait time.Duration) error {
	a.warn()
	return later(wait, "Too many failed authentications, please retry after [%d] ms.")
}

// warn tells now and then: whoever guesses shall not fill the log.
func (a *attempts) warn() {
	now, last := a.now().UnixNano(), a.told.Load()
	if (last == 0 || now-last >= int64(tellAgain)) && a.told.CompareAndSwap(last, now) {
		a.tell(a.from)
	}
}

// laterError is an error that goes away by waiting.
type laterError struct {
	*cks.CodedError
	after time.Duration
}

func (e laterError) Unwrap() error { return e.CodedError }

// later makes a laterError; format is given the milliseconds to wait.
func later(after time.Duration, format string) error {
	after = max(after, time.Millisecond)
	ms := (after + time.Millisecond - 1) / time.Millisecond
	return laterError{cks.Errorf(limited, format, ms), after}
}
