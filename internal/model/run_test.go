package model

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	budget    = flag.Duration("budget", 20*time.Second, "how long random scripts are played")
	shrinking = flag.Duration("shrinking", time.Minute, "how long lines are left out of a script that fails, after rapid")
	replay    = flag.String("script", "", "play this script instead of those in testdata")
)

// total is what all tests have done, for the summary.
var total = struct {
	sync.Mutex
	seed   uint64
	counts map[string]int
}{counts: map[string]int{}}

// TestMain settles the seed, so that it can be printed whatever happens.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(atOnce), "rapid.nofailfile": "true", "rapid.shrinktime": "10s"} {
		if !given(name) {
			set(name, value)
		}
	}
	total.seed, _ = strconv.ParseUint(flag.Lookup("rapid.seed").Value.String(), 10, 64)
	if total.seed == 0 {
		total.seed = rand.Uint64N(1 << 53)
	}
	code := m.Run()
	if len(total.counts) > 0 {
		fmt.Println(summary())
	}
	os.Exit(code)
}

func given(name string) (is bool) {
	flag.Visit(func(f *flag.Flag) { is = is || f.Name == name })
	return is
}

func set(name, value string) {
	if err := flag.Set(name, value); err != nil {
		panic(err)
	}
}

func summary() string {
	total.Lock()
	defer total.Unlock()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(total.counts)) {
		list = append(list, fmt.Sprintf("%s %d", name, total.counts[name]))
	}
	return fmt.Sprintf("model: seed %d: %s", total.seed, strings.Join(list, ", "))
}

// atOnce is how many scripts are drawn from one seed, and played on one
// database.
const atOnce = 10

// TestModel plays random scripts for as long as -budget says. One that fails is
// made as short as possible and printed.
func TestModel(t *testing.T) {
	if *replay != "" {
		t.Skip("a script is replayed")
	}
	t.Logf("seed %d", total.seed)
	end := time.Now().Add(*budget)
	for seed := total.seed; time.Now().Before(end); seed++ {
		set("rapid.seed", strconv.FormatUint(seed, 10))
		r := &rounds{T: t, end: end}
		func() {
			defer r.close() // also when the test ends here
			rapid.Check(t, r.play)
		}()
	}
	t.Log(summary())
}

// rounds are the scripts of one seed.
type rounds struct {
	*testing.T
	arena  *arena
	end    time.Time
	failed *script // the shortest so far
	wrong  []complaint
	rule   string // that it breaks: one that breaks another is not a shorter one of the same
}

// play is what rapid falsifies. What it is told must not differ from one run
// to the next; the rest is told in close.
func (r *rounds) play(t *rapid.T) {
	s := scripts.Draw(t, "script")
	if r.failed == nil && time.Now().After(r.end) {
		return
	}
	if len(r.broken(s)) > 0 {
		t.Fatal(r.rule)
	}
}

// broken plays a script and returns what is wrong as it was before.
func (r *rounds) broken(s script) []complaint {
	if r.arena == nil {
		r.arena = newArena(r.T)
	}
	wrong := play(r.Context(), r.arena, s, false, nil)
	if len(wrong) == 0 {
		return nil
	}
	r.arena.close() // what it left behind would disturb the next
	r.arena = nil
	if r.failed == nil {
		r.rule = wrong[0].rule
	}
	if !slices.ContainsFunc(wrong, func(w complaint) bool { return w.rule == r.rule }) {
		return nil
	}
	r.failed, r.wrong = &s, wrong
	return wrong
}

func (r *rounds) close() {
	if r.failed != nil {
		s := shorter(*r.failed, time.Now().Add(*shrinking), func(s script) bool { return len(r.broken(s)) > 0 })
		r.Log(account(s, r.wrong))
	}
	if r.arena != nil {
		r.arena.close()
	}
}

// account tells of a failed script how to play it again.
func account(s script, wrong []complaint) string {
	b := &strings.Builder{}
	fmt.Fprintln(b, "a script fails:")
	for _, w := range wrong {
		fmt.Fprintf(b, "%s: %s\n", w.rule, w.detail)
	}
	path := filepath.Join(os.TempDir(), "ckscale-model.script")
	if err := os.WriteFile(path, []byte(s.String()), 0o644); err != nil {
		path = "FILE, with these lines in it"
	}
	fmt.Fprintf(b, "To play it again: make replay SCRIPT=%s\n--- script\n%s---", path, s)
	return b.String()
}

// play plays one script and returns what is wrong. An error is something wrong
// as well; so is, with whole, an action that could not be taken.
func play(ctx context.Context, a *arena, s script, whole bool, trace func(string, ...any)) []complaint {
	p, err := newPlayer(ctx, a, s)
	if err != nil {
		return []complaint{{"the clusters cannot be made", err.Error()}}
	}
	p.trace = trace
	at, err := p.play(s)
	if err != nil {
		p.complain("an error", "%v", err)
	}
	if whole && len(p.leftOut) > 0 {
		p.complain("an action could not be taken", "%s", strings.Join(p.leftOut, "; "))
	}
	for i := range p.wrong {
		p.wrong[i].detail += " [at " + at + "]"
	}
	p.counts["scripts"]++
	total.Lock()
	defer total.Unlock()
	for name, n := range p.counts {
		total.counts[name] += n
	}
	return p.wrong
}

// TestScripts plays the scripts that are kept, or the one that -script names.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.script")
	if *replay != "" {
		files = []string{*replay}
	}
	if err != nil || len(files) == 0 {
		t.Fatal("there are no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".script"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := parseScript(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			a := newArena(t)
			t.Cleanup(a.close)
			for _, w := range play(t.Context(), a, s, *replay == "", t.Logf) {
				t.Errorf("%s: %s", w.rule, w.detail)
			}
		})
	}
}
