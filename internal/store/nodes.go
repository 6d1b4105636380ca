package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ckscale/internal/cks"
)

// NewVM is a VM that a job wants.
type NewVM struct {
	Role        cks.Role
	OfferingID  string
	Prefix      string // of the name: "demo-node", "demo-control", "demo-etcd-1"
	NodeVersion string // empty for etcd
}

// ChooseNew adds a row for each VM that j wants, in that order, before anything
// of it is made. Asked again by the same job, it returns the rows that are
// there. It fails with ErrNotHeld.
//
// A name is PREFIX-HEX (spec/cks.md §8.1), HEX the time in milliseconds plus
// what it takes to be free. HEX only grows in a transaction, so two of them can
// not wait for each other's names in a circle.
func (q *Queries) ChooseNew(ctx context.Context, j cks.Job, want []NewVM) (chosen []cks.VM, err error) {
	err = q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		chosen, err = vmRows.where(ctx, q,
			"v.job_id = $1 AND v.removed IS NULL AND v.phase IN ('chosen', 'member')", j.ID)
		if err != nil || len(chosen) > 0 || len(want) == 0 {
			return err
		}
		stamp, err := scalar[int64](ctx, q, `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`)
		if err != nil {
			return err
		}
		for _, vm := range want {
			if stamp, err = q.chooseOne(ctx, j, vm, stamp); err != nil {
				return err
			}
		}
		chosen, err = vmRows.where(ctx, q, "v.job_id = $1 AND v.removed IS NULL", j.ID)
		return err
	})
	return chosen, err
}

// chooseOne adds vm under the first free name from stamp on, and returns the
// next stamp.
func (q *Queries) chooseOne(ctx context.Context, j cks.Job, vm NewVM, stamp int64) (int64, error) {
	for ; ; stamp++ {
		n, err := q.exec(ctx, `
			INSERT INTO vms (cluster_id, name, role, offering_id, state, phase, job_id, node_version)
			VALUES ($1, $2, $3, $4, 'Stopped', 'chosen', $5, $6)
			ON CONFLICT (name) DO NOTHING`,
			j.ClusterID, fmt.Sprintf("%s-%011x", vm.Prefix, stamp), vm.Role, vm.OfferingID, j.ID, vm.NodeVersion)
		if err != nil {
			return 0, err
		}
		if n == 1 {
			return stamp + 1, nil
		}
	}
}

// ChooseLeaving marks own workers of j's cluster as about to be removed. It
// fails with cks.Conflict, and marks none, when one of them is not a member
// that scaling may remove; with ErrNotHeld as always.
func (q *Queries) ChooseLeaving(ctx context.Context, j cks.Job, vmIDs []string) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		for _, id := range vmIDs {
			n, err := q.exec(ctx, `
				UPDATE vms SET phase = 'leaving', job_id = $3
				WHERE id = $1 AND cluster_id = $2 AND removed IS NULL AND role = 'worker' AND NOT external
					AND (phase = 'member' OR phase = 'leaving' AND job_id = $3)`,
				id, j.ClusterID, j.ID)
			if err != nil {
				return err
			}
			if n == 0 {
				return cks.Errorf(cks.Conflict, "VM %s is not a worker of the cluster that can be removed", id)
			}
		}
		return nil
	})
}

// NodeJoined makes a VM that j chose a member, and the cluster one larger if
// countIt. A member stays as it is. Errors as for phase.
func (q *Queries) NodeJoined(ctx context.Context, j cks.Job, vmID string, countIt bool) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		done, err := q.phase(ctx, j, vmID, cks.Chosen, cks.Member, `phase = 'member'`)
		if err != nil || !done {
			return err
		}
		if err := q.nodeEvent(ctx, j, cks.EventNodeAdd, vmID, cks.NodeAdded); err != nil || !countIt {
			return err
		}
		return q.resize(ctx, j, +1)
	})
}

// NodeDoomed leaves a VM that j chose to the scanner, to be destroyed. A doomed
// VM stays as it is. Errors as for phase.
func (q *Queries) NodeDoomed(ctx context.Context, j cks.Job, vmID string) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		_, err := q.phase(ctx, j, vmID, cks.Chosen, cks.Doomed, `phase = 'doomed', job_id = NULL`)
		return err
	})
}

// KeepNode makes a VM that j was about to remove a member again. A member stays
// as it is. Errors as for phase.
func (q *Queries) KeepNode(ctx context.Context, j cks.Job, vmID string) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		_, err := q.phase(ctx, j, vmID, cks.Leaving, cks.Member, `phase = 'member', job_id = NULL`)
		return err
	})
}

// phase moves a VM that j chose from one phase to another. done is false when
// it is there already. It fails with ErrNotHeld, with cks.NotFound when the
// cluster has no such VM, and with cks.Conflict when the VM is elsewhere.
func (q *Queries) phase(ctx context.Context, j cks.Job, vmID string, from, to cks.Phase, set string) (done bool, err error) {
	n, err := q.exec(ctx, `UPDATE vms SET `+set+`
		WHERE id = $1 AND job_id = $2 AND phase = $3 AND removed IS NULL`,
		vmID, j.ID, from)
	if err != nil || n == 1 {
		return n == 1, err
	}
	vm, err := q.vmOf(ctx, j, vmID)
	if err == nil && (vm.Phase != to || vm.Removed) {
		err = cks.Errorf(cks.Conflict, "VM %s is not %s by this job", vm.Name, from)
	}
	return false, err
}

