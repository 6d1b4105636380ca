package cks

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func ids(vms []VM) string {
	s := ""
	for _, v := range vms {
		s += v.ID + " "
	}
	return s
}

// Down workers go first, then the newest (spec/seed.txt; A27), whatever the
// order of the rows, and the caller's slice stays as it was.
//
// Keeps: §5.3/down-first, §5.3/newest-first.
// Keeps: seed/down-first, seed/newest-next, A27.
func TestRemovalOrder(t *testing.T) {
	t.Parallel()
	workers := []VM{
		{ID: "w1", Seq: 1, State: VMStopped}, {ID: "w2", Seq: 2, State: VMRunning}, {ID: "w3", Seq: 3, State: VMError},
		{ID: "w4", Seq: 4, State: VMUnknown}, {ID: "w5", Seq: 5, State: VMMigrating}, {ID: "w6", Seq: 6, State: VMExpunging},
	}
	const want = "w6 w3 w1 w5 w4 w2 "
	if got := ids(RemovalOrder(workers)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := ids(workers); got != "w1 w2 w3 w4 w5 w6 " {
		t.Errorf("the caller's slice became %s", got)
	}
	for range 20 {
		rand.Shuffle(len(workers), func(i, j int) { workers[i], workers[j] = workers[j], workers[i] })
		if got := ids(RemovalOrder(workers)); got != want {
			t.Errorf("shuffled: %s, want %s", got, want)
		}
	}
	if got := RemovalOrder(nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// What a scale-up waits for (spec/seed.txt "Scale-up"; cks.md §7 D5, §11 3, 12).
//
// Keeps: §8.2/etcd-no-node.
// Keeps: §5.2/down, §5.2/6-etcd.
// Keeps: seed/wait-without-down, seed/wait-for-all-new, seed/count-leaves-out, seed/lower-case, seed/not-down-expected.
func TestExpectedReady(t *testing.T) {
	t.Parallel()
	member := func(name string, role Role, s VMState) VM {
		return VM{Name: name, Role: role, State: s, Phase: Member}
	}
	control := []VM{
		member("A-control-1", Control, VMRunning), member("A-control-2", Control, VMRunning), member("A-control-3", Control, VMRunning),
	}
	fresh := func(name string, s VMState) VM { return VM{Name: name, Role: Worker, State: s, Phase: Chosen} }
	ready := func(names ...string) (nodes []Node) {
		for _, n := range names {
			nodes = append(nodes, Node{Name: n, Ready: NodeReady})
		}
		return nodes
	}
	for _, c := range []struct {
		name        string
		vms         []VM
		new, absent []string
		nodes       []Node
		want        int
	}{
		{name: "all up", vms: append(control[:3:3], member("w1", Worker, VMRunning), fresh("w2", VMRunning)), new: []string{"w2"}, want: 5},
		{name: "the stale-Ready window: 6 provisioned, 2 down", vms: append(control[:3:3],
			member("w1", Worker, VMStopped), member("w2", Worker, VMStopped), fresh("w3", VMRunning)), new: []string{"w3"},
			nodes: ready("a-control-1", "a-control-2", "a-control-3", "w2"), want: 4},
		{name: "etcd has no node", vms: append(control[:3:3], member("e1", Etcd, VMRunning), fresh("w1", VMRunning)), new: []string{"w1"}, want: 4},
		{name: "only states that are surely down count as down", vms: []VM{member("w1", Worker, VMUnknown), member("w2", Worker, VMMigrating),
			member("w3", Worker, VMStarting), member("w4", Worker, VMError)}, want: 3},
		{name: "a down external node", vms: []VM{{Name: "x", Role: Worker, External: true, State: VMShutdown, Phase: Member}}, want: 0},
		{name: "an external node", vms: []VM{{Name: "x", Role: Worker, External: true, State: VMRunning, Phase: Member}}, want: 1},
		{name: "new ones always count", vms: []VM{fresh("New-1", VMStopped), fresh("new-2", VMError)}, new: []string{"new-1", "new-2"}, want: 2},
		{name: "new ones count though absent", vms: []VM{fresh("w1", VMRunning)}, new: []string{"w1"}, absent: []string{"w1"}, want: 1},
		{name: "absent at the start", vms: append(control[:3:3], member("W1", Worker, VMRunning)), absent: []string{"w1"}, want: 3},
		{name: "absent at the start, not Ready now", vms: []VM{member("w1", Worker, VMRunning)}, absent: []string{"w1"},
			nodes: []Node{{Name: "w1", Ready: NodeUnknown}}, want: 0},
		{name: "absent at the start, Ready now", vms: []VM{member("W1", Worker, VMRunning)}, absent: []string{"w1"}, nodes: ready("w1"), want: 1},
		{name: "absent at the start, Ready though down", vms: []VM{member("w1", Worker, VMStopped)}, absent: []string{"w1"}, nodes: ready("w1"), want: 0},
		{name: "not Ready, but not at the start", vms: []VM{member("w1", Worker, VMRunning)}, nodes: []Node{{Name: "w1", Ready: NodeNotReady}}, want: 1},
		{name: "doomed and removed ones are no nodes", vms: []VM{{Name: "d", Role: Worker, State: VMRunning, Phase: Doomed},
			{Name: "r", Role: Worker, State: VMRunning, Phase: Member, Removed: true}}, want: 0},
		{name: "leaving ones are", vms: []VM{{Name: "l", Role: Worker, State: VMRunning, Phase: Leaving}}, want: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := ExpectedReady(c.vms, c.new, c.absent, c.nodes); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// The seed's early match: four Ready nodes make up the expected count while the
// new one has not joined, so it is asked for by name (cks.md §11 3).
//
// Keeps: §11/3.
// Keeps: seed/by-name.
func TestStaleReadyMakesUpTheCount(t *testing.T) {
	t.Parallel()
	vms := []VM{
		{Name: "c1", Role: Control, State: VMRunning}, {Name: "c2", Role: Control, State: VMRunning}, {Name: "c3", Role: Control, State: VMRunning},
		{Name: "w1", Role: Worker, State: VMStopped}, {Name: "w2", Role: Worker, State: VMStopped}, {Name: "W3", Role: Worker, State: VMRunning},
	}
	nodes := []Node{
		{Name: "c1", Ready: NodeReady}, {Name: "c2", Ready: NodeReady}, {Name: "c3", Ready: NodeReady},
		{Name: "w1", Ready: NodeUnknown}, {Name: "w2", Ready: NodeReady}, // w2 has just stopped
	}
	if want, have := ExpectedReady(vms, []string{"w3"}, nil, nodes), ReadyCount(nodes); want != 4 || have != 4 {
		t.Fatalf("%d of %d Ready, want 4 of 4", have, want)
	}
	if NodeReadyByName(nodes, "w3") {
		t.Fatal("a node that has not joined is Ready")
	}
	nodes = append(nodes, Node{Name: "w3", Ready: NodeNotReady})
	if NodeReadyByName(nodes, "w3") {
		t.Fatal("a node that is not Ready yet is Ready")
	}
	nodes[len(nodes)-1].Ready = NodeReady
	if !NodeReadyByName(nodes, "W3") || ReadyCount(nodes) != 5 {
		t.Fatal("a Ready node is not")
	}
	if i := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == "w1" }); NodeReadyByName(nodes[i:i+1], "w1") {
		t.Fatal("an Unknown node is Ready")
	}
}
