package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// named adds clusters like v under other names.
func named(t *testing.T, st *store.Store, v cks.ClusterView, change func(*cks.Cluster), names ...string) {
	t.Helper()
	for _, name := range names {
		c := v.Cluster
		c.ID, c.Name, c.NetworkID, c.IPAddressID, c.Size = "", name, "", "", 0
		if change != nil {
			change(&c)
		}
		must[cks.Cluster](t)(st.AddCluster(t.Context(), c))
	}
}

func names(views []cks.ClusterView) (out []string) {
	for _, v := range views {
		out = append(out, v.Cluster.Name)
	}
	return out
}

type listed struct {
	f       cks.ClusterFilter
	account string
	want    []string
	total   int
}

func checkLists(t *testing.T, st *store.Store, table map[string]listed) {
	t.Helper()
	for what, tt := range table {
		list, total, err := st.Views(t.Context(), tt.f, tt.account)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if !slices.Equal(names(list), tt.want) || total != tt.total {
			t.Errorf("%s: %v of %d, want %v of %d", what, names(list), total, tt.want, tt.total)
		}
	}
}

// A22
//
// Keeps: §2.6/count, §2.6/order, §2.6/past-end, §2.6/unlimited.
// Keeps: A22, A23.
func TestTotalIsOfAllPages(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{})
	named(t, st, v, nil, "b", "c", "d", "e")
	page := func(number, size int) cks.ClusterFilter {
		return cks.ClusterFilter{Page: cks.Page{Number: number, Size: size}}
	}
	all := []string{"test", "b", "c", "d", "e"}
	checkLists(t, st, map[string]listed{
		"page 1":       {page(1, 2), "", []string{"test", "b"}, 5},
		"page 0":       {page(0, 2), "", []string{"test", "b"}, 5},
		"page 3":       {page(3, 2), "", []string{"e"}, 5},
		"past the end": {page(4, 2), "", nil, 5},
		"far past":     {page(1<<62, 500), "", nil, 5},
		"default":      {page(0, 0), "", all, 5},
		"unlimited":    {page(0, -1), "", all, 5},
		"none there":   {cks.ClusterFilter{Name: "x", Page: cks.Page{Number: 2, Size: 2}}, "", nil, 0},
	})
}

// A24
//
// Keeps: §2.6/state, §2.6/name, §2.6/keyword.
// Keeps: A24.
func TestNameIsExactKeywordIsPart(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{})
	named(t, st, v, nil, "prod", "prod10", "my-prod")
	named(t, st, v, func(c *cks.Cluster) { c.State = cks.Stopped }, "prod_%")
	checkLists(t, st, map[string]listed{
		"name":              {cks.ClusterFilter{Name: "prod"}, "", []string{"prod"}, 1},
		"name, other case":  {cks.ClusterFilter{Name: "PROD"}, "", nil, 0},
		"keyword":           {cks.ClusterFilter{Keyword: "ProD"}, "", []string{"prod", "prod10", "my-prod", "prod_%"}, 4},
		"keyword and state": {cks.ClusterFilter{Keyword: "prod", State: "Running"}, "", []string{"prod", "prod10", "my-prod"}, 3},
		"state, other case": {cks.ClusterFilter{State: "running"}, "", nil, 0},
		"no wildcards":      {cks.ClusterFilter{Keyword: "prod_"}, "", []string{"prod_%"}, 1},
		"percent":           {cks.ClusterFilter{Keyword: "%"}, "", []string{"prod_%"}, 1},
		"quotes":            {cks.ClusterFilter{Keyword: "' OR true --"}, "", nil, 0},
		"NUL":               {cks.ClusterFilter{Name: "a\x00b"}, "", nil, 0},
		"bad UTF-8":         {cks.ClusterFilter{Keyword: "\xff"}, "", nil, 0},
	})
}

