package cks

import "strings"

// NodeTemplate is one entry of nodetemplates; a missing field is nil.
type NodeTemplate struct {
	Node     *string `json:"node"`
	Template *string `json:"template"`
}

// createPlaceChecks are the rules about what the nodes of a new cluster boot
// from and what network they are in.
var createPlaceChecks = []check[creation]{
	{"node templates", "upstream", func(c creation) error {
		for _, e := range c.req.NodeTemplates {
			if err := checkNodeTemplate(e, c.Templates); err != nil {
				return err
			}
		}
		return nil
	}},
	{"node templates ready", "cks.md §3.1 12d", func(c creation) error {
		for _, r := range Roles {
			if t, given := c.templateFor(r); given {
				if err := templateReady(&t, c.req.Name, c.Zone.Name); err != nil {
					return err
				}
			}
		}
		return nil
	}},
	{"network's zone", "ours", func(c creation) error {
		if c.Network != nil && c.Network.ZoneID != c.Zone.ID {
			return Errorf(Invalid, "Network ID: %s is not in zone %s", c.Network.ID, c.Zone.Name)
		}
		return nil
	}},
	{"network free", "upstream", func(c creation) error {
		if c.Network != nil && c.Network.InUse {
			return Errorf(Invalid, "Network ID: %s is already under use by another Kubernetes cluster", c.Network.ID)
		}
		return nil
	}},
}

// checkNodeTemplate refuses an entry that is incomplete, of an unknown type or
// with a template that does not exist.
func checkNodeTemplate(e NodeTemplate, known map[string]Template) error {
	if isEmpty(e.Node) || isEmpty(e.Template) {
		return Errorf(Invalid, "Incomplete Node Type to template ID mapping: '%s' -> '%s'", orNull(e.Node), orNull(e.Template))
	}
	if _, ok := nodeTypes[strings.ToLower(*e.Node)]; !ok {
		return Errorf(Invalid, "The provided value '%s' for Node Type is invalid", *e.Node)
	}
	if _, ok := known[templateKey(*e.Template)]; !ok {
		return Errorf(Invalid, "Cannot find a template with ID %s", *e.Template)
	}
	return nil
}

// templateKey is the form of a template's id under which facts have it.
func templateKey(id string) string { return strings.ToLower(strings.TrimSpace(id)) }

// templateFor returns the template that nodetemplates names for nodes of type
// r. The last entry of a type wins.
func (c creation) templateFor(r Role) (t Template, given bool) {
	for _, e := range c.req.NodeTemplates {
		if e.Node != nil && e.Template != nil && nodeTypes[strings.ToLower(*e.Node)] == r {
			t, given = c.Templates[templateKey(*e.Template)], true
		}
	}
	return t, given
}

// templates are the ids of the templates by node type, of the types that there
// will be; nil when none has its own.
func (c creation) templates() map[Role]string {
	var ids map[Role]string
	for _, r := range Roles {
		if t, given := c.templateFor(r); given && (r != Etcd || c.etcd > 0) {
			if ids == nil {
				ids = map[Role]string{}
			}
			ids[r] = t.ID
		}
	}
	return ids
}
