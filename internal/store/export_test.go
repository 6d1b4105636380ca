package store

import "github.com/jackc/pgx/v5/pgxpool"

// Pool lets the tests look behind the statements.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Clean is what error texts go through.
var Clean = clean

// Buffered is how many payloads a subscriber may be behind.
const Buffered = buffered