// Each filter of a list of clusters (cks.md §2.6).
//
// Keeps: §2.6/id, §2.6/state, §2.6/clustertype, §2.6/account-filter.
func TestClusterFilters(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{})
	bob := must[cks.Account](t)(st.AddAccount(t.Context(), "bob", "bob-key", "s", false))
	named(t, st, v, func(c *cks.Cluster) { c.AccountID = bob.ID }, "bobs")
	named(t, st, v, func(c *cks.Cluster) { c.ExternalManaged = true; c.VersionID = "" }, "outside")
	checkLists(t, st, map[string]listed{
		"account":          {cks.ClusterFilter{}, bob.ID, []string{"bobs"}, 1},
		"account by name":  {cks.ClusterFilter{Account: "bob"}, "", []string{"bobs"}, 1},
		"unlike accounts":  {cks.ClusterFilter{Account: "bob"}, v.Account.ID, nil, 0},
		"unknown account":  {cks.ClusterFilter{Account: "eve"}, "", nil, 0},
		"id":               {cks.ClusterFilter{ID: v.Cluster.ID}, "", []string{"test"}, 1},
		"id in capitals":   {cks.ClusterFilter{ID: strings.ToUpper(v.Cluster.ID)}, "", []string{"test"}, 1},
		"internal number":  {cks.ClusterFilter{ID: "2"}, "", []string{"bobs"}, 1},
		"id of nobody":     {cks.ClusterFilter{ID: bob.ID}, "", nil, 0},
		"no id":            {cks.ClusterFilter{ID: "x"}, "", nil, 0},
		"id of another's":  {cks.ClusterFilter{ID: v.Cluster.ID}, bob.ID, nil, 0},
		"cloud managed":    {cks.ClusterFilter{Type: "CloudManaged"}, "", []string{"test", "bobs"}, 2},
		"external managed": {cks.ClusterFilter{Type: "ExternalManaged"}, "", []string{"outside"}, 1},
		"unknown type":     {cks.ClusterFilter{Type: "externalmanaged"}, "", nil, 0},
		"state":            {cks.ClusterFilter{State: "Alert"}, "", nil, 0},
	})
}

// counter counts statements.
type counter struct{ n atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// traced is another Store on st's database that counts its statements.
func traced(t *testing.T, st *store.Store) (*store.Store, *counter) {
	t.Helper()
	cfg := st.Pool().Config()
	count := &counter{}
	cfg.ConnConfig.Tracer = count
	pool := must[*pgxpool.Pool](t)(pgxpool.NewWithConfig(t.Context(), cfg))
	other := store.New(pool)
	t.Cleanup(other.Close)
	return other, count
}

// A list costs at most two statements, however long it is; a job poll costs one.
func TestListsCostTwoQueries(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Etcd: 1, Workers: 3})
	watched, count := traced(t, st)
	for clusters := 1; clusters <= 9; clusters += 4 {
		count.n.Store(0)
		list, _, err := watched.Views(t.Context(), cks.ClusterFilter{}, "")
		ok(t, err)
		if len(list) != clusters || len(list[clusters-1].VMs) != 5 {
			t.Errorf("list of %d clusters, want %d", len(list), clusters)
		}
		if n := count.n.Load(); n > 2 {
			t.Errorf("%d queries for %d clusters", n, clusters)
		}
		for range 4 {
			storetest.Fixture(t, st, storetest.Spec{Etcd: 1, Workers: 3})
		}
	}
	count.n.Store(0)
	_, total, err := watched.Views(t.Context(), cks.ClusterFilter{Page: cks.Page{Number: 9, Size: 9}}, "")
	ok(t, err)
	if n := count.n.Load(); n > 2 || total != 13 {
		t.Errorf("%d queries for a page past the end of %d", n, total)
	}
	j := must[cks.Job](t)(st.AddJob(t.Context(), newJob(v)))
	count.n.Store(0)
	must[cks.Job](t)(watched.Job(t.Context(), j.ID))
	if n := count.n.Load(); n != 1 {
		t.Errorf("%d queries for a job", n)
	}
}

