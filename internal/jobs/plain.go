package jobs

import (
	"context"
	"fmt"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// The steps of VMs that belong to no cluster. Id and name are stored with the
// job, so that a repeat finds its own machine.

// vm is the one that the job is about.
func (r *run) vm(ctx context.Context) (cks.VM, error) { return r.store.VMByRef(ctx, r.job.VMID) }

// planVM checks that the VM fits on the hosts.
func (r *run) planVM(ctx context.Context) error {
	v, err := r.vm(ctx)
	if err != nil {
		return err
	}
	var room int
	err = r.call(ctx, "cannot plan capacity", r.cfg.CallTimeout, func(ctx context.Context) (err error) {
		room, err = r.vms.Room(ctx, v.Cores, v.MemoryMB)
		return err
	})
	if err == nil && room < 1 {
		err = cks.Errorf(cks.Failed, "Unable to create a deployment for VM %s: insufficient capacity", v.Name)
	}
	return err
}

// createVM makes the machine, stopped.
func (r *run) createVM(ctx context.Context) error {
	v, err := r.vm(ctx)
	if err != nil {
		return err
	}
	return r.call(ctx, "Failed to create VM "+v.Name, r.cfg.CallTimeout, func(ctx context.Context) error {
		return r.vms.Create(ctx, cks.MachineSpec{ID: v.ID, ClusterID: v.Place, Name: v.Name, Role: v.Role, Cores: v.Cores, MemoryMB: v.MemoryMB})
	})
}

func (r *run) startDeployed(ctx context.Context) error {
	if r.job.Args.KeepStopped {
		return nil
	}
	return r.startVM(ctx)
}

func (r *run) waitDeployed(ctx context.Context) error {
	if r.job.Args.KeepStopped {
		return r.waitVMDown(ctx)
	}
	return r.waitVMRunning(ctx)
}

func (r *run) recordVM(ctx context.Context, q *store.Queries) error {
	return q.PlainSettled(ctx, r.job, false)
}

// dropVM destroys what a failed deployment made, or leaves it to the scanner.
func (r *run) dropVM(ctx context.Context) error {
	err := r.destroyPlain(ctx)
	if err != nil && r.canRetry(err) {
		return err
	}
	destroyed := err == nil
	if err := r.unlessStopped(ctx, err); err != nil {
		return err
	}
	if destroyed {
		return r.store.PlainRemoved(ctx, r.job)
	}
	return r.store.PlainSettled(ctx, r.job, true)
}

// destroyPlain expunges the machine.
func (r *run) destroyPlain(ctx context.Context) error {
	v, err := r.vm(ctx)
	if err != nil {
		return err
	}
	return r.call(ctx, fmt.Sprintf("Failed to destroy VM %s", v.Name), r.cfg.CallTimeout, func(ctx context.Context) error {
		return gone(r.vms.Destroy(ctx, v.Place, v.ID))
	})
}

func (r *run) recordDestroyed(ctx context.Context, q *store.Queries) error {
	return q.PlainRemoved(ctx, r.job)
}
