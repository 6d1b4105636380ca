package model

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// scripts draws scripts.
var scripts = rapid.Custom(func(t *rapid.T) script {
	s := script{instant: rapid.IntRange(0, 3).Draw(t, "instant") == 3}
	for range rapid.IntRange(1, 2).Draw(t, "clusters") {
		s.clusters = append(s.clusters, clusters.Draw(t, "cluster"))
	}
	two := len(s.clusters) == 2
	one := rapid.Custom(func(t *rapid.T) []step { return drawPhrase(t, two) })
	// Slices are short on average, whatever they may be; these make some thirty.
	for _, some := range rapid.SliceOfN(rapid.SliceOfN(one, 1, 12), 1, 12).Draw(t, "phrases") {
		s.steps = append(s.steps, slices.Concat(some...)...)
	}
	return s
})

var clusters = rapid.Custom(func(t *rapid.T) storetest.Spec {
	c := storetest.Spec{Control: 1, Workers: rapid.IntRange(1, 4).Draw(t, "workers")}
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if kind >= 5 {
		c.Control = 3
	}
	if kind == 3 || kind == 7 {
		c.External = 1
	}
	if kind == 6 {
		c.Etcd = 1
	}
	return c
})

// phrases are what scripts are made of, each as often as its weight: actions,
// and some that hardly happen one after the other by chance.
var phrases = []struct {
	weight int
	draw   func(*words)
}{
	{8, func(w *words) { w.say("turn", w.one("5s", "15s", "30s", "60s")) }},
	{5, func(w *words) { w.say("settle") }},
	{4, func(w *words) { w.say("run") }},
	{4, func(w *words) { w.say("time", w.one("5s", "15s", "30s", "60s")) }},
	{4, func(w *words) { w.say("scan", w.cluster()) }},
	{12, func(w *words) { w.say("scale", w.cluster(), w.request()) }},
	{3, func(w *words) { w.say("slow", w.cluster(), w.request()) }},
	{3, func(w *words) { w.say("resume") }},
	{1, func(w *words) { w.say("deadline") }},
	{4, func(w *words) { w.say("start", w.cluster(), w.one("w1", "w2", "w3", "c1", "c2", "x1")) }},
	{4, func(w *words) {
		w.say("stop", w.cluster(), w.one("w1", "w2", "w3", "w4", "c2", "x1"), w.one("", "", "forced"))
	}},
	{5, func(w *words) { w.say("vm", w.cluster(), w.one(setWorker...)) }},
	{2, func(w *words) { w.say("vm", w.cluster(), w.one(setOther...)) }},
	{2, func(w *words) {
		w.say("node", w.cluster(), w.one("w1", "w2", "w3", "w4", "c1"), w.one("forget", "NotReady", "Ready"))
	}},
	{5, func(w *words) { w.say("fault", w.one(faults...), w.one("count=1", "count=2", "count=3", "")) }},
	{5, func(w *words) { w.say("clear", w.one(faulty...)) }},
	{2, func(w *words) { w.say("capacity", w.one("0", "1", "2")) }},
	{2, func(w *words) { w.say("race") }},
	{2, func(w *words) { w.say("crash", w.moment()) }},
	{2, func(w *words) { w.say("peek", w.cluster()) }},
	{1, func(w *words) { w.say("pause", w.number(12)) }},
	{3, func(w *words) { w.say("wake") }},
	{2, func(w *words) { w.say("restart") }},

	{6, func(w *words) { // a request, and at once something that hits its job
		w.say("scale", w.cluster(), w.request())
		switch w.number(5) {
		case "1":
			w.say("race")
		case "2":
			w.say("pause", w.number(12))
		default:
			w.say("crash", w.moment())
		}
	}},
	{4, func(w *words) { // the same later in its life
		w.say("scale", w.cluster(), w.request())
		for range w.one("1", "22", "333") {
			w.say("turn", w.one("5s", "15s", "30s"))
		}
		w.say("scan", w.cluster())
		w.say(w.one("race", "crash "+w.moment(), "pause "+w.number(8)))
	}},
	{3, func(w *words) { // what fails in the midst of a job
		w.say("scale", w.cluster(), w.request())
		w.say("turn", w.one("5s", "15s", "30s"))
		w.say("fault", w.one(faults...), w.one("count=3", ""))
		w.say("turn", w.one("5s", "15s", "30s"))
	}},
	{4, func(w *words) { // the case of the seed
		c := w.cluster()
		w.say("vm", c, w.one("w1 Stopped", "w2 Stopped", "w1 Error", "w2 Destroyed"))
		w.say("scan", c)
		w.say("scale", c, w.request())
	}},
	{3, func(w *words) { // two servers on one job, one of them late
		w.say("scale", w.cluster(), w.request())
		w.say("pause", w.one(w.number(10), w.number(10), w.number(3)+" late"))
		w.say(w.one("time 15s", "turn 30s"))
		w.say(w.one("run", "turn 15s", "settle", "pause "+w.number(10)))
		w.say("wake")
	}},
	{4, func(w *words) { // a scale-up that fails part-way, and perhaps its undoing too
		w.say("fault node.join fail", w.one("count=1", "count=2"))
		w.say("scale", w.cluster(), "size="+w.number(6))
		for range 3 {
			w.say("turn", w.one("15s", "30s"))
		}
		if w.number(2) == "2" {
			w.say("fault", w.one("vm.destroy", "node.delete", "iso.detach", "node.list"), w.one("fail", "hang", "fail count=3", "fail count=2"))
		}
		w.say("deadline")
		w.say(w.one("run", "turn 15s", "race", "crash "+w.moment(), "pause "+w.number(8)))
		w.say("clear", w.one("node.join", "vm.destroy", "node.delete"))
	}},
	{2, func(w *words) { // a scan that saw what is so no more (A48)
		c := w.cluster()
		w.say("vm", c, w.one("w1 Stopped", "w2 Stopped"))
		w.say("peek", c)
		w.say(w.one("vm "+c+" w1 Running", "scale "+c+" "+w.request(), "scan "+c))
		w.say(w.one("run", "turn 30s", "settle"))
		w.say("resume")
	}},
	{2, func(w *words) { // a request that was judged long ago
		c := w.cluster()
		w.say("slow", c, w.request())
		w.say("scale", c, w.request())
		w.say("settle")
		w.say("resume")
	}},
}

