package cks

// newcomer is the offering that nodes of a type of a new cluster would get.
type newcomer struct {
	creation
	role  Role
	ref   string // as sent; empty: none named
	o     Offering
	found bool
}

var createOfferingRules = []check[newcomer]{
	{"named", "design.md §4.5", func(k newcomer) error {
		if k.ref == "" {
			return noOffering(k.req.Name, k.role)
		}
		return nil
	}},
	{"found", "upstream", func(k newcomer) error {
		if !k.found {
			return Errorf(Invalid, "No service offering with ID: %s", k.ref)
		}
		return nil
	}},
	{"not custom", "upstream", func(k newcomer) error {
		if k.o.Custom() {
			return Errorf(Invalid, "Custom service offerings are not supported for creating clusters, service offering ID: %s", k.o.ID)
		}
		return nil
	}},
	{"large enough", "upstream", func(k newcomer) error {
		if k.o.Cores < minCores || k.o.MemoryMB < minMemoryMB {
			return Errorf(Invalid, "Kubernetes cluster cannot be created with service offering ID: %s, "+
				"Kubernetes cluster template(CoreOS) needs minimum %d vCPUs and %d MB RAM", k.o.ID, minCores, minMemoryMB)
		}
		return nil
	}},
	{"vCPUs for the version", "upstream", func(k newcomer) error {
		if k.o.Cores < k.Version.MinCores {
			return Errorf(Invalid, "Kubernetes cluster cannot be created with service offering ID: %s, "+
				"Kubernetes version ID: %s needs minimum %d vCPUs", k.o.ID, k.Version.ID, k.Version.MinCores)
		}
		return nil
	}},
	{"memory for the version", "upstream", func(k newcomer) error {
		if k.o.MemoryMB < k.Version.MinMemoryMB {
			return Errorf(Invalid, "Kubernetes cluster cannot be created with service offering ID: %s, "+
				"associated Kubernetes version ID: %s needs minimum %d MB RAM", k.o.ID, k.Version.ID, k.Version.MinMemoryMB)
		}
		return nil
	}},
}

// createOfferingChecks is every rule for every node type that there will be,
// and for the cluster's default, which may be no type's.
func createOfferingChecks() []check[creation] {
	var list []check[creation]
	for _, role := range []Role{Worker, Control, Etcd} {
		for _, rule := range createOfferingRules {
			list = append(list, check[creation]{"offering of " + string(role) + ": " + rule.name, rule.ref, func(c creation) error {
				if role == Etcd && c.etcd == 0 {
					return nil
				}
				return rule.test(c.candidate(role))
			}})
		}
	}
	for _, rule := range createOfferingRules[1:] {
		list = append(list, check[creation]{"default offering: " + rule.name, rule.ref, func(c creation) error {
			if c.req.OfferingID == nil {
				return nil
			}
			return rule.test(c.newcomer("", *c.req.OfferingID))
		}})
	}
	return list
}

// candidate is the type's entry in nodeofferings, else serviceofferingid.
func (c creation) candidate(r Role) newcomer {
	ref, given := entryFor(c.req.NodeOfferings, r)
	if !given && c.req.OfferingID != nil {
		ref = *c.req.OfferingID
	}
	return c.newcomer(r, ref)
}

func (c creation) newcomer(r Role, ref string) newcomer {
	k := newcomer{creation: c, role: r, ref: ref}
	k.o, k.found = offeringByRef(c.Offerings, ref)
	return k
}
