package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"ckscale/internal/service"
	"ckscale/internal/store"
)

// passwordAccount gives an account a password to log in with, or takes it away.
// Either ends the account's sessions.
func (p process) passwordAccount(ctx context.Context, cfg config, args []string) error {
	name, password, shown, err := p.passwordOf(args)
	if err != nil {
		return err
	}
	if name == store.Admin && cfg.AdminPasswd != "" {
		return errors.New("the password of the account admin is that of the environment: " +
			"give all servers another CKSCALE_ADMIN_PASSWORD, and restart them")
	}
	err = withAccounts(ctx, cfg, func(st *store.Store) error {
		if password == "" {
			return st.SetPassword(ctx, name, "")
		}
		return service.SetPassword(ctx, st, name, password)
	})
	if err != nil {
		return fmt.Errorf("password of account %s: %w", name, err)
	}
	switch {
	case password == "":
		_, err = fmt.Fprintf(p.stdout, "account %s has no password\n", name)
	case shown:
		_, err = fmt.Fprintf(p.stdout, "# account %s; the password is not shown again\npassword=%s\n", name, password)
	default:
		_, err = fmt.Fprintf(p.stdout, "account %s has another password\n", name)
	}
	return err
}

// passwordOf is whose password is to be what: a new one, which has to be shown,
// unless the arguments say otherwise; "" is none.
func (p process) passwordOf(args []string) (name, password string, shown bool, err error) {
	switch {
	case len(args) == 1:
		return args[0], rand.Text(), true, nil
	case len(args) == 2 && args[1] == "-stdin":
		line, err := bufio.NewReader(io.LimitReader(p.stdin, 1<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", "", false, fmt.Errorf("read the password: %w", err)
		}
		password = strings.TrimRight(line, "\r\n")
		return args[0], password, false, service.CheckPassword(password)
	case len(args) == 2 && args[1] == "-none":
		return args[0], "", false, nil
	}
	return "", "", false, errUsage
}
