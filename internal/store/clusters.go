package store

import (
	"context"

	"ckscale/internal/cks"
)

// clusterJSON reads a cluster c as a cks.Cluster.
const clusterJSON = `json_build_object('id', c.id, 'seq', c.seq, 'name', c.name, 'description', c.description,
	'accountid', c.account_id, 'zoneid', c.zone_id, 'versionid', c.version_id, 'templateid', c.template_id,
	'networkid', c.network_id, 'networkname', c.network_name, 'defaultoffering', c.offering_id,
	'offerings', nullif(jsonb_strip_nulls(jsonb_build_object(
		'control', c.control_offering_id, 'worker', c.worker_offering_id, 'etcd', c.etcd_offering_id)), '{}'),
	'templates', nullif(jsonb_strip_nulls(jsonb_build_object(
		'control', c.control_template_id, 'worker', c.worker_template_id, 'etcd', c.etcd_template_id)), '{}'),
	'controlnodes', c.control_nodes, 'etcdnodes', c.etcd_nodes, 'size', c.size, 'state', c.state,
	'heldby', c.held_by, 'version', c.version,
	'autoscaling', json_build_object('enabled', c.autoscaling, 'min', c.min_size, 'max', c.max_size),
	'externalmanaged', c.external_managed, 'csi', c.csi, 'keypair', c.keypair,
	'endpoint', CASE WHEN c.ip_address = '' THEN '' WHEN c.ip_address LIKE '%:%' THEN 'https://[' || c.ip_address || ']:6443/'
		ELSE 'https://' || c.ip_address || ':6443/' END,
	'ipaddress', c.ip_address, 'ipaddressid', c.ip_address_id, 'created', c.created,
	'removed', c.removed IS NOT NULL)`

// clusterViewJSON reads a cks.ClusterView. It is one expression, so that a
// cluster and its VMs are of one moment: size and VM list always agree.
const clusterViewJSON = `json_build_object(
	'cluster', ` + clusterJSON + `,
	'vms', (SELECT coalesce(json_agg(` + vmJSON + ` ORDER BY v.seq), '[]')
		FROM vms v JOIN service_offerings o ON o.id = v.offering_id
		WHERE v.cluster_id = c.id AND v.removed IS NULL),
	'account', ` + accountJSON + `,
	'zone', ` + zoneJSON + `,
	'version', CASE WHEN k.id IS NOT NULL THEN ` + versionJSON + ` END,
	'template', CASE WHEN t.id IS NOT NULL THEN ` + templateJSON + ` END,
	'offerings', (SELECT coalesce(json_object_agg(o.id, ` + offeringJSON + `), '{}')
		FROM service_offerings o
		WHERE o.id = ANY (ARRAY[c.offering_id, c.control_offering_id, c.worker_offering_id, c.etcd_offering_id]
			|| ARRAY(SELECT DISTINCT v.offering_id FROM vms v WHERE v.cluster_id = c.id AND v.removed IS NULL))))`

var (
	clusterRows = source[cks.Cluster]{from: "clusters c", alias: "c", row: clusterJSON, fields: self[cks.Cluster]}

	clusterViewRows = source[cks.ClusterView]{
		from:  "clusters c",
		alias: "c",
		joins: `JOIN accounts a ON a.id = c.account_id JOIN domains d ON d.id = a.domain_id
			JOIN zones z ON z.id = c.zone_id
			LEFT JOIN kubernetes_versions k ON k.id = c.version_id
			LEFT JOIN templates t ON t.id = c.template_id`,
		row:    clusterViewJSON,
		fields: self[cks.ClusterView],
	}
)

// clusterWord names a cluster in errors.
const clusterWord = "Kubernetes cluster"

// ClusterByRef returns the cluster with that uuid, in any case, or internal
// number, also a removed one; else cks.NotFound.
func (q *Queries) ClusterByRef(ctx context.Context, ref string) (cks.Cluster, error) {
	return clusterRows.ref(ctx, q, clusterWord, ref, "")
}

// View returns a cluster with all that belongs to it, also a removed one; else
// cks.NotFound.
func (q *Queries) View(ctx context.Context, id string) (cks.ClusterView, error) {
	return clusterViewRows.ref(ctx, q, clusterWord, id, "")
}

