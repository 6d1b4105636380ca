package storetest_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// Each test has a database of its own, migrated or empty.
func TestDatabasesAreSeparate(t *testing.T) {
	t.Parallel()
	a, b := storetest.New(t), storetest.New(t)
	storetest.Fixture(t, a, storetest.Spec{Workers: 1})
	if empty, err := b.Empty(t.Context()); err != nil || !empty {
		t.Errorf("the other database is not empty, %v", err)
	}
	if v, dirty, err := a.SchemaVersion(t.Context()); err != nil || v != store.LatestVersion() || dirty {
		t.Errorf("schema is %d, %t, %v", v, dirty, err)
	}
	conn, err := pgx.Connect(t.Context(), storetest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // ends the test
	var tables int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("an empty database has %d tables, %v", tables, err)
	}
}

// A fixture can be had in every state, more than once.
func TestFixtureInEveryState(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	for _, state := range cks.States {
		v := storetest.Fixture(t, st, storetest.Spec{State: state, Control: 2, Etcd: 1, Workers: 2, External: 1})
		if v.Cluster.State != state || (v.Cluster.HeldBy != "") != state.Busy() || v.Cluster.Size != 3 || len(v.VMs) != 6 {
			t.Errorf("%s: %+v", state, v.Cluster)
		}
		if state.Busy() {
			if j, err := st.Job(t.Context(), v.Cluster.HeldBy); err != nil || j.Status != cks.JobPending || j.ClusterID != v.Cluster.ID {
				t.Errorf("%s: job is %+v, %v", state, j, err)
			}
		}
		for _, m := range v.VMs {
			if m.State != cks.VMRunning || m.Phase != cks.Member || (m.NodeVersion == "") != (m.Role == cks.Etcd) {
				t.Errorf("%s: VM is %+v", state, m)
			}
		}
	}
	v := storetest.Fixture(t, st, storetest.Spec{})
	if got := fmt.Sprintf("%s %d %t", v.Cluster.State, len(v.VMs), v.Account.Admin); got != "Running 1 false" {
		t.Errorf("the zero fixture is %s", got)
	}
}
