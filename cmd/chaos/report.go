package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"ckscale/cmd/internal/live"
)

// report writes the table, and then what is known of each violation.
func report(w io.Writer, o options, e *evidence, found []violation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nChaos with seed %d: %d servers, %d clusters, %d clients, %s\n\n", o.seed, o.servers, o.clusters, o.clients, o.duration)
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "| %-46s | %-60s |\n", what, fmt.Sprintf(format, args...))
	}
	line("what", "how much")
	b.WriteString("| " + strings.Repeat("-", 46) + " | " + strings.Repeat("-", 60) + " |\n")
	n := e.counts()
	line("requests", "%d: %d accepted, %d answered by an error, %d unknown", len(e.requests), n.accepted, n.refused, n.unknown)
	line("requests whose answer did not come", "%d", n.doubted)
	line("jobs of requests", "%d: %d succeeded, %d failed, %d were refused", n.succeeded+n.failed+n.rejected, n.succeeded, n.failed, n.rejected)
	for _, what := range slices.Sorted(maps.Keys(e.set)) {
		line(what, "%d", e.set[what])
	}
	line("servers killed", "%d", len(e.kills))
	line("servers paused past their leases", "%d, from which %d jobs were taken", len(e.pauses), e.takenInPause())
	resumed, longest := e.resumptions(), time.Duration(0)
	for _, r := range resumed {
		longest = max(longest, r.took)
	}
	line("jobs resumed after a kill", "%d", len(resumed))
	line("longest time from kill to resumption", "%.1f s", longest.Seconds())
	line("calls to the cloud", "%d", len(e.calls))
	line("clocks of the servers", "%s", clocks(o))
	line("violations", "%d", len(found))
	for i, v := range found {
		if i == 20 {
			fmt.Fprintf(&b, "\nand %d more\n", len(found)-i)
			break
		}
		fmt.Fprintf(&b, "\nVIOLATED: %s\n  cluster %s, job %s\n  %s\n%s", v.rule, v.cluster, v.job, v.text, e.about(v))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func clocks(o options) string {
	if o.server != "" {
		return "as they are"
	}
	return fmt.Sprintf("off by %v", skews)
}

type counts struct{ accepted, refused, unknown, doubted, succeeded, failed, rejected int }

func (e *evidence) counts() counts {
	var n counts
	for _, r := range e.requests {
		switch r.outcome {
		case accepted:
			n.accepted++
		case refused:
			n.refused++
		default:
			n.unknown++
		}
		if r.doubted {
			n.doubted++
		}
		switch {
		case r.told == nil:
		case r.told.Status == live.Succeeded:
			n.succeeded++
		case e.endedAtOnce(r.job):
			n.rejected++
		default:
			n.failed++
		}
	}
	return n
}

// takenInPause counts the jobs that were taken from paused servers.
func (e *evidence) takenInPause() int {
	n := 0
	for _, all := range e.jobs {
		for i := 1; i < len(all); i++ {
			taken := func(p blow) bool {
				return all[i].Taken && all[i-1].App == p.app && all[i].At.After(p.at) && all[i].At.Before(p.at.Add(2*pauseFor))
			}
			if slices.ContainsFunc(e.pauses, taken) {
				n++
			}
		}
	}
	return n
}

// about tells the history of what a violation is about.
func (e *evidence) about(v violation) string {
	var b strings.Builder
	if j, ok := e.records[v.job]; ok {
		fmt.Fprintf(&b, "  job %s %s args %+v notes %+v status %d unchanged %t created %s text %q\n",
			j.ID, j.Kind, j.Args, j.Notes, j.Status, j.Unchanged, clock(j.Created), j.Text)
	}
	for _, r := range e.jobs[v.job] {
		fmt.Fprintf(&b, "    %8d %s %s attempt %d owner %.8s taken %t step %q tries %d status %d failure %q\n",
			r.Seq, clock(r.At), r.App, r.Attempt, r.Owner, r.Taken, r.Step, r.Tries, r.Status, r.Failure)
	}
	if v.cluster == "" {
		return b.String()
	}
	fmt.Fprintf(&b, "  cluster %s\n", v.cluster)
	for _, r := range e.clusters[v.cluster] {
		fmt.Fprintf(&b, "    %8d %s %s size %d holder %.8s VMs", r.Seq, clock(r.At), r.State, r.Size, r.Holder)
		for _, m := range r.VMs {
			fmt.Fprintf(&b, " %.8s:%s", m.ID, m.Phase)
		}
		b.WriteString("\n")
	}
	b.WriteString("  calls\n")
	for _, c := range e.calls {
		if c.Cluster == v.cluster {
			fmt.Fprintf(&b, "    %8d %s %s %s %.8s\n", c.Seq, clock(c.At), c.App, c.Operation, c.VM)
		}
	}
	for _, k := range e.kills {
		fmt.Fprintf(&b, "  killed %s at %s\n", k.app, clock(k.at))
	}
	for _, k := range e.pauses {
		fmt.Fprintf(&b, "  paused %s at %s\n", k.app, clock(k.at))
	}
	return b.String()
}
