package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
)

// epoch is when the pure tests begin.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// story drives a cluster through made-up times.
type story struct {
	*testing.T
	c   *cluster
	now time.Time
}

// tell starts a story with two adopted workers, w1 and w2, and an adopted
// control node, c1.
func tell(t *testing.T) *story {
	t.Parallel()
	s := &story{T: t, now: epoch, c: &cluster{ID: "k", times: DefaultTimings}}
	s.c.adopt(cks.MachineSpec{ID: "c1", Name: "Demo-Control-1", Role: cks.Control})
	s.c.adopt(cks.MachineSpec{ID: "w1", Name: "demo-node-1", Role: cks.Worker})
	s.c.adopt(cks.MachineSpec{ID: "w2", Name: "demo-node-2", Role: cks.Worker})
	return s
}

// at lets time pass until after the story's beginning. The cluster is written
// and read back on the way, as in the real world.
func (s *story) at(after time.Duration) *story {
	s.Helper()
	doc, err := s.c.encode()
	s.ok(err)
	times, verdict := s.c.times, s.c.verdict
	s.c, err = decode("k", doc, times, verdict)
	s.ok(err)
	s.now = epoch.Add(after)
	s.c.advance(s.now)
	return s
}

func (s *story) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", s.now.Sub(epoch), err)
	}
}

func (s *story) code(err error, want cks.Code) {
	s.Helper()
	if err == nil || cks.CodeOf(err) != want {
		s.Fatalf("%s: error %v, want code %s", s.now.Sub(epoch), err, want)
	}
}

// vm, node, pods check what the world shows now; a ready of "" is an absent
// node.
func (s *story) vm(id string, want cks.VMState) {
	s.Helper()
	m := s.c.machine(id)
	if m == nil || m.State != want {
		s.Fatalf("%s: VM %s is %+v, want %s", s.now.Sub(epoch), id, m, want)
	}
}

func (s *story) node(name string, want cks.Readiness) {
	s.Helper()
	got := cks.Readiness("")
	if n := s.c.node(name); n != nil {
		got = n.Ready
	}
	if got != want {
		s.Fatalf("%s: node %s is %q, want %q", s.now.Sub(epoch), name, got, want)
	}
}

func (s *story) pods(want string) {
	s.Helper()
	got := fmt.Sprintf("pending=%d", s.c.Pending)
	for _, n := range s.c.Nodes {
		got += fmt.Sprintf(" %s=%d", n.Name, n.Pods)
	}
	if got != want {
		s.Fatalf("%s: pods are %s, want %s", s.now.Sub(epoch), got, want)
	}
}

// spec is a new worker.
func spec(id string) cks.MachineSpec {
	return cks.MachineSpec{ID: id, ClusterID: "k", Name: "Demo-Node-" + id, Role: cks.Worker, Cores: 2, MemoryMB: 2048}
}

const sec = time.Second

// A new VM boots for 8 s; its node registers 20 s after it runs with the ISO,
// is NotReady for a second, and brings no pods to a cluster that has them.
func TestNewMachineBootsAndItsNodeJoins(t *testing.T) {
	s := tell(t)
	s.c.create(spec("n"))
	s.vm("n", cks.VMStopped)
	s.ok(s.c.start("n", s.now))
	s.ok(s.c.attach("n", s.now))
	s.at(8*sec-1).vm("n", cks.VMStarting)
	s.at(8*sec).vm("n", cks.VMRunning)
	s.at(28*sec-1).node("demo-node-n", "")
	s.at(28*sec).node("demo-node-n", cks.NodeNotReady)
	s.at(29*sec-1).node("demo-node-n", cks.NodeNotReady)
	s.at(29*sec).node("demo-node-n", cks.NodeReady)
	s.ok(s.c.detach("n"))
	s.at(time.Hour).node("demo-node-n", cks.NodeReady)
	s.pods("pending=0 demo-control-1=0 demo-node-1=3 demo-node-2=3 demo-node-n=0")
}

