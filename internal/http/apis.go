package http

import (
	"context"
	"maps"
	"slices"
	"strings"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// ListApis describes the commands that the caller may use, as the document
// has them. Clients learn from it which commands to wait for.
func (s *server) ListApis(ctx context.Context, req api.ListApisRequestObject) (api.ListApisResponseObject, error) {
	var out []api.ApiCommand
	for _, name := range slices.Sorted(maps.Keys(s.commands)) {
		c := s.commands[name]
		if (req.Params.Name == "" || req.Params.Name == name) && (!c.AdminOnly || callerFrom(ctx).Admin) {
			out = append(out, encodeCommand(c))
		}
	}
	if out == nil {
		return nil, cks.Errorf(cks.Failed, "Api Discovery plugin was unable to find an api by that name or process any apis")
	}
	return api.ListApis200JSONResponse{Listapisresponse: api.ApiCommands{Count: len(out), Api: out}}, nil
}

func encodeCommand(c *command) api.ApiCommand {
	return api.ApiCommand{
		Name:        c.Name,
		Description: c.Description,
		Since:       c.Since,
		Isasync:     c.Async,
		Related:     strings.Join(c.Related, ","),
		Params:      all(c.Params, encodeParam), // never absent: cmk takes them for granted
		Response:    all(c.Response, encodeField),
	}
}

func encodeParam(p param) api.ApiParameter {
	return api.ApiParameter{
		Name:        p.Name,
		Type:        p.Type,
		Description: p.Description,
		Required:    p.Required,
		Length:      p.MaxLength,
		Since:       p.Since,
		Related:     p.Related,
	}
}

func encodeField(f field) api.ApiField {
	return api.ApiField{Name: f.Name, Type: f.Type, Description: f.Description, Response: each(f.Fields, encodeField)}
}
