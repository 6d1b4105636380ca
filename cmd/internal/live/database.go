package live

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// NewDatabase makes an empty database, whose name begins with prefix, on the
// PostgreSQL that base is an address of. It returns its address and what drops
// it.
func NewDatabase(ctx context.Context, base, prefix string) (address string, drop func() error, err error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme == "" {
		return "", nil, errors.New("TEST_DATABASE_URL must be of the form postgres://user@host/database")
	}
	name := prefix + strings.ToLower(rand.Text())
	if err := execute(ctx, base, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() error {
		return execute(context.WithoutCancel(ctx), base, "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}

func execute(ctx context.Context, address, sql string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("database of the run: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("database of the run: %w", err)
	}
	return nil
}
