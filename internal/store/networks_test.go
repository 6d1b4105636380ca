package store_test

import (
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/secretbox"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

func network(t *testing.T, st *store.Store, ref string) cks.Network {
	t.Helper()
	return must[cks.Network](t)(st.Network(t.Context(), ref))
}

// A cluster brings its network with it, whoever writes its row, and the network
// is there as long as the cluster is.
//
// Keeps: §8.4/network.
func TestNetworkComesAndGoesWithItsCluster(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{State: cks.Running, Workers: 1})
	n := network(t, st, v.Cluster.NetworkID)
	if n.Name != "test-network" || n.AccountID != v.Account.ID || n.ZoneID != v.Zone.ID || !n.Made || !n.InUse || n.Created.IsZero() {
		t.Errorf("network is %+v", n)
	}
	diff(t, n, network(t, st, "1"))
	ok(t, st.FreeCluster(t.Context(), j, cks.OperationSucceeded))
	// The release before writes no name, and knows of no networks.
	sql(t, st, `INSERT INTO clusters (name, account_id, zone_id, control_nodes, size, state) SELECT 'old', account_id, zone_id, 1, 1, 'Created' FROM clusters`)
	if old := network(t, st, read[string](t, st, `SELECT network_id::text FROM clusters WHERE name = 'old'`)); old.Name != "old-network" || !old.Made {
		t.Errorf("network is %+v", old)
	}
	sql(t, st, `UPDATE clusters SET state = 'Destroyed', removed = now() WHERE id = $1`, v.Cluster.ID)
	_, err := st.Network(t.Context(), n.ID)
	wantCode(t, err, cks.NotFound)
	if list, total, err := st.Networks(t.Context(), cks.NetworkFilter{}, ""); err != nil || total != 1 || list[0].Network.Name != "old-network" {
		t.Errorf("networks: %+v, %v", list, err)
	}
}

// A network of nobody's cluster stays, empty or not, under its own name.
func TestAddedNetworkStays(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	n := must[cks.Network](t)(st.AddNetwork(t.Context(), cks.Network{Name: "lan", AccountID: v.Account.ID, ZoneID: v.Zone.ID}))
	if n.Made || n.InUse {
		t.Errorf("network is %+v", n)
	}
	diff(t, n, network(t, st, n.ID))
	c := v.Cluster
	c.ID, c.Name, c.NetworkID, c.NetworkName, c.IPAddressID = "", "in", n.ID, n.Name, ""
	c = must[cks.Cluster](t)(st.AddCluster(t.Context(), c))
	if got := network(t, st, n.ID); !got.InUse || got.Made || got.Name != "lan" {
		t.Errorf("with a cluster in it: %+v", got)
	}
	sql(t, st, `UPDATE clusters SET state = 'Destroyed', removed = now() WHERE id = $1`, c.ID)
	diff(t, n, network(t, st, n.ID))
	same := n
	same.Name = "other" // of one that is there already, nothing is changed
	diff(t, n, must[cks.Network](t)(st.EnsureNetwork(t.Context(), same)))
	same.ID = "7944a42f-fcf2-4f4e-932a-e7b59e0724b1"
	if made := must[cks.Network](t)(st.EnsureNetwork(t.Context(), same)); made.ID != same.ID || made.Name != "other" || made.Made {
		t.Errorf("network is %+v", made)
	}
	_, err := st.AddNetwork(t.Context(), cks.Network{Name: "", AccountID: v.Account.ID, ZoneID: v.Zone.ID})
	wantCode(t, err, cks.Invalid)
}

