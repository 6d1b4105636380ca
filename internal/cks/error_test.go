package cks

import (
	"errors"
	"fmt"
	"testing"
)

// An error keeps its code and its text through wrapping, and its cause for logs.
func TestErrors(t *testing.T) {
	t.Parallel()
	base := errors.New("disk on fire")
	coded := Errorf(Unavailable, "database is not available: %w", base)
	wrapped := fmt.Errorf("start demo: %w", coded)
	if CodeOf(wrapped) != Unavailable || CodeOf(base) != Internal {
		t.Errorf("codes %s, %s", CodeOf(wrapped), CodeOf(base))
	}
	if !errors.Is(wrapped, base) || coded.Error() != "database is not available: disk on fire" {
		t.Errorf("%v", coded)
	}
}

// Clients match this text to mean "gone" (A06).
func TestUnknownEntity(t *testing.T) {
	t.Parallel()
	checkText(t, UnknownEntity("id", "not-a-uuid"), UnknownID, "Invalid parameter id value=not-a-uuid due to incorrect long value format, "+
		"or entity does not exist or due to incorrect parameter annotation for the field in api cmd class.")
}
