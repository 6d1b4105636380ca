package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/embeddedpg"
	"ckscale/internal/store"
)

// embeddedName is the database that the embedded PostgreSQL keeps for us.
const embeddedName = "ckscale"

// database is where everything is kept.
type database struct {
	url    string
	direct string             // without a pooler between; "" = url has none, or we are not told
	pg     *embeddedpg.Server // nil: it runs without us
	log    *os.File           // of the embedded server
}

// openDatabase starts the embedded PostgreSQL, if there is no other database.
func openDatabase(ctx context.Context, cfg config) (*database, error) {
	if !cfg.embedded() {
		return &database{url: cfg.DatabaseURL, direct: cfg.DirectURL}, nil
	}
	if err := makeDataDir(cfg); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(cfg.DataDir, "postgres.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of the embedded PostgreSQL: %w", err)
	}
	pg, err := embeddedpg.Start(ctx, embeddedpg.Config{Dir: embeddedDir(cfg), Database: embeddedName, Log: log})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &database{url: pg.URL(), pg: pg, log: log}, nil
}

func embeddedDir(cfg config) string { return filepath.Join(cfg.DataDir, "postgres") }

// makeDataDir makes the data directory. Others may pass through it, since
// PostgreSQL runs as another user when we are root, but not look around.
func makeDataDir(cfg config) error {
	if err := os.MkdirAll(cfg.DataDir, 0o711); err != nil {
		return fmt.Errorf("data directory: %w (CKSCALE_DATA_DIR chooses another one)", err)
	}
	return nil
}

// ended is closed when the embedded PostgreSQL has ended for good.
func (d *database) ended() <-chan struct{} {
	if d.pg == nil {
		return nil
	}
	return d.pg.Done()
}

// close stops the embedded PostgreSQL.
func (d *database) close() error {
	if d.pg == nil {
		return nil
	}
	return errors.Join(d.pg.Stop(), d.log.Close())
}

// withDatabase runs fn on the database of a server that may be running or not.
func withDatabase(ctx context.Context, cfg config, fn func(url string) error) (err error) {
	db, err := openDatabase(ctx, cfg)
	if errors.Is(err, embeddedpg.ErrInUse) {
		return fn(embeddedpg.URL(embeddedDir(cfg), embeddedName)) // the running server's
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	return fn(cmp.Or(db.direct, db.url))
}

const (
	// databasePatience is how long a start waits for a database that is not
	// there yet.
	databasePatience = time.Minute
	databaseRetry    = time.Second
)

// openStore migrates the database and opens it.
func openStore(ctx context.Context, db *database, log *slog.Logger) (*store.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, databasePatience)
	defer cancel()
	for {
		st, err := tryOpen(ctx, db)
		if err == nil || cks.CodeOf(err) != cks.Unavailable {
			return st, err
		}
		log.WarnContext(ctx, "the database does not answer yet", "err", err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(databaseRetry):
		}
	}
}

func tryOpen(ctx context.Context, db *database) (*store.Store, error) {
	if err := store.Migrate(ctx, cmp.Or(db.direct, db.url)); err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, db.url)
	if err != nil {
		return nil, err
	}
	if db.direct != "" {
		if err := st.ListenOn(db.direct); err != nil {
			st.Close()
			return nil, err
		}
	}
	if db.pg == nil {
		return st, nil
	}
	// Only one server can use the embedded database, so leases in it are those
	// of a server that is gone: its jobs need not wait for them.
	if err := st.ReleaseLeases(ctx); err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}
