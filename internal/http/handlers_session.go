package http

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// Login asks for the account's password. Whoever guesses at one is slowed like
// those who guess at keys.
func (s *server) Login(ctx context.Context, req api.LoginRequestObject) (api.LoginResponseObject, error) {
	p, x := req.Params, exchangeFrom(ctx)
	if err := x.tries.at(loginWord + p.Username); err != nil {
		return nil, err
	}
	if err := x.tries.turn(ctx); err != nil {
		return nil, err
	}
	opened, err := s.svc.Login(ctx, cks.LoginRequest{
		Username: p.Username, Password: p.Password, Domain: p.Domain, DomainID: p.Domainid, From: address(x.tries.from),
	})
	if err != nil {
		return nil, err
	}
	x.tries.right()
	s.guard.pairs.add(pairing{keyDigest(sessionWord + opened.ID), x.tries.from}) // nobody guessed at this one
	x.setCookies(session{opened.ID, opened.Key})
	return api.Login200JSONResponse{Loginresponse: encodeLogin(opened)}, nil
}

func encodeLogin(s cks.Session) api.Login {
	return api.Login{
		Username:           s.Account.Name,
		Userid:             s.Account.UserID,
		Domainid:           s.Account.DomainID,
		Timeout:            int(s.Idle.Seconds()),
		Account:            s.Account.Name,
		Type:               map[bool]string{true: "1", false: "0"}[s.Account.Admin],
		Registered:         "false",
		Sessionkey:         s.Key,
		Is2faenabled:       "false",
		Is2faverified:      "true",
		Managementserverid: s.Server,
	}
}

// Logout ends the session that the request shows, if it shows one.
func (s *server) Logout(ctx context.Context, _ api.LogoutRequestObject) (api.LogoutResponseObject, error) {
	x := exchangeFrom(ctx)
	if x.session.id != "" {
		if err := s.svc.Logout(ctx, x.session.id, x.session.key); err != nil {
			return nil, err
		}
	}
	x.setCookies(session{})
	return api.Logout200JSONResponse{Logoutresponse: api.Logout{Description: "success"}}, nil
}
