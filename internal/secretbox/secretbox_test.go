package secretbox_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ckscale/internal/secretbox"
)

func key(t *testing.T, text string) (k secretbox.Key) {
	t.Helper()
	if err := k.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return k
}

var sixes = strings.Repeat("6", 64)

// What was sealed is opened for its owner, and shows nothing of the secret.
func TestSealedIsOpened(t *testing.T) {
	t.Parallel()
	k := secretbox.NewKey()
	for _, secret := range []string{"", "s", "secret-Σ", strings.Repeat("long", 1000)} {
		a, err := k.Seal(secret, "ann")
		if err != nil {
			t.Fatal(err)
		}
		b, err := k.Seal(secret, "ann")
		if err != nil || bytes.Equal(a, b) {
			t.Errorf("sealed twice, it is the same: %v", err)
		}
		if got, err := k.Open(a, "ann"); err != nil || got != secret {
			t.Errorf("opened: %q, %v", got, err)
		}
		if len(secret) > 1 && bytes.Contains(a, []byte(secret)) {
			t.Errorf("%q is in its sealed form", secret)
		}
		if id, err := secretbox.KeyID(a[:secretbox.HeaderSize]); err != nil || id != k.ID() || a[0] != 1 {
			t.Errorf("the sealed form names key %s, %v", id, err)
		}
	}
}

// A form that was changed anywhere, or is shown for another owner, or to
// another key, is not opened, and the error names no secret.
func TestWhatWasChangedIsNotOpened(t *testing.T) {
	t.Parallel()
	k := secretbox.NewKey()
	sealed, err := k.Seal("the-secret", "ann")
	if err != nil {
		t.Fatal(err)
	}
	closed := func(what string, k secretbox.Key, sealed []byte, owner, want string) {
		t.Helper()
		got, err := k.Open(sealed, owner)
		if !errors.Is(err, secretbox.ErrNotOpened) || got != "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "the-secret") {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		want := "changed"
		switch {
		case i == 0:
			want = "version 0"
		case i < secretbox.HeaderSize:
			want = "sealed with key "
		}
		closed(fmt.Sprint("byte ", i), k, bad, "ann", want)
		closed(fmt.Sprint("cut at ", i), k, sealed[:i], "ann", "")
	}
	closed("one byte more", k, append(bytes.Clone(sealed), 0), "ann", "changed")
	closed("another owner", k, sealed, "bob", "another owner")
	other := secretbox.NewKey()
	closed("another key", other, sealed, "ann", "sealed with key "+k.ID()+", not "+other.ID())
	if got, err := k.Open(sealed, "ann"); err != nil || got != "the-secret" {
		t.Errorf("%q, %v", got, err)
	}
}

// Without a key nothing is sealed.
func TestNoKeySealsNothing(t *testing.T) {
	t.Parallel()
	if sealed, err := (secretbox.Key{}).Seal("secret", "ann"); err == nil || sealed != nil {
		t.Errorf("%q, %v", sealed, err)
	}
}

// A key is 32 bytes in hex or base64. What is none is not shown.
func TestKeyAsText(t *testing.T) {
	t.Parallel()
	k := key(t, sixes)
	for _, same := range []string{sixes, strings.ToUpper(sixes), " " + sixes + "\n", k.Text(), k.Text() + "\n"} {
		if got := key(t, same); !got.Equal(k) || got.ID() != k.ID() {
			t.Errorf("%q is key %s", same, got.ID())
		}
	}
	if other := key(t, sixes[:63]+"7"); other.Equal(k) || other.ID() == k.ID() {
		t.Error("two keys are the same")
	}
	long := strings.Repeat("Zm9v", 11) // 33 bytes
	for _, bad := range []string{"", "password", strings.Repeat("x", 32), sixes[:62], sixes + "66", long, long[:40],
		strings.TrimRight(k.Text(), "="), strings.Repeat("0", 64)} {
		var got secretbox.Key
		err := got.UnmarshalText([]byte(bad))
		if err == nil || got != (secretbox.Key{}) || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, shown := range []string{fmt.Sprint(k), fmt.Sprintf("%+v", struct{ K secretbox.Key }{k}), fmt.Sprintf("the %s", k)} {
		if raw, err := hex.DecodeString(sixes); err != nil || strings.Contains(shown, "102 102") || strings.Contains(shown, string(raw)) || !strings.Contains(shown, k.ID()) {
			t.Errorf("printed as %s", shown)
		}
	}
}