// vmOf returns a VM of j's cluster, also a removed one; else cks.NotFound.
func (q *Queries) vmOf(ctx context.Context, j cks.Job, vmID string) (cks.VM, error) {
	vm, err := q.VMByRef(ctx, vmID)
	if err == nil && vm.ClusterID != j.ClusterID {
		err = cks.Errorf(cks.NotFound, "cluster has no VM %s", vmID)
	}
	return vm, err
}

// resize adds by to the size of j's cluster.
func (q *Queries) resize(ctx context.Context, j cks.Job, by int) error {
	_, err := q.exec(ctx, `UPDATE clusters SET size = size + $2, version = version + 1 WHERE id = $1`, j.ClusterID, by)
	return err
}

// NodeRemoved records that a VM of j's cluster is gone, and makes the cluster
// one smaller if it was counted. A removed VM stays as it is. It fails with
// ErrNotHeld, and with cks.NotFound when the cluster has no such VM.
func (q *Queries) NodeRemoved(ctx context.Context, j cks.Job, vmID string) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		type gone struct{ counted, joined bool } // one that never joined was no node
		g, err := one(ctx, q, func(g *gone) []any { return []any{&g.counted, &g.joined} }, `
			UPDATE vms SET removed = now(), state = 'Expunging', updated = now()
			WHERE id = $1 AND cluster_id = $2 AND removed IS NULL
			RETURNING role = 'worker' AND phase IN ('member', 'leaving'), phase IN ('member', 'leaving')`, vmID, j.ClusterID)
		if errors.Is(err, errNone) {
			_, err = q.vmOf(ctx, j, vmID)
			return err
		}
		if err == nil && g.joined {
			err = q.nodeEvent(ctx, j, cks.EventNodeRemove, vmID, cks.NodeRemoved)
		}
		if err == nil && g.counted {
			err = q.resize(ctx, j, -1)
		}
		return err
	})
}

// LeaveNode records that the node of a VM of j's cluster, which is gone, could
// not be deleted: the scanner sees to it. It fails with ErrNotHeld.
func (q *Queries) LeaveNode(ctx context.Context, j cks.Job, vmID string) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		_, err := q.exec(ctx, `UPDATE vms SET node_left = true WHERE id = $1 AND cluster_id = $2 AND removed IS NOT NULL`, vmID, j.ClusterID)
		return err
	})
}

// LeftNodes returns the VMs of the cluster whose nodes were left.
func (q *Queries) LeftNodes(ctx context.Context, clusterID string) ([]cks.VM, error) {
	return vmRows.where(ctx, q, "v.cluster_id = $1 AND v.node_left", clusterID)
}

// NodeDeleted records that a node that was left is gone.
func (q *Queries) NodeDeleted(ctx context.Context, vmID string) error {
	_, err := q.exec(ctx, `UPDATE vms SET node_left = false WHERE id = $1 AND node_left`, vmID)
	return err
}

// SetOfferingOf records another offering of a VM of j's cluster. It fails with
// ErrNotHeld, and with cks.NotFound when the cluster has no such VM.
func (q *Queries) SetOfferingOf(ctx context.Context, j cks.Job, vmID, offeringID string) error {
	return q.holding(ctx, j, func(q *Queries, _ cks.State) error {
		n, err := q.exec(ctx, `UPDATE vms SET offering_id = $3 WHERE id = $1 AND cluster_id = $2 AND removed IS NULL`,
			vmID, j.ClusterID, offeringID)
		if err == nil && n == 0 {
			return cks.Errorf(cks.NotFound, "cluster has no VM %s", vmID)
		}
		return err
	})
}

// Now is the time by the clock of the database.
func (q *Queries) Now(ctx context.Context) (time.Time, error) {
	return scalar[time.Time](ctx, q, `SELECT clock_timestamp()`)
}

// ObserveVM records the state and addresses that the world shows for a VM that
// is not removed, if they differ. asked is a time, taken from Now, before the
// world was asked: what was learnt before somebody else's later question is
// stale, and changes nothing. A VM keeps the addresses that it had while the
// world shows none.
func (q *Queries) ObserveVM(ctx context.Context, vmID string, m cks.Machine, asked time.Time) error {
	_, err := q.exec(ctx, `
		UPDATE vms SET state = $2, observed = $5, updated = CASE WHEN state = $2 THEN updated ELSE now() END,
			ip_address = coalesce(nullif($3, ''), ip_address), mac_address = coalesce(nullif($4, ''), mac_address)
		WHERE id = $1 AND removed IS NULL AND observed <= $5
			AND (state <> $2 OR ip_address <> coalesce(nullif($3, ''), ip_address)
				OR mac_address <> coalesce(nullif($4, ''), mac_address))`,
		vmID, m.State, m.IPAddress, m.MACAddress, asked)
	return err
}

// ObserveGone records that the world does not have v, which is not removed, in
// the place where v was when it was read. One that a job is making, or taking
// to another place, may not be there.
func (q *Queries) ObserveGone(ctx context.Context, v cks.VM, asked time.Time) error {
	_, err := q.exec(ctx, `
		UPDATE vms SET state = 'Expunging', observed = $3, updated = now()
		WHERE id = $1 AND place = $2 AND removed IS NULL AND observed <= $3 AND state <> 'Expunging'
			AND NOT (phase = 'chosen' OR external AND phase = 'leaving')`, v.ID, v.Place, asked)
	return err
}

// DropDoomed records that a doomed VM is gone; other VMs stay.
func (q *Queries) DropDoomed(ctx context.Context, vmID string) error {
	_, err := q.exec(ctx, `
		UPDATE vms SET removed = now(), state = 'Expunging', updated = now()
		WHERE id = $1 AND phase = 'doomed' AND removed IS NULL`, vmID)
	return err
}