// The ISO that comes late starts the timer late (spec/seed.txt).
func TestJoinCountsFromTheISO(t *testing.T) {
	s := tell(t)
	s.c.create(spec("n"))
	s.ok(s.c.start("n", s.now))
	s.at(100 * sec)
	s.ok(s.c.attach("n", s.now))
	s.at(110 * sec)
	s.ok(s.c.attach("n", s.now)) // again: changes nothing
	s.at(120*sec-1).node("demo-node-n", "")
	s.at(120*sec).node("demo-node-n", cks.NodeNotReady)
}

// The failure that the seed reports: the ISO is detached before the node has
// joined, and it never does, until the ISO is attached again.
//
// Keeps: seed/early-detach.
func TestDetachedEarlyNeverJoins(t *testing.T) {
	s := tell(t)
	s.c.create(spec("n"))
	s.ok(s.c.attach("n", s.now))
	s.ok(s.c.start("n", s.now))
	s.at(28*sec - 1)
	s.ok(s.c.detach("n"))
	s.at(time.Hour).node("demo-node-n", "")
	s.ok(s.c.attach("n", s.now))
	s.at(time.Hour+20*sec-1).node("demo-node-n", "")
	s.at(time.Hour+21*sec).node("demo-node-n", cks.NodeReady)
}

// A VM that stops on its way into the cluster starts the way anew.
func TestStopOnTheWayStartsTheJoinAnew(t *testing.T) {
	s := tell(t)
	s.c.create(spec("n"))
	s.ok(s.c.attach("n", s.now))
	s.ok(s.c.start("n", s.now))
	s.at(20 * sec)
	s.ok(s.c.stop("n", true, s.now))
	s.at(30*sec).node("demo-node-n", "")
	s.ok(s.c.start("n", s.now))
	s.at(58*sec-1).node("demo-node-n", "")
	s.at(59*sec).node("demo-node-n", cks.NodeReady)
}

// The stale-Ready window: Kubernetes believes a stopped VM's node Ready for
// the grace period (spec/seed.txt).
//
// Keeps: seed/grace.
func TestStoppedNodeStaysReadyForTheGracePeriod(t *testing.T) {
	s := tell(t)
	s.ok(s.c.stop("w1", false, s.now))
	s.vm("w1", cks.VMStopping)
	s.at(1*sec).vm("w1", cks.VMStopped)
	s.at(41*sec-1).node("demo-node-1", cks.NodeReady)
	s.at(41*sec).node("demo-node-1", cks.NodeUnknown)
	s.ok(s.c.stop("w2", true, s.now))
	s.vm("w2", cks.VMStopped)
	s.at(81*sec-1).node("demo-node-2", cks.NodeReady)
	s.at(81*sec).node("demo-node-2", cks.NodeUnknown)
}

// A node that joined once needs no ISO to come back; it is back 2 s after its
// VM runs, and is Unknown in between if the grace period ends first.
func TestStartedNodeComesBackWithoutISO(t *testing.T) {
	for _, test := range []struct {
		start   time.Duration
		between cks.Readiness
	}{
		{5 * sec, cks.NodeReady}, {31 * sec, cks.NodeUnknown}, {100 * sec, cks.NodeUnknown},
	} {
		t.Run(test.start.String(), func(t *testing.T) {
			s := tell(t)
			s.ok(s.c.stop("w1", true, s.now))
			s.at(test.start)
			s.ok(s.c.start("w1", s.now))
			s.at(test.start+10*sec-1).node("demo-node-1", test.between)
			s.at(test.start+10*sec).node("demo-node-1", cks.NodeReady)
			s.at(time.Hour).node("demo-node-1", cks.NodeReady)
			s.pods("pending=0 demo-control-1=0 demo-node-1=3 demo-node-2=3")
		})
	}
}