// A view is a cluster with its VMs in the order of their rows and all that they refer to.
//
// Keeps: §8.2/order.
// Keeps: §2.6/size, §2.6/endpoint, §2.7/order.
func TestViewShowsAllThatBelongsToACluster(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Control: 2, Etcd: 1, Workers: 2, External: 1})
	other := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	big := must[cks.Offering](t)(st.AddOffering(t.Context(), cks.Offering{Name: "big", Cores: 8, SpeedMHz: 1, MemoryMB: 1}))
	must[cks.Offering](t)(st.AddOffering(t.Context(), cks.Offering{Name: "unused"}))
	ok(t, st.RecordOfferings(t.Context(), j, map[cks.Role]string{cks.Etcd: medium(t, st).ID}, ""))
	ok(t, st.SetOfferingOf(t.Context(), j, workers(v)[0].ID, big.ID))

	got := must[cks.ClusterView](t)(st.View(t.Context(), v.Cluster.ID))
	var roles []string
	for _, m := range got.VMs {
		roles = append(roles, fmt.Sprint(m.Role, m.External))
	}
	want := []string{"etcdfalse", "controlfalse", "controlfalse", "workerfalse", "workerfalse", "workertrue"}
	diff(t, want, roles)
	diff(t, must[[]cks.VM](t)(st.VMs(t.Context(), v.Cluster.ID)), got.VMs)
	var offerings []string
	for id, o := range got.Offerings {
		if id != o.ID {
			t.Errorf("offering %s is under %s", o.ID, id)
		}
		offerings = append(offerings, o.Name)
	}
	slices.Sort(offerings)
	diff(t, []string{"big", storetest.MediumName, storetest.SmallName}, offerings)
	c := got.Cluster
	if got.Account.Name != storetest.AccountName || got.Zone.Name != storetest.ZoneName ||
		got.Version.Name != storetest.VersionName || got.Template.Name != storetest.TemplateName ||
		c.HeldBy != j.ID || c.Size != 3 || c.Endpoint != "https://203.0.113.10:6443/" || c.Created.IsZero() {
		t.Errorf("view is %+v", got)
	}
	diff(t, c, must[cks.Cluster](t)(st.ClusterByRef(t.Context(), strings.ToUpper(c.ID))))
	diff(t, c, must[cks.Cluster](t)(st.ClusterByRef(t.Context(), fmt.Sprint(c.Seq))))
	list, _, err := st.Views(t.Context(), cks.ClusterFilter{}, "")
	ok(t, err)
	diff(t, []cks.ClusterView{got, must[cks.ClusterView](t)(st.View(t.Context(), other.Cluster.ID))}, list)
	for _, ref := range []string{"", "-1", "99", "x", j.ID} {
		_, err := st.ClusterByRef(t.Context(), ref)
		wantCode(t, err, cks.NotFound)
		_, err = st.View(t.Context(), ref)
		wantCode(t, err, cks.NotFound)
	}
}

// A cluster is read with everything that was recorded of it (cks.md §8.4).
//
// Keeps: §8.4/create.
func TestClusterIsReadAsItWasAdded(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{})
	o := v.Cluster.DefaultOffering
	want := cks.Cluster{
		ID: "7944a42f-fcf2-4f4e-932a-e7b59e0724b1", Name: "full", Description: "d", AccountID: v.Account.ID, ZoneID: v.Zone.ID,
		NetworkID: "7944a42f-fcf2-4f4e-932a-e7b59e0724b2", NetworkName: "n", Offerings: map[cks.Role]string{cks.Control: o, cks.Worker: o},
		ControlNodes: 3, EtcdNodes: 2, Size: 4, State: cks.Alert, Autoscaling: cks.Autoscaling{Enabled: true, Min: 1, Max: 4},
		ExternalManaged: true, CSI: true, Keypair: "k", IPAddressID: "7944a42f-fcf2-4f4e-932a-e7b59e0724b3",
	}
	added := must[cks.Cluster](t)(st.AddCluster(t.Context(), want))
	want.Seq, want.Version, want.Created = added.Seq, 1, added.Created
	diff(t, want, added)
	view := must[cks.ClusterView](t)(st.View(t.Context(), added.ID))
	if view.Version != nil || view.Template != nil || view.VMs == nil || view.Offerings[o].ID != o {
		t.Errorf("view is %+v", view)
	}
	bad := want
	bad.ID, bad.State = "", cks.Scaling
	_, err := st.AddCluster(t.Context(), bad)
	wantCode(t, err, cks.Invalid)
}

