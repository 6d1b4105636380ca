package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ckscale/cmd/internal/live"
)

// skewVariable says how far a server's clock is from the true time.
const skewVariable = "CHAOS_CLOCK_SKEW"

// skews are how far the clocks of the servers are off, one after the other.
var skews = []time.Duration{15 * time.Minute, 0, -15 * time.Minute}

// What makes the clock of a program one that can be set: the only place where
// Go's library asks the system for the time of day adds what the variable says.
// The stopwatch by which time.Since and timers go is left alone, as it is by
// whoever sets a machine's clock.
const (
	askTime  = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	skewTime = "\tsec, nsec, mono := runtimeNow()\n\tsec += skew\n\tif mono == 0 {"
	readSkew = `
var skew = func() int64 {
	text, _ := syscall.Getenv("` + skewVariable + `")
	d, _ := ParseDuration(text)
	return int64(d / Second)
}()
`
)

// build builds the server with a clock that can be set, and returns what
// removes it.
func build(ctx context.Context) (program string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "ckscale-chaos-")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("build the server: %w", err), remove())
		}
	}()
	overlay, err := writeOverlay(ctx, dir)
	if err != nil {
		return "", nil, err
	}
	program = filepath.Join(dir, "server")
	return program, remove, live.Build(ctx, program, "-overlay", overlay)
}

// writeOverlay writes what the compiler is to read instead of Go's time.go.
func writeOverlay(ctx context.Context, dir string) (overlay string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed := strings.Replace(string(text), askTime, skewTime, 1)
	if changed == string(text) {
		return "", fmt.Errorf("%s does not ask for the time as expected", original)
	}
	changed = strings.Replace(changed, "import (\n", "import (\n\t\"syscall\"\n", 1) + readSkew
	replacement := filepath.Join(dir, "time.go")
	table, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(os.WriteFile(replacement, []byte(changed), 0o600), os.WriteFile(overlay, table, 0o600))
}
