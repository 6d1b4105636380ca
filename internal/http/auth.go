package http

import (
	"cmp"
	"context"
	"crypto/hmac"
	nethttp "net/http"
	"strings"
	"unicode/utf8"

	"ckscale/internal/cks"
)

// callerFrom returns the account that asks. A handler always has one.
func callerFrom(ctx context.Context) cks.Account { return exchangeFrom(ctx).caller }

// refused is the one answer to every doubt about who asks, so that a guess
// teaches nothing.
func refused() error {
	return cks.Errorf(cks.Unauthorized, "unable to verify user credentials and/or request signature")
}

// admit finds the command that is meant and who asks, records both in the
// request's exchange, and returns the parameters to use. It stops at the first
// doubt, in the order of cks.md §1.7. An account is kept to its pace once it is
// known who asks, and not before the signature is checked as with CloudStack:
// nobody else can use it up.
func (s *server) admit(r *nethttp.Request, in received) ([]pair, error) {
	params, err := s.identify(r, in)
	if caller := exchangeFrom(r.Context()).caller; caller != (cks.Account{}) {
		err = cmp.Or(s.inPace(caller), err)
	}
	return params, err
}

func (s *server) identify(r *nethttp.Request, in received) ([]pair, error) {
	readings := in.readings()
	tries := s.guard.attempts(s.sender(r))
	if c := s.opener(in.path, readings[0]); c != nil {
		return readings[0], s.admitOpener(r, readings[0], tries, c)
	}
	key, secret, basic := r.BasicAuth()
	if basic && anyCase(readings[0], "signature") == "" {
		return readings[0], s.admitBasic(r, in.path, readings[0], tries, key, secret)
	}
	if shown := sessionOf(r, readings[0]); shown.id != "" && anyCase(readings[0], "signature") == "" && anyCase(readings[0], "apiKey") == "" {
		return readings[0], s.admitSession(r, in.path, readings[0], tries, shown)
	}
	x := exchangeFrom(r.Context())
	err := s.admitSigned(r, in.path, readings[0], tries)
	if err == nil || len(readings) == 1 {
		return readings[0], err
	}
	meant := x.command
	if s.admitSigned(r, in.path, readings[1], tries) == nil {
		return readings[1], nil
	}
	x.command = meant
	return nil, err
}

// inPace refuses what an account asks for too often (cks.md §1.9).
func (s *server) inPace(a cks.Account) error {
	if s.accounts == nil {
		return nil
	}
	if wait, ok := s.accounts.take(a.ID, s.now(), 0); !ok {
		return later(wait, "The given user has reached his/her account api limit, please retry after [%d] ms.")
	}
	return nil
}

// admitSigned checks the signature. Without a known command nobody is asked
// for, so an unknown one is 401 here, too.
func (s *server) admitSigned(r *nethttp.Request, path string, params []pair, tries *attempts) error {
	x := exchangeFrom(r.Context())
	name, err := commandName(path, params)
	if err != nil {
		return err
	}
	if x.command = s.commands[name]; x.command == nil {
		return refused()
	}
	if err := s.posted(r, x.command); err != nil {
		return err
	}
	signature, key := anyCase(params, "signature"), anyCase(params, "apiKey")
	if signature == "" || key == "" {
		return refused()
	}
	if !s.fresh(params) {
		return refused()
	}
	account, secret, err := s.authenticate(r.Context(), tries, key)
	if err != nil {
		return err
	}
	if err := allowed(account, x.command); err != nil {
		return err
	}
	if err := tries.turn(r.Context()); err != nil {
		return err
	}
	if secret == "" || !s.signed(x.command, params, secret, signature) {
		return refused()
	}
	tries.right()
	x.caller = account
	return nil
}

// posted refuses a change that was not sent by POST, where that is enforced
// (cks.md §1.1).
func (s *server) posted(r *nethttp.Request, c *command) error {
	if s.enforcePost && c.Method == nethttp.MethodPost && r.Method != nethttp.MethodPost {
		return cks.Errorf(notPosted, "State changing command %s needs to be sent using POST request", c.Name)
	}
	return nil
}

