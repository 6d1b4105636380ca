package cks

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckCreate decides what a create request means, or why it is refused. The
// cluster that it returns is what is to be recorded: in Created, with its
// names, numbers of nodes and offerings; identifiers, owner and addresses are
// for the caller to fill in. The error is a *CodedError.
func CheckCreate(f CreateFacts, req CreateRequest) (Cluster, error) {
	c := creation{CreateFacts: f, req: req, workers: orDefault(req.Size, 1),
		control: orDefault(req.ControlNodes, 1), etcd: orDefault(req.EtcdNodes, 0)}
	if _, err := firstBroken(createChecks, c); err != nil {
		return Cluster{}, err
	}
	return c.cluster(), nil
}

// creation is one create request beside the facts.
type creation struct {
	CreateFacts
	req                    CreateRequest
	workers, control, etcd int64
}

func orDefault(n *int64, d int64) int64 {
	if n == nil {
		return d
	}
	return *n
}

// The longest cluster name, and the first Kubernetes version that can have
// more than one control node.
const (
	maxClusterName = 63
	minVersionHA   = "1.16.0"
)

// createChecks are the rules of a create request, in order. The limits are
// those of spec/cks.md §8.6.
var createChecks = slices.Concat([]check[creation]{
	{"service enabled", "cks.md §3.1 0", func(c creation) error {
		if c.ServiceDisabled {
			return Errorf(Failed, "Kubernetes Service plugin is disabled")
		}
		return nil
	}},
	{"node offerings", "cks.md §3.1 1", func(c creation) error {
		return checkNodeOfferings(c.req.NodeOfferings, c.Offerings)
	}},
	{"name", "ours", func(c creation) error {
		if !printable(c.req.Name, maxClusterName) {
			return Errorf(Invalid, "Invalid name for the Kubernetes cluster name: %s (it needs 1 to %d printable characters)",
				strings.ToValidUTF8(c.req.Name, "\uFFFD"), maxClusterName)
		}
		return nil
	}},
	{"control nodes", "cks.md §8.6", func(c creation) error {
		if c.control < 1 {
			return Errorf(Invalid, "Invalid cluster control nodes count: %d", c.control)
		}
		return nil
	}},
	{"size", "cks.md §8.6", func(c creation) error {
		if c.workers < 1 {
			return Errorf(Invalid, "Invalid cluster size: %d", c.workers)
		}
		return nil
	}},
	{"etcd nodes", "cks.md §8.6", func(c creation) error {
		if c.etcd < 0 {
			return Errorf(Invalid, "Invalid cluster etcd nodes count: %d", c.etcd)
		}
		return nil
	}},
	{"maximum", "cks.md §8.6", func(c creation) error {
		// etcd nodes do not count towards the maximum, but are held to it by
		// themselves: there is no other bound on them.
		most := int64(c.MaxSize)
		if c.workers > most-c.control || c.etcd > most {
			return tooLarge(c.MaxSize)
		}
		return nil
	}},
	{"zone", "upstream", func(c creation) error {
		if c.Zone.ID == "" {
			return Errorf(Invalid, "Unable to find zone by ID: %s", c.req.ZoneID)
		}
		return nil
	}},
	{"version", "upstream", func(c creation) error {
		if c.Version == nil {
			return Errorf(Invalid, "Unable to find given Kubernetes version in supported versions")
		}
		return nil
	}},
	{"version enabled", "upstream", func(c creation) error {
		if c.Version != nil && !c.Version.Enabled {
			return Errorf(Invalid, "Kubernetes version ID: %s is in Disabled state", c.Version.ID)
		}
		return nil
	}},
	{"version for several control nodes", "cks.md §8.6", func(c creation) error {
		if c.control > 1 && !versionAtLeast(c.Version.Version, minVersionHA) {
			return Errorf(Invalid, "HA support is available only for Kubernetes version %s and above. Given version ID: %s is %s",
				minVersionHA, c.Version.ID, c.Version.Version)
		}
		return nil
	}},
	{"template", "cks.md §3.1 12d", func(c creation) error { return templateReady(c.Template, c.req.Name, c.Zone.Name) }},
}, createPlaceChecks, createOfferingChecks(), []check[creation]{
	{"resource limits", "cks.md §3.1 13", func(c creation) error {
		var add Usage
		for r, n := range map[Role]int64{Worker: c.workers, Control: c.control, Etcd: c.etcd} {
			k := c.candidate(r)
			add.VMs += int(n)
			add.Cores += int(n) * k.o.Cores
			add.MemoryMB += n * int64(k.o.MemoryMB)
		}
		if detail := c.Limits.Exceeded(c.Used, add); detail != "" {
			return Errorf(Failed, "Resource limits prevent creating the cluster: %s", detail)
		}
		return nil
	}},
})

// printable reports whether name is text of at most so many characters.
func printable(name string, most int) bool {
	return utf8.ValidString(name) && utf8.RuneCountInString(name) <= most && strings.TrimSpace(name) != "" &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// cluster is the record that an accepted request asks for.
func (c creation) cluster() Cluster {
	cluster := Cluster{
		Name: c.req.Name, Description: c.req.Description, State: Created,
		ZoneID: c.Zone.ID, VersionID: c.Version.ID, TemplateID: c.Template.ID, Templates: c.templates(),
		Size: int(c.workers), ControlNodes: int(c.control), EtcdNodes: int(c.etcd),
		Offerings: map[Role]string{}, Keypair: c.req.Keypair, CSI: c.req.CSI,
	}
	if c.Network != nil {
		cluster.NetworkID, cluster.NetworkName = c.Network.ID, c.Network.Name
	}
	if c.req.OfferingID != nil {
		cluster.DefaultOffering = c.newcomer("", *c.req.OfferingID).o.ID
	}
	for _, r := range Roles {
		if _, given := entryFor(c.req.NodeOfferings, r); given && (r != Etcd || c.etcd > 0) {
			cluster.Offerings[r] = c.candidate(r).o.ID
		}
	}
	return cluster
}