// Each filter of a list of VMs (cks.md §2.8), and what a VM is shown with.
//
// Keeps: §2.8/id, §2.8/ids, §2.8/name, §2.8/state, §2.8/zoneid, §2.8/networkid.
func TestVMsAreListedAndFiltered(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Etcd: 1, Workers: 2})
	other := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	gone := workers(v)[1]
	sql(t, st, `UPDATE vms SET removed = now() WHERE id = $1`, gone.ID)
	ok(t, st.ObserveVM(t.Context(), workers(other)[0].ID, cks.Machine{State: cks.VMDestroyed}, time.Now()))
	first := v.VMs[0]
	for what, tt := range map[string]struct {
		f       cks.VMFilter
		account string
		want    int
	}{
		"all":             {cks.VMFilter{}, "", 5},
		"one page":        {cks.VMFilter{Page: cks.Page{Number: 2, Size: 5}}, "", 5},
		"id":              {cks.VMFilter{ID: strings.ToUpper(first.ID)}, "", 1},
		"removed id":      {cks.VMFilter{ID: gone.ID}, "", 0},
		"ids":             {cks.VMFilter{IDs: []string{first.ID, gone.ID, "x", other.VMs[0].ID}}, "", 2},
		"bad ids":         {cks.VMFilter{IDs: []string{"x"}}, "", 0},
		"name":            {cks.VMFilter{Name: "-CONTROL-"}, "", 2},
		"keyword":         {cks.VMFilter{Keyword: "etcd"}, "", 1},
		"state":           {cks.VMFilter{State: "Running"}, "", 4},
		"present":         {cks.VMFilter{State: "Present"}, "", 4},
		"destroyed":       {cks.VMFilter{State: "Destroyed"}, "", 1},
		"zone":            {cks.VMFilter{ZoneID: v.Zone.ID}, "", 5},
		"no zone":         {cks.VMFilter{ZoneID: v.Cluster.ID}, "", 0},
		"network":         {cks.VMFilter{NetworkID: v.Cluster.NetworkID}, "", 3},
		"cluster":         {cks.VMFilter{Cluster: other.Cluster.ID}, "", 2},
		"account":         {cks.VMFilter{}, v.Account.ID, 5},
		"other account":   {cks.VMFilter{}, v.Zone.ID, 0},
		"account by name": {cks.VMFilter{Account: storetest.AccountName}, "", 5},
	} {
		_, total, err := st.VMViews(t.Context(), tt.f, tt.account)
		ok(t, err)
		if total != tt.want {
			t.Errorf("%s: %d VMs, want %d", what, total, tt.want)
		}
	}
	want := cks.VMView{VM: first, ClusterName: "test", NetworkID: v.Cluster.NetworkID, NetworkName: "test-network",
		Account: v.Account, Zone: v.Zone, Offering: v.Offerings[first.OfferingID], Template: v.Template}
	diff(t, want, must[cks.VMView](t)(st.VMView(t.Context(), first.ID)))
	if got := must[cks.VMView](t)(st.VMView(t.Context(), gone.ID)); !got.VM.Removed {
		t.Error("the removed VM does not say so")
	}
	diff(t, first, must[cks.VM](t)(st.VMByRef(t.Context(), fmt.Sprint(first.Seq))))
	_, err := st.VMByRef(t.Context(), v.Cluster.ID)
	wantCode(t, err, cks.NotFound)
	_, err = st.AddVM(t.Context(), first)
	wantCode(t, err, cks.Invalid)
}

func TestUnheldClusterIsRecordedOnlyAsRead(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{State: cks.Created})
	want := cks.Args{Size: 4, Offerings: map[cks.Role]string{cks.Worker: medium(t, st).ID}}
	ok(t, st.RecordUnheld(t.Context(), v.Cluster, want))
	c := cluster(t, st, v)
	if c.Size != 4 || c.OfferingFor(cks.Worker) != medium(t, st).ID || c.DefaultOffering != v.Cluster.DefaultOffering {
		t.Errorf("cluster is %+v", c)
	}
	wantCode(t, st.RecordUnheld(t.Context(), v.Cluster, want), cks.Conflict)
	held := storetest.Fixture(t, st, storetest.Spec{State: cks.Scaling})
	wantCode(t, st.RecordUnheld(t.Context(), held.Cluster, want), cks.Conflict)
}
