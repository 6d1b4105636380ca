package http

import (
	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// encodeEvent returns an event's API object.
func encodeEvent(e cks.AuditEvent) api.Event {
	return api.Event{
		Id:           e.ID,
		Username:     e.Username,
		Type:         string(e.Type),
		Level:        string(e.Level),
		Description:  e.Description,
		Account:      ownName(e.Account),
		Projectid:    e.Account.ProjectID,
		Project:      e.Account.Project,
		Domainid:     e.Account.DomainID,
		Domain:       e.Account.Domain,
		Domainpath:   e.Account.DomainPath,
		Created:      date(e.Created),
		State:        string(e.State),
		Parentid:     e.ParentID,
		Resourceid:   e.ResourceID,
		Resourcetype: e.ResourceType,
		Resourcename: e.ResourceName,
	}
}
