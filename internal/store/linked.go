package store

import (
	"context"

	"ckscale/internal/cks"
)

// LockCluster keeps the row of a cluster as it is until the transaction ends.
func (q *Queries) LockCluster(ctx context.Context, id string) error {
	_, err := q.exec(ctx, `SELECT FROM clusters WHERE id = $1 FOR NO KEY UPDATE`, id)
	return err
}

// LinkVM links a plain VM to an externally managed cluster, as a control node or
// as a worker, and counts it. One that is linked already stays as it is. The
// caller has locked both. It fails with cks.Conflict when it is no plain VM any
// more.
func (q *Queries) LinkVM(ctx context.Context, clusterID, vmID string, role cks.Role) error {
	n, err := q.exec(ctx, `
		UPDATE vms SET cluster_id = $2, linked = true, role = CASE WHEN linked THEN role ELSE $3 END
		WHERE id = $1 AND account_id IS NOT NULL AND phase = 'member' AND removed IS NULL
			AND (cluster_id IS NULL OR cluster_id = $2 AND linked)`, vmID, clusterID, role)
	if err != nil {
		return err
	}
	if n == 0 {
		return cks.Errorf(cks.Conflict, "VM %s changed since the request was validated", vmID)
	}
	return q.recount(ctx, clusterID)
}

// UnlinkVM makes a VM that is linked to the cluster a plain one again, and
// counts it off. done is false when it is not linked to it. The caller has
// locked the cluster.
func (q *Queries) UnlinkVM(ctx context.Context, clusterID, vmID string) (done bool, err error) {
	n, err := q.exec(ctx, `
		UPDATE vms SET cluster_id = NULL, linked = false, role = 'worker'
		WHERE id = $1 AND cluster_id = $2 AND linked AND removed IS NULL`, vmID, clusterID)
	if err != nil || n == 0 {
		return false, err
	}
	return true, q.recount(ctx, clusterID)
}

// recount sets the numbers of nodes of an externally managed cluster to those of
// the VMs that are linked to it.
func (q *Queries) recount(ctx context.Context, clusterID string) error {
	_, err := q.exec(ctx, `
		UPDATE clusters c SET control_nodes = n.control, size = n.worker, version = version + 1
		FROM (SELECT count(*) FILTER (WHERE role = 'control') AS control, count(*) FILTER (WHERE role = 'worker') AS worker
			FROM vms WHERE cluster_id = $1 AND linked AND removed IS NULL) n
		WHERE c.id = $1 AND (c.control_nodes, c.size) IS DISTINCT FROM (n.control, n.worker)`, clusterID)
	return err
}

// ForgetCluster removes the record of an externally managed cluster, and makes
// its VMs plain ones again, if the row is still as c was read; else it fails
// with cks.Conflict.
func (q *Queries) ForgetCluster(ctx context.Context, c cks.Cluster) error {
	events := []cks.Event{cks.DestroyRequested, cks.OperationSucceeded}
	to, err := c.State.On(events...)
	if err != nil {
		return err
	}
	return q.inTx(ctx, func(q *Queries) error {
		n, err := q.exec(ctx, `
			UPDATE clusters SET state = $4, version = version + 1, removed = now()
			WHERE id = $1 AND state = $2 AND version = $3 AND held_by IS NULL AND external_managed`, c.ID, c.State, c.Version, to)
		if err != nil {
			return err
		}
		if n == 0 {
			return changed(c)
		}
		_, err = q.exec(ctx, `UPDATE vms SET cluster_id = NULL, linked = false, role = 'worker' WHERE cluster_id = $1 AND linked AND removed IS NULL`, c.ID)
		if err != nil {
			return err
		}
		return q.clusterMoved(ctx, c.ID, c.Name, "", c.State, to, events)
	})
}

// NodesChanged writes that the caller has done at once, by no job, what command
// does with the cluster's nodes.
func (q *Queries) NodesChanged(ctx context.Context, command, callerID, clusterID string) error {
	a := cks.Actions[command]
	level, text := a.Succeeded()
	return q.addEvent(ctx, event{kind: a.Type, level: level, state: cks.Completed, text: text, caller: callerID, cluster: clusterID})
}
