package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ckscale/internal/store"
)

// healthcheck is for containers that have no shell.
func (p process) healthcheck(ctx context.Context, cfg config, args []string) (err error) {
	if len(args) > 0 {
		return errUsage
	}
	addr := cfg.Addr
	if _, port, err := net.SplitHostPort(addr); err == nil && port == "0" && cfg.AddrFile != "" {
		b, err := os.ReadFile(cfg.AddrFile)
		if err != nil {
			return err
		}
		addr = strings.TrimSpace(string(b))
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.scheme()+"://"+reachable(addr)+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := cfg.ownClient().Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", resp.Status)
	}
	return nil
}

// migrate is for operators: serve migrates by itself.
func (p process) migrate(ctx context.Context, cfg config, args []string) error {
	change, err := schemaChange(args)
	if err != nil {
		return err
	}
	return withDatabase(ctx, cfg, func(url string) error {
		if err := change(ctx, url); err != nil {
			return err
		}
		return withStore(ctx, url, func(st *store.Store) error { return p.printVersion(ctx, st) })
	})
}

// schemaChange is what the arguments of migrate ask for.
func schemaChange(args []string) (func(ctx context.Context, url string) error, error) {
	switch {
	case slices.Equal(args, []string{"up"}):
		return store.Migrate, nil
	case slices.Equal(args, []string{"version"}):
		return func(context.Context, string) error { return nil }, nil
	case len(args) != 2 || args[0] != "force":
		return nil, errUsage
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 0 || n > store.LatestVersion() {
		return nil, fmt.Errorf("%q is no version from 0 to %d: %w", args[1], store.LatestVersion(), errUsage)
	}
	return func(ctx context.Context, url string) error { return store.ForceVersion(ctx, url, n) }, nil
}

func (p process) printVersion(ctx context.Context, st *store.Store) error {
	version, dirty, err := st.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	note := ""
	if dirty {
		note = fmt.Sprintf(", cut off half-way: server migrate force %d, then server migrate up", version-1)
	}
	_, err = fmt.Fprintf(p.stdout, "schema version %d of %d%s\n", version, store.LatestVersion(), note)
	return err
}

func withStore(ctx context.Context, url string, fn func(*store.Store) error) error {
	st, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	defer st.Close()
	return fn(st)
}
