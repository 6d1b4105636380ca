package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Topic is a channel of announcements, which all servers on the database hear.
type Topic string

// The topics. Payloads are hints: "" means that anything may have changed.
const (
	TopicJobs  Topic = "ckscale_jobs"  // a job is due
	TopicWorld Topic = "ckscale_world" // payload: the cluster whose world changed
	TopicEnded Topic = "ckscale_ended" // payload: the job that has ended
)

var topics = []Topic{TopicJobs, TopicWorld, TopicEnded}

const (
	quiet      = 10 * time.Millisecond // between two announcements of a topic
	backoffMin = 50 * time.Millisecond // until the listener connects again; doubled each time
	backoffMax = 2 * time.Second       //
	poolerWait = time.Minute           // until it looks again whether a pooler is still between
	idleCheck  = 30 * time.Second      // a silent connection is asked whether it is alive
	answerTime = 5 * time.Second       // how long a statement of the bus may take
	buffered   = 64                    // payloads kept for a subscriber, and for one announcement
	maxPayload = 7900                  // bytes; PostgreSQL allows 7999
)

type announcement struct {
	topic   Topic
	payload string
}

// message is an announcement on the wire.
type message struct {
	From     string   `json:"from"` // the server that sent it, which has heard it already
	Payloads []string `json:"payloads"`
}

// bus delivers announcements within the process at once and collects them for
// the other servers. Announcing outside of transactions and seldom is what
// keeps NOTIFY, which takes a lock on the whole database, from slowing commits.
type bus struct {
	self string
	tell chan struct{} // there is something in pending

	mu      sync.Mutex
	subs    map[Topic]map[chan string]bool
	pending map[Topic]map[string]bool
}

func newBus() *bus {
	return &bus{
		self:    uuid.NewString(),
		tell:    make(chan struct{}, 1),
		subs:    map[Topic]map[chan string]bool{},
		pending: map[Topic]map[string]bool{},
	}
}

// Publish tells all subscribers of t, here at once, on other servers when
// RunBus gets to it. It never blocks, and it must not be used inside a
// transaction: that is what Wake is for.
func (s *Store) Publish(t Topic, payload string) {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deliver(t, payload)
	waiting := b.pending[t]
	if waiting == nil {
		waiting = map[string]bool{}
		b.pending[t] = waiting
	}
	if payload == "" || len(waiting) >= buffered {
		clear(waiting)
		payload = ""
	}
	if !waiting[""] {
		waiting[payload] = true
	}
	select {
	case b.tell <- struct{}{}:
	default:
	}
}

// deliver gives payload to the subscribers in this process. For one that does
// not keep up, what it has not taken yet becomes a single "". b.mu is held.
func (b *bus) deliver(t Topic, payload string) {
	for ch := range b.subs[t] {
		select {
		case ch <- payload:
			continue
		default:
		}
		for drained := false; !drained; {
			select {
			case <-ch:
			default:
				drained = true
			}
		}
		ch <- "" // there is room, and b.mu keeps other senders away
	}
}

// Subscribe returns the payloads published to t from now on by any server, as
// far as RunBus hears the others. "" stands for all that was missed. The
// channel is closed when ctx ends.
func (s *Store) Subscribe(ctx context.Context, t Topic) <-chan string {
	b, ch := s.bus, make(chan string, buffered)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs[t] == nil {
		b.subs[t] = map[chan string]bool{}
	}
	b.subs[t][ch] = true
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subs[t], ch)
		close(ch)
	})
	return ch
}

// RunBus exchanges announcements with the other servers until ctx ends. It
// listens on a connection of its own and makes a new one when it is lost, after
// which every subscriber gets "". Trouble goes to report, which may be nil:
// nothing is lost by it that polling does not find. Through a pooler nobody can
// listen; that is reported once.
func (s *Store) RunBus(ctx context.Context, report func(error)) error {
	if report == nil {
		report = func(error) {}
	}
	var announcer sync.WaitGroup
	announcer.Go(func() { s.announce(ctx, report) })
	defer announcer.Wait()
	pooler := false
	for wait := backoffMin; ctx.Err() == nil; wait = min(2*wait, backoffMax) {
		begin := time.Now()
		err := s.listen(ctx)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errPooler) {
			if !pooler {
				report(fmt.Errorf("listen: %w", err))
			}
			pooler = true
			pause(ctx, poolerWait)
			continue
		}
		if time.Since(begin) > backoffMax { // one that is cut at once again waits longer
			wait = backoffMin
		}
		report(fmt.Errorf("listen: %w", translate(err)))
		pause(ctx, wait)
	}
	return nil
}

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// listen delivers what other servers announce until the connection is lost.
func (s *Store) listen(ctx context.Context) error {
	cfg := s.direct
	if cfg == nil {
		cfg = s.pool.Config().ConnConfig
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		conn.Close(end) //nolint:errcheck // it is thrown away
	}()
	if err := s.listenOn(ctx, conn); err != nil {
		return err
	}
	s.bus.missed()
	for {
		idle, cancel := context.WithTimeout(ctx, idleCheck)
		n, err := conn.WaitForNotification(idle)
		silent := idle.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			s.bus.receive(Topic(n.Channel), n.Payload)
		case !silent || conn.IsClosed():
			return err
		default:
			if err := alive(ctx, conn); err != nil {
				return err
			}
		}
	}
}

func (s *Store) listenOn(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if s.direct == nil { // else we are told that this is a session
		if err := ownSession(ctx, conn); err != nil {
			return err
		}
	}
	for _, t := range topics {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{string(t)}.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}

// alive asks for an answer, so that a peer that vanished is noticed.
func alive(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return conn.Ping(ctx)
}

// missed tells all subscribers that announcements may have been lost.
func (b *bus) missed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for t := range b.subs {
		b.deliver(t, "")
	}
}

// receive delivers an announcement of another server. What is not a message of
// ours (someone typed NOTIFY) is taken as "".
func (b *bus) receive(t Topic, payload string) {
	var m message
	if err := json.Unmarshal([]byte(payload), &m); err != nil {
		m = message{Payloads: []string{""}}
	}
	if m.From == b.self {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range m.Payloads {
		b.deliver(t, p)
	}
}

// announce sends what is pending to the other servers until ctx ends.
func (s *Store) announce(ctx context.Context, report func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.bus.tell:
		}
		for _, t := range topics {
			payloads := s.bus.take(t)
			if len(payloads) == 0 {
				continue
			}
			if err := s.notify(ctx, t, payloads); err != nil && ctx.Err() == nil {
				report(fmt.Errorf("announce: %w", err))
			}
		}
		pause(ctx, quiet)
	}
}

// take empties what is pending for t.
func (b *bus) take(t Topic) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	payloads := slices.Sorted(maps.Keys(b.pending[t]))
	clear(b.pending[t])
	return payloads
}

func (s *Store) notify(ctx context.Context, t Topic, payloads []string) error {
	text, err := json.Marshal(message{s.bus.self, payloads})
	if err == nil && len(text) > maxPayload {
		text, err = json.Marshal(message{s.bus.self, []string{""}})
	}
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err = s.exec(ctx, `SELECT pg_notify($1, $2)`, t, string(text))
	return err
}
