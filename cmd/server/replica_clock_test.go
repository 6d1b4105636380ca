package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ckscale/internal/store/storetest"
)

// shifted returns the address of a fresh database whose clock is off by that
// much from that of the servers: its two functions for the time, as whoever
// uses this address sees them. cmd/chaos does it the other way round: there the
// servers' own clocks are off, each by another time.
func shifted(t testing.TB, by time.Duration) string {
	t.Helper()
	plain := storetest.URL(t)
	db := connect(t, plain)
	for _, sql := range []string{
		"CREATE SCHEMA shifted",
		"CREATE FUNCTION shifted.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT pg_catalog.now() + make_interval(secs => %d)'",
		"CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT pg_catalog.clock_timestamp() + make_interval(secs => %d)'",
	} {
		if strings.Contains(sql, "%d") {
			sql = fmt.Sprintf(sql, int(by.Seconds()))
		}
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return with(t, plain, "search_path", "shifted,pg_catalog,public")
}

// TestClocksApartChangeNothing: the servers' clocks are a quarter of an hour
// behind the database's, or ahead of it. A killed server's lease runs out when
// it should, a job's deadline comes neither sooner nor later, the simulated
// cloud takes its time, the scanner looks, and a signature expires by the
// database's clock: what a server takes for the time plays no part.
//
// Keeps: A50.
func TestClocksApartChangeNothing(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T){}
	for _, by := range []time.Duration{15 * time.Minute, -15 * time.Minute} {
		cases[by.String()] = func(t *testing.T) { clocksApart(t, by) }
	}
	many(t, len(cases), cases)
}

func clocksApart(t *testing.T, by time.Duration) {
	const limit = 10 * time.Second
	env := childEnv(t, map[string]string{
		"DATABASE_URL": shifted(t, by), "CKSCALE_SCAN_INTERVAL": "1s", "CKSCALE_SCALE_TIMEOUT": limit.String()})
	servers := map[string]*child{}
	for _, s := range []*child{spawn(t, env), spawn(t, env)} {
		_, owner := s.serving()
		servers[owner] = s
	}
	db := connect(t, env["DATABASE_URL"])
	now := ask[time.Time](t, db, "SELECT now()")
	if off := time.Until(now) - by; off.Abs() > time.Minute {
		t.Fatalf("the clock that is to be off by %s is off by %s more", by, off)
	}
	job, owner := hanging(anyOf(servers).client(), env)
	servers[owner].kill()
	delete(servers, owner)
	c := anyOf(servers).client()
	c.grown(job)
	c.simulate("vm.set", "Stopped", "vmid="+c.workers()[0])
	c.inState("Alert")
	c.do("startVirtualMachine", "id="+c.workers()[0])
	c.inState("Running")

	c.simulate("node.join", "fail")
	begin := time.Now()
	ended := c.ended(c.start("scaleKubernetesCluster", "id="+c.id(), "size=4"))
	if took := time.Since(begin); ended["jobstatus"] != 2.0 || took < limit {
		t.Errorf("after %s: job %v", took, ended)
	}
	if created, err := time.Parse("2006-01-02T15:04:05-0700", ended.text("created")); err != nil || time.Until(created).Abs() < by.Abs()/2 {
		t.Errorf("the job was made at %s, %v", ended.text("created"), err)
	}
	c.simulate("node.join", "clear")
	for ahead, want := range map[time.Duration]int{5 * time.Minute: 200, -5 * time.Minute: 401} {
		expires := now.Add(ahead).UTC().Format("2006-01-02T15:04:05-0700")
		if status, a := c.send("listZones", "signatureVersion=3", "expires="+expires); status != want {
			t.Errorf("a signature that is good for %s is answered by %d %v", ahead, status, a)
		}
	}
	c.whole()
}
