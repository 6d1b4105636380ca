package main

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ckscale/internal/store/storetest"
)

// held starts a scale-up of the demo cluster whose new nodes do not join until
// release is called.
func (c *client) held(size int) (job string, release func()) {
	c.Helper()
	c.simulate("node.join", "fail")
	return c.start("scaleKubernetesCluster", "id="+c.id(), "size="+strconv.Itoa(size)), func() { c.simulate("node.join", "clear") }
}

// awaited asks for the job, and to be answered when it has ended.
func (c *client) awaited(job string, seconds int) answer {
	c.Helper()
	return c.call("queryAsyncJobResult", "jobid="+job, "wait="+strconv.Itoa(seconds))
}

// metric is the sum of a metric at a server.
func (c *client) metric(name string) (sum float64) {
	c.Helper()
	_, metrics := get(c.TB, strings.TrimSuffix(c.url, "/client/api")+"/metrics", keys{})
	for line := range strings.Lines(metrics) {
		if label, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && (label == name || strings.HasPrefix(label, name+"{")) {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				c.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// 200 clients wait for one job at a server that has four connections to its
// database. They hold none of them: others are served, and the pool is hardly
// used. When the job ends, all of them are told.
//
// Keeps: ours/wait, ours/wait-free.
func TestManyWaitAtOnce(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"DATABASE_URL": with(t, storetest.URL(t), "pool_max_conns", "4"), "CKSCALE_SIM_SPEED": "50", "CKSCALE_SCAN_INTERVAL": "1h"})
	job, release := c.held(3)
	var wg sync.WaitGroup
	var ended, asked atomic.Int64
	for range 200 {
		wg.Go(func() {
			for { // a busy machine may take longer than one wait
				asked.Add(1)
				if c.awaited(job, 60)["jobstatus"] != 0.0 {
					ended.Add(1)
					return
				}
			}
		})
	}
	acquires := func() float64 { return c.metric("ckscale_database_acquires_total") }
	c.until("all of them wait", time.Minute, func() bool { return asked.Load() >= 200 && c.metric("ckscale_job_waits") == 200 })
	taken := acquires()
	begin := time.Now()
	const requests = 20
	for range requests {
		c.cluster()
	}
	if n, seconds := acquires()-taken, time.Since(begin).Seconds(); n > 20*requests+30*(seconds+1) {
		t.Errorf("%.0f connections were taken in %.1f s, for %d requests", n, seconds, requests)
	}
	if n := ended.Load(); n > 0 {
		t.Errorf("%d were answered before the job ended", n)
	}
	release()
	wg.Wait()
	if n := ended.Load(); n != 200 {
		t.Errorf("%d were told", n)
	}
	c.until("nobody waits", time.Minute, func() bool { return c.metric("ckscale_job_waits") == 0 })
}

// The longest wait is longer than what a request may take otherwise, and than
// what a client may take to receive its answer: it is answered all the same,
// with the job as it is then.
//
// Keeps: ours/wait-limit.
func TestLongestWaitIsAnswered(t *testing.T) {
	t.Parallel()
	c := demo(t, map[string]string{"CKSCALE_SIM_SPEED": "50"})
	job, release := c.held(3)
	begin := time.Now()
	if got := c.awaited(job, 60); got["jobstatus"] != 0.0 || got.text("jobid") != job {
		t.Errorf("got %v", got)
	}
	if took := time.Since(begin); took < time.Minute {
		t.Errorf("it took %s", took)
	}
	release()
	c.ended(job)
}

// Clients wait at both of two servers, of which one ends the job: both are
// answered then. When a server is told to stop, it answers at once, and ends.
//
// Keeps: ours/wait-elsewhere, ours/wait-shutdown.
func TestWaitAtEveryServer(t *testing.T) {
	t.Parallel()
	env := childEnv(t, map[string]string{"CKSCALE_LEASE": "60s", "CKSCALE_SCAN_INTERVAL": "1h"})
	servers := twoServers{spawn(t, env), spawn(t, env)}
	waiting := func(s *child, job string) <-chan answer {
		c, got := s.client(), make(chan answer, 1)
		go func() { got <- c.awaited(job, 60) }()
		c.until("somebody waits", time.Minute, func() bool { return c.metric("ckscale_job_waits") == 1 })
		return got
	}
	c := servers[0].client()
	job, release := c.held(3)
	both := []<-chan answer{waiting(servers[0], job), waiting(servers[1], job)}
	release()
	for _, got := range both {
		if a := <-got; a["jobstatus"] != 1.0 {
			t.Errorf("got %v", a)
		}
	}

	job, release = c.held(4)
	got := waiting(servers[1], job)
	begin := time.Now()
	servers[1].tell(syscall.SIGTERM)
	if a := <-got; a["jobstatus"] != 0.0 || a.text("jobid") != job {
		t.Errorf("got %v", a)
	}
	t.Logf("answered %s after it was told to stop", time.Since(begin))
	servers[1].gone(stepGrace + requestGrace + 20*time.Second)
	release()
	c.ended(job)
}