// Only one transaction at a time puts a cluster into a network; the next one
// sees what it did.
func TestNetworkIsLockedForACluster(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	n := must[cks.Network](t)(st.AddNetwork(t.Context(), cks.Network{Name: "lan", AccountID: v.Account.ID, ZoneID: v.Zone.ID}))
	seen := make(chan cks.Network, 1)
	ok(t, st.InTx(t.Context(), func(q *store.Queries) error {
		free, err := q.LockNetwork(t.Context(), n.ID)
		if err != nil || free.InUse {
			t.Errorf("%+v, %v", free, err)
		}
		go lockNext(t, st, func(q *store.Queries) (cks.Network, error) { return q.LockNetwork(t.Context(), n.ID) }, seen)
		waitBlocked(t, st, 1)
		c := v.Cluster
		c.ID, c.NetworkID, c.IPAddressID = "", n.ID, ""
		_, err = q.AddCluster(t.Context(), c)
		return err
	}))
	if next := <-seen; !next.InUse {
		t.Errorf("the next one sees %+v", next)
	}
	_, err := st.LockNetwork(t.Context(), "9")
	wantCode(t, err, cks.NotFound)
}

// lockNext does fn in a transaction of its own.
func lockNext[T any](t *testing.T, st *store.Store, fn func(*store.Queries) (T, error), result chan<- T) {
	var v T
	err := st.InTx(t.Context(), func(q *store.Queries) (err error) {
		v, err = fn(q)
		return err
	})
	if err != nil && cks.CodeOf(err) != cks.NotFound {
		t.Error(err)
	}
	result <- v
}

// A version is not removed while it is given to a cluster, nor given while it is
// removed: the second of the two waits, and sees what the first has done. One
// whose clusters are gone can be removed.
//
// Keeps: clients/versions.
func TestVersionIsLockedForACluster(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	k := must[cks.KubernetesVersion](t)(st.AddVersion(ctx, cks.KubernetesVersion{Name: "v1.35.0", Version: "1.35.0", MinCores: 2, MinMemoryMB: 2048}))
	remove := func(q *store.Queries) (bool, error) { return q.RemoveVersion(ctx, k.ID, v.Account.ID) }
	removed := make(chan bool, 1)
	c := v.Cluster
	ok(t, st.InTx(ctx, func(q *store.Queries) error {
		if _, err := q.LockVersion(ctx, k.ID); err != nil {
			return err
		}
		go lockNext(t, st, remove, removed)
		waitBlocked(t, st, 1)
		c.ID, c.NetworkID, c.IPAddressID, c.VersionID = "", "", "", k.ID
		added, err := q.AddCluster(ctx, c)
		c = added
		return err
	}))
	if <-removed {
		t.Error("removed under a new cluster")
	}
	sql(t, st, `UPDATE clusters SET state = 'Destroyed', removed = now() WHERE id = $1`, c.ID)
	given := make(chan cks.KubernetesVersion, 1)
	ok(t, st.InTx(ctx, func(q *store.Queries) error {
		if done, err := remove(q); err != nil || !done {
			t.Errorf("not removed though its cluster is gone: %v", err)
		}
		go lockNext(t, st, func(q *store.Queries) (cks.KubernetesVersion, error) { return q.LockVersion(ctx, k.ID) }, given)
		waitBlocked(t, st, 1)
		return nil
	}))
	if got := <-given; got.ID != "" {
		t.Errorf("given after it was removed: %+v", got)
	}
	if done := must[bool](t)(remove(st.Queries)); done {
		t.Error("removed twice")
	}
}