// A VM that stops again before its kubelet was back has given no sign of life:
// the grace period runs on from the first stop.
func TestGracePeriodRunsOnUntilASignOfLife(t *testing.T) {
	s := tell(t)
	s.ok(s.c.stop("w1", true, s.now))
	s.at(5 * sec)
	s.ok(s.c.start("w1", s.now))
	s.at(14 * sec)
	s.ok(s.c.stop("w1", true, s.now))
	s.at(40*sec-1).node("demo-node-1", cks.NodeReady)
	s.at(40*sec).node("demo-node-1", cks.NodeUnknown)
	s.ok(s.c.start("w1", s.now))
	s.at(49 * sec)
	s.ok(s.c.stop("w1", true, s.now))
	if at := s.c.soonest().at; !at.IsZero() {
		t.Errorf("an Unknown node is due to fall silent at %s", at)
	}
}

// Only machines that surely run nothing fall silent (spec/seed.txt: "Migrating,
// Unknown and other states may still be running the VM").
func TestStatesThatKeepTheirNodeReady(t *testing.T) {
	keep := map[cks.VMState]bool{
		cks.VMRunning: true, cks.VMMigrating: true, cks.VMUnknown: true, cks.VMStopping: true,
	}
	for _, state := range cks.VMStates {
		t.Run(string(state), func(t *testing.T) {
			s := tell(t)
			s.c.setState(s.c.machine("w1"), state, s.now)
			s.at(40*sec-1).node("demo-node-1", cks.NodeReady)
			want := cks.NodeUnknown
			if keep[state] {
				want = cks.NodeReady
			}
			s.at(40*sec).node("demo-node-1", want)
			s.vm("w1", state) // nothing moves it on by itself
			s.c.setState(s.c.machine("w1"), cks.VMRunning, s.now)
			s.at(42*sec).node("demo-node-1", cks.NodeReady)
		})
	}
}

// Destroy leaves the node object behind, and it goes Unknown.
func TestDestroyLeavesTheNodeObject(t *testing.T) {
	s := tell(t)
	s.ok(s.c.destroy("w1", s.now))
	s.code(s.c.destroy("w1", s.now), cks.NotFound)
	s.at(40*sec-1).node("demo-node-1", cks.NodeReady)
	s.at(40*sec).node("demo-node-1", cks.NodeUnknown)
	s.pods("pending=0 demo-control-1=0 demo-node-1=3 demo-node-2=3")
	s.ok(s.c.forget("demo-node-1", s.now))
	s.at(45 * sec).pods("pending=0 demo-control-1=0 demo-node-2=6")
}

// With its last machine a cluster's API is gone, and nothing is remembered.
func TestLastMachineTakesTheClusterAlong(t *testing.T) {
	s := tell(t)
	for _, id := range []string{"w1", "w2", "c1"} {
		s.ok(s.c.destroy(id, s.now))
	}
	if doc, err := s.c.encode(); doc != nil || err != nil {
		t.Fatalf("document %s, %v", doc, err)
	}
}

// An etcd VM has no node, however long it runs; a control node has no pods.
//
// Keeps: §8.2/etcd-no-node.
func TestEtcdHasNoNodeAndControlNoPods(t *testing.T) {
	s := tell(t)
	s.c.adopt(cks.MachineSpec{ID: "e1", Name: "demo-etcd-1", Role: cks.Etcd})
	s.c.create(cks.MachineSpec{ID: "e2", Name: "demo-etcd-2", Role: cks.Etcd})
	s.ok(s.c.start("e2", s.now))
	s.ok(s.c.attach("e2", s.now))
	s.ok(s.c.forget("demo-node-1", s.now))
	s.ok(s.c.forget("demo-node-2", s.now))
	s.at(time.Hour).vm("e2", cks.VMRunning)
	s.pods("pending=6 demo-control-1=0")
	for _, m := range s.c.machines() {
		if strings.HasPrefix(m.ID, "e") && m.State != cks.VMRunning {
			t.Errorf("etcd VM %+v", m)
		}
	}
}

