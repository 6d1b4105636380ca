package model

import (
	"fmt"
	"regexp"
	"strings"

	"ckscale/internal/store/storetest"
)

// script is a scenario: one or two clusters, and what happens, line by line.
type script struct {
	instant  bool // the cloud needs no time to boot a VM and to let it join
	clusters []storetest.Spec
	steps    []step
}

// step is one action.
type step struct {
	line string
	verb *verb
	args args
}

// args are a line's words: by kind those that have to be there, by name those
// that may be left out.
type args map[string]string

func (a args) has(name string) bool { _, ok := a[name]; return ok }

// verb is one kind of action. In its form capitals stand for a word of a kind,
// brackets for what may be left out.
type verb struct {
	form string
	does string
	do   func(*player, args) error
}

// scaleForm is the form of a scale request.
const scaleForm = "CLUSTER [size=NUMBER] [nodeids=VMS] [offering=OFFERING] [autoscaling=SWITCH] [min=NUMBER] [max=NUMBER]"

// verbs is the language of scripts. What names a VM that is not there is left
// out; so is what cannot be done just then.
var verbs []verb

func init() { // the actions name the language that has them
	verbs = []verb{
		{"scale " + scaleForm, "a scale request", (*player).scale},
		{"slow " + scaleForm, "one that takes its time between its judgement and its commit", (*player).slow},
		{"peek CLUSTER", "a scan that takes its time before it moves the cluster", (*player).peek},
		{"resume", "the slow request, else the slow scan, goes on", (*player).resume},
		{"start CLUSTER VM", "by command", (*player).startVM},
		{"stop CLUSTER VM [forced]", "by command", (*player).stopVM},
		{"vm CLUSTER VM STATE", "it is in that state now, behind the service's back", (*player).setVM},
		{"node CLUSTER VM CHANGE", "likewise its node", (*player).setNode},
		{"fault OPERATION VALUE [count=NUMBER] [cluster=CLUSTER]", "as configureSimulator; lost: it is carried out, and the answer lost", (*player).fault},
		{"clear OPERATION", "its faults are over", (*player).clear},
		{"capacity NUMBER", "so many more VMs fit", (*player).capacity},
		{"time DURATION", "passes; leases end, and waits are over, in 15 s and more", (*player).time},
		{"deadline", "that of the live jobs passes", (*player).deadline},
		{"scan CLUSTER", "by the scanner", (*player).scan},
		{"run", "a runner works until nothing is due", (*player).run},
		{"turn DURATION", "run, time, scans, run", (*player).turn},
		{"settle", "turns until every job has ended", (*player).settle},
		{"race", "two runners and the scans at once", (*player).race},
		{"crash MOMENT NUMBER", "a runner works, and its server dies at its n-th", (*player).crash},
		{"pause NUMBER [late]", "a runner works, and stands still after its n-th call; late: before its n-th VM is made", (*player).pause},
		{"wake", "the one that has stood still the longest goes on", (*player).wake},
		{"restart", "of the only server: leases end at once", (*player).restart},
		{"expect CLUSTER STATE [size=NUMBER] [jobs=ENDED]", "in scripts that are kept; jobs that succeeded and that failed: 2/1", (*player).expect},
	}
}

// kinds says how the words of a form may look.
var kinds = map[string]*regexp.Regexp{
	"CLUSTER":   regexp.MustCompile(`^[AB]$`),
	"VM":        regexp.MustCompile(`^` + vmName + `$`),
	"VMS":       regexp.MustCompile(`^(` + vmName + `(,` + vmName + `)*)?$`),
	"NUMBER":    regexp.MustCompile(`^-?\d{1,3}$`),
	"OFFERING":  regexp.MustCompile(`^(small|medium)$`),
	"SWITCH":    regexp.MustCompile(`^(on|off)$`),
	"STATE":     regexp.MustCompile(`^[A-Z][a-z]+$`),
	"CHANGE":    regexp.MustCompile(`^(forget|Ready|NotReady)$`),
	"OPERATION": regexp.MustCompile(`^(vm|node|iso|autoscaler)\.[a-z]+$|^capacity$`),
	"VALUE":     regexp.MustCompile(`^(fail|hang|panic|budget|lost|delay:\d+ms)$`),
	"DURATION":  regexp.MustCompile(`^\d+s$`),
	"ENDED":     regexp.MustCompile(`^\d+/\d+$`),
	"MOMENT":    regexp.MustCompile(`^(before-call|after-call|statement)$`),
}

