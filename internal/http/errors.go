package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	nethttp "net/http"
	"strconv"
	"strings"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// contentType is that of every answer.
const contentType = "application/json; charset=UTF-8"

// errorKey is the top-level key of an error that belongs to no command.
const errorKey = "errorresponse"

// internalText is all that a client learns of an error of our own. CloudStack
// shows a root admin more (cks.md §2.9).
const internalText = "Internal error executing command, please contact your system administrator"

// maxErrorText bounds an error's text, in bytes; it may quote what was sent.
const maxErrorText = 4000

// Codes that nothing but this package makes.
const (
	noPath    cks.Code = "no_path"    // a path that is not served
	notPosted cks.Code = "not_posted" // a change that was not sent by POST
	noCommand cks.Code = "no_command" // a request in a session that names no command
	limited   cks.Code = "limited"    // too much at once; made by later
)

// wireCode is how a cks.Code looks to a client: HTTP status and errorcode, and
// CloudStack's own number (0 = left out).
type wireCode struct{ status, cloudStack int }

// wireCodes is the whole translation (cks.md §2.9). A code that is absent must
// not leave the server, and is treated as cks.Internal.
var wireCodes = map[cks.Code]wireCode{
	cks.Internal:     {530, 4250},
	cks.Failed:       {530, 4250},
	cks.Conflict:     {530, 4250},
	cks.Invalid:      {431, 4350},
	cks.Parameter:    {431, 9999},
	cks.UnknownID:    {431, 9999},
	cks.Malformed:    {430, 9999},
	cks.Unauthorized: {401, 0},
	cks.Unsupported:  {432, 9999},
	cks.Denied:       {531, 4365},
	cks.BadLogin:     {531, 0},
	cks.NoMethod:     {405, 9999},
	cks.TooLarge:     {431, 9999},
	cks.Unavailable:  {503, 9999},
	noPath:           {404, 9999},
	notPosted:        {400, 9999},
	noCommand:        {400, 0},
	limited:          {429, 4545},
}

// errorBody is what is under the one top-level key of an error.
type errorBody struct {
	UUIDList    []struct{} `json:"uuidList"`
	ErrorCode   int        `json:"errorcode"`
	CSErrorCode int        `json:"cserrorcode,omitempty"`
	ErrorText   string     `json:"errortext"`
}

// fail is the only place that writes an error.
func (s *server) fail(w nethttp.ResponseWriter, r *nethttp.Request, err error) {
	x := exchangeFrom(r.Context())
	code, text := s.describe(r.Context(), x, err)
	if e, ok := errors.AsType[laterError](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.after+time.Second-1)/time.Second)))
	}
	key := errorKey
	if x.command != nil && code != cks.Unsupported {
		key = responseKey(x.command.Name)
	}
	wire := wireCodes[code]
	body, err := encodeJSON(map[string]errorBody{key: {
		UUIDList:    []struct{}{},
		ErrorCode:   wire.status,
		CSErrorCode: wire.cloudStack,
		ErrorText:   text,
	}})
	if err != nil {
		panic(fmt.Sprintf("encode an error: %v", err)) // no value of these types can fail
	}
	w.Header().Set("X-Description", headerText(text))
	writeJSON(w, wire.status, body)
}

// describe returns the code and text that the client gets, and logs what the
// client is not told.
func (s *server) describe(ctx context.Context, x *exchange, err error) (cks.Code, string) {
	coded, ok := errors.AsType[*cks.CodedError](err)
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		s.log.DebugContext(ctx, "client went away", "command", x.name())
		return cks.Unavailable, "the request was cancelled"
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		s.log.WarnContext(ctx, "request took too long", "command", x.name(), "err", err)
		return cks.Unavailable, "the request took too long"
	case !ok || coded.Code == cks.Internal || wireCodes[coded.Code] == wireCode{}:
		s.log.ErrorContext(ctx, "request failed", "command", x.name(), "err", err)
		return cks.Internal, internalText
	case coded.Code == cks.Unavailable:
		s.log.WarnContext(ctx, "request could not be served", "command", x.name(), "err", err)
	case coded.Code == cks.UnknownID && x.command != nil:
		// CloudStack finds an unknown id while it reads parameters.
		return coded.Code, clip(x.command.unable("invalid value. %s", coded.Message).Error(), maxErrorText)
	}
	return coded.Code, clip(coded.Message, maxErrorText)
}

// unbound translates an error of the generated decoder. The parameters were
// checked before, so it means that the two read the document differently.
func (x *exchange) unbound(err error) error {
	if x.command == nil {
		return fmt.Errorf("bind the parameters of no command: %w", err)
	}
	if missing, ok := errors.AsType[*api.RequiredParamError](err); ok {
		return x.command.unable("missing parameter %s", missing.ParamName)
	}
	if bad, ok := errors.AsType[*api.InvalidParamFormatError](err); ok {
		return x.command.unable("invalid value for parameter %s", bad.ParamName)
	}
	if bad, ok := errors.AsType[*api.UnmarshalingParamError](err); ok {
		return x.command.unable("invalid value for parameter %s", bad.ParamName)
	}
	return x.command.unable("invalid parameters")
}

// writeJSON writes a whole answer.
func writeJSON(w nethttp.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails only when the client is gone
}

// encodeJSON encodes v with HTML characters left raw, as CloudStack does.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// rawHTML writes the HTML characters of encoded JSON raw, which the generated
// encoder escapes.
func rawHTML(in []byte) []byte {
	out := make([]byte, 0, len(in))
	for len(in) > 0 {
		i := bytes.IndexByte(in, '\\')
		if i < 0 {
			return append(out, in...)
		}
		out, in = append(out, in[:i]...), in[i:]
		if len(in) >= 6 {
			if c, ok := htmlEscapes[string(in[:6])]; ok {
				out, in = append(out, c), in[6:]
				continue
			}
		}
		n := min(2, len(in)) // an escaped backslash must not look like the start of another escape
		out, in = append(out, in[:n]...), in[n:]
	}
	return out
}

var htmlEscapes = map[string]byte{`\u003c`: '<', `\u003e`: '>', `\u0026`: '&'}

// headerText is an error's text as a header can hold it.
func headerText(s string) string {
	return clip(strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return ' '
		}
		return c
	}, s), 1000)
}
