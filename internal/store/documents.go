package store

import (
	"context"
	"errors"
	"time"
)

// ChangeDocument gives fn the document under key, nil if there is none, and the
// time, and stores what fn returns: the new document (nil: none) and when it
// changes by itself (zero: never). Nobody else changes the document meanwhile,
// so fn must not wait for anything. It may be called more than once. When the
// document or its time changed, TopicWorld gets key. An error of fn changes
// nothing and comes back as it is.
func (q *Queries) ChangeDocument(ctx context.Context, key string,
	fn func(doc []byte, now time.Time) (newDoc []byte, due time.Time, err error)) error {
	return q.inTx(ctx, func(q *Queries) error {
		old, now, err := q.lockDocument(ctx, key)
		if err != nil {
			return err
		}
		doc, due, err := fn(old, now)
		if err != nil {
			return err
		}
		if doc == nil {
			if _, err := q.exec(ctx, `DELETE FROM world_documents WHERE key = $1`, key); err != nil {
				return err
			}
			if old != nil {
				q.Wake(TopicWorld, key)
			}
			return nil
		}
		at := &due
		if due.IsZero() {
			at = nil
		}
		n, err := q.exec(ctx, `
			UPDATE world_documents SET document = $2, due = $3
			WHERE key = $1 AND (document IS DISTINCT FROM $2 OR due IS DISTINCT FROM $3)`, key, string(withoutNUL(doc)), at)
		if n > 0 {
			q.Wake(TopicWorld, key)
		}
		return err
	})
}

// nothing is in the row of a document that its first writer is about to make.
const nothing = "null"

type document struct {
	doc []byte
	now time.Time
}

func documentFields(d *document) []any { return []any{&d.doc, &d.now} }

// lockDocument locks the row of key, which it makes if need be. The time is
// taken once the lock is held.
func (q *Queries) lockDocument(ctx context.Context, key string) ([]byte, time.Time, error) {
	for { // until nobody deletes the row between the two statements
		d, err := one(ctx, q, documentFields, `
			WITH d AS MATERIALIZED (SELECT document FROM world_documents WHERE key = $1 FOR UPDATE)
			SELECT document, clock_timestamp() FROM d`, key)
		if err == nil {
			if string(d.doc) == nothing {
				d.doc = nil
			}
			return d.doc, d.now, nil
		}
		if !errors.Is(err, errNone) {
			return nil, time.Time{}, err
		}
		_, err = q.exec(ctx, `INSERT INTO world_documents (key, document) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
			key, nothing)
		if err != nil {
			return nil, time.Time{}, err
		}
	}
}

// ReadDocument returns the document under key, nil if there is none, and the
// time.
func (q *Queries) ReadDocument(ctx context.Context, key string) (doc []byte, now time.Time, err error) {
	d, err := one(ctx, q, documentFields,
		`SELECT (SELECT document FROM world_documents WHERE key = $1), clock_timestamp()`, key)
	return d.doc, d.now, err
}

// DocumentKeys returns the keys of all documents, sorted.
func (q *Queries) DocumentKeys(ctx context.Context) ([]string, error) {
	return all(ctx, q, self[string], `SELECT key FROM world_documents ORDER BY key`)
}

// NextDocument returns which document changes by itself next and how long it is
// until then, 0 when it should have changed already; ok is false when none does.
func (q *Queries) NextDocument(ctx context.Context) (key string, in time.Duration, ok bool, err error) {
	type row struct {
		key string
		in  int64
	}
	r, err := one(ctx, q, func(r *row) []any { return []any{&r.key, &r.in} }, `
		SELECT key, (extract(epoch FROM due - clock_timestamp()) * 1000000)::bigint
		FROM world_documents WHERE due IS NOT NULL ORDER BY due LIMIT 1`)
	if errors.Is(err, errNone) {
		return "", 0, false, nil
	}
	return r.key, max(0, time.Duration(r.in)*time.Microsecond), err == nil, err
}