// vmName names a VM of the line's cluster, or of the one before the point: an
// own worker, an external one, a control or etcd node, by age; the VM that was
// removed last; or none that ever was.
const vmName = `(?:(?:[AB]\.)?[wxce][1-9]|gone|nobody)`

// parseStep reads one action.
func parseStep(line string) (step, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return step{}, fmt.Errorf("an action is missing")
	}
	for i := range verbs {
		form := strings.Fields(verbs[i].form)
		if form[0] != words[0] {
			continue
		}
		a, err := match(form[1:], words[1:])
		if err != nil {
			return step{}, fmt.Errorf("%q: %w; allowed: %s", line, err, verbs[i].form)
		}
		return step{strings.Join(words, " "), &verbs[i], a}, nil
	}
	return step{}, fmt.Errorf("%q: no such action; allowed:\n%s", line, language())
}

// language lists the verbs.
func language() string {
	var b strings.Builder
	for _, v := range verbs {
		fmt.Fprintf(&b, "    %s\n        %s\n", v.form, v.does)
	}
	return b.String()
}

// match reads words as form says.
func match(form, words []string) (args, error) {
	a := args{}
	options := map[string]string{} // the kind, by name
	for _, f := range form {
		if name, optional := strings.CutPrefix(f, "["); optional {
			name, kind, _ := strings.Cut(strings.TrimSuffix(name, "]"), "=")
			options[name] = kind
			continue
		}
		if len(words) == 0 || !kinds[f].MatchString(words[0]) {
			return nil, fmt.Errorf("a %s is missing", f)
		}
		a[f], words = words[0], words[1:]
	}
	for _, w := range words {
		name, value, given := strings.Cut(w, "=")
		kind, known := options[name]
		if !known || given != (kind != "") || given && !kinds[kind].MatchString(value) || a.has(name) {
			return nil, fmt.Errorf("%q is not understood", w)
		}
		a[name] = value
	}
	return a, nil
}

var clusterLine = regexp.MustCompile(`^cluster ([AB]) control=([13]) etcd=([013]) workers=([1-6]) external=([012])$`)

// parseScript reads a script. Empty lines and those that begin with # say
// nothing. Clusters come first.
func parseScript(text string) (s script, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.add(line); err != nil {
			return s, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if len(s.clusters) == 0 {
		return s, fmt.Errorf("a script begins with its clusters, such as: %s", clusterOf("A", storetest.Spec{Control: 1, Workers: 2}))
	}
	return s, nil
}

func (s *script) add(line string) error {
	m := clusterLine.FindStringSubmatch(line)
	switch {
	case line == "cloud instant" && len(s.steps) == 0:
		s.instant = true
		return nil
	case m != nil && len(s.steps) == 0 && m[1] == letter(len(s.clusters)):
		digit := func(i int) int { return int(m[i][0] - '0') }
		s.clusters = append(s.clusters, storetest.Spec{Control: digit(2), Etcd: digit(3), Workers: digit(4), External: digit(5)})
		return nil
	case strings.HasPrefix(line, "cl") && !strings.HasPrefix(line, "clear"):
		return fmt.Errorf("%q is not understood here", line)
	case len(s.clusters) == 0:
		return fmt.Errorf("%q comes before the clusters", line)
	}
	st, err := parseStep(line)
	if c := st.args["CLUSTER"]; err == nil && c > letter(len(s.clusters)-1) {
		err = fmt.Errorf("%q: there is no cluster %s", line, c)
	}
	s.steps = append(s.steps, st)
	return err
}

func letter(i int) string { return string(rune('A' + i)) }

func clusterOf(name string, c storetest.Spec) string {
	return fmt.Sprintf("cluster %s control=%d etcd=%d workers=%d external=%d", name, c.Control, c.Etcd, c.Workers, c.External)
}

// String writes the script as parseScript reads it.
func (s script) String() string {
	var b strings.Builder
	if s.instant {
		b.WriteString("cloud instant\n")
	}
	for i, c := range s.clusters {
		fmt.Fprintln(&b, clusterOf(letter(i), c))
	}
	for _, st := range s.steps {
		fmt.Fprintln(&b, st.line)
	}
	return b.String()
}

// GoString is what is shown of a script that was drawn.
func (s script) GoString() string { return "\n" + s.String() }
