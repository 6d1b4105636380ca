package service

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/bcrypt"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// Limits of a password. The longest is what bcrypt looks at.
const (
	minPassword = 8  // characters
	maxPassword = 72 // bytes
)

// CheckPassword refuses what nobody should have for a password.
func CheckPassword(password string) error {
	switch {
	case !utf8.ValidString(password) || strings.ContainsFunc(password, unicode.IsControl):
		return cks.Errorf(cks.Invalid, "a password has no control characters")
	case utf8.RuneCountInString(password) < minPassword || len(password) > maxPassword:
		return cks.Errorf(cks.Invalid, "a password has at least %d characters and at most %d bytes", minPassword, maxPassword)
	case password == "password": // cmk's default: a wrong signature would end in a login (spec/clients.md §5)
		return cks.Errorf(cks.Invalid, "this is the password that clients try by themselves")
	}
	return nil
}

// SetPassword gives the account another password, and ends its sessions. It
// fails with cks.Invalid as CheckPassword does, and with cks.NotFound when there
// is no such account.
func SetPassword(ctx context.Context, st *store.Store, account, password string) error {
	if err := CheckPassword(password); err != nil {
		return err
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return fmt.Errorf("hash a password: %w", err)
	}
	return st.SetPassword(ctx, account, string(hash))
}

// EnsurePassword is SetPassword, unless that is the account's password already.
func EnsurePassword(ctx context.Context, st *store.Store, account, password string) error {
	_, hash, err := st.PasswordOf(ctx, account)
	if err != nil {
		return err
	}
	if newChecker().right(hash, password) {
		return nil
	}
	return SetPassword(ctx, st, account, password)
}

// checker compares passwords with hashes, a few at once: each comparison takes
// a processor for a while, and whoever guesses shall not have all of them.
type checker struct{ seats chan struct{} }

func newChecker() checker {
	return checker{make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// nobodys is the hash of a password that nobody has.
var nobodys = sync.OnceValue(func() string {
	hash, err := bcrypt.GenerateFromPassword([]byte(strings.Repeat("\x00", maxPassword)), bcrypt.DefaultCost)
	if err != nil {
		panic(err) // only for a password that is too long
	}
	return string(hash)
})

// check is right in its turn; it fails when ctx ends before.
func (c checker) check(ctx context.Context, hash, password string) (bool, error) {
	select {
	case c.seats <- struct{}{}:
		defer func() { <-c.seats }()
		return c.right(hash, password), nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// right reports whether the hash is the password's. It takes as long when there
// is no hash, which is no password's.
func (c checker) right(hash, password string) bool {
	none := hash == "" || len(password) > maxPassword
	if none {
		hash, password = nobodys(), ""
	}
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil && !none
}
