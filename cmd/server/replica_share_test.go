package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ckscale/internal/store/storetest"
)

// trio is three servers on one database, by the ids under which they hold
// leases.
func trio(t testing.TB, env map[string]string) map[string]*child {
	t.Helper()
	var started []*child
	for range 3 {
		started = append(started, spawn(t, env))
	}
	servers := map[string]*child{}
	for _, s := range started {
		_, owner := s.serving()
		servers[owner] = s
	}
	return servers
}

func anyOf(servers map[string]*child) *child {
	for _, s := range servers {
		return s
	}
	return nil
}

// owners are the servers that execute jobs now.
func owners(t testing.TB, db *pgx.Conn) map[string]bool {
	t.Helper()
	rows, err := db.Query(t.Context(), "SELECT DISTINCT owner FROM jobs WHERE owner IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	now := map[string]bool{}
	for _, id := range list {
		now[id] = true
	}
	return now
}

// TestThreeServersShareTheWork: twelve jobs that one server of three accepts at
// once are executed by all three, and each call to the cloud is made once.
func TestThreeServersShareTheWork(t *testing.T) {
	t.Parallel()
	env := childEnv(t, map[string]string{"CKSCALE_WORKERS": "4", "CKSCALE_DEMO": "false"})
	servers := trio(t, env)
	views := clusters(t, env["DATABASE_URL"], 12, storetest.Spec{Control: 1, Workers: 1})
	db := connect(t, env["DATABASE_URL"])
	c := anyOf(servers).client()
	c.simulate("vm.create", "delay:2s")
	var jobs []string
	for _, view := range views {
		jobs = append(jobs, c.start("scaleKubernetesCluster", "id="+view.Cluster.ID, "size=2"))
	}
	c.until("all three are at work", time.Minute, func() bool {
		now := owners(t, db)
		for owner := range servers {
			if !now[owner] {
				return false
			}
		}
		return true
	})
	for _, id := range jobs {
		if job := c.ended(id); job["jobstatus"] != 1.0 {
			t.Errorf("job %v", job)
		}
	}
	made := c.callsOf("vm.create")
	for vm, n := range made {
		if n != 1 {
			t.Errorf("%d calls to make VM %s", n, vm)
		}
	}
	if len(made) != len(jobs) {
		t.Errorf("%d VMs were made for %d jobs", len(made), len(jobs))
	}
}

// TestNoServerLeads: whichever of three servers is killed, and then of those
// that are left, the others go on: a job that hangs in it is ended, a VM that
// goes down is noticed, and its cluster is scaled.
func TestNoServerLeads(t *testing.T) {
	t.Parallel()
	env := childEnv(t, map[string]string{"CKSCALE_SCAN_INTERVAL": "1s"})
	servers := trio(t, env)
	db := connect(t, env["DATABASE_URL"])
	for size := 3; len(servers) > 1; size++ {
		c := anyOf(servers).client()
		before, made := c.workers(), c.calls("vm.create")
		c.simulate("vm.create", "hang", "count=1")
		job := c.start("scaleKubernetesCluster", "id="+c.id(), fmt.Sprintf("size=%d", size))
		var owner string
		c.until("a server hangs in the call", time.Minute, func() bool {
			for owner = range owners(t, db) {
			}
			return owner != "" && c.calls("vm.create") > made
		})
		servers[owner].kill()
		delete(servers, owner)
		c = anyOf(servers).client()
		if ended := c.ended(job); ended["jobstatus"] != 1.0 {
			t.Errorf("job %v", ended)
		}
		c.simulate("vm.set", "Stopped", "vmid="+before[0])
		c.inState("Alert")
		c.do("scaleKubernetesCluster", "id="+c.id(), "nodeids="+before[0])
		c.do("scaleKubernetesCluster", "id="+c.id(), fmt.Sprintf("size=%d", size))
		c.whole()
	}
}
