package store

import (
	"context"
	"errors"
	"time"

	"ckscale/internal/cks"
)

// HoldCluster moves c by the events and gives the job the hold on it, if the
// row is still as c was read; else it fails with cks.Conflict.
func (q *Queries) HoldCluster(ctx context.Context, c cks.Cluster, jobID string, events ...cks.Event) error {
	to, err := c.State.On(events...)
	if err != nil {
		return err
	}
	return q.inTx(ctx, func(q *Queries) error {
		n, err := q.exec(ctx, `
			UPDATE clusters SET state = $4, held_by = $5, version = version + 1
			WHERE id = $1 AND state = $2 AND version = $3 AND held_by IS NULL`,
			c.ID, c.State, c.Version, to, jobID)
		if err != nil {
			return err
		}
		if n == 0 {
			return changed(c)
		}
		return q.clusterMoved(ctx, c.ID, c.Name, jobID, c.State, to, events)
	})
}

func changed(c cks.Cluster) error {
	return cks.Errorf(cks.Conflict, "%s %s changed since the request was validated", clusterWord, c.Name)
}

// FreeCluster ends j's hold and moves the cluster by the events from the state
// that it is in. A cluster that becomes Destroyed is removed with its VMs and
// credentials. What j chose and did not finish would wait for it for ever: a VM
// that is still chosen is doomed, an external one becomes a node that can be
// removed, and one that is still leaving stays a member. The scanner is told.
// It fails with ErrNotHeld when j does not hold the cluster.
func (q *Queries) FreeCluster(ctx context.Context, j cks.Job, events ...cks.Event) error {
	return q.holding(ctx, j, func(q *Queries, seen cks.State) error {
		to, err := seen.On(events...)
		if err != nil {
			return err
		}
		name, err := scalar[string](ctx, q, `
			UPDATE clusters SET state = $2, held_by = NULL, version = version + 1, scan_due = now(),
				removed = CASE WHEN $2 = 'Destroyed' THEN now() END
			WHERE id = $1 RETURNING name`, j.ClusterID, to)
		if err != nil {
			return err
		}
		if err := q.clusterMoved(ctx, j.ClusterID, name, j.ID, seen, to, events); err != nil {
			return err
		}
		if to == cks.Destroyed {
			_, err = q.exec(ctx, `
				UPDATE vms SET removed = now(), state = 'Expunging', updated = now()
				WHERE cluster_id = $1 AND removed IS NULL`, j.ClusterID)
			if err == nil {
				err = q.dropCredentials(ctx, j.ClusterID)
			}
			if err != nil {
				return err
			}
		}
		_, err = q.exec(ctx, `
			WITH kept AS (
				SELECT cluster_id, count(*) AS n FROM vms
				WHERE job_id = $1 AND phase = 'chosen' AND external AND removed IS NULL GROUP BY cluster_id)
			UPDATE clusters c SET size = size + kept.n FROM kept WHERE c.id = kept.cluster_id`, j.ID)
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `
			UPDATE vms SET phase = CASE WHEN phase = 'chosen' AND NOT external THEN 'doomed' ELSE 'member' END, job_id = NULL
			WHERE job_id = $1 AND phase IN ('chosen', 'leaving') AND removed IS NULL`, j.ID)
		q.Wake(TopicWorld, j.ClusterID)
		return err
	})
}

// holding runs fn in a transaction in which j's job and cluster rows are
// locked, with the state in which j holds the cluster. It fails with ErrNotHeld
// when j does not hold it, and with ErrLeaseLost when j was claimed again. The
// job comes first: that is the order of locks.
func (q *Queries) holding(ctx context.Context, j cks.Job, fn func(q *Queries, seen cks.State) error) error {
	return q.inTx(ctx, func(q *Queries) error {
		n, err := q.exec(ctx, `SELECT FROM jobs WHERE id = $1 AND attempt = $2 FOR NO KEY UPDATE`, j.ID, j.Attempt)
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrLeaseLost
		}
		seen, err := scalar[cks.State](ctx, q,
			`SELECT state FROM clusters WHERE id = nullif($1, '')::uuid AND held_by = $2 FOR NO KEY UPDATE`,
			j.ClusterID, j.ID)
		if errors.Is(err, errNone) {
			return ErrNotHeld
		}
		if err != nil {
			return err
		}
		return fn(q, seen)
	})
}

