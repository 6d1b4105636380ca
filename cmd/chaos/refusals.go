package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ckscale/internal/cks"
)

// ground is what a refusal stands on: what the cluster and its VMs were when the
// request was judged.
type ground struct {
	request  *request
	clusters []clusterRow
	vms      map[string][]vmRow // of the cluster, by VM
	words    []string           // of the text
}

// justifications say of each text that a request is refused with what must have
// been so. A text that none of them knows is not justified.
var justifications = []struct {
	text *regexp.Regexp
	so   func(g ground) bool
}{
	{regexp.MustCompile(`^Kubernetes cluster \S+ is in (\w+) state and can not be scaled$`), func(g ground) bool {
		return cks.State(g.words[1]).Busy() && g.inState(g.words[1])
	}},
	{regexp.MustCompile(` is in (Alert) state; only its size can be changed or nodes removed\. Recover `), func(g ground) bool {
		return g.inState(g.words[1]) && g.request.offering != ""
	}},
	{regexp.MustCompile(` is in (Alert) state; only its size can be changed or nodes removed, and the request does neither$`), func(g ground) bool {
		return g.inState(g.words[1]) && g.request.size != nil && g.some(func(r clusterRow) bool { return r.Size == *g.request.size }) ||
			g.request.offering != "" // the one that it has
	}},
	{regexp.MustCompile(` is in (Alert) state and a control or etcd node VM is down; `), func(g ground) bool {
		return g.inState(g.words[1]) && g.anyVM(func(r vmRow) bool { return r.Role == cks.Control && r.State.Down() })
	}},
	{regexp.MustCompile(` is in (Alert) state and its first control node VM is not running; `), func(g ground) bool {
		return g.inState(g.words[1]) && g.anyVM(func(r vmRow) bool { return r.Role == cks.Control && r.State != cks.VMRunning })
	}},
	{regexp.MustCompile(` is in (Alert) state and has (\d+) VMs for (\d+) nodes; `), func(g ground) bool {
		return g.inState(g.words[1]) && g.anyVM(func(r vmRow) bool { return r.Phase == cks.Doomed })
	}},
	{regexp.MustCompile(` is in (Alert) state but none of its worker node VMs is down; `), func(g ground) bool {
		return g.inState(g.words[1]) && g.noWorkerDown()
	}},
	{regexp.MustCompile(`^Kubernetes cluster : \S+ is in (\w+) state$`), func(g ground) bool {
		return g.inState(g.words[1])
	}},
	{regexp.MustCompile(`^Invalid node ids$`), func(g ground) bool {
		return slices.ContainsFunc(g.request.nodes, func(id string) bool {
			return !slices.ContainsFunc(g.vms[id], func(vmRow) bool { return true }) ||
				slices.ContainsFunc(g.vms[id], func(r vmRow) bool { return r.Removed || r.Phase != cks.Member })
		})
	}},
	{regexp.MustCompile(`^Can not remove all nodes from a cluster$`), func(g ground) bool {
		return g.some(func(r clusterRow) bool { return r.workers() <= len(g.request.nodes) })
	}},
	{regexp.MustCompile(`^Kubernetes cluster : \S+ cannot be scaled for size, 0$`), func(g ground) bool {
		return g.request.size != nil && *g.request.size == 0
	}},
	{regexp.MustCompile(`^Maximum cluster size can not exceed 10\. `), func(g ground) bool {
		return g.request.size != nil && *g.request.size > 9
	}},
	{regexp.MustCompile(`^Kubernetes cluster cannot be scaled down for service offering\. `), func(g ground) bool {
		return g.request.offering != "" && g.inState("Running")
	}},
	{regexp.MustCompile(`^Instance \S+ is in (\w+) state and can not be (started|stopped)$`), func(g ground) bool {
		return slices.ContainsFunc(g.vms[g.request.vm], func(r vmRow) bool {
			return string(r.State) == g.words[1] || r.Removed && g.words[1] == "Expunging"
		})
	}},
	{regexp.MustCompile(`^another job is in progress for VM (\S+)$`), func(g ground) bool {
		return g.request.vm == g.words[1]
	}},
}

// unjustified says why the refusal of a request was not justified; "" if it was.
func (e *evidence) unjustified(r *request, j jobRecord) string {
	when := e.judged(j)
	g := ground{request: r, clusters: e.clusterDuring(r.cluster, when), vms: map[string][]vmRow{}}
	for id, all := range e.vms {
		if all[0].Cluster == r.cluster {
			g.vms[id] = e.vmDuring(id, when)
		}
	}
	switch known, so := g.justified(j.Text); {
	case !known:
		return fmt.Sprintf("refused with %q, which nothing justifies", j.Text)
	case !so:
		return fmt.Sprintf("refused with %q, which was not so: %s", j.Text, g)
	}
	return ""
}

// justified tells whether a text is known, and whether what it says was so.
func (g ground) justified(text string) (known, so bool) {
	for _, j := range justifications {
		if g.words = j.text.FindStringSubmatch(text); g.words != nil {
			return true, j.so(g)
		}
	}
	return false, false
}

func (g ground) some(so func(clusterRow) bool) bool { return slices.ContainsFunc(g.clusters, so) }

func (g ground) inState(s string) bool {
	return g.some(func(r clusterRow) bool { return string(r.State) == s })
}

func (g ground) anyVM(so func(vmRow) bool) bool {
	for _, rows := range g.vms {
		if slices.ContainsFunc(rows, func(r vmRow) bool { return !r.Removed && so(r) }) {
			return true
		}
	}
	return false
}

// noWorkerDown reports whether there may have been a moment without a worker
// that is down.
func (g ground) noWorkerDown() bool {
	for _, rows := range g.vms {
		if len(rows) > 0 && !slices.ContainsFunc(rows, func(r vmRow) bool {
			return r.Removed || r.Role != cks.Worker || r.Phase != cks.Member || !r.State.Down()
		}) {
			return false // this one was down all the time
		}
	}
	return true
}

func (g ground) String() string {
	var b strings.Builder
	for _, r := range g.clusters {
		fmt.Fprintf(&b, "%s %s size %d; ", clock(r.At), r.State, r.Size)
	}
	return b.String()
}