// Filters combine, and count follows.
//
// Keeps: clients/networks.
func TestNetworkFilters(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	zone := must[cks.Zone](t)(st.AddZone(t.Context(), cks.Zone{Name: "far"}))
	bob := must[cks.Account](t)(st.AddAccount(t.Context(), "bob", "k", "s", false))
	lan := must[cks.Network](t)(st.AddNetwork(t.Context(), cks.Network{Name: "LAN", AccountID: bob.ID, ZoneID: zone.ID}))
	for name, c := range map[string]struct {
		f     cks.NetworkFilter
		owner string
		want  string // names, each followed by a space
		total int
	}{
		"all":     {cks.NetworkFilter{}, "", "test-network LAN ", 2},
		"id":      {cks.NetworkFilter{ID: lan.ID}, "", "LAN ", 1},
		"keyword": {cks.NetworkFilter{Keyword: "lan"}, "", "LAN ", 1},
		"zone":    {cks.NetworkFilter{ZoneID: v.Zone.ID}, "", "test-network ", 1},
		"owner":   {cks.NetworkFilter{}, bob.ID, "LAN ", 1},
		"page":    {cks.NetworkFilter{Page: cks.Page{Number: 2, Size: 1}}, "", "LAN ", 2},
	} {
		list, total, err := st.Networks(t.Context(), c.f, c.owner)
		ok(t, err)
		got := ""
		for _, n := range list {
			got += n.Network.Name + " "
			if n.Network.Name == "LAN" && (n.Account.Name != "bob" || n.Zone.Name != "far") {
				t.Errorf("%s: %+v", name, n)
			}
		}
		if got != c.want || total != c.total {
			t.Errorf("%s: %q of %d, want %q of %d", name, got, total, c.want, c.total)
		}
	}
}

// Databases of the release before get the networks of their clusters.
func TestNetworksOfOldClusters(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	ok(t, store.Migrate(t.Context(), url))
	st := open(t, url)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	sql(t, st, `INSERT INTO clusters (name, network_id, network_name, account_id, zone_id, control_nodes, size, state)
		SELECT 'twin', network_id, 'other', account_id, zone_id, 1, 1, 'Created' FROM clusters`)
	sql(t, st, `DELETE FROM networks`)
	ok(t, store.ForceVersion(t.Context(), url, 4))
	ok(t, store.Migrate(t.Context(), url))
	if n := network(t, st, v.Cluster.NetworkID); n.Name != "test-network" || !n.Made || !n.InUse || !n.Created.Equal(v.Cluster.Created) {
		t.Errorf("network is %+v", n)
	}
}

var someCredentials = cks.Credentials{CA: "ca", Certificate: "cert", Key: "a secret key"}

// The first credentials of a cluster stay; their key is sealed, for this cluster
// and with the servers' key, and they go with the cluster.
//
// Keeps: clients/config-sealed, clients/config-same.
func TestCredentials(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	v, j := scaling(t, st, storetest.Spec{Workers: 1})
	n := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	id := v.Cluster.ID
	_, err := st.Credentials(ctx, id)
	wantCode(t, err, cks.NotFound)
	ok(t, st.AddCredentials(ctx, id, someCredentials))
	ok(t, st.AddCredentials(ctx, id, cks.Credentials{CA: "x", Certificate: "y", Key: "z"}))
	ok(t, st.AddCredentials(ctx, n.Cluster.ID, cks.Credentials{CA: "x", Certificate: "y", Key: "z"}))
	diff(t, someCredentials, must[cks.Credentials](t)(st.Credentials(ctx, id)))
	if read[bool](t, st, `SELECT position('secret'::bytea IN key_sealed) > 0 FROM cluster_credentials WHERE cluster_id = $1`, id) {
		t.Error("the key is in clear")
	}
	if ids := must[[]string](t)(st.SealedWith(ctx)); len(ids) != 1 || ids[0] != storetest.Key.ID() {
		t.Errorf("sealed with %v", ids)
	}
	st.UseKey(secretbox.NewKey())
	_, err = st.Credentials(ctx, id)
	wantErr(t, err, secretbox.ErrNotOpened)
	ok(t, st.AddCredentials(ctx, id, someCredentials))
	st.UseKey(storetest.Key)
	diff(t, someCredentials, must[cks.Credentials](t)(st.Credentials(ctx, id)))

	sql(t, st, `UPDATE cluster_credentials SET key_sealed = (SELECT key_sealed FROM cluster_credentials WHERE cluster_id = $2) WHERE cluster_id = $1`,
		id, n.Cluster.ID)
	_, err = st.Credentials(ctx, id)
	wantErr(t, err, secretbox.ErrNotOpened)

	ok(t, st.FreeCluster(ctx, j, cks.OperationSucceeded, cks.DestroyRequested, cks.OperationSucceeded))
	_, err = st.Credentials(ctx, id)
	wantCode(t, err, cks.NotFound)
	ok(t, st.AddCredentials(ctx, id, someCredentials)) // too late
	_, err = st.Credentials(ctx, id)
	wantCode(t, err, cks.NotFound)
	must[cks.Credentials](t)(st.Credentials(ctx, n.Cluster.ID))
}

