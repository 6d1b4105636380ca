package store

import (
	"context"
	"errors"

	"ckscale/internal/cks"
)

// TakeIn makes plain VMs nodes of the cluster that j holds, to be added to it:
// external workers that are not counted yet. It fails with cks.Conflict, and
// takes none, when one of them is no Running plain VM of its own any more, or
// when another job works on it. j is a job of the same transaction.
func (q *Queries) TakeIn(ctx context.Context, j cks.Job, vmIDs []string, version string, manualUpgrade bool) error {
	return q.taking(ctx, j, vmIDs, func(q *Queries) (int64, error) {
		return q.exec(ctx, `
			UPDATE vms SET cluster_id = $2, external = true, phase = 'chosen', job_id = $3, node_version = $4, manual_upgrade = $5
			WHERE id = ANY ($1::text[]::uuid[]) AND cluster_id IS NULL AND phase = 'member' AND state = 'Running' AND removed IS NULL`,
			vmIDs, j.ClusterID, j.ID, version, manualUpgrade)
	})
}

// TakeOut marks external nodes of the cluster that j holds as about to be
// removed from it. Errors as for TakeIn.
func (q *Queries) TakeOut(ctx context.Context, j cks.Job, vmIDs []string) error {
	return q.taking(ctx, j, vmIDs, func(q *Queries) (int64, error) {
		return q.exec(ctx, `
			UPDATE vms SET phase = 'leaving', job_id = $3
			WHERE id = ANY ($1::text[]::uuid[]) AND cluster_id = $2 AND external AND phase = 'member' AND removed IS NULL`,
			vmIDs, j.ClusterID, j.ID)
	})
}

// taking runs take, which has to change every VM, while their rows are locked
// and no job of their own is live.
func (q *Queries) taking(ctx context.Context, j cks.Job, vmIDs []string, take func(*Queries) (int64, error)) error {
	return q.inTx(ctx, func(q *Queries) error {
		_, err := q.exec(ctx, `SELECT FROM vms WHERE id = ANY ($1::text[]::uuid[]) ORDER BY id FOR NO KEY UPDATE`, vmIDs)
		if err != nil {
			return err
		}
		busy, err := scalar[string](ctx, q, `SELECT vm_id::text FROM jobs WHERE vm_id = ANY ($1::text[]::uuid[]) AND status = 0`, vmIDs)
		if err == nil {
			return cks.Errorf(cks.Conflict, "another job is in progress for VM %s", busy)
		}
		if !errors.Is(err, errNone) {
			return err
		}
		n, err := take(q)
		if err == nil && n != int64(len(vmIDs)) {
			return cks.Errorf(cks.Conflict, "the VMs changed since the request was validated")
		}
		return err
	})
}

// NodeReturned makes an external node a plain VM again: of the account that it
// had, or of its cluster's. The cluster is one smaller if it was counted. A VM
// that is none of the cluster's any more stays as it is. It fails with
// ErrNotHeld.
func (q *Queries) NodeReturned(ctx context.Context, j cks.Job, vmID string) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		counted, err := scalar[bool](ctx, q, `
			SELECT phase IN ('member', 'leaving') FROM vms
			WHERE id = $1 AND cluster_id = $2 AND external AND removed IS NULL FOR NO KEY UPDATE`, vmID, j.ClusterID)
		if errors.Is(err, errNone) {
			return nil
		}
		if err == nil && counted {
			err = q.nodeEvent(ctx, j, cks.EventNodeRemove, vmID, cks.NodeRemoved)
		}
		if err == nil && counted {
			err = q.resize(ctx, j, -1)
		}
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `
			UPDATE vms v SET cluster_id = NULL, external = false, manual_upgrade = false, node_version = '', phase = 'member',
				job_id = NULL, scan_due = now(), account_id = coalesce(v.account_id, c.account_id),
				zone_id = coalesce(v.zone_id, c.zone_id), network_id = coalesce(v.network_id, c.network_id),
				network_name = CASE WHEN v.account_id IS NULL THEN c.network_name ELSE v.network_name END,
				template_id = CASE WHEN v.account_id IS NULL THEN c.template_id ELSE v.template_id END
			FROM clusters c WHERE v.id = $1 AND c.id = v.cluster_id`, vmID)
		q.Wake(TopicWorld, vmID)
		return err
	})
}
