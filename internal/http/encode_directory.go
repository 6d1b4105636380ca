package http

import (
	"strconv"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// role is how the two roles are called.
type role struct{ kind, name string }

var roles = map[bool]role{true: {"Admin", "Root Admin"}, false: {"User", "User"}}

// encodeUser returns the API object of an account's one user.
func encodeUser(a cks.AccountEntry) api.User {
	return api.User{
		Id:          a.UserID,
		Username:    a.Name,
		State:       a.State(),
		Account:     a.Name,
		Accountid:   a.ID,
		Accounttype: a.Type(),
		Roletype:    roles[a.Admin].kind,
		Rolename:    roles[a.Admin].name,
		Domainid:    a.DomainID,
		Domain:      a.Domain,
		Created:     date(a.Created),
		Usersource:  "native",
		Isdefault:   isDefault(a),
	}
}

// isDefault reports whether the account is the one that is always there.
func isDefault(a cks.AccountEntry) bool { return a.Admin && a.Name == "admin" }

// encodeAccount returns an account's API object.
func encodeAccount(a cks.AccountEntry) api.UserAccount {
	out := api.UserAccount{
		Id:          a.ID,
		Name:        a.Name,
		Accounttype: a.Type(),
		Roletype:    roles[a.Admin].kind,
		Rolename:    roles[a.Admin].name,
		Domainid:    a.DomainID,
		Domain:      a.Domain,
		Domainpath:  a.DomainPath,
		State:       a.State(),
		Created:     date(a.Created),
		Isdefault:   isDefault(a),
		Vmtotal:     int64(a.Used.VMs),
		Cputotal:    int64(a.Used.Cores),
		Memorytotal: a.Used.MemoryMB,
		User:        []api.User{encodeUser(a)},
	}
	out.Vmlimit, out.Vmavailable = encodeLimit(a.Limits.VMs, a.Used.VMs)
	out.Cpulimit, out.Cpuavailable = encodeLimit(a.Limits.Cores, a.Used.Cores)
	out.Memorylimit, out.Memoryavailable = encodeLimit(a.Limits.MemoryMB, a.Used.MemoryMB)
	return out
}

// encodeLimit returns how much there may be, and how much of it is left.
func encodeLimit[T int | int64](limit *T, used T) (all, left string) {
	if limit == nil {
		const unlimited = "Unlimited"
		return unlimited, unlimited
	}
	return strconv.FormatInt(int64(*limit), 10), strconv.FormatInt(int64(max(0, *limit-used)), 10)
}

// encodeProject returns a project's API object.
func encodeProject(p cks.Project) api.Project {
	return api.Project{
		Id:                 p.ID,
		Name:               p.Name,
		Displaytext:        p.DisplayText,
		Domainid:           p.Account.DomainID,
		Domain:             p.Account.Domain,
		Projectaccountname: p.Account.Name,
		State:              cks.ProjectState,
		Created:            date(p.Created),
		Owner: all(p.Owners, func(a cks.Account) api.ProjectOwner {
			return api.ProjectOwner{Account: a.Name, Userid: a.UserID}
		}),
	}
}

// encodeSetting returns a setting's API object.
func encodeSetting(s cks.Setting) api.Configuration {
	return api.Configuration{
		Category:     s.Category,
		Name:         s.Name,
		Value:        s.Value,
		Defaultvalue: s.Default,
		Type:         string(s.Type),
		Scope:        s.Scope(),
		Id:           s.AccountID,
		Description:  s.Description,
		Isdynamic:    s.Dynamic,
	}
}
