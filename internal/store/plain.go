package store

import (
	"context"
	"errors"
	"time"

	"ckscale/internal/cks"
)

// NewPlainVM is a VM that its owner wants, of no cluster.
type NewPlainVM struct {
	ID, AccountID, ZoneID, OfferingID, TemplateID string
	Name, DisplayName, Keypair                    string
	NetworkID, NetworkName                        string
}

// AddPlainVM records a VM that is to be made by the job that DeployBy names. It
// fails with cks.Invalid when the account has a VM of that name.
func (q *Queries) AddPlainVM(ctx context.Context, vm NewPlainVM) error {
	_, err := q.exec(ctx, `
		INSERT INTO vms (id, name, host_name, display_name, keypair, role, offering_id, state, phase,
			account_id, zone_id, template_id, network_id, network_name)
		VALUES ($1, $1::uuid::text, $2, $3, $4, 'worker', $5, 'Starting', 'member', $6, $7, $8, $9, $10)`,
		vm.ID, vm.Name, vm.DisplayName, vm.Keypair, vm.OfferingID, vm.AccountID, vm.ZoneID, vm.TemplateID, vm.NetworkID, vm.NetworkName)
	if sqlState(err) == "23505" {
		return cks.Errorf(cks.Invalid, "There already exists a VM with the name: %s.", vm.Name)
	}
	return err
}

// HasVMNamed reports whether the account has a VM of that host name, in any
// case, that it named itself.
func (q *Queries) HasVMNamed(ctx context.Context, accountID, name string) (bool, error) {
	return scalar[bool](ctx, q, `SELECT EXISTS (
		SELECT FROM vms WHERE account_id = $1 AND lower(host_name) = lower($2) AND removed IS NULL)`, accountID, name)
}

// LockAccount lets one transaction at a time count what an account with limits
// uses and add to it.
func (q *Queries) LockAccount(ctx context.Context, id string) error {
	_, err := q.exec(ctx, `
		SELECT FROM accounts WHERE id = $1 AND num_nonnulls(max_vms, max_cores, max_memory) > 0 FOR NO KEY UPDATE`, id)
	return err
}

// LockVM keeps the row of a VM as it is until the transaction ends, so that
// what is read of it now stays true.
func (q *Queries) LockVM(ctx context.Context, id string) error {
	_, err := q.exec(ctx, `SELECT FROM vms WHERE id = $1 FOR NO KEY UPDATE`, id)
	return err
}

// ChoosePlain gives a plain or linked VM to its job, to be made (cks.Chosen) or
// destroyed (cks.Leaving). The caller has locked it.
func (q *Queries) ChoosePlain(ctx context.Context, j cks.Job, phase cks.Phase) error {
	n, err := q.exec(ctx, `
		UPDATE vms SET phase = $3, job_id = $2
		WHERE id = $1 AND account_id IS NOT NULL AND (cluster_id IS NULL OR linked) AND phase = 'member' AND removed IS NULL`,
		j.VMID, j.ID, phase)
	if err == nil && n == 0 {
		return cks.Errorf(cks.Conflict, "VM %s changed since the request was validated", j.VMID)
	}
	return err
}

// PlainSettled ends what j was to do with its VM, which then is a VM like any
// other, or with doomed one that the scanner is to destroy. It fails with
// ErrLeaseLost.
func (q *Queries) PlainSettled(ctx context.Context, j cks.Job, doomed bool) error {
	return q.executing(ctx, j, func(q *Queries) error {
		_, err := q.exec(ctx, `
			UPDATE vms SET phase = CASE WHEN $3 THEN 'doomed' ELSE 'member' END, job_id = NULL
			WHERE id = $1 AND job_id = $2 AND phase IN ('chosen', 'leaving') AND removed IS NULL`, j.VMID, j.ID, doomed)
		return err
	})
}

// PlainRemoved records that the VM of j is gone, also to the cluster that it
// was linked to. A removed one stays as it is. It fails with ErrLeaseLost.
func (q *Queries) PlainRemoved(ctx context.Context, j cks.Job) error {
	return q.executing(ctx, j, func(q *Queries) error {
		_, err := q.exec(ctx, `
			SELECT FROM clusters WHERE id = (SELECT cluster_id FROM vms WHERE id = $1) FOR NO KEY UPDATE`, j.VMID)
		if err != nil { // the cluster before the VM: that is the order of locks
			return err
		}
		clusterID, err := scalar[string](ctx, q, `
			UPDATE vms SET removed = now(), state = 'Expunging', updated = now()
			WHERE id = $1 AND job_id = $2 AND removed IS NULL RETURNING coalesce(cluster_id::text, '')`, j.VMID, j.ID)
		if errors.Is(err, errNone) {
			return nil
		}
		if err == nil && clusterID != "" {
			err = q.recount(ctx, clusterID)
		}
		return err
	})
}

// executing runs fn in a transaction in which j's row is locked. It fails with
// ErrLeaseLost when j was claimed again.
func (q *Queries) executing(ctx context.Context, j cks.Job, fn func(*Queries) error) error {
	return q.inTx(ctx, func(q *Queries) error {
		n, err := q.exec(ctx, `SELECT FROM jobs WHERE id = $1 AND attempt = $2 AND status = 0 FOR NO KEY UPDATE`, j.ID, j.Attempt)
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrLeaseLost
		}
		return fn(q)
	})
}

// VMsToScan is ClustersToScan for the VMs that no cluster's scan sees.
func (q *Queries) VMsToScan(ctx context.Context, n int, every time.Duration) ([]string, error) {
	return all(ctx, q, self[string], `
		WITH due AS MATERIALIZED (
			SELECT id FROM vms WHERE removed IS NULL AND place = id AND scan_due <= now()
			ORDER BY scan_due LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED)
		UPDATE vms v SET scan_due = now() + $2::interval FROM due WHERE v.id = due.id
		RETURNING v.id::text`, n, every)
}

// LivePlainVMs returns the ids of all VMs that no cluster's scan sees.
func (q *Queries) LivePlainVMs(ctx context.Context) ([]string, error) {
	return all(ctx, q, self[string], `SELECT id::text FROM vms WHERE removed IS NULL AND place = id ORDER BY seq`)
}

// WakeVM is WakeCluster for the job of a VM.
func (q *Queries) WakeVM(ctx context.Context, vmID string) (bool, error) {
	n, err := q.exec(ctx, `
		UPDATE jobs SET poked = true, due = CASE WHEN owner IS NULL THEN now() ELSE due END
		WHERE vm_id = $1 AND status = 0 AND NOT poked AND (owner IS NOT NULL OR due > now())`, vmID)
	if n > 0 {
		q.Wake(TopicJobs, "")
	}
	return n > 0, err
}
