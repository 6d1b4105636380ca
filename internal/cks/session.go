package cks

import "time"

// LoginRequest is login as sent.
type LoginRequest struct {
	Username string
	Password string
	Domain   string // path of the user's domain; "" is the root domain
	DomainID string // wins over Domain; may be empty
	From     string // address that it comes from
}

// Session is one that was just opened. Whoever has both its ID and its Key is
// the account.
type Session struct {
	ID, Key string
	Account Account
	Idle    time.Duration // how long it lasts when it is not used
	Server  string        // the server that opened it
}
