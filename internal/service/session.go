package service

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// sessionIdle is how long a session lasts that is not used, as with CloudStack.
const sessionIdle = 30 * time.Minute

// Login opens a session for whoever knows the account's password. It fails with
// cks.BadLogin, whatever is wrong, and as late for an account that does not
// exist or has no password as for a wrong password.
func (s *Service) Login(ctx context.Context, req cks.LoginRequest) (cks.Session, error) {
	account, hash, err := s.store.PasswordOf(ctx, req.Username)
	if err != nil && cks.CodeOf(err) != cks.NotFound {
		return cks.Session{}, err
	}
	right, err := s.passwords.check(ctx, hash, req.Password)
	if err != nil {
		return cks.Session{}, err
	}
	if !right || !inDomain(account, req) {
		return cks.Session{}, badLogin(req)
	}
	session := cks.Session{ID: rand.Text(), Key: sessionKey(), Account: account, Idle: sessionIdle, Server: s.set.ServerID}
	err = s.store.OpenSession(ctx, store.NewSession{
		ID: session.ID, Key: session.Key, AccountID: account.ID, PasswordHash: hash, From: req.From, Idle: sessionIdle,
	})
	if cks.CodeOf(err) == cks.NotFound { // disabled, or another password, this very moment
		return cks.Session{}, badLogin(req)
	}
	return session, err
}

// sessionKey is 20 random bytes, as CloudStack writes them.
func sessionKey() string {
	b := make([]byte, 20)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// inDomain reports whether the account is in the domain that was named.
func inDomain(a cks.Account, req cks.LoginRequest) bool {
	if req.DomainID != "" {
		return strings.EqualFold(req.DomainID, a.DomainID)
	}
	return a.DomainPath == domainPath(req.Domain)
}

// domainPath is the path of a domain as it is stored: clients write "/", "/a",
// "a" or "ROOT/a".
func domainPath(sent string) string {
	const root = "ROOT"
	path := strings.Trim(sent, "/")
	switch {
	case path == "":
		return root
	case path == root, strings.HasPrefix(path, root+"/"):
		return path
	}
	return root + "/" + path
}

func badLogin(req cks.LoginRequest) error {
	domain := req.DomainID
	if domain == "" {
		domain = domainPath(req.Domain)
	}
	return cks.Errorf(cks.BadLogin, "Failed to authenticate user %s in domain %s; please provide valid credentials", req.Username, domain)
}

// Session returns the account of the session id whose key is key. It fails with
// cks.Unauthorized when there is none; one that is asked for with another key
// is ended, since whoever does so does not belong to it.
func (s *Service) Session(ctx context.Context, id, key string) (cks.Account, error) {
	account, right, err := s.store.Session(ctx, id, key, sessionIdle)
	switch {
	case cks.CodeOf(err) == cks.NotFound:
		return cks.Account{}, cks.Errorf(cks.Unauthorized, "unable to verify user credentials and/or request signature")
	case err != nil:
		return cks.Account{}, err
	case right:
		return account, nil
	}
	if err := s.store.EndSession(ctx, id, false); err != nil {
		return cks.Account{}, err
	}
	return cks.Account{}, cks.Errorf(cks.Unauthorized, "unable to verify user credentials")
}

// Logout ends the session id. Where there is none there is nothing to do; with
// another key than its own it fails as Session does.
func (s *Service) Logout(ctx context.Context, id, key string) error {
	_, right, err := s.store.Session(ctx, id, key, sessionIdle)
	if cks.CodeOf(err) == cks.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.store.EndSession(ctx, id, right); err != nil {
		return err
	}
	if !right {
		return cks.Errorf(cks.Unauthorized, "unable to verify user credentials")
	}
	return nil
}
