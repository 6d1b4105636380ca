package store

import (
	"context"

	"ckscale/internal/cks"
)

// NodeUpgraded records the Kubernetes version of a node of j's cluster, as its
// kubelet writes it. It fails with ErrNotHeld, and with cks.NotFound when the
// cluster has no such VM.
func (q *Queries) NodeUpgraded(ctx context.Context, j cks.Job, vmID, version string) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		n, err := q.exec(ctx, `UPDATE vms SET node_version = $3 WHERE id = $1 AND cluster_id = $2 AND removed IS NULL`,
			vmID, j.ClusterID, version)
		if err == nil && n == 0 {
			return cks.Errorf(cks.NotFound, "cluster has no VM %s", vmID)
		}
		return err
	})
}

// RecordVersion sets the Kubernetes version of j's cluster, which new nodes get
// from now on. It fails with ErrNotHeld.
func (q *Queries) RecordVersion(ctx context.Context, j cks.Job, versionID string) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		_, err := q.exec(ctx, `UPDATE clusters SET version_id = $2, version = version + 1 WHERE id = $1`, j.ClusterID, versionID)
		return err
	})
}

// ObserveVersion records the Kubernetes version that a node of c was seen to
// have, while nobody holds c and its row is still as c was read: what was seen
// may be older than what a job has recorded since.
func (q *Queries) ObserveVersion(ctx context.Context, c cks.Cluster, vmID, version string) error {
	_, err := q.exec(ctx, `
		UPDATE vms SET node_version = $4 FROM clusters c
		WHERE vms.id = $1 AND vms.cluster_id = c.id AND vms.removed IS NULL
			AND c.id = $2 AND c.version = $3 AND c.held_by IS NULL`,
		vmID, c.ID, c.Version, version)
	return err
}
