package cks

import "time"

// AllProjects is the projectid that stands for every project.
const AllProjects = "-1"

// AccountEntry is an account as listAccounts and listUsers show it.
type AccountEntry struct {
	Account
	Enabled bool
	Limits  Limits
	Used    Usage
	Created time.Time
}

// State is the account's state, and its user's.
func (a AccountEntry) State() string {
	if a.Enabled {
		return "enabled"
	}
	return "disabled"
}

// Type is CloudStack's number for the kind of account.
func (a Account) Type() int {
	if a.Admin {
		return 1
	}
	return 0
}

// AccountFilter is listAccounts and listUsers, oldest first; empty fields do not
// filter.
type AccountFilter struct {
	ID      string
	UserID  string
	Name    string // exact
	State   string // enabled or disabled, in any case
	Type    *int
	Keyword string // part of the name, in any case
	Account string // account name, for admins
	ListAll bool
	Page    Page
}

// Project is what several accounts may use clusters in.
type Project struct {
	ID          string
	Name        string
	DisplayText string
	Account     Account   // that its clusters belong to
	Owners      []Account // members that the project is of
	Created     time.Time
}

// ProjectState is the state of every project.
const ProjectState = "Active"

// ProjectFilter is listProjects, oldest first.
type ProjectFilter struct {
	ID          string
	Name        string // exact
	DisplayText string // exact
	State       string
	Keyword     string // part of the name or of the display text, in any case
	Account     string // member's name, for admins
	ListAll     bool
	Page        Page
}

// Reach says which accounts' things a list shows: everybody's, unless it says
// otherwise.
type Reach struct {
	Accounts   []string // these only
	NoProjects bool     // not what belongs to projects
}
