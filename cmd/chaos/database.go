package main

import (
	"context"
	_ "embed"
	"errors"
	"os"

	"ckscale/cmd/internal/live"
	"ckscale/internal/embeddedpg"
)

// fast are PostgreSQL settings for data that nobody needs after a crash.
var fast = map[string]string{"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "max_connections": "200"}

// newDatabase makes an empty database on the PostgreSQL at base, or on one of
// our own, and returns what takes it away.
func newDatabase(ctx context.Context, base string) (address string, drop func() error, err error) {
	if base != "" {
		return live.NewDatabase(ctx, base, "ckscale_chaos_")
	}
	dir, err := os.MkdirTemp("", "ckscale-chaos-")
	if err != nil {
		return "", nil, err
	}
	pg, err := embeddedpg.Start(ctx, embeddedpg.Config{Dir: dir, Database: "ckscale", Settings: fast})
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return pg.URL(), func() error { return errors.Join(pg.Stop(), os.RemoveAll(dir)) }, nil
}

// recorder lets the database write down by itself who changed what and when.
//
//go:embed recorder.sql
var recorder string
