package store

import (
	"context"
	"errors"
	"fmt"

	"ckscale/internal/cks"
)

// Credentials returns what a cluster's administrator logs in with; cks.NotFound
// when nobody has asked for it yet. An error without code says that its key
// cannot be opened.
func (q *Queries) Credentials(ctx context.Context, clusterID string) (cks.Credentials, error) {
	type kept struct {
		cks.Credentials
		sealed []byte
	}
	k, err := one(ctx, q, func(k *kept) []any { return []any{&k.CA, &k.Certificate, &k.sealed} },
		`SELECT ca, certificate, key_sealed FROM cluster_credentials WHERE cluster_id = $1`, clusterID)
	if errors.Is(err, errNone) {
		err = cks.Errorf(cks.NotFound, "no credentials of %s %s", clusterWord, clusterID)
	}
	if err != nil {
		return cks.Credentials{}, err
	}
	if k.Key, err = q.key.Open(k.sealed, clusterID); err != nil {
		return cks.Credentials{}, fmt.Errorf("credentials of %s %s: %w", clusterWord, clusterID, err)
	}
	return k.Credentials, nil
}

// AddCredentials keeps c for a cluster that has no credentials yet and is not
// removed; those of any other stay as they are.
func (q *Queries) AddCredentials(ctx context.Context, clusterID string, c cks.Credentials) error {
	sealed, err := q.key.Seal(c.Key, clusterID)
	if err != nil {
		return fmt.Errorf("credentials of %s %s: %w", clusterWord, clusterID, err)
	}
	_, err = q.exec(ctx, `
		INSERT INTO cluster_credentials (cluster_id, ca, certificate, key_sealed)
		SELECT id, $2, $3, $4 FROM clusters WHERE id = $1 AND removed IS NULL FOR SHARE
		ON CONFLICT (cluster_id) DO NOTHING`,
		clusterID, c.CA, c.Certificate, sealed)
	return err
}

// dropCredentials forgets the credentials of a cluster that is gone.
func (q *Queries) dropCredentials(ctx context.Context, clusterID string) error {
	_, err := q.exec(ctx, `DELETE FROM cluster_credentials WHERE cluster_id = $1`, clusterID)
	return err
}
