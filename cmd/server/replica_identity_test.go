package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alone lets a process be number 1 in a namespace of its own, as in a
// container.
const alone = syscall.CLONE_NEWPID

// needAlone skips the test where there can be no such process.
func needAlone(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	try := exec.Command(self, "-test.run=^$")
	try.SysProcAttr = &syscall.SysProcAttr{Cloneflags: alone}
	if err := try.Run(); errors.Is(err, os.ErrPermission) {
		t.Skip("this machine lets us make no process namespaces")
	} else if err != nil {
		t.Fatal(err)
	}
}

// pid is the process id that the server says it has.
func (s *child) pid() int {
	s.Helper()
	s.serving()
	for line := range strings.Lines(s.stdout.String()) {
		var entry struct {
			Msg string
			PID int
		}
		if err := json.Unmarshal([]byte(line), &entry); err == nil && entry.Msg == "serving" {
			return entry.PID
		}
	}
	s.Fatal("the log does not tell the process id")
	return 0
}

// TestNamesakeIsSomebodyElse: a server is killed, and the one that is started
// then has its host name and its process id, as containers have, and its
// settings. It does not take the dead one's lease for its own: neither does it
// renew it nor does it go on with the job before the lease has run out. Then it
// does, and so would any other.
//
// Keeps: A51.
func TestNamesakeIsSomebodyElse(t *testing.T) {
	t.Parallel()
	needAlone(t)
	env := childEnv(t, map[string]string{"CKSCALE_LEASE": longLease})
	first := spawnIn(t, env, alone)
	job, owner := hanging(first.client(), env)
	first.kill()
	second := spawnIn(t, env, alone)
	if a, b := first.pid(), second.pid(); a != 1 || b != 1 {
		t.Fatalf("their process ids are %d and %d", a, b)
	}
	db := connect(t, env["DATABASE_URL"])
	lease := func() (s struct {
		Owner   string
		Attempt int64
		Due     time.Time
	}) {
		if err := db.QueryRow(t.Context(), "SELECT owner, attempt, due FROM jobs WHERE id = $1", job).Scan(&s.Owner, &s.Attempt, &s.Due); err != nil {
			t.Fatal(err)
		}
		return s
	}
	was := lease()
	c := second.client()
	c.do("stopVirtualMachine", "id="+c.workers()[0]) // it looks for jobs, and takes what it may
	c.do("startVirtualMachine", "id="+c.workers()[0])
	if is := lease(); is != was || is.Owner != owner {
		t.Errorf("the lease was %+v and is %+v; the dead server was %s", was, is, owner)
	}
	if _, err := db.Exec(t.Context(), "UPDATE jobs SET due = now() WHERE id = $1", job); err != nil { // as the passing of time would
		t.Fatal(err)
	}
	c.grown(job)
}

// TestNamesakesShareTheWork: two servers with one host name and one process id
// at the same time are two.
func TestNamesakesShareTheWork(t *testing.T) {
	t.Parallel()
	needAlone(t)
	env := childEnv(t, nil)
	servers := map[string]*child{}
	for _, s := range []*child{spawnIn(t, env, alone), spawnIn(t, env, alone)} {
		_, owner := s.serving()
		servers[owner] = s
	}
	if len(servers) != 2 {
		t.Fatal("they hold leases under one id")
	}
	job, owner := hanging(anyOf(servers).client(), env)
	servers[owner].kill()
	delete(servers, owner)
	anyOf(servers).client().grown(job)
}
