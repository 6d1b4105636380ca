package cks

import "strings"

// sizeChecks are checks 12 and 13. They apply to another size than the current
// one; parameters keep 64 bits until the maximum has been checked (A14).
var sizeChecks = []check[scaling]{
	{"size: not stopped", "cks.md §3.1 12a", func(s scaling) error {
		if s.resizes() && s.c.State == Stopped {
			return s.inState()
		}
		return nil
	}},
	{"size: at least one", "cks.md §3.1 12b", func(s scaling) error {
		if s.resizes() && *s.req.Size < 1 {
			return Errorf(Invalid, "Kubernetes cluster : %s cannot be scaled for size, %d", s.c.Name, *s.req.Size)
		}
		return nil
	}},
	{"size: maximum", "cks.md §3.1 12c", func(s scaling) error {
		if s.resizes() && s.overMax(*s.req.Size) {
			return tooLarge(s.MaxSize)
		}
		return nil
	}},
	{"size: template", "cks.md §3.1 12d", func(s scaling) error {
		if !s.grows() {
			return nil
		}
		return templateReady(s.View.Template, s.c.Name, s.View.Zone.Name)
	}},
	// External nodes are counted but never removed by scaling (cks.md §7 E6), so
	// a size below their number cannot be reached. With none, "at least one"
	// already keeps one own worker.
	{"size: external nodes", "design.md §4.4", func(s scaling) error {
		if n := len(s.members(VM.externalWorker)); s.resizes() && *s.req.Size < int64(n) {
			return Errorf(Invalid, "Kubernetes cluster : %s cannot be scaled for size, %d: %d of its nodes are external. "+
				"Remove external nodes with removeNodesFromKubernetesCluster", s.c.Name, *s.req.Size, n)
		}
		return nil
	}},
	{"size: worker offering", "cks.md §5.1.6", func(s scaling) error {
		if _, found := s.offeringOf(s.nextOffering(Worker)); s.grows() && !found {
			return noOffering(s.c.Name, Worker)
		}
		return nil
	}},
	{"size: resource limits", "cks.md §3.1 13", func(s scaling) error {
		if !s.grows() {
			return nil
		}
		o, _ := s.offeringOf(s.nextOffering(Worker))
		n := int(*s.req.Size) - len(s.members(VM.worker)) // at most the maximum size, by the checks before
		if detail := s.Limits.Exceeded(s.Used, Usage{VMs: n, Cores: n * o.Cores, MemoryMB: int64(n) * int64(o.MemoryMB)}); detail != "" {
			return Errorf(Failed, "Resource limits prevent scaling the cluster: %s", detail)
		}
		return nil
	}},
}

// resizes reports whether another size than the current one is asked for.
func (s scaling) resizes() bool { return s.req.Size != nil && *s.req.Size != int64(s.c.Size) }

func (s scaling) grows() bool { return s.req.Size != nil && *s.req.Size > int64(s.c.Size) }

// overMax reports whether so many workers and the control nodes are more than
// the maximum; etcd nodes do not count. It cannot overflow.
func (s scaling) overMax(workers int64) bool {
	return workers > int64(s.MaxSize)-int64(s.c.ControlNodes)
}

func tooLarge(maxSize int) error {
	return Errorf(Invalid, "Maximum cluster size can not exceed %d. Please contact your administrator", maxSize)
}

func noOffering(cluster string, r Role) error {
	return Errorf(Failed, "The Kubernetes cluster %s does not have a service offering set for node type %s",
		cluster, strings.ToUpper(string(r)))
}

// templateReady refuses to make VMs from a template that is missing or not
// ready.
func templateReady(t *Template, cluster, zone string) error {
	switch {
	case t == nil:
		return Errorf(Invalid, "Invalid template associated with Kubernetes cluster : %s", cluster)
	case !t.Ready:
		return Errorf(Invalid, "Template : %s associated with Kubernetes cluster : %s is not in Ready state for datacenter : %s",
			t.Name, cluster, zone)
	}
	return nil
}
