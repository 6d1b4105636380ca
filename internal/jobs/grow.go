package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// planCapacity checks that the new workers fit, for the new VMs only (seed),
// with the offering that they will get (cks.md §7 D4, E8), and notes which
// nodes are not Ready though their VM is up: the wait does not count on those
// (D5).
func (r *run) planCapacity(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	c := view.Cluster
	if err := unstable(view); err != nil {
		return err
	}
	r.job.Notes.Wanted = r.job.Args.Size - c.Size
	if err := r.checkRoom(ctx, view, map[cks.Role]int{cks.Worker: r.job.Notes.Wanted}); err != nil {
		return err
	}
	found, err := r.machines(ctx, c.ID)
	if err != nil {
		return err
	}
	nodes, err := r.nodeList(ctx)
	if err != nil {
		return err
	}
	r.job.Notes.Absent = nil
	for _, v := range asObserved(view.VMs, found) {
		if v.Role != cks.Etcd && !v.State.Down() && !cks.NodeReadyByName(nodes, v.NodeName()) {
			r.job.Notes.Absent = append(r.job.Notes.Absent, v.NodeName())
		}
	}
	return nil
}

// planWholeCluster checks that all VMs of a new cluster fit.
func (r *run) planWholeCluster(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	c := view.Cluster
	return r.checkRoom(ctx, view, map[cks.Role]int{cks.Control: c.ControlNodes, cks.Etcd: c.EtcdNodes, cks.Worker: c.Size})
}

// checkRoom fails unless so many VMs of each role fit on the hosts.
func (r *run) checkRoom(ctx context.Context, view cks.ClusterView, want map[cks.Role]int) error {
	total := 0
	for _, n := range want {
		total += n
	}
	for role, n := range want {
		if n == 0 {
			continue
		}
		offering, err := r.store.Offering(ctx, view.Cluster.OfferingFor(role))
		if err != nil {
			return fmt.Errorf("offering of %s nodes: %w", role, err)
		}
		var room int
		err = r.call(ctx, "cannot plan capacity", r.cfg.CallTimeout, func(ctx context.Context) (err error) {
			room, err = r.vms.Room(ctx, offering.Cores, offering.MemoryMB)
			return err
		})
		if err != nil {
			return err
		}
		if room < total {
			return cks.Errorf(cks.Failed, "Scaling failed for Kubernetes cluster : %s in zone : %s, insufficient capacity: %d more VMs are wanted and %d fit",
				view.Cluster.Name, view.Zone.Name, total, room)
		}
	}
	return nil
}

// chooseNewWorkers names the new workers, in rows that a repeat finds again.
func (r *run) chooseNewWorkers(ctx context.Context, q *store.Queries) error {
	return r.chooseNew(ctx, q, map[cks.Role]int{cks.Worker: r.job.Notes.Wanted})
}

// chooseAllVMs names all VMs of a new cluster.
func (r *run) chooseAllVMs(ctx context.Context, q *store.Queries) error {
	c, err := q.ClusterByRef(ctx, r.job.ClusterID)
	if err != nil {
		return err
	}
	return r.chooseNew(ctx, q, map[cks.Role]int{cks.Control: c.ControlNodes, cks.Etcd: c.EtcdNodes, cks.Worker: c.Size})
}

func (r *run) chooseNew(ctx context.Context, q *store.Queries, count map[cks.Role]int) error {
	view, err := q.View(ctx, r.job.ClusterID)
	if err != nil {
		return err
	}
	c := view.Cluster
	var want []store.NewVM
	for _, role := range cks.Roles {
		for i := range count[role] {
			vm := store.NewVM{Role: role, OfferingID: c.OfferingFor(role), Prefix: cks.Stem(c.Name, c.ID, role, i+1)}
			if view.Version != nil && role != cks.Etcd {
				vm.NodeVersion = view.Version.Version
			}
			want = append(want, vm)
		}
	}
	_, err = q.ChooseNew(ctx, r.job, want)
	return err
}

// createAndStart makes the chosen VMs that do not exist, starts those that do
// not run, and waits until all run: one node type after the other, so that the
// etcd nodes of a new cluster are there before its control plane, and that
// before its workers (cks.md §8.3).
func (r *run) createAndStart(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil {
		return err
	}
	for _, role := range cks.Roles {
		if err := r.startAll(ctx, view, ofRole(vms, role)); err != nil {
			return err
		}
	}
	return nil
}

// startAll is createAndStart for some of the VMs.
func (r *run) startAll(ctx context.Context, view cks.ClusterView, vms []cks.VM) error {
	if len(vms) == 0 {
		return nil
	}
	found, err := r.machines(ctx, r.job.ClusterID)
	if err != nil {
		return err
	}
	what := func(v cks.VM) string {
		return fmt.Sprintf("Failed to start VM %s in the Kubernetes cluster : %s", v.Name, view.Cluster.Name)
	}
	err = each(vms, func(v cks.VM) error {
		m, exists := found.byID[v.ID]
		return r.call(ctx, what(v), r.cfg.CallTimeout, func(ctx context.Context) error {
			if !exists {
				spec := cks.MachineSpec{ID: v.ID, ClusterID: v.ClusterID, Name: v.Name, Role: v.Role, Cores: v.Cores, MemoryMB: v.MemoryMB, Version: v.NodeVersion}
				if err := r.vms.Create(ctx, spec); err != nil {
					return err
				}
			}
			if exists && (m.State == cks.VMRunning || m.State == cks.VMStarting || m.State == cks.VMError) {
				return nil
			}
			return r.vms.Start(ctx, v.ClusterID, v.ID)
		})
	})
	if err != nil {
		return err
	}
	if found, err = r.machines(ctx, r.job.ClusterID); err != nil {
		return err
	}
	var waiting []string
	for _, v := range vms {
		m, exists := found.byID[v.ID]
		if !exists { // made a moment ago: not listed yet, or destroyed by somebody
			waiting = append(waiting, v.Name)
			continue
		}
		if err := r.store.ObserveVM(ctx, v.ID, m, found.asked); err != nil {
			return err
		}
		switch {
		case m.State == cks.VMError:
			return cks.Errorf(cks.Failed, "%s: it is in %s state", what(v), m.State)
		case m.State != cks.VMRunning:
			waiting = append(waiting, v.Name)
		}
	}
	if len(waiting) > 0 {
		r.say("%d of %d new VMs are running; waiting for %s", len(vms)-len(waiting), len(vms), strings.Join(waiting, ", "))
		return r.waitOr(r.cfg.ReadyPoll, cks.Errorf(cks.Failed, "Failed to start VM %s in the Kubernetes cluster : %s: not running in time",
			strings.Join(waiting, ", "), view.Cluster.Name))
	}
	return nil
}

