package jobs

import (
	"context"
	"fmt"
	"strings"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// checkVMs refuses to touch a cluster that has lost VMs (cks.md §5.5).
func (r *run) checkVMs(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err == nil && len(view.VMs) < view.Cluster.Nodes() {
		err = cks.Errorf(cks.Failed, "Scaling Kubernetes cluster : %s failed, it is in unstable state as not enough existing VM instances found!", view.Cluster.Name)
	}
	return err
}

// resizeVMs gives the VMs of each type that changes its new offering, one
// after the other. Each is recorded when it is done, so that the cluster's
// cores and memory are those of its VMs even if a later one fails.
func (r *run) resizeVMs(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	for _, v := range inTurn(view.VMs) {
		id := r.job.Args.Offerings[v.Role]
		if id == "" || v.OfferingID == id {
			continue
		}
		if r.expired() {
			return cks.Errorf(cks.Failed, "Scaling Kubernetes cluster %s failed, scaling action timed out", view.Cluster.Name)
		}
		offering, err := r.store.Offering(ctx, id)
		if err != nil {
			return fmt.Errorf("offering of %s: %w", v.Name, err)
		}
		what := fmt.Sprintf("Scaling Kubernetes cluster : %s failed, unable to scale cluster VM : %s", view.Cluster.Name, v.Name)
		err = r.call(ctx, what, r.cfg.CallTimeout, func(ctx context.Context) error {
			return r.vms.Resize(ctx, v.ClusterID, v.ID, offering.Cores, offering.MemoryMB)
		})
		if err != nil {
			return err
		}
		if err := r.store.InTx(ctx, func(q *store.Queries) error { return q.SetOfferingOf(ctx, r.job, v.ID, id) }); err != nil {
			return err
		}
	}
	return nil
}

// inTurn are the VMs that scaling may resize, type by type (cks.md §5.1.6) and
// the oldest first. It never acts on external nodes.
func inTurn(vms []cks.VM) []cks.VM {
	var list []cks.VM
	for _, role := range []cks.Role{cks.Control, cks.Etcd, cks.Worker} {
		for _, v := range vms {
			if v.Role == role && v.Phase == cks.Member && !v.External {
				list = append(list, v)
			}
		}
	}
	return list
}

// recordOfferings records what was asked, so that new nodes get it.
func (r *run) recordOfferings(ctx context.Context, q *store.Queries) error {
	return q.RecordOfferings(ctx, r.job, r.job.Args.Offerings, r.job.Args.DefaultOffering)
}

// setAutoscaler deploys or removes the cluster-autoscaler. When it fails the
// cluster is as it was (design.md §4.12).
func (r *run) setAutoscaler(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	return r.call(ctx, "Failed to autoscale Kubernetes cluster: "+view.Cluster.Name+" ", r.cfg.CallTimeout, func(ctx context.Context) error {
		return r.nodes.SetAutoscaler(ctx, r.job.ClusterID, *r.job.Args.Autoscaling)
	})
}

func (r *run) recordAutoscaling(ctx context.Context, q *store.Queries) error {
	return q.RecordAutoscaling(ctx, r.job, *r.job.Args.Autoscaling)
}

// destroyAllVMs destroys all VMs of a cluster that is deleted. Its external
// nodes are its owner's: they go back, and run on. All are tried; those that are
// gone are recorded even if others fail.
func (r *run) destroyAllVMs(ctx context.Context) error {
	view, err := r.cluster(ctx)
	if err != nil {
		return err
	}
	return each(view.VMs, func(v cks.VM) error {
		if v.External {
			return r.giveBack(ctx, v)
		}
		what := fmt.Sprintf("Failed to destroy VM %s of Kubernetes cluster : %s", v.Name, view.Cluster.Name)
		err := r.call(ctx, what, r.cfg.CallTimeout, func(ctx context.Context) error {
			return gone(r.vms.Destroy(ctx, v.Place, v.ID))
		})
		if err == nil && v.Role != cks.Etcd && !v.Linked {
			err = r.call(ctx, what, r.cfg.CallTimeout, func(ctx context.Context) error {
				return gone(r.nodes.Delete(ctx, v.ClusterID, v.NodeName()))
			})
		}
		if err != nil {
			return err
		}
		return r.store.InTx(ctx, func(q *store.Queries) error { return q.NodeRemoved(ctx, r.job, v.ID) })
	})
}

// startVM powers the job's VM on.
func (r *run) startVM(ctx context.Context) error {
	v, err := r.store.VMByRef(ctx, r.job.VMID)
	if err != nil {
		return err
	}
	return r.call(ctx, "Failed to start VM "+v.Name, r.cfg.CallTimeout, func(ctx context.Context) error {
		return r.vms.Start(ctx, v.Place, v.ID)
	})
}

// stopVM powers the job's VM off.
func (r *run) stopVM(ctx context.Context) error {
	v, err := r.store.VMByRef(ctx, r.job.VMID)
	if err != nil {
		return err
	}
	return r.call(ctx, "Failed to stop VM "+v.Name, r.cfg.CallTimeout, func(ctx context.Context) error {
		return r.vms.Stop(ctx, v.Place, v.ID, r.job.Args.Forced)
	})
}

func (r *run) waitVMRunning(ctx context.Context) error {
	return r.waitVM(ctx, cks.VMStarting, func(s cks.VMState) bool { return s == cks.VMRunning })
}

func (r *run) waitVMDown(ctx context.Context) error {
	return r.waitVM(ctx, cks.VMStopping, cks.VMState.Down)
}

// waitVM waits until the VM's state is as wanted, and fails when it is neither
// that nor on its way there.
func (r *run) waitVM(ctx context.Context, onTheWay cks.VMState, wanted func(cks.VMState) bool) error {
	v, err := r.store.VMByRef(ctx, r.job.VMID)
	if err != nil {
		return err
	}
	found, err := r.machines(ctx, v.Place)
	if err != nil {
		return err
	}
	m, exists := found.byID[v.ID]
	if !exists {
		return cks.Errorf(cks.Failed, "VM %s does not exist any more", v.Name)
	}
	if err := r.store.ObserveVM(ctx, v.ID, m, found.asked); err != nil {
		return err
	}
	switch {
	case wanted(m.State):
		return nil
	case m.State == onTheWay:
		r.say("VM %s is in %s state", v.Name, m.State)
		return r.waitOr(r.cfg.ReadyPoll, cks.Errorf(cks.Failed, "VM %s is still in %s state", v.Name, m.State))
	}
	return cks.Errorf(cks.Failed, "VM %s is in %s state; it was on its way from %s", v.Name, m.State, strings.ToLower(string(onTheWay)))
}

// The results of jobs, read in the transaction that ends them.

func clusterResult(r *run, ctx context.Context, q *store.Queries) (cks.JobResult, error) {
	view, err := q.View(ctx, r.job.ClusterID)
	return cks.JobResult{Cluster: &view}, err
}

func vmResult(r *run, ctx context.Context, q *store.Queries) (cks.JobResult, error) {
	view, err := q.VMView(ctx, r.job.VMID)
	return cks.JobResult{VM: &view}, err
}

func successResult(*run, context.Context, *store.Queries) (cks.JobResult, error) {
	return cks.JobResult{Success: true}, nil
}
