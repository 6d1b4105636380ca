package store

import (
	"context"

	"ckscale/internal/cks"
)

// LockVersion is Version in a transaction that gives the version to a cluster:
// until that ends, nobody removes it.
func (q *Queries) LockVersion(ctx context.Context, ref string) (cks.KubernetesVersion, error) {
	v, err := q.Version(ctx, ref)
	if err != nil {
		return v, err
	}
	if _, err := q.exec(ctx, `SELECT FROM kubernetes_versions WHERE id = $1 FOR KEY SHARE`, v.ID); err != nil {
		return v, err
	}
	return q.Version(ctx, v.ID) // as whoever had it before has left it
}

// CreateVersion is AddVersion for an account: an event tells of it.
func (q *Queries) CreateVersion(ctx context.Context, v cks.KubernetesVersion, accountID string) (added cks.KubernetesVersion, err error) {
	err = q.inTx(ctx, func(q *Queries) error {
		if added, err = q.AddVersion(ctx, v); err != nil {
			return err
		}
		return q.versionChanged(ctx, "addKubernetesSupportedVersion", added.ID, accountID)
	})
	return added, err
}

// EnableVersion says, for an account, whether new clusters can have the
// version. It fails with cks.NotFound when there is none with that id.
func (q *Queries) EnableVersion(ctx context.Context, id string, enabled bool, accountID string) (v cks.KubernetesVersion, err error) {
	err = q.inTx(ctx, func(q *Queries) error {
		_, err := q.exec(ctx, `UPDATE kubernetes_versions SET enabled = $2 WHERE id = $1 AND removed IS NULL`, id, enabled)
		if err != nil {
			return err
		}
		if v, err = q.Version(ctx, id); err != nil {
			return err
		}
		return q.versionChanged(ctx, "updateKubernetesSupportedVersion", id, accountID)
	})
	return v, err
}

// versionChanged writes that the account has changed a version by a command.
func (q *Queries) versionChanged(ctx context.Context, command, id, accountID string) error {
	a := cks.Actions[command]
	return q.addEvent(ctx, event{kind: a.Type, level: cks.LevelInfo, state: cks.Completed, text: a.Scheduled(id), caller: accountID})
}

// RemoveVersion removes, for an account, a version that no cluster has or is
// being upgraded to; done is false when there is such a cluster, or the version
// is removed already. It is to be called
// in a transaction: nobody gets the version until that ends.
func (q *Queries) RemoveVersion(ctx context.Context, id, accountID string) (done bool, err error) {
	if _, err := q.exec(ctx, `SELECT FROM kubernetes_versions WHERE id = $1 FOR UPDATE`, id); err != nil {
		return false, err
	}
	n, err := q.exec(ctx, `
		UPDATE kubernetes_versions SET removed = now()
		WHERE id = $1 AND removed IS NULL AND NOT EXISTS (SELECT FROM clusters WHERE version_id = $1 AND removed IS NULL)
			AND NOT EXISTS (SELECT FROM jobs WHERE status = 0 AND args->>'versionid' = kubernetes_versions.id::text)`, id)
	if err != nil || n == 0 {
		return false, err
	}
	return true, q.versionChanged(ctx, "deleteKubernetesSupportedVersion", id, accountID)
}
