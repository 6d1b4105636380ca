package cks

import (
	"fmt"
	"slices"
)

// scalable are the states in which a scale request is looked at at all. What it
// may ask for in Alert, the alert checks say.
var scalable = []State{Created, Running, Stopped, Alert}

// stateChecks are check 8. A1-A7 keep the order of spec/cks.md §3.6, but A6
// comes before A4 (design.md §4.1): a control node that is down is told as such,
// even when it is the first one.
var stateChecks = []check[scaling]{
	{"state", "cks.md §3.1 8", func(s scaling) error {
		if !slices.Contains(scalable, s.c.State) {
			return Errorf(Conflict, "Kubernetes cluster %s is in %s state and can not be scaled", s.c.Name, s.c.State)
		}
		return nil
	}},
	inAlert("A1", func(s scaling) string {
		if s.changesOffering() || s.changesAutoscaling() {
			return "; only its size can be changed or nodes removed. Recover the cluster before changing its service offering or autoscaling"
		}
		return ""
	}),
	inAlert("A2", func(s scaling) string {
		if !s.resizes() && s.req.NodeIDs == nil {
			return "; only its size can be changed or nodes removed, and the request does neither"
		}
		return ""
	}),
	inAlert("A3", func(s scaling) string {
		if len(s.named(func(v VM) bool { return !v.OwnWorker() })) > 0 {
			return "; only worker nodes can be removed from it"
		}
		return ""
	}),
	inAlert("A6", func(s scaling) string {
		if len(s.members(func(v VM) bool { return v.Role != Worker && v.State.Down() })) > 0 {
			return " and a control or etcd node VM is down; recover the control plane before scaling the cluster"
		}
		return ""
	}),
	inAlert("A4", func(s scaling) string {
		// Scaling reaches the cluster by way of this node.
		if control := s.members(func(v VM) bool { return v.Role == Control }); len(control) == 0 || control[0].State != VMRunning {
			return " and its first control node VM is not running; start it before scaling the cluster"
		}
		return ""
	}),
	inAlert("A5", func(s scaling) string {
		// Every row counts, VMs that a failed scale-up left behind as well.
		if n := len(s.View.VMs); n != s.c.Nodes() {
			return fmt.Sprintf(" and has %d VMs for %d nodes; remove or recover them before scaling the cluster", n, s.c.Nodes())
		}
		return ""
	}),
	inAlert("A7", func(s scaling) string {
		// The cause of the Alert is then one that scaling does not cure.
		if len(s.members(func(v VM) bool { return v.OwnWorker() && v.State.Down() })) == 0 {
			return " but none of its worker node VMs is down; scaling will not recover it"
		}
		return ""
	}),
}

// inAlert makes a check that applies in Alert only. why says, after the prefix
// that all of these texts share, what is wrong.
func inAlert(name string, why func(scaling) string) check[scaling] {
	return check[scaling]{name, "cks.md §3.6 " + name, func(s scaling) error {
		if s.c.State != Alert {
			return nil
		}
		if w := why(s); w != "" {
			return Errorf(Conflict, "Kubernetes cluster %s is in Alert state%s", s.c.Name, w)
		}
		return nil
	}}
}
