package cks

// candidate is an offering that a request names for nodes of a type.
type candidate struct {
	scaling
	role  Role
	ref   string // as sent
	o     Offering
	found bool
}

// What every node needs.
const (
	minCores    = 2
	minMemoryMB = 2048
)

// offeringRules are check 11 a-f, applied to workers, then control, then etcd
// nodes.
var offeringRules = []check[candidate]{
	{"found", "cks.md §3.1 11a", func(k candidate) error {
		if !k.found {
			return Errorf(Invalid, "Failed to find service offering ID: %s", k.ref)
		}
		return nil
	}},
	{"not custom", "cks.md §3.1 11b", func(k candidate) error {
		if k.o.Custom() {
			return Errorf(Invalid, "Custom service offerings are not supported for Kubernetes clusters. Kubernetes cluster : %s, service offering : %s",
				k.c.Name, k.o.Name)
		}
		return nil
	}},
	{"large enough", "cks.md §3.1 11c", func(k candidate) error {
		if k.o.Cores < minCores || k.o.MemoryMB < minMemoryMB {
			return Errorf(Invalid, "Kubernetes cluster : %s cannot be scaled with service offering : %s, "+
				"Kubernetes cluster template(CoreOS) needs minimum %d vCPUs and %d MB RAM", k.c.Name, k.o.Name, minCores, minMemoryMB)
		}
		return nil
	}},
	{"vCPUs for the version", "cks.md §3.1 11d", func(k candidate) error {
		if v := k.View.Version; k.o.Cores < v.MinCores {
			return Errorf(Invalid, "Kubernetes cluster : %s cannot be scaled with service offering : %s, "+
				"associated Kubernetes version : %s needs minimum %d vCPUs", k.c.Name, k.o.Name, v.Name, v.MinCores)
		}
		return nil
	}},
	{"memory for the version", "cks.md §3.1 11e", func(k candidate) error {
		if v := k.View.Version; k.o.MemoryMB < v.MinMemoryMB {
			return Errorf(Invalid, "Kubernetes cluster : %s cannot be scaled with service offering : %s, "+
				"associated Kubernetes version : %s needs minimum %d MB RAM", k.c.Name, k.o.Name, v.Name, v.MinMemoryMB)
		}
		return nil
	}},
	{"not smaller while running", "cks.md §3.1 11f", func(k candidate) error {
		// Only an offering that is going to be used shrinks anything.
		if k.c.State != Running || k.newOffering(k.role) == "" {
			return nil
		}
		for _, old := range k.inUse(k.role) {
			if lesser(k.o, old) {
				return Errorf(Failed, "Kubernetes cluster cannot be scaled down for service offering. "+
					"Service offering : %s offers lesser resources as compared to service offering : %s of Kubernetes cluster : %s",
					k.o.Name, old.Name, k.c.Name)
			}
		}
		return nil
	}},
	// Upstream refuses here a cluster with running VMs on a hypervisor that
	// cannot resize them (cks.md §5.5). The simulator can, and there is no other.
}

// lesser reports whether a gives less memory or less computing power than b.
func lesser(a, b Offering) bool {
	return a.MemoryMB < b.MemoryMB || a.Cores*a.SpeedMHz < b.Cores*b.SpeedMHz
}

// offeringChecks is check 11: every rule for every node type.
func offeringChecks() []check[scaling] {
	var list []check[scaling]
	for _, role := range []Role{Worker, Control, Etcd} {
		for _, rule := range offeringRules {
			list = append(list, check[scaling]{"offering of " + string(role) + ": " + rule.name, rule.ref, func(s scaling) error {
				k, given := s.candidate(role)
				if !given {
					return nil
				}
				return rule.test(k)
			}})
		}
	}
	return list
}

// candidate returns the offering that the request names for nodes of type r:
// the type's entry, else serviceofferingid. It may be one that is not acted on.
func (s scaling) candidate(r Role) (k candidate, given bool) {
	k = candidate{scaling: s, role: r}
	if k.ref, given = entryFor(s.req.NodeOfferings, r); !given {
		if s.req.OfferingID == nil {
			return k, false
		}
		k.ref = *s.req.OfferingID
	}
	k.o, k.found = s.offeringOf(k.ref)
	return k, true
}

// offeringOf finds an offering by uuid or internal number.
func (s scaling) offeringOf(ref string) (Offering, bool) {
	if o, ok := offeringByRef(s.Offerings, ref); ok {
		return o, true
	}
	return offeringByRef(s.View.Offerings, ref)
}

// newDefault is the offering that the request gives the cluster as its default;
// empty when it gives none or the one that the cluster has. nodeofferings
// override it, even with nothing but an entry for "default".
func (s scaling) newDefault() string {
	if s.req.OfferingID == nil || len(s.req.NodeOfferings) > 0 {
		return ""
	}
	if id := s.canonical(*s.req.OfferingID); id != s.c.DefaultOffering {
		return id
	}
	return ""
}

// newOffering is the offering that the request gives nodes of type r in place
// of another one; empty when it gives none.
//
// A cluster that is asked for the default that it has keeps whatever its node
// types use (cks.md §7 D3). An offering named for a type is new when the record
// says otherwise, or when a VM does: an offering change that failed half-way is
// finished or taken back by asking for it. In Alert only the record decides,
// since offerings are not acted on there and clients send back what they were
// shown. Types without nodes are left alone (§7 E9).
func (s scaling) newOffering(r Role) string {
	id := s.newDefault()
	if ref, given := entryFor(s.req.NodeOfferings, r); given {
		id = s.canonical(ref)
	}
	if r == Etcd && s.c.EtcdNodes == 0 {
		return ""
	}
	if id != s.c.OfferingFor(r) {
		return id
	}
	other := func(v VM) bool { return v.Role == r && !v.External && v.OfferingID != id }
	if s.c.State != Alert && len(s.members(other)) > 0 {
		return id
	}
	return ""
}

// changesOffering reports whether the request changes any offering.
func (s scaling) changesOffering() bool { return len(s.newOfferings()) > 0 || s.newDefault() != "" }

// newOfferings are the offerings that the request changes, by node type; nil
// when there are none.
func (s scaling) newOfferings() map[Role]string {
	var m map[Role]string
	for _, r := range Roles {
		if id := s.newOffering(r); id != "" {
			if m == nil {
				m = map[Role]string{}
			}
			m[r] = id
		}
	}
	return m
}

// nextOffering is what a new node of type r gets once the request is carried out.
func (s scaling) nextOffering(r Role) string {
	if id := s.newOffering(r); id != "" {
		return id
	}
	return s.c.OfferingFor(r)
}

// inUse are the offerings that nodes of type r have by the record, and those
// that their VMs have.
func (s scaling) inUse(r Role) []Offering {
	ids := []string{s.c.OfferingFor(r)}
	for _, v := range s.members(func(v VM) bool { return v.Role == r && !v.External }) {
		ids = append(ids, v.OfferingID)
	}
	var all []Offering
	for _, id := range ids {
		if o, ok := s.offeringOf(id); ok {
			all = append(all, o)
		}
	}
	return all
}

// canonical is the uuid of the offering that ref names, or ref if it names none.
func (s scaling) canonical(ref string) string {
	if o, ok := s.offeringOf(ref); ok {
		return o.ID
	}
	return ref
}
