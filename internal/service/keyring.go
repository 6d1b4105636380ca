package service

import (
	"context"
	"sync"
	"time"

	"ckscale/internal/cks"
)

// How long and how many keys are remembered. A key that was changed or whose
// account was disabled is good for at most keyLife more.
const (
	keyLife = 5 * time.Second
	keyRoom = 1024
)

// keyring remembers the keys that have been looked up lately, so that a client
// that polls costs one read per poll. Only keys that exist are remembered:
// nobody can fill it with inventions, and a key made a moment ago works.
type keyring struct {
	mu   sync.Mutex
	keys map[string]knownKey
}

type knownKey struct {
	account cks.Account
	secret  string
	until   time.Time
}

func newKeyring() *keyring { return &keyring{keys: map[string]knownKey{}} }

// find returns the account and secret of apiKey, from memory or from lookUp.
func (k *keyring) find(ctx context.Context, apiKey string,
	lookUp func(context.Context, string) (cks.Account, string, error)) (cks.Account, string, error) {
	if known, ok := k.remembered(apiKey); ok {
		return known.account, known.secret, nil
	}
	asked := time.Now() // before the database says what is true then
	account, secret, err := lookUp(ctx, apiKey)
	if err != nil {
		return cks.Account{}, "", err
	}
	k.remember(apiKey, knownKey{account, secret, asked.Add(keyLife)})
	return account, secret, nil
}

func (k *keyring) remembered(apiKey string) (knownKey, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.keys[apiKey]
	return known, ok && time.Now().Before(known.until)
}

// remember makes room first: what has run out goes, and if that is not enough,
// everything does, which costs each account one read.
func (k *keyring) remember(apiKey string, known knownKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.keys[apiKey]; !ok && len(k.keys) >= keyRoom {
		now := time.Now()
		for key, old := range k.keys {
			if now.After(old.until) {
				delete(k.keys, key)
			}
		}
		if len(k.keys) >= keyRoom {
			clear(k.keys)
		}
	}
	k.keys[apiKey] = known
}

// Authenticate returns the account that apiKey belongs to and the secret that
// its signatures are made with. It fails with cks.Unauthorized when there is
// none or it is disabled; a secret that cannot be opened is an error of ours.
func (s *Service) Authenticate(ctx context.Context, apiKey string) (cks.Account, string, error) {
	account, secret, err := s.keys.find(ctx, apiKey, s.store.AccountByKey)
	if cks.CodeOf(err) == cks.NotFound {
		return cks.Account{}, "", cks.Errorf(cks.Unauthorized, "unable to verify user credentials and/or request signature")
	}
	return account, secret, err
}