// A server with another key than that of the credentials is found out by them
// alone.
func TestCredentialsTellTheirKey(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	other := secretbox.NewKey()
	st.UseKey(other)
	ok(t, st.AddCredentials(t.Context(), v.Cluster.ID, someCredentials))
	if ids := must[[]string](t)(st.SealedWith(t.Context())); len(ids) != 2 {
		t.Errorf("sealed with %v", ids)
	}
	sql(t, st, `UPDATE accounts SET secret_sealed = NULL`)
	if ids := must[[]string](t)(st.SealedWith(t.Context())); len(ids) != 1 || ids[0] != other.ID() {
		t.Errorf("sealed with %v", ids)
	}
}

// A VM has the template of its type, else the cluster's (cks.md §7 D6), and a
// template is found by uuid and by number.
//
// Keeps: D6.
func TestTemplatesByType(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Etcd: 1, Workers: 1})
	own := must[cks.Template](t)(st.AddTemplate(ctx, cks.Template{Name: "own", Ready: true}))
	for _, ref := range []string{own.ID, "2"} {
		diff(t, own, must[cks.Template](t)(st.TemplateByRef(ctx, ref)))
	}
	_, err := st.TemplateByRef(ctx, "9")
	wantCode(t, err, cks.NotFound)
	c := v.Cluster
	for role, templates := range map[cks.Role]map[cks.Role]string{
		"": nil, cks.Control: {cks.Control: own.ID}, cks.Worker: {cks.Worker: own.ID}, cks.Etcd: {cks.Etcd: own.ID},
	} {
		c.ID, c.NetworkID, c.IPAddressID, c.Templates = "", "", "", templates
		added := must[cks.Cluster](t)(st.AddCluster(ctx, c))
		diff(t, templates, added.Templates)
		for _, r := range cks.Roles {
			vm := must[cks.VM](t)(st.AddVM(ctx, cks.VM{
				ClusterID: added.ID, Name: string("vm-of-" + role + "-" + r), Role: r, OfferingID: c.DefaultOffering, State: cks.VMRunning}))
			want := v.Template.ID
			if r == role {
				want = own.ID
			}
			if got := must[cks.VMView](t)(st.VMView(ctx, vm.ID)); got.Template.ID != want {
				t.Errorf("%s VM of a cluster with a %q template has %+v", r, role, got.Template)
			}
		}
	}
	if list, total, err := st.Templates(ctx, cks.TemplateFilter{IDs: []string{own.ID}}); err != nil || total != 1 || list[0].ID != own.ID {
		t.Errorf("%+v, %d, %v", list, total, err)
	}
}

// A VM of its owner's own keeps the network of a cluster that is gone, as long as
// it is in it.
func TestNetworkOfAClusterStaysWithAPlainVM(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	box := plain(t, st, v, "box")
	sql(t, st, `UPDATE vms SET network_id = $1 WHERE id = $2`, v.Cluster.NetworkID, box.ID)
	sql(t, st, `UPDATE clusters SET state = 'Destroyed', removed = now() WHERE id = $1`, v.Cluster.ID)
	if n := network(t, st, v.Cluster.NetworkID); n.InUse {
		t.Errorf("a cluster is in it: %+v", n)
	}
	if _, total, err := st.Networks(ctx, cks.NetworkFilter{}, ""); err != nil || total != 1 {
		t.Errorf("%d networks, %v", total, err)
	}
	sql(t, st, `UPDATE vms SET removed = now() WHERE id = $1`, box.ID)
	_, err := st.Network(ctx, v.Cluster.NetworkID)
	wantCode(t, err, cks.NotFound)
}
