package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Pool lets the tests look behind the statements.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// SetPatience shortens how long a caller waits for a connection.
func (s *Store) SetPatience(d time.Duration) { s.patience = d }

// SetLimit shortens how long a statement is waited for.
func (s *Store) SetLimit(d time.Duration) { s.limit = d }

// Clean is what error texts go through.
var Clean = clean

// Buffered is how many payloads a subscriber may be behind.
const Buffered = buffered

// RowsPassed returns how many rows of the tables, if none is named of all that
// grow, the connection that q is on has read by going through a whole table, as
// far as it has not reported them yet.
func (q *Queries) RowsPassed(ctx context.Context, tables ...string) (int64, error) {
	if len(tables) == 0 {
		tables = []string{"clusters", "vms", "jobs", "events"}
	}
	return scalar[int64](ctx, q, `
		SELECT sum(seq_tup_read)::bigint FROM pg_stat_xact_user_tables WHERE relname = ANY ($1::text[])`, tables)
}
