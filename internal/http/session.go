package http

import (
	"cmp"
	nethttp "net/http"
	"strings"

	"ckscale/internal/cks"
)

// The cookies of a session, and the parameter that has to say the same as the
// second (cks.md §1.8).
const (
	idCookie   = "JSESSIONID"
	keyCookie  = "sessionkey"
	keyParam   = "sessionkey"
	cookiePath = "/client/api"
)

// session is what a request shows of one.
type session struct{ id, key string }

// sessionOf is what the request shows of a session; its id is "" when it shows
// none. The key is "" unless the cookie and the parameter agree: a page of
// somebody else's can make a browser send the cookies, but knows no key.
func sessionOf(r *nethttp.Request, params []pair) session {
	id, err := r.Cookie(idCookie)
	if err != nil {
		return session{}
	}
	s := session{id: id.Value}
	sent, _ := valueOf(params, keyParam)
	if key, err := r.Cookie(keyCookie); err == nil && key.Value == sent {
		s.key = sent
	}
	return s
}

// admitSession checks a session, and what is asked for in it. That a session is
// unknown is a failed attempt.
func (s *server) admitSession(r *nethttp.Request, path string, params []pair, tries *attempts, in session) error {
	ctx := r.Context()
	if err := tries.at(sessionWord + in.id); err != nil {
		return err
	}
	account, err := s.svc.Session(ctx, in.id, in.key)
	if cks.CodeOf(err) == cks.Unauthorized {
		return cmp.Or(tries.turn(ctx), err)
	}
	if err != nil {
		return err
	}
	tries.belongs()
	if name, err := commandName(path, params); err == nil && name == "" {
		exchangeFrom(ctx).caller = account
		return cks.Errorf(noCommand, "no command specified")
	}
	return s.admitKnown(r, path, params, account)
}

// What keeps the attempts at names and at sessions from those at API keys.
const (
	loginWord   = "login "
	sessionWord = "session "
)

// opener finds login and logout, which are known in any case, and ask nobody
// who he is (cks.md §1.2). It is nil for all other commands.
func (s *server) opener(path string, params []pair) *command {
	name, err := commandName(path, params)
	if err != nil {
		return nil
	}
	for _, c := range s.commands {
		if c.Open && strings.EqualFold(c.Name, name) {
			return c
		}
	}
	return nil
}

// admitOpener notes down what login and logout go by.
func (s *server) admitOpener(r *nethttp.Request, params []pair, tries *attempts, c *command) error {
	x := exchangeFrom(r.Context())
	x.command, x.session, x.tries, x.secure = c, sessionOf(r, params), tries, s.secure(r)
	if c.Name == "login" && r.Method != nethttp.MethodPost {
		return cks.Errorf(cks.NoMethod, "Please use HTTP POST to authenticate using this API")
	}
	return nil
}

// secure reports whether the client speaks TLS, with us or with our proxy.
func (s *server) secure(r *nethttp.Request) bool {
	return r.TLS != nil || s.isProxy(parseSender(r.RemoteAddr)) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// cookies are those that open a session, or with an empty one forget it. Pages
// do not see them, and other sites do not send them along.
func (x *exchange) setCookies(in session) {
	for _, c := range []nethttp.Cookie{{Name: idCookie, Value: in.id}, {Name: keyCookie, Value: in.key}} {
		c.Path, c.HttpOnly, c.SameSite, c.Secure = cookiePath, true, nethttp.SameSiteLaxMode, x.secure
		if c.Value == "" {
			c.MaxAge = -1
		}
		x.cookies = append(x.cookies, &c)
	}
}