// Views returns a page of the clusters that are not removed and the number of
// all that match. An empty accountID stands for all accounts. It costs at most
// two queries, however many clusters there are.
func (q *Queries) Views(ctx context.Context, f cks.ClusterFilter, accountID string) ([]cks.ClusterView, int, error) {
	w := &filter{conds: []string{"c.removed IS NULL"}}
	w.ref("c", f.ID)
	w.text("c.name = ?", f.Name)
	w.text(contains("c.name"), f.Keyword)
	w.text("c.state = ?", f.State)
	if f.Type != "" {
		w.and("CASE WHEN c.external_managed THEN 'ExternalManaged' ELSE 'CloudManaged' END = ?", f.Type)
	}
	w.owner("c.account_id", accountID, f.Account)
	w.reach("c.account_id", f.Reach)
	return clusterViewRows.page(ctx, q, w, f.Page)
}

// owner restricts rows to those of an account, by id and by name, where given.
func (f *filter) owner(column, accountID, name string) {
	f.id(column, accountID)
	f.text(column+" = (SELECT id FROM accounts WHERE name = ?)", name)
}

// AddCluster adds a cluster in the state and under the hold that c says. Its
// empty ids are made up, and its network is made unless it is there. It fails with cks.Invalid when c refers to something
// that does not exist, or its state and hold do not fit together.
func (q *Queries) AddCluster(ctx context.Context, c cks.Cluster) (cks.Cluster, error) {
	return q.AddClusterBy(ctx, c, c.AccountID)
}

// AddClusterBy is AddCluster for a cluster that another account than its owner
// has asked for.
func (q *Queries) AddClusterBy(ctx context.Context, c cks.Cluster, callerID string) (added cks.Cluster, err error) {
	err = q.inTx(ctx, func(q *Queries) error {
		if added, err = q.insertCluster(ctx, c); err != nil {
			return refuse(err, "%s %s cannot be added", clusterWord, c.Name)
		}
		return q.clusterCreated(ctx, added, callerID)
	})
	return added, err
}

func (q *Queries) insertCluster(ctx context.Context, c cks.Cluster) (cks.Cluster, error) {
	return scalar[cks.Cluster](ctx, q, `
		INSERT INTO clusters AS c (id, name, description, account_id, zone_id, version_id, template_id,
			network_id, network_name, offering_id, control_offering_id, worker_offering_id, etcd_offering_id,
			control_nodes, etcd_nodes, size, state, held_by, autoscaling, min_size, max_size,
			external_managed, csi, keypair, ip_address, ip_address_id,
			control_template_id, worker_template_id, etcd_template_id, removed)
		VALUES (coalesce(nullif($1, '')::uuid, gen_random_uuid()), $2, $3, $4, $5,
			nullif($6, '')::uuid, nullif($7, '')::uuid,
			coalesce(nullif($8, '')::uuid, gen_random_uuid()), $9, nullif($10, '')::uuid,
			nullif($11, '')::uuid, nullif($12, '')::uuid, nullif($13, '')::uuid,
			$14, $15, $16, $17, nullif($18, '')::uuid, $19,
			CASE WHEN $19 THEN $20::int END, CASE WHEN $19 THEN $21::int END,
			$22, $23, $24, $25, coalesce(nullif($26, '')::uuid, gen_random_uuid()),
			nullif($27, '')::uuid, nullif($28, '')::uuid, nullif($29, '')::uuid,
			CASE WHEN $17 = 'Destroyed' THEN now() END)
		RETURNING `+clusterJSON,
		c.ID, c.Name, c.Description, c.AccountID, c.ZoneID, c.VersionID, c.TemplateID,
		c.NetworkID, c.NetworkName, c.DefaultOffering,
		c.Offerings[cks.Control], c.Offerings[cks.Worker], c.Offerings[cks.Etcd],
		c.ControlNodes, c.EtcdNodes, c.Size, c.State, c.HeldBy,
		c.Autoscaling.Enabled, c.Autoscaling.Min, c.Autoscaling.Max,
		c.ExternalManaged, c.CSI, c.Keypair, c.IPAddress, c.IPAddressID,
		c.Templates[cks.Control], c.Templates[cks.Worker], c.Templates[cks.Etcd])
}
