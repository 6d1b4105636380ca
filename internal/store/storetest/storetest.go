// Package storetest gives each test its own migrated database.
package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ckscale/internal/secretbox"
	"ckscale/internal/store"
	"ckscale/migrations"
)

// adminTime is how long making or dropping a database may take.
const adminTime = time.Minute

// New returns a Store on a migrated database of t's own, dropped when t ends.
func New(t testing.TB) *store.Store {
	t.Helper()
	return open(t, migrated(t))
}

// Two returns two Stores on one database like New's: those of two servers.
func Two(t testing.TB) (one, other *store.Store) {
	t.Helper()
	url := migrated(t)
	return open(t, url), open(t, url)
}

// migrated makes a database for t that is migrated, and returns its address.
func migrated(t testing.TB) string {
	t.Helper()
	tmpl, err := template()
	if err != nil {
		t.Fatal(err)
	}
	return database(t, "TEMPLATE "+tmpl+" STRATEGY FILE_COPY")
}

func open(t testing.TB, url string) *store.Store {
	t.Helper()
	st, err := store.Open(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	st.UseKey(Key)
	return st
}

// Key is the encryption key of New and Fixture.
var Key = secretbox.NewKey()

// URL returns the address of a fresh, empty database of t's own, dropped when t
// ends.
func URL(t testing.TB) string {
	t.Helper()
	return database(t, "TEMPLATE template0")
}

// process tells the databases of this process from those of others on the same
// server.
var (
	process = strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	serial  atomic.Int64
)

// database makes a database for t and returns its address.
func database(t testing.TB, how string) string {
	t.Helper()
	base, err := server()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("t_%s_%d", process, serial.Add(1))
	if err := admin(base, "CREATE DATABASE "+name+" "+how); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin(base, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return address(base, name)
}

// address is base with another database.
func address(base, database string) string {
	u, err := url.Parse(base)
	if err != nil {
		panic(err) // server has parsed it
	}
	u.Path = "/" + database
	return u.String()
}

// admin runs statements on a connection to base.
func admin(base string, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	conn, err := pgx.Connect(ctx, base)
	if err != nil {
		return fmt.Errorf("test database: %w", err)
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// templateLock keeps two processes from making the template at once.
const templateLock = 0x636b7363

// template returns the name of a database with the schema of this program. It
// is made once per content of the migrations and server, under another name
// until it is complete.
var template = sync.OnceValues(func() (string, error) {
	base, err := server()
	if err != nil {
		return "", err
	}
	name, err := templateName()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	conn, err := pgx.Connect(ctx, base)
	if err != nil {
		return "", fmt.Errorf("template database: %w", err)
	}
	defer conn.Close(ctx) // which frees the lock
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return "", fmt.Errorf("template database: %w", err)
	}
	var there bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
	if err != nil || there {
		return name, err
	}
	half := name + "_new"
	if err := admin(base, "DROP DATABASE IF EXISTS "+half+" WITH (FORCE)", "CREATE DATABASE "+half); err != nil {
		return "", err
	}
	if err := store.Migrate(ctx, address(base, half)); err != nil {
		return "", err
	}
	return name, admin(base, "ALTER DATABASE "+half+" RENAME TO "+name)
})

// templateName is a hash of the migrations.
func templateName() (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(migrations.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := migrations.FS.ReadFile(path)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(text), text)
		return err
	})
	return fmt.Sprintf("ckscale_%x", hash.Sum(nil)[:8]), err
}
