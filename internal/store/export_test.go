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

// Clean is what error texts go through.
var Clean = clean

// Buffered is how many payloads a subscriber may be behind.
const Buffered = buffered

// RowsPassed returns how many rows of the tables that grow the connection that
// q is on has read by going through a whole table, as far as it has not
// reported them yet.
func (q *Queries) RowsPassed(ctx context.Context) (int64, error) {
	return scalar[int64](ctx, q, `
		SELECT sum(seq_tup_read)::bigint FROM pg_stat_xact_user_tables WHERE relname IN ('clusters', 'vms', 'jobs')`)
}
