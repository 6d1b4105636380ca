package sim

import (
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
)

func (s *story) left(name string, want int) {
	s.Helper()
	left, err := s.c.drain(name, s.now)
	s.ok(err)
	if left != want {
		s.Fatalf("%s: %d pods left on %s, want %d", s.now.Sub(epoch), left, name, want)
	}
}

// A drain cordons, and moves the pods to the other Ready schedulable nodes
// within 2 s.
func TestDrainMovesPods(t *testing.T) {
	s := tell(t)
	s.left("demo-node-1", 3)
	s.at(2*sec-1).left("demo-node-1", 3) // asking again does not start anew
	s.at(2*sec).left("demo-node-1", 0)
	s.pods("pending=0 demo-control-1=0 demo-node-1=0 demo-node-2=6")
	_, err := s.c.drain("nobody", s.now)
	s.code(err, cks.NotFound)
}

// A drain of a node that has no pods is done at once, even of one that is
// down.
func TestDrainOfAnEmptyNodeIsDone(t *testing.T) {
	s := tell(t)
	s.left("demo-control-1", 0)
	s.left("demo-node-1", 3)
	s.at(2 * sec)
	s.ok(s.c.stop("w1", true, s.now))
	s.left("demo-node-1", 0)
}

// Nobody confirms a pod's end where the VM is down or the node is not Ready;
// not even in the stale-Ready window. The drain goes on once somebody does.
//
// Keeps: seed/drain-hangs.
func TestDrainHangsWhereNobodyConfirms(t *testing.T) {
	for name, upset := range map[string]func(c *cluster){
		"VM down":       func(c *cluster) { c.setState(c.machine("w1"), cks.VMStopped, epoch) },
		"VM in error":   func(c *cluster) { c.setState(c.machine("w1"), cks.VMError, epoch) },
		"VM gone":       func(c *cluster) { _ = c.destroy("w1", epoch) },
		"node NotReady": func(c *cluster) { c.setSick(c.node("demo-node-1"), true) },
		"down in between": func(c *cluster) {
			_, _ = c.drain("demo-node-1", epoch)
			c.setState(c.machine("w1"), cks.VMStopped, epoch.Add(sec))
		},
		"sick in between": func(c *cluster) { _, _ = c.drain("demo-node-1", epoch); c.setSick(c.node("demo-node-1"), true) },
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t)
			upset(s.c)
			s.left("demo-node-1", 3)
			s.at(30*sec).left("demo-node-1", 3)
			s.at(time.Hour).left("demo-node-1", 3)
			if m := s.c.machine("w1"); m != nil {
				s.c.setState(m, cks.VMRunning, s.now)
				s.c.setSick(s.c.node("demo-node-1"), false)
				s.at(time.Hour+2*sec).left("demo-node-1", 3)
				s.at(time.Hour+4*sec).left("demo-node-1", 0)
			}
		})
	}
}

// Pods are never lost: with nowhere to go they are pending, and a node that
// can take them gets them.
func TestPodsWaitForANode(t *testing.T) {
	s := tell(t)
	s.left("demo-node-1", 3)
	s.left("demo-node-2", 3)
	s.at(2 * sec).pods("pending=6 demo-control-1=0 demo-node-1=0 demo-node-2=0")
	s.ok(s.c.uncordon("demo-node-2"))
	s.pods("pending=0 demo-control-1=0 demo-node-1=0 demo-node-2=6")
	s.code(s.c.uncordon("nobody"), cks.NotFound)
}

// An uncordon ends a drain that is under way: the pods stay.
func TestUncordonKeepsPods(t *testing.T) {
	s := tell(t)
	s.left("demo-node-1", 3)
	s.at(sec)
	s.ok(s.c.uncordon("demo-node-1"))
	s.at(time.Hour).pods("pending=0 demo-control-1=0 demo-node-1=3 demo-node-2=3")
}

// A deleted node's pods are recreated after 5 s; the node does not come back
// while its VM runs, and does with the VM's next start.
func TestDeletedNodeStaysAwayWhileItsVMRuns(t *testing.T) {
	s := tell(t)
	s.ok(s.c.forget("demo-node-1", s.now))
	s.code(s.c.forget("demo-node-1", s.now), cks.NotFound)
	s.at(5*sec - 1).pods("pending=0 demo-control-1=0 demo-node-2=3")
	s.at(5 * sec).pods("pending=0 demo-control-1=0 demo-node-2=6")
	s.at(time.Hour).node("demo-node-1", "")
	s.ok(s.c.stop("w1", true, s.now))
	s.ok(s.c.start("w1", s.now))
	s.at(time.Hour+10*sec).node("demo-node-1", cks.NodeReady)
	s.pods("pending=0 demo-control-1=0 demo-node-2=6 demo-node-1=0")
}

// A node object deleted between its registration and its first Ready stays
// away too.
func TestNodeDeletedBeforeItsFirstReadyStaysAway(t *testing.T) {
	s := tell(t)
	s.c.create(spec("n"))
	s.ok(s.c.attach("n", s.now))
	s.ok(s.c.start("n", s.now))
	s.at(28*sec).node("demo-node-n", cks.NodeNotReady)
	s.ok(s.c.forget("demo-node-n", s.now))
	s.at(time.Hour).node("demo-node-n", "")
}

