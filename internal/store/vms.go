package store

import (
	"context"

	"ckscale/internal/cks"
)

// vmJSON reads a VM v with its offering o as a cks.VM.
const vmJSON = `json_build_object('id', v.id, 'seq', v.seq, 'clusterid', v.cluster_id, 'name', ` + vmName + `, 'role', v.role,
	'accountid', v.account_id, 'displayname', v.display_name, 'keypair', v.keypair, 'linked', v.linked,
	'place', v.place,
	'external', v.external, 'offeringid', v.offering_id, 'cores', o.cores, 'memory', o.memory_mb,
	'state', v.state, 'phase', v.phase, 'version', v.node_version, 'manualupgrade', v.manual_upgrade, 'ip', v.ip_address, 'mac', v.mac_address,
	'created', v.created, 'updated', v.updated, 'removed', v.removed IS NOT NULL)`

// vmName is the host name of a VM v: as its owner named it, else as we did.
const vmName = `coalesce(v.host_name, v.name)`

var (
	vmRows = source[cks.VM]{
		from:   "vms v",
		alias:  "v",
		joins:  "JOIN service_offerings o ON o.id = v.offering_id",
		row:    vmJSON,
		fields: self[cks.VM],
	}

	vmViewRows = source[cks.VMView]{
		from:  "vms v LEFT JOIN clusters c ON c.id = v.cluster_id",
		alias: "v",
		joins: `JOIN service_offerings o ON o.id = v.offering_id
			JOIN accounts a ON a.id = coalesce(v.account_id, c.account_id) JOIN domains d ON d.id = a.domain_id
			JOIN zones z ON z.id = coalesce(v.zone_id, c.zone_id)
			LEFT JOIN templates t ON t.id = CASE WHEN v.account_id IS NOT NULL THEN v.template_id
				ELSE coalesce(CASE v.role WHEN 'control' THEN c.control_template_id
					WHEN 'worker' THEN c.worker_template_id ELSE c.etcd_template_id END, c.template_id) END`,
		row: `json_build_object('vm', ` + vmJSON + `, 'clustername', c.name,
			'networkid', coalesce(v.network_id, c.network_id),
			'networkname', CASE WHEN v.account_id IS NULL THEN c.network_name ELSE v.network_name END,
			'account', ` + accountJSON + `, 'zone', ` + zoneJSON + `,
			'offering', ` + offeringJSON + `, 'template', CASE WHEN t.id IS NOT NULL THEN ` + templateJSON + ` END)`,
		fields: self[cks.VMView],
	}
)

// AddVM adds a VM that needs no job, in the state and phase that vm says (empty:
// member), and counts it nowhere. An empty ID is made up. It fails with
// cks.Invalid when the name is taken or vm refers to something that does not
// exist.
func (q *Queries) AddVM(ctx context.Context, vm cks.VM) (cks.VM, error) {
	id, err := scalar[string](ctx, q, `
		INSERT INTO vms (id, cluster_id, name, role, external, offering_id, state, phase, node_version,
			ip_address, mac_address, manual_upgrade)
		VALUES (coalesce(nullif($1, '')::uuid, gen_random_uuid()), $2, $3, $4, $5, $6, $7,
			coalesce(nullif($8, ''), 'member'), $9, $10, $11, $12)
		RETURNING id::text`,
		vm.ID, vm.ClusterID, vm.Name, vm.Role, vm.External, vm.OfferingID, vm.State, string(vm.Phase), vm.NodeVersion,
		vm.IPAddress, vm.MACAddress, vm.Manual)
	if err != nil {
		return cks.VM{}, refuse(err, "VM %s cannot be added", vm.Name)
	}
	return q.VMByRef(ctx, id)
}

// VMByRef returns the VM with that uuid or internal number, also a removed one;
// else cks.NotFound.
func (q *Queries) VMByRef(ctx context.Context, ref string) (cks.VM, error) {
	return vmRows.ref(ctx, q, "VM", ref, "")
}

// VMs returns the cluster's VMs that are not removed, by Seq.
func (q *Queries) VMs(ctx context.Context, clusterID string) ([]cks.VM, error) {
	return vmRows.where(ctx, q, "v.cluster_id = $1 AND v.removed IS NULL", clusterID)
}

// JobVMs returns the VMs that the job chose, to be made or to be removed, that
// are not removed, by Seq: those it still has to see to and those that joined
// through it.
func (q *Queries) JobVMs(ctx context.Context, jobID string) ([]cks.VM, error) {
	return vmRows.where(ctx, q, "v.job_id = $1 AND v.removed IS NULL", jobID)
}

// VMView returns a VM with all that belongs to it, also a removed one; else
// cks.NotFound.
func (q *Queries) VMView(ctx context.Context, id string) (cks.VMView, error) {
	return vmViewRows.ref(ctx, q, "VM", id, "")
}

// vmOwner is whose a VM is: a plain one, also as a node, has an owner of its own.
const vmOwner = "coalesce(v.account_id, c.account_id)"

// present is the filter value for every VM that is not on its way out.
const present = "Present"

// VMViews returns a page of the VMs that are not removed and the number of all
// that match. An empty accountID stands for all accounts.
func (q *Queries) VMViews(ctx context.Context, f cks.VMFilter, accountID string) ([]cks.VMView, int, error) {
	w := &filter{conds: []string{"v.removed IS NULL"}}
	w.ref("v", f.ID)
	if len(f.IDs) > 0 {
		w.ids("v.id", f.IDs)
	}
	w.text(contains(vmName), f.Name)
	w.text(contains(vmName), f.Keyword)
	if f.State == present {
		w.conds = append(w.conds, "v.state NOT IN ('Destroyed', 'Expunging')")
	} else {
		w.text("v.state = ?", f.State)
	}
	w.id("coalesce(v.zone_id, c.zone_id)", f.ZoneID)
	w.id("coalesce(v.network_id, c.network_id)", f.NetworkID)
	w.ref("c", f.Cluster)
	w.owner(vmOwner, accountID, f.Account)
	w.reach(vmOwner, f.Reach)
	return vmViewRows.page(ctx, q, w, f.Page)
}
