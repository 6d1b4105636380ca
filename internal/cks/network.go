package cks

import "time"

// Network is an isolated network that the VMs of a cluster are in. There is at
// most one cluster in it, as in CloudStack.
type Network struct {
	ID        string    `json:"id"`
	Seq       int64     `json:"seq"`
	Name      string    `json:"name"`
	AccountID string    `json:"accountid"`
	ZoneID    string    `json:"zoneid"`
	Made      bool      `json:"made,omitempty"` // for a cluster, with which it goes
	InUse     bool      `json:"inuse,omitempty"`
	Created   time.Time `json:"created"`
}

// NetworkView is a network with all that its API object shows.
type NetworkView struct {
	Network Network `json:"network"`
	Account Account `json:"account"`
	Zone    Zone    `json:"zone"`
}

// NetworkFilter is listNetworks; empty fields do not filter.
type NetworkFilter struct {
	ID      string
	Keyword string // part of the name, any case
	ZoneID  string
	Account string
	Project string // as in ClusterFilter
	Reach   Reach
	ListAll bool
	Page    Page
}

// TemplateFilter is listTemplates; empty fields do not filter.
type TemplateFilter struct {
	Which   string // templatefilter
	ID      string
	IDs     []string
	Name    string // exact
	Keyword string // part of the name, any case
	ZoneID  string // every template is in all zones
	Page    Page
}

// templatesShown says of each templatefilter whether the templates that there
// are belong to what it asks for. They are the service's own, featured and open
// to all; nobody has any of his own, and none is shared or only public.
var templatesShown = map[string]bool{
	"featured": true, "executable": true, "all": true,
	"self": false, "selfexecutable": false, "sharedexecutable": false, "community": false,
}

// TemplatesShown reports whether a list with that templatefilter
// shows the templates to the caller. It fails with Invalid for a filter that
// there is not, or not for the caller.
func TemplatesShown(which string, caller Account) (bool, error) {
	shown, known := templatesShown[which]
	switch {
	case !known:
		return false, Errorf(Invalid, "Please specify a valid templatefilter: %s is none", which)
	case which == "all" && !caller.Admin:
		return false, Errorf(Invalid, "Filter all can be specified by admin only")
	}
	return shown, nil
}
