package sim

import (
	"slices"
	"testing"
	"time"

	"ckscale/internal/cks"
)

// version checks what the node's kubelet has reported.
func (s *story) version(name, want string) {
	s.Helper()
	if n := s.c.node(name); n == nil || n.Version != want {
		s.Fatalf("%s: node %s is %+v, want version %s", s.now.Sub(epoch), name, n, want)
	}
}

// versioned starts a story whose nodes are at a version.
func versioned(t *testing.T) *story {
	s := tell(t)
	for _, m := range s.c.Machines {
		m.Version = "1.33.1"
		s.c.ready(m)
	}
	return s
}

// A node that is upgraded is NotReady for 15 s, and then Ready at the new
// version; it stays cordoned. To ask again changes nothing, neither meanwhile
// nor later.
func TestUpgradedNodeComesBackAtItsNewVersion(t *testing.T) {
	s := versioned(t)
	s.ok(s.c.attach("w1", s.now))
	s.ok(s.c.cordon("demo-node-1"))
	s.version("demo-node-1", "v1.33.1")
	s.ok(s.c.upgrade("demo-node-1", "1.34.1", s.now))
	s.node("demo-node-1", cks.NodeNotReady)
	s.at(10 * sec)
	s.ok(s.c.upgrade("demo-node-1", "1.34.1", s.now))
	s.at(15*sec-1).node("demo-node-1", cks.NodeNotReady)
	s.version("demo-node-1", "v1.33.1")
	s.at(15*sec).node("demo-node-1", cks.NodeReady)
	s.version("demo-node-1", "v1.34.1")
	s.version("demo-node-2", "v1.33.1")
	if !s.c.node("demo-node-1").Cordoned {
		t.Error("the node takes pods")
	}
	s.ok(s.c.upgrade("demo-node-1", "1.34.1", s.now))
	s.node("demo-node-1", cks.NodeReady)
}

// Without its ISO, its VM running, or a node object, nothing is upgraded.
func TestUpgradeNeedsTheISOAndARunningVM(t *testing.T) {
	s := versioned(t)
	s.code(s.c.upgrade("nobody", "1.34.1", s.now), cks.NotFound)
	if err := s.c.upgrade("demo-node-1", "1.34.1", s.now); err == nil {
		t.Error("upgraded without the ISO")
	}
	s.ok(s.c.attach("w1", s.now))
	s.ok(s.c.stop("w1", true, s.now))
	if err := s.c.upgrade("demo-node-1", "1.34.1", s.now); err == nil {
		t.Error("upgraded while its VM is off")
	}
	s.at(60*sec).version("demo-node-1", "v1.33.1")
}

// A VM that is stopped in the middle of an upgrade comes back at its old
// version, and can be upgraded then.
func TestUpgradeIsCutOffByAStop(t *testing.T) {
	s := versioned(t)
	s.ok(s.c.attach("w1", s.now))
	s.ok(s.c.upgrade("demo-node-1", "1.34.1", s.now))
	s.at(5 * sec)
	s.ok(s.c.stop("w1", true, s.now))
	s.ok(s.c.start("w1", s.now))
	s.at(40*sec).node("demo-node-1", cks.NodeReady)
	s.version("demo-node-1", "v1.33.1")
	s.ok(s.c.upgrade("demo-node-1", "1.34.1", s.now))
	s.at(55*sec).version("demo-node-1", "v1.34.1")
}

// Ordered to be well again, a node does not become Ready in the middle of its
// upgrade.
func TestUpgradingNodeIsNotMadeReadyByOrder(t *testing.T) {
	s := versioned(t)
	s.ok(s.c.attach("w1", s.now))
	s.ok(s.c.upgrade("demo-node-1", "1.34.1", s.now))
	s.c.setSick(s.c.node("demo-node-1"), false)
	s.node("demo-node-1", cks.NodeNotReady)
	s.c.setSick(s.c.node("demo-node-1"), true)
	s.at(20*sec).node("demo-node-1", cks.NodeNotReady)
	s.version("demo-node-1", "v1.34.1")
}

// A new machine joins with the version that it is made for.
func TestNewMachineHasItsVersion(t *testing.T) {
	s := versioned(t)
	n := spec("n")
	n.Version = "1.34.1"
	s.c.create(n)
	s.ok(s.c.start("n", s.now))
	s.ok(s.c.attach("n", s.now))
	s.at(30*sec).version("demo-node-n", "v1.34.1")
}

// A node whose VM was stopped and started again within the grace period is Ready
// all the while; that its kubelet has not been heard of since shows.
func TestSilentNodesShow(t *testing.T) {
	s := tell(t)
	silent := func() (names []string) {
		for _, n := range s.c.nodes() {
			if n.Silent {
				names = append(names, n.Name+" "+string(n.Ready))
			}
		}
		return names
	}
	if got := silent(); got != nil {
		t.Errorf("silent: %q", got)
	}
	s.ok(s.c.stop("w1", true, s.now))
	s.ok(s.c.start("w1", s.now))
	for _, at := range []time.Duration{0, 8 * sec, 10*sec - 1} {
		if got := s.at(at); !slices.Equal(silent(), []string{"demo-node-1 True"}) {
			t.Errorf("%s: silent: %q", at, silent())
		} else {
			got.node("demo-node-1", cks.NodeReady)
		}
	}
	s.at(10*sec).node("demo-node-1", cks.NodeReady)
	if got := silent(); got != nil {
		t.Errorf("silent: %q", got)
	}
}

// A machine that moves while it is upgraded leaves that behind, with the version
// that it had: neither is the next cluster's.
func TestMoveEndsAnUpgrade(t *testing.T) {
	s := versioned(t)
	s.ok(s.c.attach("w1", s.now))
	s.ok(s.c.upgrade("demo-node-1", "1.34.1", s.now))
	next := &cluster{ID: "next", times: s.c.times}
	next.take(s.c.machine("w1"))
	next.advance(s.now.Add(time.Hour))
	if m := next.machine("w1"); m.Version != "" || m.Target != "" || len(next.Nodes) != 0 {
		t.Errorf("%+v, nodes %+v", m, next.nodes())
	}
}
