package store

import "context"

// bootstrapLock is the advisory lock of Alone: "ckscale" as a number.
const bootstrapLock = 0x636b7363616c65

// Alone waits until no other transaction that has called Alone is open, so
// that servers which start at once fill a new database one after the other.
func (q *Queries) Alone(ctx context.Context) error {
	_, err := q.exec(ctx, `SELECT pg_advisory_xact_lock($1)`, bootstrapLock)
	return err
}