// attachISO gives the new VMs the binaries that they join with.
func (r *run) attachISO(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil {
		return err
	}
	return each(vms, func(v cks.VM) error {
		what := fmt.Sprintf("Failed to attach binaries ISO for VM : %s in the Kubernetes cluster name: %s", v.Name, view.Cluster.Name)
		return r.call(ctx, what, r.cfg.CallTimeout, func(ctx context.Context) error {
			return r.vms.AttachISO(ctx, v.ClusterID, v.ID)
		})
	})
}

// waitReadyCount waits until as many nodes are Ready as are expected to be up,
// counted anew on every look: a VM may be stopped or started meanwhile (seed).
func (r *run) waitReadyCount(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil {
		return err
	}
	found, err := r.machines(ctx, r.job.ClusterID)
	if err != nil {
		return r.lookAgain(ctx, err)
	}
	nodes, err := r.nodeList(ctx)
	if err != nil {
		return r.lookAgain(ctx, err)
	}
	if err := r.recordJoined(ctx, vms, nodes); err != nil {
		return err
	}
	expected := cks.ExpectedReady(asObserved(view.VMs, found), names(vms), r.job.Notes.Absent, nodes)
	ready := cks.ReadyCount(nodes)
	if ready == expected {
		return nil
	}
	r.log.DebugContext(ctx, "waiting for ready nodes", "ready", ready, "expected", expected)
	why := fmt.Sprintf("%d are ready and %d are expected", ready, expected)
	r.say("all new nodes are Ready; of the cluster's nodes %s", why)
	if missing := notReady(vms, nodes); len(missing) > 0 {
		r.sayReady(vms, nodes)
		why += "; of the new ones these are not: " + strings.Join(missing, ", ")
	}
	return r.waitOr(r.cfg.ReadyPoll, cks.Errorf(cks.Failed,
		"Scaling unsuccessful for Kubernetes cluster : %s as it does not have desired number of nodes in ready state: %s", view.Cluster.Name, why))
}

// notReady are the names of the nodes of vms that are not Ready.
func notReady(vms []cks.VM, nodes []cks.Node) []string {
	return slices.DeleteFunc(names(vms), func(name string) bool { return cks.NodeReadyByName(nodes, name) })
}

// waitNewNodes waits until every new node is Ready by name. The count alone
// can be made up by a node whose VM was just stopped and that Kubernetes still
// reports as Ready; the ISO taken out then, the new node could never join.
func (r *run) waitNewNodes(ctx context.Context) error {
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil {
		return err
	}
	nodes, err := r.nodeList(ctx)
	if err != nil {
		return r.lookAgain(ctx, err)
	}
	if r.job.Kind != cks.CreateCluster { // a new cluster is counted as a whole
		if err := r.recordJoined(ctx, vms, nodes); err != nil {
			return err
		}
	}
	missing := notReady(vms, nodes)
	if len(missing) == 0 {
		return nil
	}
	r.sayReady(vms, nodes)
	return r.waitOr(r.cfg.ReadyPoll, cks.Errorf(cks.Failed, "nodes never became ready: %s", strings.Join(missing, ", ")))
}

// recordJoined counts each new node when it is Ready, not at the end, so that
// size, VM list and reality agree at all times (cks.md §7 E1).
func (r *run) recordJoined(ctx context.Context, vms []cks.VM, nodes []cks.Node) error {
	for _, v := range chosen(vms) {
		if !cks.NodeReadyByName(nodes, v.NodeName()) {
			continue
		}
		err := r.store.InTx(ctx, func(q *store.Queries) error { return q.NodeJoined(ctx, r.job, v.ID, true) })
		if err != nil {
			return err
		}
	}
	return nil
}

// detachISO takes the binaries out of the new VMs. An ISO that cannot be
// detached does not undo a node that has joined.
func (r *run) detachISO(ctx context.Context) error {
	vms, err := r.store.JobVMs(ctx, r.job.ID)
	if err != nil {
		return err
	}
	return each(vms, func(v cks.VM) error {
		return r.call(ctx, "cannot detach the ISO from "+v.Name, r.cfg.CallTimeout, func(ctx context.Context) error {
			return gone(r.vms.DetachISO(ctx, v.ClusterID, v.ID))
		})
	})
}

// recordAllNodes counts the nodes of a new cluster.
func (r *run) recordAllNodes(ctx context.Context, q *store.Queries) error {
	vms, err := q.JobVMs(ctx, r.job.ID)
	if err != nil {
		return err
	}
	for _, v := range vms {
		if err := q.NodeJoined(ctx, r.job, v.ID, false); err != nil {
			return err
		}
	}
	return nil
}
