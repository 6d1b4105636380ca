package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ckscale/cmd/internal/live"
	"ckscale/internal/store/storetest"
)

var programs string // folder of what is built

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ckscale-chaos-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// built is the server, built once.
var built = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programs, "server")
	return program, live.Build(context.Background(), program)
})

// A short run, in which servers are killed, violates nothing, and its table says
// what it was.
func TestShortRun(t *testing.T) {
	t.Parallel()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	o := options{
		seed: 7, duration: 12 * time.Second, servers: 3, clusters: 8, clients: 5, settings: settings,
		server: program, database: storetest.URL(t), logs: t.TempDir(), stdout: &table, progress: t.Output(),
	}
	if err := run(t.Context(), o); err != nil {
		t.Errorf("%v\n%s", err, &table)
	}
	for _, want := range []string{"Chaos with seed 7: 3 servers, 8 clusters, 5 clients, 12s", "| violations                                     | 0   ", "| servers killed "} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
	if strings.Contains(table.String(), "| servers killed                                 | 0 ") {
		t.Errorf("nobody was killed\n%s", &table)
	}
	t.Log(table.String())
}

// What is known of a violation is told, and makes the run fail.
func TestViolationIsTold(t *testing.T) {
	t.Parallel()
	e := sound()
	var text strings.Builder
	if err := report(&text, options{seed: 3}, e, []violation{{"a rule", "k", "grow", "is broken"}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| violations                                     | 1 ", "VIOLATED: a rule\n", "is broken", "job grow scale-up", `step "choose-vms"`,
		"Scaling size 3 holder grow", "vm.create w3", "killed a at 12:00:02.000", "| jobs resumed after a kill                      | 1 ",
		"| longest time from kill to resumption           | 10.0 s ",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// Where the choices come from, they are the same each time, and each client's
// are its own.
func TestChoicesFollowFromTheSeed(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64, whose int) string {
		c := &customer{caller: &caller{choose: options{seed: seed}.choices("customer", whose)}}
		return c.uuid()
	}
	first, again := draw(1, 1), draw(1, 1)
	if first != again || first == draw(1, 2) || first == draw(2, 1) {
		t.Error("they do not follow from the seed and the client")
	}
}

// The overlay lets a program's clock be set; the stopwatch stays.
func TestOverlaySetsTheClock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := writeOverlay(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "sec += skew"); n != 1 || !strings.Contains(string(text), skewVariable) {
		t.Errorf("the clock is set in %d places", n)
	}
}
