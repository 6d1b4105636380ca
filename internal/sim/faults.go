package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"ckscale/internal/cks"
)

// What a fault does.
const (
	doFail   = "fail"
	doHang   = "hang"
	doDelay  = "delay"
	doPanic  = "panic"
	doBudget = "budget"
	doClear  = "clear"
	doNumber = "number" // of VMs
	doState  = "state"  // of a VM
	doReady  = "ready"  // of a node: Ready or NotReady
	doForget = "forget" // no value needed
)

// spelling says how each is written, for the error about a bad one.
var spelling = map[string]string{
	doFail: "fail[:text]", doHang: "hang", doDelay: "delay:<duration>", doPanic: "panic", doBudget: "budget",
	doClear: "clear", doNumber: "a number of VMs", doReady: "Ready, NotReady", doForget: "nothing",
	doState: "a VM state (" + joined(cks.VMStates) + ")",
}

var (
	callFaults  = []string{doFail, doHang, doDelay, doPanic, doClear}
	drainFaults = []string{doFail, doHang, doDelay, doPanic, doBudget, doClear}
	joinFaults  = []string{doFail, doHang, doDelay, doClear}
)

// operation is a name that configureSimulator takes, and the values it takes
// with it.
type operation struct {
	name   string
	values []string
}

// operations is all that can be ordered. The last four are not faults of a
// call: they set the hosts' room and change the world at once.
var operations = []operation{
	{"vm.create", callFaults},
	{"vm.start", callFaults},
	{"vm.stop", callFaults},
	{"vm.destroy", callFaults},
	{"vm.resize", callFaults},
	{"vm.move", callFaults},
	{"vm.list", callFaults},
	{"iso.attach", callFaults},
	{"iso.detach", callFaults},
	{opJoin, joinFaults},
	{"node.drain", drainFaults},
	{"node.uncordon", callFaults},
	{"node.upgrade", callFaults},
	{"node.delete", callFaults},
	{"node.list", callFaults},
	{"autoscaler.set", callFaults},
	{"capacity", []string{doNumber, doClear}},
	{"vm.set", []string{doState}},
	{"node.set", []string{doReady}},
	{"node.forget", []string{doForget}},
}

// Clearable lists the operations that can be cleared: those that last.
func Clearable() []string {
	var names []string
	for _, o := range operations {
		if slices.Contains(o.values, doClear) {
			names = append(names, o.name)
		}
	}
	return names
}

func joined[T ~string](all []T) string {
	var b strings.Builder
	for i, s := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(s))
	}
	return b.String()
}

// order is a checked cks.Fault.
type order struct {
	cks.Fault
	does  string
	text  string        // of fail
	delay time.Duration // of delay
	room  int           // of a number
	state cks.VMState   // of a state
	ready bool          // of Ready, NotReady
}

// parse checks an order. It fails with cks.Invalid and says what is allowed.
func parse(f cks.Fault) (order, error) {
	i := slices.IndexFunc(operations, func(op operation) bool { return op.name == f.Operation })
	if i < 0 {
		names := make([]string, len(operations))
		for i, op := range operations {
			names[i] = op.name
		}
		return order{}, cks.Errorf(cks.Invalid, "Invalid simulator operation %q; allowed: %s", f.Operation, joined(names))
	}
	if f.Count < 0 {
		return order{}, cks.Errorf(cks.Invalid, "Invalid count %d; allowed: how many times it strikes, or 0 for until cleared", f.Count)
	}
	for _, does := range operations[i].values {
		if o, ok := read(does, f); ok {
			return o, nil
		}
	}
	values := make([]string, len(operations[i].values))
	for j, does := range operations[i].values {
		values[j] = spelling[does]
	}
	return order{}, cks.Errorf(cks.Invalid, "Invalid value %q for %s; allowed: %s", f.Value, f.Operation, joined(values))
}

