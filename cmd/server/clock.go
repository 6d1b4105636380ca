package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// clockCheck is how often the database's clock is read.
const clockCheck = 10 * time.Second

// clock is the database's: read now and then, and carried on in between by our
// stopwatch. What this machine takes for the time is not asked, so that servers
// whose clocks are apart agree on what has expired.
type clock struct {
	mu   sync.Mutex
	at   time.Time // what the database said
	when time.Time // when that was, on our stopwatch
}

// read asks what the time is.
func (c *clock) read(ctx context.Context, ask func(context.Context) (time.Time, error)) error {
	at, err := ask(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.when = at, time.Now()
	return nil
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at.Add(time.Since(c.when))
}

// keep reads the clock again and again until ctx ends. While the database does
// not answer, the stopwatch goes on.
func (c *clock) keep(ctx context.Context, ask func(context.Context) (time.Time, error), log *slog.Logger) error {
	tick := time.NewTicker(clockCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := c.read(ctx, ask); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "cannot read the database's clock", "err", err)
			}
		}
	}
}
