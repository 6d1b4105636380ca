package store

import (
	"context"
	"errors"

	"ckscale/internal/cks"
)

// Setting returns the value that was set for the account, else for everybody;
// set is false when neither was.
func (q *Queries) Setting(ctx context.Context, name, accountID string) (value string, set bool, err error) {
	value, err = scalar[string](ctx, q, `
		SELECT value FROM settings WHERE name = $1 AND (account_id IS NULL OR account_id = nullif($2, '')::uuid)
		ORDER BY account_id NULLS LAST LIMIT 1`, name, accountID)
	if errors.Is(err, errNone) {
		return "", false, nil
	}
	return value, err == nil, err
}

// Settings returns all values that were set, by name: for the account, else for
// everybody.
func (q *Queries) Settings(ctx context.Context, accountID string) (map[string]string, error) {
	type row struct{ name, value string }
	rows, err := all(ctx, q, func(r *row) []any { return []any{&r.name, &r.value} }, `
		SELECT name, value FROM settings WHERE account_id IS NULL OR account_id = nullif($1, '')::uuid
		ORDER BY account_id NULLS FIRST`, accountID)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, r := range rows {
		values[r.name] = r.value
	}
	return values, nil
}

// SetSetting sets a value for the account, or with "" for everybody, and writes
// the event of it, by the caller.
func (q *Queries) SetSetting(ctx context.Context, name, value, accountID, callerID string) error {
	return q.inTx(ctx, func(q *Queries) error {
		if _, err := q.exec(ctx, `
			INSERT INTO settings (name, account_id, value) VALUES ($1, nullif($3, '')::uuid, $2)
			ON CONFLICT (name, account_id) DO UPDATE SET value = excluded.value`, name, value, accountID); err != nil {
			return err
		}
		return q.addEvent(ctx, event{kind: cks.EventSetting, level: cks.LevelInfo, state: cks.Completed,
			text: cks.SettingChanged(name, value), caller: callerID})
	})
}
