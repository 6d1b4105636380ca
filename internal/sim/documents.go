package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// update changes one of the simulator's own documents. fn may run more than
// once; an error that it returns is returned as it is.
func update[T any](ctx context.Context, mem Memory, key string, fn func(*T) error) error {
	var failed error
	err := mem.ChangeDocument(ctx, key, func(doc []byte, _ time.Time) ([]byte, time.Time, error) {
		var newDoc []byte
		newDoc, failed = rewritten(doc, fn)
		return newDoc, time.Time{}, failed
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("change %s: %w", key, err)
	}
	return nil
}

// rewritten is doc after fn.
func rewritten[T any](doc []byte, fn func(*T) error) ([]byte, error) {
	var v T
	if doc != nil {
		if err := json.Unmarshal(doc, &v); err != nil {
			return nil, err
		}
	}
	if err := fn(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// peek reads one of the simulator's own documents without its lock.
func peek[T any](ctx context.Context, mem Memory, key string) (*T, error) {
	v := new(T)
	doc, _, err := mem.ReadDocument(ctx, key)
	if err == nil && doc != nil {
		err = json.Unmarshal(doc, v)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return v, nil
}