// A node made NotReady stays so through its VM's restart, until it is set
// Ready.
func TestSickNodeStaysNotReady(t *testing.T) {
	s := tell(t)
	s.c.setSick(s.c.node("demo-node-1"), true)
	s.at(time.Hour).node("demo-node-1", cks.NodeNotReady)
	s.ok(s.c.stop("w1", true, s.now))
	s.ok(s.c.start("w1", s.now))
	s.at(2*time.Hour).node("demo-node-1", cks.NodeNotReady)
	s.c.setSick(s.c.node("demo-node-1"), false)
	s.node("demo-node-1", cks.NodeReady)
}

// An order to be Ready does not make a node Ready whose kubelet is not there
// yet, or not any more.
func TestOrderedReadyWaitsForTheKubelet(t *testing.T) {
	s := tell(t)
	s.ok(s.c.stop("w1", true, s.now))
	s.at(60 * sec)
	s.c.setSick(s.c.node("demo-node-1"), false)
	s.node("demo-node-1", cks.NodeUnknown)
	s.ok(s.c.start("w1", s.now))
	s.at(69 * sec)
	s.c.setSick(s.c.node("demo-node-1"), false)
	s.node("demo-node-1", cks.NodeUnknown)
	s.at(70*sec).node("demo-node-1", cks.NodeReady)
}

// What a node.join fault says about a join that is due.
func TestJoinUnderAFault(t *testing.T) {
	begin := func(t *testing.T, v verdict) *story {
		s := tell(t)
		s.c.verdict = func(*machine) verdict { return v }
		s.c.create(spec("n"))
		s.ok(s.c.attach("n", s.now))
		s.ok(s.c.start("n", s.now))
		return s
	}
	t.Run("held", func(t *testing.T) {
		s := begin(t, verdict{hold: true})
		s.at(time.Hour).node("demo-node-n", "")
		s.c.verdict = nil
		s.at(2*time.Hour).node("demo-node-n", "") // it has had its chance
		s.c.release(s.c.machine("n"), s.now)
		s.at(2*time.Hour).node("demo-node-n", cks.NodeNotReady)
		s.at(2*time.Hour+sec).node("demo-node-n", cks.NodeReady)
	})
	t.Run("held, then attached anew", func(t *testing.T) {
		s := begin(t, verdict{hold: true})
		s.at(time.Hour)
		s.c.verdict = nil
		s.ok(s.c.detach("n"))
		s.c.release(s.c.machine("n"), s.now) // without the ISO there is nothing to release
		s.at(time.Hour+30*sec).node("demo-node-n", "")
		s.ok(s.c.attach("n", s.now))
		s.at(time.Hour+51*sec).node("demo-node-n", cks.NodeReady)
	})
	t.Run("delayed once", func(t *testing.T) {
		s := begin(t, verdict{delay: 30 * sec})
		s.at(58*sec-1).node("demo-node-n", "")
		s.at(59*sec).node("demo-node-n", cks.NodeReady)
	})
	t.Run("undecided", func(t *testing.T) {
		s := begin(t, verdict{undecided: true})
		s.at(time.Hour).node("demo-node-n", "")
		if at := s.at(time.Hour).c.machine("n").JoinAt; !at.Equal(epoch.Add(28 * sec)) {
			t.Errorf("the join is due at %s", at)
		}
	})
}

// The autoscaler is deployed in clusters that exist, and removed from any.
func TestAutoscaler(t *testing.T) {
	s := tell(t)
	s.ok(s.c.setAutoscaler(cks.Autoscaling{Enabled: true, Min: 1, Max: 3}))
	if a := s.at(sec).c.Autoscaling; a == nil || a.Max != 3 {
		t.Errorf("autoscaler %+v", a)
	}
	s.ok(s.c.setAutoscaler(cks.Autoscaling{}))
	if a := s.at(sec).c.Autoscaling; a != nil {
		t.Errorf("autoscaler %+v", a)
	}
	none := &cluster{ID: "none"}
	s.ok(none.setAutoscaler(cks.Autoscaling{}))
	s.code(none.setAutoscaler(cks.Autoscaling{Enabled: true}), cks.NotFound)
}

// Long after, everything that was due has happened, in order, however it is
// looked at: in one step or in many.
func TestAdvanceInOneStepOrMany(t *testing.T) {
	run := func(step time.Duration) string {
		s := &story{T: t, now: epoch, c: &cluster{ID: "k", times: DefaultTimings}}
		for _, id := range []string{"a", "b", "c"} {
			s.c.create(spec(id))
			s.ok(s.c.start(id, s.now))
			s.ok(s.c.attach(id, s.now))
		}
		s.at(40 * sec)
		s.ok(s.c.stop("a", false, s.now))
		_, err := s.c.drain("demo-node-b", s.now)
		s.ok(err)
		s.ok(s.c.forget("demo-node-c", s.now))
		for at := 40*sec + step; at <= 140*sec; at += step {
			s.at(at)
		}
		doc, err := s.c.encode()
		s.ok(err)
		return string(doc)
	}
	if one, many := run(100*sec), run(sec/4); one != many || !strings.Contains(one, "Unknown") {
		t.Errorf("in one step\n%s\nin many\n%s", one, many)
	}
}
