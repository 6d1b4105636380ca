package http

import (
	"container/list"
	"sync"
	"time"
)

// pace is how often something may happen: so many times at once, and then once
// in every interval.
type pace struct {
	burst int
	every time.Duration
}

// perSecond is n times in a second, in one go or spread.
func perSecond(n int) pace { return pace{burst: n, every: time.Second / time.Duration(n)} }

// paces keeps each of many to a pace of its own. It remembers room of them;
// after that the one that was counted longest ago is forgotten, which has most
// likely made up for all it did.
type paces[K comparable] struct {
	pace
	room int

	mu     sync.Mutex
	byKey  map[K]*list.Element // in recent
	recent list.List           // of *paced[K]: who was counted last is first
}

// paced is what is remembered of one.
type paced[K comparable] struct {
	key  K
	even time.Time // when it will have made up for all it did
}

func newPaces[K comparable](p pace, room int) *paces[K] {
	return &paces[K]{pace: p, room: room, byKey: map[K]*list.Element{}}
}

// take counts one more for key and returns how long it has to wait for its
// turn. If that is more than patience, it is not counted, and ok is false.
func (p *paces[K]) take(key K, now time.Time, patience time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	even, wait := p.next(key, now)
	if wait > patience {
		return wait, false
	}
	p.remember(key).even = even
	return wait, true
}

// wait is how long one more for key would have to wait.
func (p *paces[K]) wait(key K, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, wait := p.next(key, now)
	return wait
}

// next is when key will be even after one more, and how long that one waits.
func (p *paces[K]) next(key K, now time.Time) (even time.Time, wait time.Duration) {
	even = now
	if e, ok := p.byKey[key]; ok && e.Value.(*paced[K]).even.After(now) {
		even = e.Value.(*paced[K]).even
	}
	even = even.Add(p.every)
	return even, max(0, even.Sub(now)-time.Duration(p.burst)*p.every)
}

// giveBack undoes one take.
func (p *paces[K]) giveBack(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.byKey[key]; ok {
		one := e.Value.(*paced[K])
		one.even = one.even.Add(-p.every)
	}
}

// add remembers key without counting anything.
func (p *paces[K]) add(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remember(key)
}

// has reports whether key is remembered.
func (p *paces[K]) has(key K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.byKey[key]
	return ok
}

// remember returns what is remembered of key, which is now the last to be
// forgotten.
func (p *paces[K]) remember(key K) *paced[K] {
	if e, ok := p.byKey[key]; ok {
		p.recent.MoveToFront(e)
		return e.Value.(*paced[K])
	}
	if len(p.byKey) >= p.room {
		oldest := p.recent.Back()
		delete(p.byKey, p.recent.Remove(oldest).(*paced[K]).key)
	}
	one := &paced[K]{key: key}
	p.byKey[key] = p.recent.PushFront(one)
	return one
}
