package service

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"ckscale/internal/cks"
)

// Whether an account exists, is enabled and has a password cannot be told: the
// answer is the same, and takes as long.
func TestLoginTellsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	s.account("none", false)
	s.account("off", false)
	s.account("ann", false)
	for _, name := range []string{"ann", "off"} {
		if err := SetPassword(t.Context(), s.st, name, "correct horse"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.st.SetEnabled(t.Context(), "off", false); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nobody", "none", "off", "ann"} {
		_, err := s.Login(t.Context(), cks.LoginRequest{Username: name, Password: "guess"})
		coded(t, err, cks.BadLogin, "Failed to authenticate user "+name+" in domain ROOT; please provide valid credentials")
	}
	_, err := s.Login(t.Context(), cks.LoginRequest{Username: "off", Password: "correct horse"})
	coded(t, err, cks.BadLogin, "")
	hash, err := bcrypt.GenerateFromPassword([]byte("correct horse"), bcrypt.DefaultCost)
	if err != nil {
		t.Fatal(err)
	}
	nobodys()
	fastest := func(hash, password string) time.Duration {
		best := time.Hour
		for range 5 {
			begin := time.Now()
			if newChecker().right(hash, password) {
				t.Errorf("%q is right", password)
			}
			best = min(best, time.Since(begin))
		}
		return best
	}
	known := fastest(string(hash), "guess")
	for what, took := range map[string]time.Duration{"no hash": fastest("", "guess"), "too long": fastest(string(hash), "correct horse"+strings.Repeat("x", 100))} {
		if took < known/10 { // it would be nothing
			t.Errorf("%s takes %s, a wrong password %s", what, took, known)
		}
	}
}

// A user is in his own domain only, however its path is written; its id counts
// more (spec/cks.md §1.8).
func TestLoginInADomain(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	ann := s.account("ann", false)
	if err := SetPassword(t.Context(), s.st, "ann", "correct horse"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		domain, id string
		in         bool
	}{
		{"", "", true}, {"/", "", true}, {"ROOT", "", true}, {"/ROOT/", "", true}, {"/other", "", false}, {"ROOT/a", "", false}, {"root", "", false},
		{"/other", ann.DomainID, true}, {"/", strings.ToUpper(ann.DomainID), true}, {"/", ann.ID, false}, {"/", "1", false},
	} {
		session, err := s.Login(t.Context(), cks.LoginRequest{Username: "ann", Password: "correct horse", Domain: c.domain, DomainID: c.id})
		if (err == nil) != c.in || err != nil && cks.CodeOf(err) != cks.BadLogin {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && (session.Account != ann || len(session.Key) != 27 || len(session.ID) < 26 || session.Idle != sessionIdle || session.Server != settings.ServerID) {
			t.Errorf("%+v: %+v", c, session)
		}
	}
	for sent, want := range map[string]string{"/a/b": "ROOT/a/b", "a": "ROOT/a", "ROOT/a/": "ROOT/a", "ROOTS": "ROOT/ROOTS"} {
		if got := domainPath(sent); got != want {
			t.Errorf("%s: %s", sent, got)
		}
	}
}

// Few passwords are looked at at once, and who has to wait for too long gives up.
func TestPasswordsAreLookedAtInTurn(t *testing.T) {
	t.Parallel()
	c := newChecker()
	for range cap(c.seats) {
		c.seats <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.check(ctx, "", "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("looked at beside the others: %v", err)
	}
	<-c.seats
	if right, err := c.check(t.Context(), "", "x"); right || err != nil || len(c.seats) != cap(c.seats)-1 {
		t.Errorf("%t, %v, %d seats are taken", right, err, len(c.seats))
	}
}

// A session that is asked for with another key is ended, whoever asks.
func TestWrongKeyEndsTheSession(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	s.account("ann", false)
	if err := SetPassword(t.Context(), s.st, "ann", "correct horse"); err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(id, key string) error{
		"session": func(id, key string) error { _, err := s.Session(t.Context(), id, key); return err },
		"logout":  func(id, key string) error { return s.Logout(t.Context(), id, key) },
	} {
		opened, err := s.Login(t.Context(), cks.LoginRequest{Username: "ann", Password: "correct horse"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Session(t.Context(), opened.ID, opened.Key); err != nil {
			t.Errorf("%s: the right key: %v", name, err)
		}
		coded(t, ask(opened.ID, ""), cks.Unauthorized, "unable to verify user credentials")
		_, err = s.Session(t.Context(), opened.ID, opened.Key)
		coded(t, err, cks.Unauthorized, "unable to verify user credentials and/or request signature")
	}
	if err := s.Logout(t.Context(), "no session", "k"); err != nil {
		t.Error(err)
	}
}
