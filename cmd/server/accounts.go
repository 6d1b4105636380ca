package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"ckscale/internal/store"
)

// The account commands work whether or not a server runs, and running servers
// follow within the time for which they remember a key.

// createAccount adds an account.
func (p process) createAccount(ctx context.Context, cfg config, args []string) error {
	name, err := onlyName(args)
	if err != nil {
		return err
	}
	if !accountName(name) {
		return fmt.Errorf("%q is no account name: 1 to 100 printable characters, none of them a space", name)
	}
	k := newKeys()
	err = p.withSecrets(ctx, cfg, func(q *store.Queries) error {
		_, err := q.AddAccount(ctx, name, k.API, k.Secret, false)
		return err
	})
	if err != nil {
		return fmt.Errorf("add account %s: %w", name, err)
	}
	return p.printKeys(cfg, name, k)
}

// rotateAccount gives an account new keys.
func (p process) rotateAccount(ctx context.Context, cfg config, args []string) error {
	name, err := onlyName(args)
	if err != nil {
		return err
	}
	if name == store.Admin && cfg.AdminAPIKey != "" {
		return errors.New("the keys of the account admin are those of the environment: " +
			"give all servers another CKSCALE_ADMIN_API_KEY and CKSCALE_ADMIN_SECRET_KEY, and restart them")
	}
	k := newKeys()
	err = p.withSecrets(ctx, cfg, func(q *store.Queries) error {
		if _, err := q.RotateKeys(ctx, name, k.API, k.Secret); err != nil || name != store.Admin {
			return err
		}
		return writeKeys(cfg, adminKeysFile(cfg), k) // or the next start would bring back the old ones
	})
	if err != nil {
		return fmt.Errorf("rotate the keys of account %s: %w", name, err)
	}
	return p.printKeys(cfg, name, k)
}

func (p process) printKeys(cfg config, name string, k keys) error {
	_, err := fmt.Fprintf(p.stdout, `# account %s; the secret key is not shown again
apikey=%s
secretkey=%s
# curl -u "%[2]s:%[3]s" '%[4]s?command=listKubernetesClusters'
`, name, k.API, k.Secret, cmp.Or(cfg.EndpointURL, cfg.apiURL(cfg.Addr)))
	return err
}

func (p process) disableAccount(ctx context.Context, cfg config, args []string) error {
	if len(args) == 1 && args[0] == store.Admin {
		return errors.New("the account admin cannot be disabled, since each start of a server enables it: rotate its keys instead")
	}
	return p.setEnabled(ctx, cfg, args, false)
}

func (p process) enableAccount(ctx context.Context, cfg config, args []string) error {
	return p.setEnabled(ctx, cfg, args, true)
}

func (p process) setEnabled(ctx context.Context, cfg config, args []string, enabled bool) error {
	name, err := onlyName(args)
	if err != nil {
		return err
	}
	if err := withAccounts(ctx, cfg, func(st *store.Store) error { return st.SetEnabled(ctx, name, enabled) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "account %s is %s\n", name, enabledWord(enabled))
	return err
}

// listAccounts shows no keys.
func (p process) listAccounts(ctx context.Context, cfg config, args []string) error {
	if len(args) > 0 {
		return errUsage
	}
	var list []store.AccountEntry
	err := withAccounts(ctx, cfg, func(st *store.Store) (err error) {
		list, err = st.Accounts(ctx)
		return err
	})
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tROLE\tSTATE\tSECRET KEY\tCREATED") // w keeps an error for Flush
	for _, a := range list {
		role, secret := "user", "in clear"
		if a.Admin {
			role = "root admin"
		}
		if a.Sealed {
			secret = "encrypted"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", a.Name, role, enabledWord(a.Enabled), secret, a.Created.UTC().Format(time.RFC3339))
	}
	return w.Flush()
}

// encryptAccounts seals what an older release has stored in clear.
func (p process) encryptAccounts(ctx context.Context, cfg config, args []string) error {
	if len(args) > 0 {
		return errUsage
	}
	n := 0
	err := p.withSecrets(ctx, cfg, func(q *store.Queries) (err error) {
		n, err = q.SealSecrets(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("encrypt secret keys: %w", err)
	}
	_, err = fmt.Fprintf(p.stdout, "encrypted %d secret keys\n", n)
	return err
}

func enabledWord(enabled bool) string {
	if enabled {
		return "enabled"
	}
	return "disabled"
}

func onlyName(args []string) (string, error) {
	if len(args) != 1 {
		return "", errUsage
	}
	return args[0], nil
}

func accountName(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= 100 &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) })
}

// withAccounts runs fn on the accounts of a server that may be running or not.
func withAccounts(ctx context.Context, cfg config, fn func(*store.Store) error) error {
	return withDatabase(ctx, cfg, func(url string) error {
		if err := store.Migrate(ctx, url); err != nil {
			return err
		}
		return withStore(ctx, url, fn)
	})
}

// withSecrets is withAccounts for what writes secrets: all of fn, or nothing.
func (p process) withSecrets(ctx context.Context, cfg config, fn func(*store.Queries) error) error {
	log := slog.New(slog.NewTextHandler(p.stderr, nil))
	return withAccounts(ctx, cfg, func(st *store.Store) error { return withKey(ctx, st, cfg, log, fn) })
}
