package cks

import (
	"slices"
	"strings"
)

// check is one rule of an ordered list. A request is refused with the error of
// the first rule that it breaks, so the order of a list is part of the protocol.
type check[F any] struct {
	name string        // unique in its list
	ref  string        // where the rule and its text come from
	test func(F) error // nil error: not broken
}

// firstBroken returns the name and the error of the first check that f breaks.
func firstBroken[F any](list []check[F], f F) (name string, err error) {
	for _, c := range list {
		if err := c.test(f); err != nil {
			return c.name, err
		}
	}
	return "", nil
}

// CheckScale decides what a scale request means, or why it is refused. The
// error is a *CodedError whose text is CloudStack's. Access to the cluster and
// whether uuids exist are checked before it, by whoever gathers the facts.
func CheckScale(f ScaleFacts, req ScaleRequest) (Change, error) {
	s := scaling{ScaleFacts: f, req: req, c: f.View.Cluster}
	if _, err := firstBroken(scaleChecks, s); err != nil {
		return Change{}, err
	}
	return s.change(), nil
}

// scaling is one scale request beside the facts: what the checks look at.
type scaling struct {
	ScaleFacts
	req ScaleRequest
	c   Cluster
}

// scaleChecks are the rules of a scale request, in order: the numbers of
// spec/cks.md §3.1, ours last within their group.
var scaleChecks = slices.Concat(
	requestChecks,     // 0-7
	stateChecks,       // 8
	autoscalingChecks, // 9
	nodeIDChecks,      // 10
	offeringChecks(),  // 11
	sizeChecks,        // 12, 13
)

var requestChecks = []check[scaling]{
	{"service enabled", "cks.md §3.1 0", func(s scaling) error {
		if s.ServiceDisabled {
			return Errorf(Failed, "Kubernetes Service plugin is disabled")
		}
		return nil
	}},
	{"node offerings", "cks.md §3.1 1", func(s scaling) error {
		return checkNodeOfferings(s.req.NodeOfferings, s.Offerings)
	}},
	{"cluster", "cks.md §3.1 2", func(s scaling) error {
		if s.c.ID == "" || s.c.Removed {
			return Errorf(Invalid, "Invalid Kubernetes cluster ID")
		}
		return nil
	}},
	{"zone", "cks.md §3.1 3", func(s scaling) error {
		if s.View.Zone.ID == "" {
			return Errorf(Failed, "Unable to find zone for Kubernetes cluster : %s", s.c.Name)
		}
		return nil
	}},
	{"something asked", "cks.md §3.1 4", func(s scaling) error {
		r := s.req
		if r.OfferingID == nil && len(r.NodeOfferings) == 0 && r.Size == nil && r.NodeIDs == nil && r.Autoscaling == nil {
			return Errorf(Invalid, "Kubernetes cluster %s cannot be scaled, either service offering or cluster size or "+
				"nodeids to be removed or autoscaling must be passed", s.c.Name)
		}
		return nil
	}},
	{"cloud managed", "cks.md §3.1 6", func(s scaling) error {
		if s.c.ExternalManaged {
			return Errorf(Invalid, "Scale kubernetes cluster is not supported for an externally managed cluster (%s)", s.c.Name)
		}
		return nil
	}},
	{"version", "cks.md §3.1 7", func(s scaling) error {
		if s.View.Version == nil {
			return Errorf(Failed, "Invalid Kubernetes version associated with Kubernetes cluster : %s", s.c.Name)
		}
		return nil
	}},
}

// checkNodeOfferings checks the entries one after the other.
func checkNodeOfferings(entries []NodeOffering, offerings map[string]Offering) error {
	for _, e := range entries {
		if isEmpty(e.Node) || isEmpty(e.Offering) {
			return Errorf(Invalid, "Incomplete Node Type to Service Offering ID mapping: '%s' -> '%s'",
				orNull(e.Node), orNull(e.Offering))
		}
		if _, known := nodeTypes[strings.ToLower(*e.Node)]; !known {
			return Errorf(Invalid, "The provided value '%s' for Node Type is invalid", *e.Node)
		}
		if _, found := offeringByID(offerings, *e.Offering); !found {
			return Errorf(Invalid, "Cannot find a service offering with ID %s", *e.Offering)
		}
	}
	return nil
}

func isEmpty(s *string) bool { return s == nil || *s == "" }

// orNull prints an absent value as upstream does.
func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

// members returns the cluster's counted VMs that are as wanted, in order of
// creation.
func (s scaling) members(wanted func(VM) bool) []VM {
	var vms []VM
	for _, v := range s.View.VMs {
		if v.counted() && wanted(v) {
			vms = append(vms, v)
		}
	}
	slices.SortStableFunc(vms, func(a, b VM) int { return compareSeq(a, b) })
	return vms
}

// inState refuses what the cluster's state does not allow.
func (s scaling) inState() error {
	return Errorf(Conflict, "Kubernetes cluster : %s is in %s state", s.c.Name, s.c.State)
}

// counted reports whether the VM is one of the cluster's nodes by its record.
// One that is Leaving is, too, but only while a job holds the cluster.
func (v VM) counted() bool { return !v.Removed && v.Phase == Member }

func (v VM) worker() bool         { return v.Role == Worker }
func (v VM) externalWorker() bool { return v.External } // no other is
