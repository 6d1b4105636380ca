package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ckscale/internal/cks"
)

// startAllVMs starts every VM of the cluster that does not run, and waits until
// all run. Somebody may stop one meanwhile: it is started again.
func (r *run) startAllVMs(ctx context.Context) error {
	view, found, err := r.look(ctx)
	if err != nil {
		return err
	}
	what := func(v cks.VM) string {
		return fmt.Sprintf("Failed to start VM %s in the Kubernetes cluster : %s", v.Name, view.Cluster.Name)
	}
	var waiting []cks.VM
	for _, v := range asObserved(members(view.VMs), found) {
		switch v.State {
		case cks.VMRunning:
		case cks.VMError, cks.VMDestroyed, cks.VMExpunging:
			return cks.Errorf(cks.Failed, "%s: it is in %s state", what(v), v.State)
		default:
			waiting = append(waiting, v)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	err = each(waiting, func(v cks.VM) error {
		if !v.State.Down() { // on its way; a later look tells where to
			return nil
		}
		return r.call(ctx, what(v), r.cfg.CallTimeout, func(ctx context.Context) error {
			return r.vms.Start(ctx, v.ClusterID, v.ID)
		})
	})
	if err != nil {
		return err
	}
	r.say("%d of %d VMs are running; waiting for %s", len(members(view.VMs))-len(waiting), len(members(view.VMs)), strings.Join(hosts(waiting), ", "))
	return r.waitOr(r.cfg.ReadyPoll, cks.Errorf(cks.Failed, "%s: not running in time", what(waiting[0])))
}

// waitAllNodes waits until every node is back by name: Kubernetes still reports
// one as Ready whose VM was stopped a moment ago, and started again. A VM that is down is
// not waited for: whoever stopped it does not want it to run.
func (r *run) waitAllNodes(ctx context.Context) error {
	view, found, err := r.look(ctx)
	if err != nil {
		return r.lookAgain(ctx, err)
	}
	vms := members(view.VMs)
	for _, v := range asObserved(vms, found) {
		if v.State.Down() {
			return cks.Errorf(cks.Failed, "Failed to start Kubernetes cluster : %s, VM %s is in %s state", view.Cluster.Name, v.Name, v.State)
		}
	}
	nodes, err := r.nodeList(ctx)
	if err != nil {
		return r.lookAgain(ctx, err)
	}
	missing := slices.DeleteFunc(names(vms), func(name string) bool { return cks.NodeBackByName(nodes, name) })
	if len(missing) == 0 {
		return nil
	}
	r.say("%d of %d nodes are Ready; waiting for %s", len(names(vms))-len(missing), len(names(vms)), strings.Join(missing, ", "))
	return r.waitOr(r.cfg.ReadyPoll, cks.Errorf(cks.Failed, "Failed to start Kubernetes cluster : %s, nodes never became ready: %s",
		view.Cluster.Name, strings.Join(missing, ", ")))
}

// stopAllVMs stops every VM of the cluster that is not down, and waits until all
// are. Somebody may start one meanwhile: it is stopped again.
func (r *run) stopAllVMs(ctx context.Context) error {
	view, found, err := r.look(ctx)
	if err != nil {
		return err
	}
	up := slices.DeleteFunc(asObserved(view.VMs, found), func(v cks.VM) bool { return v.State.Down() })
	if len(up) == 0 {
		return nil
	}
	what := fmt.Sprintf("Failed to stop all VMs in Kubernetes cluster : %s", view.Cluster.Name)
	err = each(up, func(v cks.VM) error {
		if v.State == cks.VMStopping {
			return nil
		}
		return r.call(ctx, what+", VM "+v.Name, r.cfg.CallTimeout, func(ctx context.Context) error {
			return gone(r.vms.Stop(ctx, v.ClusterID, v.ID, false))
		})
	})
	if err != nil {
		return err
	}
	r.say("%d of %d VMs are down; waiting for %s", len(view.VMs)-len(up), len(view.VMs), strings.Join(hosts(up), ", "))
	return r.waitOr(r.cfg.ReadyPoll, cks.Errorf(cks.Failed, "%s, these are not down in time: %s", what, strings.Join(hosts(up), ", ")))
}

// look reads the cluster and what exists of it, and records the states that the
// cloud shows.
func (r *run) look(ctx context.Context) (cks.ClusterView, machines, error) {
	view, err := r.cluster(ctx)
	if err != nil {
		return view, machines{}, err
	}
	found, err := r.machines(ctx, r.job.ClusterID)
	if err == nil {
		err = observe(ctx, r.store, view.VMs, found)
	}
	return view, found, err
}

// members are the VMs that belong to the cluster: no doomed ones.
func members(vms []cks.VM) []cks.VM {
	return slices.DeleteFunc(slices.Clone(vms), func(v cks.VM) bool { return v.Phase != cks.Member })
}

// hosts are the VMs' names.
func hosts(vms []cks.VM) []string {
	list := make([]string, len(vms))
	for i, v := range vms {
		list[i] = v.Name
	}
	return list
}