// Workers that are there when a cluster starts bring three pods each; later
// ones none, so the number of pods stays.
func TestFoundingWorkersBringPods(t *testing.T) {
	s := &story{T: t, now: epoch, c: &cluster{ID: "k", times: DefaultTimings}}
	for _, id := range []string{"a", "b"} {
		s.c.create(spec(id))
		s.ok(s.c.start(id, s.now))
		s.ok(s.c.attach(id, s.now))
	}
	s.at(60 * sec).pods("pending=0 demo-node-a=3 demo-node-b=3")
	s.c.create(spec("c"))
	s.ok(s.c.start("c", s.now))
	s.ok(s.c.attach("c", s.now))
	s.at(120 * sec).pods("pending=0 demo-node-a=3 demo-node-b=3 demo-node-c=0")
}

// Addresses are the same in every run, and no two machines share one.
func TestAddressesAreOwnAndRepeatable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	a, b := &cluster{ID: "k"}, &cluster{ID: "k"}
	for i := range 600 {
		id := fmt.Sprint(i)
		ma, mb := a.create(spec(id)), b.create(spec(id))
		if ma.IP != mb.IP || ma.MAC != mb.MAC || seen[ma.IP] || seen[ma.MAC] || !strings.HasPrefix(ma.IP, "10.1.") {
			t.Fatalf("machine %d has %s %s, in another run %s %s", i, ma.IP, ma.MAC, mb.IP, mb.MAC)
		}
		seen[ma.IP], seen[ma.MAC] = true, true
	}
}

// Every call on a machine may be repeated, and one that does not exist is
// NotFound.
func TestMachineCallsRepeat(t *testing.T) {
	calls := map[string]func(c *cluster, id string) error{
		"start":       func(c *cluster, id string) error { return c.start(id, epoch) },
		"stop":        func(c *cluster, id string) error { return c.stop(id, false, epoch) },
		"stop forced": func(c *cluster, id string) error { return c.stop(id, true, epoch) },
		"attach":      func(c *cluster, id string) error { return c.attach(id, epoch) },
		"detach":      func(c *cluster, id string) error { return c.detach(id) },
		"resize":      func(c *cluster, id string) error { return c.resize(id, 4, 4096) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			s := tell(t)
			s.code(call(s.c, "nobody"), cks.NotFound)
			s.ok(call(s.c, "w1"))
			first, err := s.c.encode()
			s.ok(err)
			s.ok(call(s.c, "w1"))
			if again, _ := s.c.encode(); string(again) != string(first) {
				t.Errorf("repeated:\n%s\nfirst:\n%s", again, first)
			}
		})
	}
}

// A state from which a machine cannot be started or stopped is an error that
// may be tried again.
func TestStatesThatRefuseACall(t *testing.T) {
	refuse := map[string]string{
		"start": "Stopping Destroyed Expunging Migrating Error Unknown Restoring",
		"stop":  "Migrating Unknown Restoring",
	}
	for _, state := range cks.VMStates {
		t.Run(string(state), func(t *testing.T) {
			s := tell(t)
			m := s.c.machine("w1")
			for name, call := range map[string]func() error{
				"start": func() error { return s.c.start("w1", s.now) },
				"stop":  func() error { return s.c.stop("w1", false, s.now) },
			} {
				s.c.setState(m, state, s.now)
				err := call()
				if want := strings.Contains(refuse[name], string(state)); want != (err != nil) || cks.CodeOf(err) != cks.Internal {
					t.Errorf("%s: %v", name, err)
				}
			}
			s.c.setState(m, state, s.now)
			s.ok(s.c.stop("w1", true, s.now))
			if !m.State.Down() {
				t.Errorf("stopped by force, it is %s", m.State)
			}
		})
	}
}

// A speed divides every duration.
func TestSpeedDividesDurations(t *testing.T) {
	t.Parallel()
	fast := Config{Speed: 100}.withDefaults().Timings
	if fast.Boot != 80*time.Millisecond || fast.Grace != 400*time.Millisecond || fast.FirstReady != 10*time.Millisecond {
		t.Errorf("at speed 100: %+v", fast)
	}
}
