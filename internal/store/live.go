package store

import "context"

// LiveClusters returns the ids of all clusters that are not removed.
func (q *Queries) LiveClusters(ctx context.Context) ([]string, error) {
	return all(ctx, q, self[string], `SELECT id::text FROM clusters WHERE removed IS NULL ORDER BY seq`)
}
