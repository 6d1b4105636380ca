package store

import (
	"context"

	"ckscale/internal/cks"
)

// RecordUnheld sets the size and the offerings that a asks for, on a cluster
// that needs no job for it, if the row is still as c was read; else it fails
// with cks.Conflict. Offerings that a does not name stay as they are.
func (q *Queries) RecordUnheld(ctx context.Context, c cks.Cluster, a cks.Args) error {
	n, err := q.exec(ctx, `
		UPDATE clusters SET version = version + 1, size = $3,
			control_offering_id = coalesce(nullif($4, '')::uuid, control_offering_id),
			worker_offering_id = coalesce(nullif($5, '')::uuid, worker_offering_id),
			etcd_offering_id = coalesce(nullif($6, '')::uuid, etcd_offering_id),
			offering_id = coalesce(nullif($7, '')::uuid, offering_id)
		WHERE id = $1 AND version = $2 AND held_by IS NULL`,
		c.ID, c.Version, a.Size, a.Offerings[cks.Control], a.Offerings[cks.Worker], a.Offerings[cks.Etcd], a.DefaultOffering)
	if err == nil && n == 0 {
		return changed(c)
	}
	return err
}
