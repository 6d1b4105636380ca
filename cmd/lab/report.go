package main

import (
	"fmt"
	"strings"
	"time"
)

// report writes the results as Markdown. It names no machine and no path: of
// two runs, only times differ.
func report(l *lab, trials []*trial) string {
	var b strings.Builder
	b.WriteString("# Test report: scaling a Kubernetes cluster that is in Alert\n\n" +
		"Written by `make lab`, from a live run through the API. The scenarios are those of the test report of\n" +
		"[the change](https://github.com/apache/cloudstack/pull/14604), and what that report does not cover.\n\n")
	fmt.Fprintf(&b, "**Result: %s.**\n", summary(trials))
	l.environment(&b)
	results(&b, l.speed, trials)
	for _, t := range trials {
		t.window(&b)
	}
	texts(&b, trials)
	uncovered(&b, trials)
	return b.String()
}

// summary counts the results.
func summary(trials []*trial) string {
	failed, notRun := 0, 0
	for _, t := range trials {
		switch {
		case t.failed():
			failed++
		case t.err != nil:
			notRun++
		}
	}
	text := fmt.Sprintf("%d of %d scenarios pass", len(trials)-failed-notRun, len(trials))
	if failed > 0 {
		text += fmt.Sprintf(", %d fail", failed)
	}
	if notRun > 0 {
		text += fmt.Sprintf(", %d not run", notRun)
	}
	return text
}

func (l *lab) environment(b *strings.Builder) {
	server := "a server that was running already; of its settings only the speed was given"
	if l.ours {
		server = "a server of its own, with an empty database; settings at their defaults but for those below"
	}
	limit := "not known"
	if l.timeout > 0 {
		limit = l.both(l.timeout)
	}
	c := l.made
	fmt.Fprintf(b, `
## Environment

* ckscale, API version %s: %s.
* The cloud is ckscale's simulator, at speed %g (`+"`CKSCALE_SIM_SPEED`"+`). "At speed 1" is what was measured times the speed. It is
  an upper bound: the server's own work, which does not depend on the speed, is multiplied too.
* Limit of one scaling job (`+"`CKSCALE_SCALE_TIMEOUT`"+`): %s.
* Cluster `+"`%s`"+`: %d control nodes and %d workers, Kubernetes %s, made in %s.
* Requests are signed GETs. Drains are the calls that the cloud counted (`+"`querySimulator`"+`), before and after each scenario.
`, l.version, server, l.speed, limit, c.Name, c.ControlNodes, c.Size, c.Version, l.both(l.making))
}

// both shows a duration as it was measured, and at speed 1.
func (l *lab) both(d time.Duration) string {
	return fmt.Sprintf("%s (%s at speed 1)", seconds(d), seconds(time.Duration(float64(d)*l.speed)))
}

func seconds(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func results(b *strings.Builder, speed float64, trials []*trial) {
	b.WriteString("\n## Results\n\n" +
		"Times count from the request; in the stale-Ready window from the stop of worker 2, just before it. They are known to within one\n" +
		"look at the cloud or the cluster, 10 ms or more. \"Count met\" is when as many nodes were Ready as VMs were up. A pass also means\n" +
		"that afterwards the cluster's size, its list of VMs, and the VMs and nodes that exist agree, that no ISO is attached, and that\n" +
		"the cloud saw as many drains as it should.\n\n" +
		"| scenario | | result | measured | at speed 1 | drains |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, t := range trials {
		var measured, real []string
		for _, m := range t.measured {
			measured = append(measured, m.what+" "+seconds(m.took))
			real = append(real, seconds(time.Duration(float64(m.took)*speed)))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %d |\n", t.name, t.what, cell(t.outcome()),
			strings.Join(measured, "<br>"), strings.Join(real, "<br>"), t.drained)
	}
}

// cell makes a text fit into a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "\n", " ").Replace(text)
}

// window writes the timeline, and the nodes at its end, if there is one.
func (t *trial) window(b *strings.Builder) {
	if t.timeline == nil {
		return
	}
	fmt.Fprintf(b, "\n## %s: the timeline\n\n"+
		"Worker 1 is stopped and its node Unknown; worker 2 is stopped at 0 s. The cloud was told to take %.0f s longer for the join and\n"+
		"%.0f s for the detaching, at speed 1. Looks at the cloud in which something had changed; times measured, and at speed 1:\n\n```\n",
		t.name, joinDelay.Seconds(), detachDelay.Seconds())
	for _, l := range t.timeline.lines {
		s := l.after.Seconds()
		b.WriteString(strings.TrimRight(fmt.Sprintf("%6.2f s %7.1f s  %s  %s", s, s*t.speed, l.text, l.note), " ") + "\n")
	}
	b.WriteString("```\n")
	if len(t.nodes) > 0 {
		fmt.Fprintf(b, "\nThe nodes when the API returned, as `kubectl get nodes` shows them:\n\n```\n%s\n```\n", strings.Join(t.nodes, "\n"))
	}
}

// texts lists what requests were refused with.
func texts(b *strings.Builder, trials []*trial) {
	b.WriteString("\n## The texts\n\nErrors of code 530, as `queryAsyncJobResult` shows them:\n\n```\n")
	for _, t := range trials {
		if t.text != "" {
			fmt.Fprintf(b, "%-8s %s\n", t.name, t.text)
		}
	}
	b.WriteString("```\n")
}

func uncovered(b *strings.Builder, trials []*trial) {
	b.WriteString(`
## Not covered

* A real hypervisor and real kubelets. The simulator keeps the facts that matter here, but boots and joins sooner than the
  lab's machines.
* The cluster-autoscaler itself: its requests are made in its form, the program is not run.
* The form in CloudStack's UI: ckscale has none.
`)
	for _, t := range trials {
		if t.err != nil && !t.failed() {
			fmt.Fprintf(b, "* %s: %s.\n", t.name, t.outcome())
		}
	}
}
