package store_test

import (
	"fmt"
	"slices"
	"testing"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

func medium(t *testing.T, st *store.Store) cks.Offering {
	t.Helper()
	list, _, err := st.Offerings(t.Context(), cks.CatalogFilter{Name: storetest.MediumName})
	ok(t, err)
	return list[0]
}

// What is added can be read by uuid and by number, as long as it is not removed.
//
// Keeps: §3.1/1-offering.
func TestCatalogIsReadAsItWasAdded(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	z := must[cks.Zone](t)(st.AddZone(ctx, cks.Zone{Name: "z"}))
	o := must[cks.Offering](t)(st.AddOffering(ctx, cks.Offering{
		ID: "7944a42f-fcf2-4f4e-932a-e7b59e0724b1", Name: "o", DisplayText: "O", Cores: 1, SpeedMHz: 2, MemoryMB: 3}))
	k := must[cks.KubernetesVersion](t)(st.AddVersion(ctx, cks.KubernetesVersion{
		Name: "v1.2.3", Version: "1.2.3", ISOName: "i", MinCores: 2, MinMemoryMB: 4, Enabled: true}))
	if o.Cores != 1 || o.SpeedMHz != 2 || o.MemoryMB != 3 || o.DisplayText != "O" || o.Created.IsZero() || o.Seq != 1 {
		t.Errorf("offering is %+v", o)
	}
	if k.ISOID == "" || k.MinCores != 2 || k.MinMemoryMB != 4 || !k.Enabled {
		t.Errorf("version is %+v", k)
	}
	for _, ref := range []string{o.ID, "7944A42F-FCF2-4F4E-932A-E7B59E0724B1", "1"} {
		diff(t, o, must[cks.Offering](t)(st.Offering(ctx, ref)))
	}
	diff(t, z, must[cks.Zone](t)(st.Zone(ctx, z.ID)))
	diff(t, k, must[cks.KubernetesVersion](t)(st.Version(ctx, "1")))
	_, err := st.Zone(ctx, o.ID)
	wantCode(t, err, cks.NotFound)
	_, err = st.Version(ctx, "2")
	wantCode(t, err, cks.NotFound)
	_, err = st.AddZone(ctx, cks.Zone{Name: "z"})
	wantCode(t, err, cks.Invalid)
	_, err = st.AddVersion(ctx, cks.KubernetesVersion{Name: "v1", Version: "1"})
	wantCode(t, err, cks.Invalid)
	sql(t, st, `UPDATE service_offerings SET removed = now()`)
	_, err = st.Offering(ctx, o.ID)
	wantCode(t, err, cks.NotFound)
	if _, total, err := st.Offerings(ctx, cks.CatalogFilter{}); err != nil || total != 0 {
		t.Errorf("a removed offering is listed: %d, %v", total, err)
	}
}

func TestNewClustersGetTheNewestTemplate(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	_, err := st.Template(t.Context())
	wantCode(t, err, cks.NotFound)
	for _, name := range []string{"one", "two"} {
		added := must[cks.Template](t)(st.AddTemplate(t.Context(), cks.Template{Name: name, Ready: name == "one"}))
		diff(t, added, must[cks.Template](t)(st.Template(t.Context())))
	}
}

func TestCatalogFilters(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	zone := must[cks.Zone](t)(st.AddZone(t.Context(), cks.Zone{Name: "z"}))
	for _, v := range []string{"1.9.0", "1.10.0", "1.33.1", "2.0.0"} {
		must[cks.KubernetesVersion](t)(st.AddVersion(t.Context(), cks.KubernetesVersion{
			Name: "v" + v, Version: v, MinCores: 1, MinMemoryMB: 1}))
	}
	for what, tt := range map[string]struct {
		f     cks.CatalogFilter
		want  []string
		total int
	}{
		"all":          {cks.CatalogFilter{}, []string{"1.9.0", "1.10.0", "1.33.1", "2.0.0"}, 4},
		"name":         {cks.CatalogFilter{Name: "v1.33.1"}, []string{"1.33.1"}, 1},
		"keyword":      {cks.CatalogFilter{Keyword: "V1."}, []string{"1.9.0", "1.10.0", "1.33.1"}, 3},
		"id":           {cks.CatalogFilter{ID: "2"}, []string{"1.10.0"}, 1},
		"no id":        {cks.CatalogFilter{ID: "x"}, nil, 0},
		"from 1.10":    {cks.CatalogFilter{MinVersion: "1.10.0"}, []string{"1.10.0", "1.33.1", "2.0.0"}, 3},
		"zone":         {cks.CatalogFilter{ID: "1", ZoneID: zone.ID, MinVersion: "1.0.0"}, []string{"1.9.0"}, 1},
		"unknown zone": {cks.CatalogFilter{ZoneID: "7944a42f-fcf2-4f4e-932a-e7b59e0724b1"}, nil, 0},
		"bad zone":     {cks.CatalogFilter{ZoneID: "x"}, nil, 0},
		"page":         {cks.CatalogFilter{Page: cks.Page{Number: 2, Size: 3}}, []string{"2.0.0"}, 4},
	} {
		list, total, err := st.Versions(t.Context(), tt.f)
		ok(t, err)
		var got []string
		for _, v := range list {
			got = append(got, v.Version)
		}
		if !slices.Equal(got, tt.want) || total != tt.total {
			t.Errorf("%s: %v of %d, want %v of %d", what, got, total, tt.want, tt.total)
		}
	}
	for _, bad := range []string{"1.2", "v1.2.3", "1.2.3.4", "x"} {
		_, _, err := st.Versions(t.Context(), cks.CatalogFilter{MinVersion: bad})
		wantCode(t, err, cks.Invalid)
	}
}

// An account is found by its key while it is enabled.
//
// Keeps: §1.7/disabled, §1.7/key-access.
func TestAccounts(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	admin := must[cks.Account](t)(st.EnsureAdmin(ctx, "key-1", "secret-1"))
	if !admin.Admin || admin.Name != store.Admin || admin.Domain != "ROOT" || admin.DomainPath != "ROOT" || admin.UserID == "" {
		t.Errorf("admin is %+v", admin)
	}
	sql(t, st, `UPDATE accounts SET enabled = false, admin = false`)
	_, _, err := st.AccountByKey(ctx, "key-1")
	wantCode(t, err, cks.NotFound)
	diff(t, admin, must[cks.Account](t)(st.EnsureAdmin(ctx, "key-2", "secret-2")))
	got, secret, err := st.AccountByKey(ctx, "key-2")
	ok(t, err)
	diff(t, admin, got)
	if secret != "secret-2" {
		t.Error("the secret is not the new one")
	}
	bob := must[cks.Account](t)(st.AddAccount(ctx, "bob", "key-3", "secret-3", false))
	diff(t, bob, must[cks.Account](t)(st.AccountByName(ctx, "bob")))
	for _, key := range []string{"", "key-1", "KEY-2", "key-2\x00", "\xff"} {
		_, _, err := st.AccountByKey(ctx, key)
		wantCode(t, err, cks.NotFound)
	}
	for _, taken := range [][2]string{{"bob", "key-4"}, {"eve", "key-3"}, {"", "key-5"}, {"eve", ""}} {
		_, err := st.AddAccount(ctx, taken[0], taken[1], "s", false)
		wantCode(t, err, cks.Invalid)
	}
	_, err = st.EnsureAdmin(ctx, "key-3", "s")
	wantCode(t, err, cks.Invalid)
	_, err = st.AccountByName(ctx, "eve")
	wantCode(t, err, cks.NotFound)
}

func TestLimitsAndUsage(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	v, j := scaling(t, st, storetest.Spec{Workers: 2})
	bob := must[cks.Account](t)(st.AddAccount(ctx, "bob", "bob-key", "s", false))
	diff(t, store.Limits{}, must[store.Limits](t)(st.Limits(ctx, bob.ID)))
	vms, cores, memory := 4, 9, int64(1)<<40
	for _, l := range []store.Limits{{VMs: &vms, Cores: &cores, MemoryMB: &memory}, {VMs: &vms}, {}} {
		ok(t, st.SetLimits(ctx, bob.ID, l))
		diff(t, l, must[store.Limits](t)(st.Limits(ctx, bob.ID)))
	}
	_, err := st.Limits(ctx, v.Zone.ID)
	wantCode(t, err, cks.NotFound)
	wantCode(t, st.SetLimits(ctx, v.Zone.ID, store.Limits{}), cks.NotFound)

	usage := func(account string) string {
		t.Helper()
		vms, cores, memory, err := st.Usage(ctx, account)
		ok(t, err)
		return fmt.Sprint(vms, cores, memory)
	}
	diff(t, "0 0 0", usage(bob.ID))
	diff(t, "3 6 6144", usage(v.Account.ID))
	chosen := choose(t, st, v, j, 2)
	diff(t, "5 10 10240", usage(v.Account.ID))
	ok(t, st.NodeRemoved(ctx, j, chosen[0].ID))
	diff(t, "4 8 8192", usage(v.Account.ID))
}

// Servers that start at once do what they do alone one after the other.
func TestAlone(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	for _, err := range together(4, func(int) error {
		return st.InTx(t.Context(), func(q *store.Queries) error {
			if err := q.Alone(t.Context()); err != nil {
				return err
			}
			if empty, err := q.Empty(t.Context()); err != nil || !empty {
				return err
			}
			_, err := q.AddZone(t.Context(), cks.Zone{Name: "z"}) // fails when it is there
			return err
		})
	}) {
		ok(t, err)
	}
}
