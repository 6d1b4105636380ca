// Package secretbox seals secrets for a place that others may read, such as a
// database and its backups: with AES-256-GCM, each for its owner, under a key
// that the sealed form names but does not tell.
//
// The sealed form is a version byte, the key's id (8 bytes), a random nonce (12
// bytes), the ciphertext and its tag, over which goes the owner as additional data.
package secretbox

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	version = 1
	idSize  = 8

	// HeaderSize is how many bytes of the sealed form KeyID needs.
	HeaderSize = 1 + idSize
)

// ErrNotOpened is in every error of Open.
var ErrNotOpened = errors.New("the sealed secret cannot be opened")

// A Key seals and opens. The zero Key is none, and does neither.
type Key struct{ b [32]byte }

// NewKey returns a key that nobody can guess.
func NewKey() (k Key) {
	rand.Read(k.b[:]) //nolint:errcheck // it never fails
	return k
}

// UnmarshalText reads a key of 32 bytes in hex or in padded base64. Its error
// does not show the text.
func (k *Key) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	b, err := hex.DecodeString(s)
	if err != nil {
		b, err = base64.StdEncoding.Strict().DecodeString(s)
	}
	var key Key
	if err != nil || len(b) != copy(key.b[:], b) || len(b) != len(key.b) || key == (Key{}) {
		return errors.New("not 32 bytes in base64 or hex, such as `openssl rand -base64 32` makes")
	}
	*k = key
	return nil
}

// Text is the key as UnmarshalText reads it: for the file that keeps it.
func (k Key) Text() string { return base64.StdEncoding.EncodeToString(k.b[:]) }

// ID names the key without telling it.
func (k Key) ID() string { return hex.EncodeToString(k.id()) }

func (k Key) id() []byte {
	sum := sha256.Sum256(k.b[:])
	return sum[:idSize]
}

// String is for whoever prints a key by mistake.
func (k Key) String() string { return "key " + k.ID() }

// Equal reports whether two keys are the same.
func (k Key) Equal(other Key) bool { return subtle.ConstantTimeCompare(k.b[:], other.b[:]) == 1 }

// Seal returns the sealed form of secret, which Open opens for the same owner
// only. It is another one each time.
func (k Key) Seal(secret, owner string) ([]byte, error) {
	aead, err := k.aead()
	if err != nil {
		return nil, err
	}
	header := append([]byte{version}, k.id()...)
	return aead.Seal(header, nil, []byte(secret), []byte(owner)), nil
}

// Open returns the secret that was sealed for owner. It fails with ErrNotOpened
// when the key is another one, or the form or its owner was changed.
func (k Key) Open(sealed []byte, owner string) (string, error) {
	id, err := KeyID(sealed)
	if err != nil {
		return "", err
	}
	if id != k.ID() {
		return "", fmt.Errorf("%w: it is sealed with key %s, not %s", ErrNotOpened, id, k.ID())
	}
	aead, err := k.aead()
	if err != nil {
		return "", err
	}
	secret, err := aead.Open(nil, nil, sealed[HeaderSize:], []byte(owner))
	if err != nil {
		return "", fmt.Errorf("%w: it was changed, or is of another owner", ErrNotOpened)
	}
	return string(secret), nil
}

// KeyID returns the id of the key that opens the sealed form, of which it needs
// no more than the first HeaderSize bytes.
func KeyID(sealed []byte) (string, error) {
	switch {
	case len(sealed) < HeaderSize:
		return "", fmt.Errorf("%w: it is cut off", ErrNotOpened)
	case sealed[0] != version:
		return "", fmt.Errorf("%w: it is of version %d, which this release does not know", ErrNotOpened, sealed[0])
	}
	return hex.EncodeToString(sealed[1:HeaderSize]), nil
}

func (k Key) aead() (cipher.AEAD, error) {
	if k == (Key{}) {
		return nil, errors.New("there is no encryption key")
	}
	block, err := aes.NewCipher(k.b[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