// MoveCluster moves a cluster that nobody holds by the events, if the row is
// still as c was read; else moved is false. It is due to be looked at again:
// what moved it may have been stale.
func (q *Queries) MoveCluster(ctx context.Context, c cks.Cluster, events ...cks.Event) (moved bool, err error) {
	to, err := c.State.On(events...)
	if err != nil {
		return false, err
	}
	err = q.inTx(ctx, func(q *Queries) error {
		n, err := q.exec(ctx, `
			UPDATE clusters SET state = $4, version = version + 1, scan_due = now()
			WHERE id = $1 AND state = $2 AND version = $3 AND held_by IS NULL`,
			c.ID, c.State, c.Version, to)
		if moved = n == 1; err != nil || !moved {
			return err
		}
		return q.clusterMoved(ctx, c.ID, c.Name, "", c.State, to, events)
	})
	return moved && err == nil, err
}

// ClustersToScan returns at most n clusters whose scan is due, and makes each
// due again after every. Replicas that ask at the same time share the clusters.
func (q *Queries) ClustersToScan(ctx context.Context, n int, every time.Duration) ([]string, error) {
	return all(ctx, q, self[string], `
		WITH due AS MATERIALIZED (
			SELECT id FROM clusters WHERE removed IS NULL AND scan_due <= now()
			ORDER BY scan_due LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED)
		UPDATE clusters c SET scan_due = now() + $2::interval FROM due WHERE c.id = due.id
		RETURNING c.id::text`, n, every)
}

// RecordOfferings sets the offerings of the node types in o, and the default
// one unless dflt is empty. It fails with ErrNotHeld.
func (q *Queries) RecordOfferings(ctx context.Context, j cks.Job, o map[cks.Role]string, dflt string) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		_, err := q.exec(ctx, `
			UPDATE clusters SET version = version + 1,
				control_offering_id = coalesce(nullif($2, '')::uuid, control_offering_id),
				worker_offering_id = coalesce(nullif($3, '')::uuid, worker_offering_id),
				etcd_offering_id = coalesce(nullif($4, '')::uuid, etcd_offering_id),
				offering_id = coalesce(nullif($5, '')::uuid, offering_id)
			WHERE id = $1`,
			j.ClusterID, o[cks.Control], o[cks.Worker], o[cks.Etcd], dflt)
		return err
	})
}

// RecordAutoscaling sets the cluster's autoscaling; its bounds go when it is
// off. It fails with ErrNotHeld.
func (q *Queries) RecordAutoscaling(ctx context.Context, j cks.Job, a cks.Autoscaling) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		_, err := q.exec(ctx, `
			UPDATE clusters SET version = version + 1, autoscaling = $2,
				min_size = CASE WHEN $2 THEN $3::int END, max_size = CASE WHEN $2 THEN $4::int END
			WHERE id = $1`,
			j.ClusterID, a.Enabled, a.Min, a.Max)
		return err
	})
}

// RecordSize sets the size of a cluster that needs no job for it, if the row is
// still as c was read; else it fails with cks.Conflict.
func (q *Queries) RecordSize(ctx context.Context, c cks.Cluster, size int) error {
	n, err := q.exec(ctx, `UPDATE clusters SET size = $3, version = version + 1 WHERE id = $1 AND version = $2`,
		c.ID, c.Version, size)
	if err == nil && n == 0 {
		return changed(c)
	}
	return err
}