// read reads f's value as one that does what is said.
func read(does string, f cks.Fault) (o order, ok bool) {
	o = order{Fault: f, does: does}
	switch word, rest, more := strings.Cut(f.Value, ":"); does {
	case doFail:
		o.text = rest
		if rest == "" {
			o.text = "simulated failure of " + f.Operation
		}
		ok = word == doFail
	case doDelay:
		d, err := time.ParseDuration(rest)
		o.delay, ok = d, word == doDelay && more && err == nil && d >= 0
	case doNumber:
		n, err := strconv.Atoi(f.Value)
		o.room, ok = n, err == nil && n >= 0
	case doState:
		i := slices.IndexFunc(cks.VMStates, func(s cks.VMState) bool { return strings.EqualFold(string(s), f.Value) })
		if ok = i >= 0; ok {
			o.state = cks.VMStates[i]
		}
	case doReady:
		o.ready = strings.EqualFold(f.Value, "Ready")
		ok = o.ready || strings.EqualFold(f.Value, "NotReady")
	case doForget:
		ok = true
	default:
		ok = f.Value == does
	}
	return o, ok
}

// fault is an order that stays until it is cleared or used up.
type fault struct {
	Operation string `json:"operation"`
	Value     string `json:"value"`
	ClusterID string `json:"clusterid,omitempty"`
	VMID      string `json:"vmid,omitempty"`
	Limit     int    `json:"limit,omitempty"` // strikes in all; 0 = no limit
	Struck    int    `json:"struck,omitempty"`
	// Attempts are the joins that it struck: a join is asked about again and
	// again, by every server, and must always hear the same.
	Attempts []string `json:"attempts,omitempty"`
}

func (f *fault) spent() bool { return f.Limit > 0 && f.Struck >= f.Limit }

func (f *fault) meets(op, clusterID, vmID string) bool {
	return f.Operation == op && narrows(f.ClusterID, clusterID) && narrows(f.VMID, vmID)
}

// narrows reports whether a selector, empty for any, selects id.
func narrows(selector, id string) bool { return selector == "" || strings.EqualFold(selector, id) }

// settings is the document shared by all clusters. Of the faults that meet a
// call, the one set last strikes, and only that one.
type settings struct {
	Faults []*fault `json:"faults,omitempty"`
}

// set adds a fault. It takes the place of one with the same selectors.
func (s *settings) set(f cks.Fault) {
	s.Faults = slices.DeleteFunc(s.Faults, func(x *fault) bool {
		return x.Operation == f.Operation && strings.EqualFold(x.ClusterID, f.ClusterID) && strings.EqualFold(x.VMID, f.VMID)
	})
	s.Faults = append(s.Faults, &fault{
		Operation: f.Operation, Value: f.Value, ClusterID: f.ClusterID, VMID: f.VMID, Limit: f.Count,
	})
}

// clear removes an operation's faults: all, or those with the same selectors.
func (s *settings) clear(f cks.Fault) {
	s.Faults = slices.DeleteFunc(s.Faults, func(x *fault) bool {
		return x.Operation == f.Operation && narrows(f.ClusterID, x.ClusterID) && narrows(f.VMID, x.VMID)
	})
}

// strike returns the fault that a call meets, nil if there is none, and counts
// it if its strikes are counted.
func (s *settings) strike(op, clusterID, vmID string) *fault {
	for _, f := range slices.Backward(s.Faults) {
		if !f.meets(op, clusterID, vmID) || f.spent() {
			continue
		}
		if f.Limit > 0 {
			f.Struck++
		}
		return f
	}
	return nil
}

// join says what becomes of an attempt to join.
func (s *settings) join(clusterID, vmID, attempt string) verdict {
	for _, f := range slices.Backward(s.Faults) {
		switch {
		case !f.meets(opJoin, clusterID, vmID):
		case f.Limit == 0, slices.Contains(f.Attempts, attempt):
			return f.verdict()
		case !f.spent():
			return verdict{undecided: true}
		}
	}
	return verdict{}
}

// decide lets a counted fault strike an attempt to join, unless that has been
// decided already.
func (s *settings) decide(clusterID, vmID, attempt string) {
	if !s.join(clusterID, vmID, attempt).undecided {
		return
	}
	f := s.strike(opJoin, clusterID, vmID)
	f.Attempts = append(f.Attempts, attempt)
}

// verdict is what a node.join fault does to a join.
func (f *fault) verdict() verdict {
	if o, ok := read(doDelay, cks.Fault{Value: f.Value}); ok {
		return verdict{delay: o.delay}
	}
	return verdict{hold: true}
}
