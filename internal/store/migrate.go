package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"ckscale/migrations"
)

// migrationLock is how long Migrate waits for another server that migrates.
const migrationLock = time.Minute

// Migrate brings the database at url to LatestVersion. Several servers may call
// it at once. A database of a newer server is left as it is. It fails when an
// earlier migration was cut off (dirty); its statements can be run again, so
// ForceVersion to the version before it is the way out. It fails as well when
// there is something to do and a pooler is between.
func Migrate(ctx context.Context, url string) error {
	if current, err := current(ctx, url); current || err != nil {
		return err
	}
	return withMigrations(ctx, url, func(m *migrate.Migrate) error {
		version, dirty, err := m.Version()
		switch {
		case errors.Is(err, migrate.ErrNilVersion):
		case err != nil:
			return err
		case !dirty && int(version) >= LatestVersion():
			return nil
		}
		err = m.Up()
		if errors.Is(err, migrate.ErrNoChange) {
			return nil
		}
		if d, ok := errors.AsType[migrate.ErrDirty](err); ok {
			return fmt.Errorf("migration %d was cut off; every statement can be run again: force version %d and migrate: %w",
				d.Version, d.Version-1, err)
		}
		return err
	})
}

// current reports whether there is nothing to do. It takes no lock, as
// golang-migrate does even to look: a pooler would keep that for somebody else.
func current(ctx context.Context, url string) (bool, error) {
	cfg, err := parse(url)
	if err != nil {
		return false, err
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // behind a pooler, too
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return false, translate(err)
	}
	defer conn.Close(ctx) //nolint:errcheck // it is thrown away
	version, dirty, err := (&Queries{conn: conn, limit: statementLimit}).SchemaVersion(ctx)
	return err == nil && !dirty && version >= LatestVersion(), err
}

// ForceVersion records that the database's schema is version, clean; -1 means
// that there is none.
func ForceVersion(ctx context.Context, url string, version int) error {
	if version == 0 {
		version = -1 // golang-migrate's word for "before the first"
	}
	return withMigrations(ctx, url, func(m *migrate.Migrate) error { return m.Force(version) })
}

func withMigrations(ctx context.Context, url string, fn func(*migrate.Migrate) error) error {
	cfg, err := parse(url)
	if err != nil {
		return err
	}
	source, err := iofs.New(migrations.FS, ".")
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	defer source.Close()
	db := stdlib.OpenDB(*cfg.ConnConfig)
	defer db.Close()
	return runMigrations(ctx, db, func() error {
		driver, err := migratepgx.WithInstance(db, &migratepgx.Config{})
		if err != nil {
			return err
		}
		defer driver.Close()
		m, err := migrate.NewWithInstance("iofs", source, "pgx5", driver)
		if err != nil {
			return err
		}
		m.LockTimeout = migrationLock
		defer context.AfterFunc(ctx, func() { m.GracefulStop <- true })()
		return fn(m)
	})
}

// runMigrations runs fn, which knows no context, and stops waiting for it when
// ctx ends. The connections that fn leaves open are closed with db.
func runMigrations(ctx context.Context, db *sql.DB, fn func() error) error {
	if err := onSession(ctx, db); err != nil {
		return translate(err)
	}
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("migrate: %w", translate(err))
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("migrate: %w", ctx.Err())
	}
}

// onSession fails unless db leads to sessions of the database: the lock of the
// migrations is bound to one.
func onSession(ctx context.Context, db *sql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	err = c.Raw(func(driver any) error { return ownSession(ctx, driver.(*stdlib.Conn).Conn()) })
	if errors.Is(err, errPooler) {
		err = fmt.Errorf("migrate the schema: %w", err)
	}
	return errors.Join(err, c.Close())
}

// LatestVersion is the schema version that this program is made for.
func LatestVersion() int {
	files, err := fs.Glob(migrations.FS, "*.up.sql")
	if err != nil {
		panic(err) // only by a bad pattern
	}
	latest := 0
	for _, file := range files {
		number, _, _ := strings.Cut(file, "_")
		if n, err := strconv.Atoi(number); err == nil {
			latest = max(latest, n)
		}
	}
	return latest
}

// SchemaVersion returns the version of the database's schema, 0 when it has
// none. dirty: a migration was cut off, or is running.
func (q *Queries) SchemaVersion(ctx context.Context) (version int, dirty bool, err error) {
	type row struct {
		version int
		dirty   bool
	}
	r, err := one(ctx, q, func(r *row) []any { return []any{&r.version, &r.dirty} },
		`SELECT version, dirty FROM schema_migrations`)
	if errors.Is(err, errNone) || sqlState(err) == "42P01" { // undefined_table
		return 0, false, nil
	}
	return r.version, r.dirty, err
}