// fresh checks the time of a signature. That of a version other than 3 has
// none, unless it is enforced (cks.md §1.7).
func (s *server) fresh(params []pair) bool {
	expires, now := anyCase(params, "expires"), s.now()
	if anyCase(params, "signatureVersion") != "3" {
		return !s.enforcePost
	}
	return !lapsed(expires, now) && (!s.enforcePost || lapsed(expires, now.Add(maxValidity)))
}

// signed checks a signature. If only the path names the command, it is signed
// as if it had been sent, because a signature must not be good for another
// command. A read may leave it out: nothing is changed by its reuse.
func (s *server) signed(c *command, params []pair, secret, signature string) bool {
	if _, sent := valueOf(params, "command"); sent {
		return signedBy(params, secret, signature)
	}
	if c.Method == nethttp.MethodGet && signedBy(params, secret, signature) {
		return true
	}
	return signedBy(append([]pair{{"command", c.Name}}, params...), secret, signature)
}

// admitBasic checks HTTP Basic credentials, API key and secret key. It is our
// extension, for people and scripts; like CloudStack's sessions, it knows who
// asks before it looks at the command, and says more.
func (s *server) admitBasic(r *nethttp.Request, path string, params []pair, tries *attempts, key, secret string) error {
	account, want, err := s.authenticate(r.Context(), tries, key)
	if err != nil {
		return err
	}
	if err := tries.turn(r.Context()); err != nil {
		return err
	}
	if want == "" || !hmac.Equal([]byte(secret), []byte(want)) {
		return refused()
	}
	tries.right()
	return s.admitKnown(r, path, params, account)
}

// admitKnown finds the command that account asks for, once it is sure who asks.
func (s *server) admitKnown(r *nethttp.Request, path string, params []pair, account cks.Account) error {
	x := exchangeFrom(r.Context())
	x.caller = account
	name, err := commandName(path, params)
	switch {
	case err != nil:
		return err
	case name == "":
		return cks.Errorf(cks.Parameter, "Unable to execute API command due to missing parameter command")
	}
	if x.command = s.commands[name]; x.command != nil {
		return cmp.Or(s.posted(r, x.command), allowed(account, x.command))
	}
	if account.Admin {
		return cks.Errorf(cks.Unsupported, "Unknown API command: %s", name)
	}
	return unavailable(account, name)
}

// authenticate looks an API key up. A key that no key can look like is not
// asked for: the database would refuse its bytes. An unknown key is a failed
// attempt, as a wrong secret is.
func (s *server) authenticate(ctx context.Context, tries *attempts, key string) (cks.Account, string, error) {
	if key == "" || !utf8.ValidString(key) || strings.ContainsFunc(key, isControl) {
		return cks.Account{}, "", refused()
	}
	if err := tries.at(key); err != nil {
		return cks.Account{}, "", err
	}
	account, secret, err := s.svc.Authenticate(ctx, key)
	if cks.CodeOf(err) == cks.Unauthorized {
		return cks.Account{}, "", cmp.Or(tries.turn(ctx), refused())
	}
	return account, secret, err
}

// commandName is the command that a request names: "" if none.
func commandName(path string, params []pair) (string, error) {
	name, sent := valueOf(params, "command")
	if path == "" {
		return name, nil
	}
	if sent && name != path {
		return "", cks.Errorf(cks.Parameter, "The parameter command is %s, but the path names %s", clip(name, 100), clip(path, 100))
	}
	return path, nil
}

// allowed is the role check (cks.md §1.9).
func allowed(a cks.Account, c *command) error {
	if c.AdminOnly && !a.Admin {
		return unavailable(a, c.Name)
	}
	return nil
}

func unavailable(a cks.Account, name string) error {
	return cks.Errorf(cks.Unsupported, "The API [%s] does not exist or is not available for the account for user id [%s].",
		name, a.UserID)
}

// isControl reports whether no parameter value may hold c. Line feed and
// carriage return are fine.
func isControl(c rune) bool { return c < 0x20 && c != '\n' && c != '\r' || c == 0x7f }

// checkText refuses control characters in values (cks.md §1.1).
func checkText(params []pair) error {
	for _, p := range params {
		if strings.ContainsFunc(p.value, isControl) {
			return cks.Errorf(cks.Parameter,
				"Received value containing illegal ASCII non-printable characters for parameter %s", clip(p.name, 100))
		}
	}
	return nil
}
