package store

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A pooler such as PgBouncer may lend each transaction another session of the
// database. What is bound to a session does not work through it: prepared
// statements, LISTEN, the lock of the migrations, and settings sent at the
// start, some of which make it refuse the connection.

// errPooler says that a session is needed and that a pooler is between.
var errPooler = errors.New("a pooler is between us and the database; set DATABASE_DIRECT_URL to the address of the database itself")

// ownSession fails with errPooler unless conn is a session of the database: its
// backend is then the process that conn was told of when it was made. Poolers
// tell of one that they make up.
func ownSession(ctx context.Context, conn *pgx.Conn) error {
	var pid uint32
	err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	if err == nil && pid != conn.PgConn().PID() {
		return errPooler
	}
	return err
}

// adapt looks whether cfg leads to a pooler, and takes out of it what a pooler
// cannot do: our limits, but not those that were given, and prepared statements
// unless cfg was told how to send statements.
func adapt(ctx context.Context, cfg *pgx.ConnConfig, given map[string]string, told bool) error {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if refusesLimits(err) {
		cfg.RuntimeParams = merged(settings, given)
		conn, err = pgx.ConnectConfig(ctx, cfg)
	}
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it is thrown away
	err = ownSession(ctx, conn)
	if errors.Is(err, errPooler) {
		if !told {
			cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		return nil
	}
	return err
}

// refusesLimits reports whether err is PgBouncer's answer to a setting that it
// does not know.
func refusesLimits(err error) bool {
	pe, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pe.Code == "08P01" && strings.Contains(pe.Message, "unsupported startup parameter")
}
