package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"ckscale/internal/cks"
)

// ErrLeaseLost means that the caller does not execute the job any more:
// another process does, or it was put back, or it has ended.
var ErrLeaseLost = errors.New("store: job lease lost")

// ErrNotHeld means that the job does not hold its cluster.
var ErrNotHeld = errors.New("store: job does not hold its cluster")

// translate gives an error of the driver the code cks.Unavailable when it says
// that the database cannot be used now; the cause stays for errors.Is and logs.
func translate(err error) error {
	if err == nil || !unavailable(err) {
		return err
	}
	return fmt.Errorf("%w: %w", cks.Errorf(cks.Unavailable, "database is not available"), err)
}

// unavailableCodes are SQLSTATEs that come and go with the server's health:
// it is shutting down or starting, it is full, or a limit of ours was hit.
var unavailableCodes = []string{
	"08",                      // connection exceptions
	"57P01", "57P02", "57P03", // shutting down, crashed, starting
	"53",    // too many connections, out of memory or disk
	"55P03", // lock_timeout
	"57014", // statement_timeout
	"25P03", // idle_in_transaction_session_timeout
	"40P01", // deadlock; the order of locks should prevent it
}

// refusedCodes are SQLSTATEs with which a connection is refused for good: who we
// are or which database we want is wrong. A database that refuses for any other
// reason will let us in some time.
var refusedCodes = []string{"28", "3D000"}

func oneOf(code string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(code, p) })
}

func unavailable(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false // the caller went away
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return !oneOf(sqlState(err), refusedCodes)
	}
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		return oneOf(pe.Code, unavailableCodes)
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, puddle.ErrClosedPool) ||
		errors.Is(err, context.DeadlineExceeded)
}

// sqlState returns the SQLSTATE of err, or "".
func sqlState(err error) string {
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pe.Code
	}
	return ""
}
