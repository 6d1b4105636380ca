package cks

import (
	"errors"
	"fmt"
)

// Code says what kind of failure an error is. Only the http package turns a
// Code into a status; inside a job every failure is CloudStack's 530.
type Code string

// The codes. Their HTTP statuses and CloudStack numbers are one table in
// internal/http.
const (
	Internal     Code = "internal"     // 530/4250: ours; its text is never shown
	Failed       Code = "failed"       // 530/4250: an operation that failed, with a text for the client
	Conflict     Code = "conflict"     // 530/4250: the state does not allow it, or it changed meanwhile
	Invalid      Code = "invalid"      // 431/4350: a parameter's value is wrong
	Parameter    Code = "parameter"    // 431/9999: a parameter is missing or cannot be read
	UnknownID    Code = "unknown_id"   // 431/9999: an id that names nothing; made by UnknownEntity
	Malformed    Code = "malformed"    // 430/9999: map syntax
	Unauthorized Code = "unauthorized" // 401, no cserrorcode
	Unsupported  Code = "unsupported"  // 432/9999: unknown command, or not for this account
	Denied       Code = "denied"       // 531/4365: no access
	BadLogin     Code = "bad_login"    // 531, no cserrorcode: a name or a password that is not right
	NoMethod     Code = "no_method"    // 405/9999
	TooLarge     Code = "too_large"    // 431/9999: body or parameters over the limit
	Unavailable  Code = "unavailable"  // 503/9999: database lost, shutting down
	NotFound     Code = "not_found"    // the world or the store has no such thing; never leaves the server
)

// FailedCode is the errorcode of every failed job (spec/cks.md §2.4).
const FailedCode = 530

// CodedError is an error whose message may be shown to a client.
type CodedError struct {
	Code    Code
	Message string
	cause   error
}

// Error returns the message, which is meant for the client.
func (e *CodedError) Error() string { return e.Message }

// Unwrap returns what Errorf was given for %w, or nil.
func (e *CodedError) Unwrap() error { return e.cause }

// Errorf returns a *CodedError; a %w argument is kept for logs and errors.Is.
func Errorf(code Code, format string, args ...any) *CodedError {
	err := fmt.Errorf(format, args...)
	return &CodedError{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// UnknownEntity says that value, given for the parameter param, names nothing.
// Clients match this text to mean "gone" (spec/clients.md §1, A06).
func UnknownEntity(param, value string) *CodedError {
	return Errorf(UnknownID, "Invalid parameter %s value=%s due to incorrect long value format, or entity does not exist "+
		"or due to incorrect parameter annotation for the field in api cmd class.", param, value)
}

// CodeOf returns err's Code: Internal for any error that carries none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*CodedError](err); ok {
		return e.Code
	}
	return Internal
}