var setWorker, setOther, faults, faulty []string

func init() {
	for _, w := range []string{"w1", "w2", "w3", "w4"} {
		for _, s := range cks.VMStates {
			setWorker = append(setWorker, fmt.Sprint(w, " ", s))
		}
		setWorker = append(setWorker, w+" Stopped", w+" Stopped", w+" Running") // what happens most
	}
	for _, v := range []string{"c1", "c2", "x1", "e1"} { // never down for good: see end
		for _, s := range []cks.VMState{cks.VMStopped, cks.VMRunning, cks.VMUnknown, cks.VMMigrating} {
			setOther = append(setOther, fmt.Sprint(v, " ", s))
		}
	}
	for _, operation := range []string{"vm.create", "vm.start", "vm.stop", "vm.destroy", "vm.resize", "vm.list", "iso.attach",
		"iso.detach", "node.join", "node.drain", "node.uncordon", "node.delete", "node.list", "autoscaler.set"} {
		faulty = append(faulty, operation)
		for _, value := range []string{"fail", "hang", "panic", "delay:3ms", "lost"} {
			if operation != "node.join" || value != "panic" && value != "lost" {
				faults = append(faults, operation+" "+value)
			}
		}
	}
	faults, faulty = append(faults, "node.drain budget", "node.drain budget"), append(faulty, "capacity")
}

// words are the lines of a phrase, as they are drawn.
type words struct {
	t     *rapid.T
	two   bool
	lines []string
}

func drawPhrase(t *rapid.T, two bool) (steps []step) {
	var draw []func(*words)
	for _, p := range phrases {
		for range p.weight {
			draw = append(draw, p.draw)
		}
	}
	w := &words{t: t, two: two}
	rapid.SampledFrom(draw).Draw(t, "phrase")(w)
	for _, line := range w.lines {
		st, err := parseStep(line)
		if err != nil {
			panic(err) // the generator and the language do not agree
		}
		steps = append(steps, st)
	}
	return steps
}

func (w *words) say(words ...string) { w.lines = append(w.lines, strings.Join(words, " ")) }

func (w *words) one(of ...string) string { return rapid.SampledFrom(of).Draw(w.t, "word") }

func (w *words) number(most int) string {
	return fmt.Sprint(rapid.IntRange(1, most).Draw(w.t, "number"))
}

func (w *words) cluster() string {
	if w.two {
		return w.one("A", "B")
	}
	return "A"
}

// moment draws when a server dies.
func (w *words) moment() string {
	if w.number(3) == "1" {
		return statement + " " + w.number(60)
	}
	return w.one(beforeCall, afterCall) + " " + w.number(10)
}

// request draws the parameters of a scale request: mostly sensible ones.
func (w *words) request() string {
	size := "size=" + w.number(6)
	switch rapid.IntRange(0, 13).Draw(w.t, "request") {
	case 6, 7, 8:
		return w.one("nodeids=w1", "nodeids=w2", "nodeids=w3", "nodeids=w1,w2", "nodeids=w2,w3", "nodeids=w1,w3")
	case 9:
		return w.one("nodeids=", "nodeids=c1", "nodeids=x1", "nodeids=e1", "nodeids=w1,w1", "nodeids=B.w1", "nodeids=w1,B.w1",
			"nodeids=gone", "nodeids=nobody", "nodeids=w1,c1", "nodeids=w1 size=2", "nodeids=w1,w2,w3,w4", "nodeids=c1,c2,c3")
	case 10:
		return w.one("size=0", "size=-1", "size=11", "size=8", "size=3 autoscaling=on min=1 max=3", "autoscaling=on",
			"autoscaling=on min=0 max=2", "autoscaling=on min=2 max=2", "autoscaling=on min=1 max=12")
	case 11:
		return w.one("autoscaling=on min=1 max=3", "autoscaling=on min=2 max=5", "autoscaling=off")
	case 12:
		return w.one("offering=medium", "offering=small")
	case 13:
		return size + " " + "offering=medium"
	}
	return size
}
