package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// Spec says what the cluster of a Fixture is like.
type Spec struct {
	State   cks.State // empty: Running. In a busy state a live job holds it
	Control int       // 0 acts as 1
	Etcd    int

	Workers, External int
}

// Names of what Fixture makes once per database. Account's keys are
// "alice-key" and "alice-secret".
const (
	AccountName  = "alice"
	ZoneName     = "zone1"
	SmallName    = "small"  // 2 cores, 2048 MB; what all VMs have
	MediumName   = "medium" // 4 cores, 4096 MB
	VersionName  = "v1.33.1"
	TemplateName = "cks-node"
)

// Fixture adds an account that is no admin, a zone, two offerings, a version, a
// template, as far as the database does not have them, and one cluster whose
// VMs are members and Running.
func Fixture(t testing.TB, st *store.Store, s Spec) cks.ClusterView {
	t.Helper()
	if s.State == "" {
		s.State = cks.Running
	}
	if s.Control == 0 {
		s.Control = 1
	}
	var view cks.ClusterView
	err := st.InTx(context.Background(), func(q *store.Queries) error {
		c, err := catalog(q)
		if err != nil {
			return err
		}
		c.State, c.ControlNodes, c.EtcdNodes, c.Size = s.State, s.Control, s.Etcd, s.Workers+s.External
		if c, err = cluster(q, c); err != nil {
			return err
		}
		if err := machines(q, c, s); err != nil {
			return err
		}
		view, err = q.View(context.Background(), c.ID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// orAdd returns what find finds; else what add adds.
func orAdd[T any](find, add func() (T, error)) (T, error) {
	v, err := find()
	if cks.CodeOf(err) == cks.NotFound {
		return add()
	}
	return v, err
}

// first is the first of a page.
func first[T any](rows []T, _ int, err error) (v T, _ error) {
	if err == nil && len(rows) == 0 {
		err = cks.Errorf(cks.NotFound, "none")
	}
	if err != nil {
		return v, err
	}
	return rows[0], nil
}

// catalog adds all that a cluster refers to, and returns a cluster that does.
func catalog(q *store.Queries) (c cks.Cluster, err error) {
	ctx := context.Background()
	named := func(name string) cks.CatalogFilter { return cks.CatalogFilter{Name: name} }
	account, err := orAdd(
		func() (cks.Account, error) { return q.AccountByName(ctx, AccountName) },
		func() (cks.Account, error) {
			q.UseKey(Key)
			return q.AddAccount(ctx, AccountName, "alice-key", "alice-secret", false)
		})
	if err != nil {
		return c, err
	}
	zone, err := orAdd(
		func() (cks.Zone, error) { return first(q.Zones(ctx, named(ZoneName))) },
		func() (cks.Zone, error) { return q.AddZone(ctx, cks.Zone{Name: ZoneName}) })
	if err != nil {
		return c, err
	}
	var offerings [2]cks.Offering
	for i, o := range []cks.Offering{
		{Name: SmallName, DisplayText: "Small", Cores: 2, SpeedMHz: 2000, MemoryMB: 2048},
		{Name: MediumName, DisplayText: "Medium", Cores: 4, SpeedMHz: 2000, MemoryMB: 4096},
	} {
		offerings[i], err = orAdd(
			func() (cks.Offering, error) { return first(q.Offerings(ctx, named(o.Name))) },
			func() (cks.Offering, error) { return q.AddOffering(ctx, o) })
		if err != nil {
			return c, err
		}
	}
	version, err := orAdd(
		func() (cks.KubernetesVersion, error) { return first(q.Versions(ctx, named(VersionName))) },
		func() (cks.KubernetesVersion, error) {
			return q.AddVersion(ctx, cks.KubernetesVersion{Name: VersionName, Version: VersionName[1:],
				ISOName: "kubernetes-" + VersionName, MinCores: 2, MinMemoryMB: 2048, Enabled: true})
		})
	if err != nil {
		return c, err
	}
	template, err := orAdd(
		func() (cks.Template, error) { return q.Template(ctx) },
		func() (cks.Template, error) { return q.AddTemplate(ctx, cks.Template{Name: TemplateName, Ready: true}) })
	return cks.Cluster{
		ID: uuid.NewString(), Name: "test", Description: "test cluster", AccountID: account.ID, ZoneID: zone.ID,
		VersionID: version.ID, TemplateID: template.ID, NetworkName: "test-network",
		DefaultOffering: offerings[0].ID, IPAddress: "203.0.113.10",
	}, err
}

// cluster adds c, with a live job that holds it if its state is busy.
func cluster(q *store.Queries, c cks.Cluster) (cks.Cluster, error) {
	ctx := context.Background()
	if c.State.Busy() {
		kind, command := cks.ScaleUp, "scaleKubernetesCluster"
		switch c.State {
		case cks.Starting:
			kind, command = cks.CreateCluster, "createKubernetesCluster"
		case cks.Destroying:
			kind, command = cks.DeleteCluster, "deleteKubernetesCluster"
		}
		j, err := q.AddJob(ctx, store.NewJob{Command: command, Kind: kind, AccountID: c.AccountID, ClusterID: c.ID,
			Notes: cks.Notes{Seen: cks.Running, Before: c.Size}, Timeout: time.Hour})
		if err != nil {
			return c, err
		}
		c.HeldBy = j.ID
	}
	return q.AddCluster(ctx, c)
}

var named atomic.Int64

// machines adds the VMs of c, in the order of creation (spec/cks.md §8.3).
func machines(q *store.Queries, c cks.Cluster, s Spec) error {
	for _, group := range []struct {
		count    int
		stem     string
		role     cks.Role
		external bool
	}{
		{s.Etcd, "test-etcd", cks.Etcd, false},
		{s.Control, "test-control", cks.Control, false},
		{s.Workers, "test-node", cks.Worker, false},
		{s.External, "outside", cks.Worker, true},
	} {
		for i := range group.count {
			n := named.Add(1)
			stem, version := group.stem, VersionName[1:]
			if group.role == cks.Etcd {
				stem, version = fmt.Sprintf("%s-%d", stem, i+1), ""
			}
			_, err := q.AddVM(context.Background(), cks.VM{
				ClusterID: c.ID, Name: fmt.Sprintf("%s-%011x", stem, 0x197eb5e9290+n), Role: group.role,
				External: group.external, OfferingID: c.DefaultOffering, State: cks.VMRunning, NodeVersion: version,
				IPAddress:  fmt.Sprintf("10.1.%d.%d", n>>8&0xff, n&0xff),
				MACAddress: fmt.Sprintf("02:00:00:%02x:%02x:%02x", n>>16&0xff, n>>8&0xff, n&0xff),
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
