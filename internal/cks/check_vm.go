package cks

import (
	"regexp"
	"strings"
)

// DeployFacts is all that CheckDeploy has to know.
type DeployFacts struct {
	Zone     Zone      // the zero value: no such zone
	Offering Offering  // the zero value: no such offering
	Template *Template // nil: no such template
	Taken    bool      // the account has a VM of that name
	Limits   Limits    // of the caller
	Used     Usage     // by the caller
}

// deploying is one deploy request beside the facts.
type deploying struct {
	DeployFacts
	req DeployRequest
}

// CheckDeploy refuses a VM that cannot be made as was asked for.
func CheckDeploy(f DeployFacts, req DeployRequest) error {
	_, err := firstBroken(deployChecks, deploying{f, req})
	return err
}

// hostName is what a VM may be called: it becomes the name of a node.
var hostName = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

var deployChecks = []check[deploying]{
	{"name", "upstream", func(d deploying) error {
		if d.req.Name != "" && !hostName.MatchString(d.req.Name) {
			return Errorf(Invalid, "Invalid name. Vm name can contain ASCII letters 'a' through 'z', the digits '0' through '9', "+
				"and the hyphen ('-'), must be between 1 and 63 characters long, and can't start or end with \"-\" and can't start with digit")
		}
		return nil
	}},
	{"name is free", "upstream", func(d deploying) error {
		if d.Taken {
			return Errorf(Invalid, "There already exists a VM with the name: %s.", d.req.Name)
		}
		return nil
	}},
	{"display name", "ours", func(d deploying) error {
		if d.req.DisplayName != "" && !printable(d.req.DisplayName, maxDisplayName) {
			return Errorf(Invalid, "Invalid displayname: it needs at most %d printable characters", maxDisplayName)
		}
		return nil
	}},
	{"template", "upstream", func(d deploying) error {
		if d.Template == nil || !d.Template.Ready {
			return Errorf(Invalid, "Unable to use template %s: it is not in Ready state for datacenter : %s", d.req.TemplateID, d.Zone.Name)
		}
		return nil
	}},
	{"not custom", "ours", func(d deploying) error {
		if d.Offering.Custom() {
			return Errorf(Invalid, "Custom service offerings are not supported here, service offering ID: %s", d.Offering.ID)
		}
		return nil
	}},
	{"resource limits", "cks.md §3.1 13", func(d deploying) error {
		add := Usage{VMs: 1, Cores: d.Offering.Cores, MemoryMB: int64(d.Offering.MemoryMB)}
		if detail := d.Limits.Exceeded(d.Used, add); detail != "" {
			return Errorf(Failed, "Resource limits prevent creating the Instance: %s", detail)
		}
		return nil
	}},
}

const maxDisplayName = 255

// CheckDestroyVM refuses to destroy a VM that scaling or removing nodes has to
// take out of its cluster first. One that is only linked to a cluster, which
// others manage, can be destroyed.
func CheckDestroyVM(v VM, cluster string) error {
	if v.ClusterID != "" && !v.Linked {
		why := ""
		if v.External {
			why = " It is an external node: remove it with removeNodesFromKubernetesCluster first."
		}
		return Errorf(Conflict, "Instance is a part of a Kubernetes cluster: %s. Use Instance delete option from Kubernetes cluster details "+
			"or scale API for Kubernetes clusters with 'nodeids' to destroy the instance.%s", cluster, why)
	}
	return settled(v, "destroyed")
}

// What is being done with a VM of its owner's own that is in a phase.
var (
	changing     = map[Phase]string{Chosen: "created", Leaving: "destroyed", Doomed: "destroyed"}
	changingNode = map[Phase]string{Chosen: "added to a Kubernetes cluster", Leaving: "removed from a Kubernetes cluster"}
)

// settled refuses to touch a VM that a job is taking somewhere.
func settled(v VM, what string) error {
	if !v.Changing() || v.Removed {
		return nil
	}
	how := changing[v.Phase]
	if v.External {
		how = changingNode[v.Phase]
	}
	return Errorf(Conflict, "Instance %s is being %s and can not be %s", v.Name, how, what)
}

// HostNameOf is the host name of a VM that its owner did not name.
func HostNameOf(vmID string) string { return "VM-" + strings.ToLower(vmID) }
