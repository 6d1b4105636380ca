package store

import (
	"context"

	"ckscale/internal/cks"
)

// inUse is whether a cluster is in a network n. Error is no exception: its
// cluster can only be deleted.
const inUse = `EXISTS (SELECT FROM clusters u WHERE u.network_id = n.id AND u.removed IS NULL)`

// there are the networks n that exist: one that was made for a cluster goes with
// the last cluster, or VM of its owner's own, that is in it.
const there = `(NOT n.made OR ` + inUse + ` OR n.id IN (SELECT network_id FROM vms WHERE network_id IS NOT NULL AND removed IS NULL))`

const networkJSON = `json_build_object('id', n.id, 'seq', n.seq, 'name', n.name, 'accountid', n.account_id,
	'zoneid', n.zone_id, 'made', n.made, 'inuse', ` + inUse + `, 'created', n.created)`

var (
	networkRows = source[cks.Network]{from: "networks n", alias: "n", row: networkJSON, fields: self[cks.Network]}

	networkViewRows = source[cks.NetworkView]{
		from:  "networks n",
		alias: "n",
		joins: `JOIN accounts a ON a.id = n.account_id JOIN domains d ON d.id = a.domain_id
			JOIN zones z ON z.id = n.zone_id`,
		row:    `json_build_object('network', ` + networkJSON + `, 'account', ` + accountJSON + `, 'zone', ` + zoneJSON + `)`,
		fields: self[cks.NetworkView],
	}
)

// Network returns the network with that uuid or internal number; else
// cks.NotFound.
func (q *Queries) Network(ctx context.Context, ref string) (cks.Network, error) {
	return networkRows.ref(ctx, q, "network", ref, " AND "+there)
}

// LockNetwork is Network in a transaction that puts a cluster into it: until
// that ends, no other does.
func (q *Queries) LockNetwork(ctx context.Context, ref string) (cks.Network, error) {
	n, err := q.Network(ctx, ref)
	if err != nil {
		return n, err
	}
	if _, err := q.exec(ctx, `SELECT FROM networks WHERE id = $1 FOR NO KEY UPDATE`, n.ID); err != nil {
		return n, err
	}
	return q.Network(ctx, n.ID) // as those who had it before have left it
}

// Networks returns a page of the networks and the number of all that match. An
// empty accountID stands for all accounts.
func (q *Queries) Networks(ctx context.Context, f cks.NetworkFilter, accountID string) ([]cks.NetworkView, int, error) {
	w := &filter{conds: []string{there}}
	w.ref("n", f.ID)
	w.text(contains("n.name"), f.Keyword)
	w.id("n.zone_id", f.ZoneID)
	w.id("n.account_id", accountID)
	w.reach("n.account_id", f.Reach)
	return networkViewRows.page(ctx, q, w, f.Page)
}

// AddNetwork adds a network that stays without a cluster; an empty ID is made
// up. It fails with cks.Invalid when n refers to something that does not exist.
func (q *Queries) AddNetwork(ctx context.Context, n cks.Network) (cks.Network, error) {
	added, err := scalar[cks.Network](ctx, q, `
		INSERT INTO networks AS n (id, name, account_id, zone_id)
		VALUES (coalesce(nullif($1, '')::uuid, gen_random_uuid()), $2, $3, $4)
		RETURNING `+networkJSON, n.ID, n.Name, n.AccountID, n.ZoneID)
	return added, refuse(err, "network %s cannot be added", n.Name)
}

// EnsureNetwork is AddNetwork unless there is a network with that id, which
// stays as it is.
func (q *Queries) EnsureNetwork(ctx context.Context, n cks.Network) (cks.Network, error) {
	_, err := q.exec(ctx, `INSERT INTO networks (id, name, account_id, zone_id) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING`,
		n.ID, n.Name, n.AccountID, n.ZoneID)
	if err != nil {
		return n, refuse(err, "network %s cannot be added", n.Name)
	}
	return q.Network(ctx, n.ID)
}
