package jobs

import (
	"context"
	"errors"
	"slices"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// What the steps need to know of the world and of the records.

// cluster reads the job's cluster as it is recorded now.
func (r *run) cluster(ctx context.Context) (cks.ClusterView, error) {
	return r.store.View(ctx, r.job.ClusterID)
}

// machines is what exists in the cloud for a cluster.
type machines struct {
	asked time.Time // by the database's clock, before the cloud was
	byID  map[string]cks.Machine
}

// listMachines asks the cloud by way of list.
func listMachines(ctx context.Context, st *store.Store, list func(context.Context) ([]cks.Machine, error)) (machines, error) {
	asked, err := st.Now(ctx)
	if err != nil {
		return machines{}, err
	}
	found, err := list(ctx)
	if err != nil {
		return machines{}, err
	}
	m := machines{asked, make(map[string]cks.Machine, len(found))}
	for _, machine := range found {
		m.byID[machine.ID] = machine
	}
	return m, nil
}

// machines reads what exists in the cloud for a cluster.
func (r *run) machines(ctx context.Context, clusterID string) (machines, error) {
	return listMachines(ctx, r.store, func(ctx context.Context) (list []cks.Machine, err error) {
		err = r.call(ctx, "cannot list the VMs of the cluster", r.cfg.CallTimeout, func(ctx context.Context) (err error) {
			list, err = r.vms.Machines(ctx, clusterID)
			return err
		})
		return list, err
	})
}

// asObserved gives vms the states that the cloud shows. A machine that it does
// not have is as good as expunged.
func asObserved(vms []cks.VM, found machines) []cks.VM {
	seen := slices.Clone(vms)
	for i := range seen {
		seen[i].State = cks.VMExpunging
		if m, ok := found.byID[seen[i].ID]; ok {
			seen[i].State = m.State
		}
	}
	return seen
}

// nodeList reads the node objects of the job's cluster.
func (r *run) nodeList(ctx context.Context) (list []cks.Node, err error) {
	err = r.call(ctx, "cannot list the nodes of the cluster", r.cfg.CallTimeout, func(ctx context.Context) (err error) {
		list, err = r.nodes.Nodes(ctx, r.job.ClusterID)
		return err
	})
	return list, err
}

// chosen are the new VMs of the job that have not joined yet.
func chosen(vms []cks.VM) []cks.VM {
	return slices.DeleteFunc(slices.Clone(vms), func(v cks.VM) bool { return v.Phase != cks.Chosen })
}

// ofRole are those of vms that are of a node type.
func ofRole(vms []cks.VM, role cks.Role) []cks.VM {
	return slices.DeleteFunc(slices.Clone(vms), func(v cks.VM) bool { return v.Role != role })
}

// names are the node names of the VMs that are Kubernetes nodes.
func names(vms []cks.VM) []string {
	var list []string
	for _, v := range vms {
		if v.Role != cks.Etcd {
			list = append(list, v.NodeName())
		}
	}
	return list
}

// each asks f for every VM, a few at a time, and returns the first error after
// all have been asked: one VM's failure does not leave the others undecided.
func each(vms []cks.VM, f func(cks.VM) error) error {
	const atOnce = 4
	errs := make([]error, len(vms))
	slots := make(chan struct{}, atOnce)
	done := make(chan struct{})
	for i, v := range vms {
		go func() {
			slots <- struct{}{}
			defer func() {
				if p := recover(); p != nil {
					errs[i] = panicked(p)
				}
				<-slots
				done <- struct{}{}
			}()
			errs[i] = f(v)
		}()
	}
	for range vms {
		<-done
	}
	return firstError(errs)
}

// firstError prefers what is final, so that a job is not tried again for a
// failure that the next try would only repeat.
func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil && final(err) {
			return err
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// panicked makes an error of a panic in one of several calls at once, which
// would otherwise take the process down.
func panicked(p any) error {
	return &worldError{"a call to the cloud panicked", errors.New("internal error")}
}

// waitOr returns notYet, or failure once the job's deadline has passed.
func (r *run) waitOr(d time.Duration, failure error) error {
	if r.expired() {
		return failure
	}
	return notYet{d}
}

// lookAgain is for a wait that could not look: it goes on, until the job's
// deadline (cks.md §5.2.6), unless the answer is final.
func (r *run) lookAgain(ctx context.Context, err error) error {
	if !errors.As(err, new(*worldError)) || final(err) {
		return err
	}
	r.log.WarnContext(ctx, "cannot look, will look again", "err", err)
	r.say("cannot look whether to go on, will look again: %s", text(err))
	return r.waitOr(r.cfg.ReadyPoll, cks.Errorf(cks.Failed, "%s", text(err)))
}
