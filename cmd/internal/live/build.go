package live

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Build builds the server as make build does, whose cache it shares, with more
// flags.
func Build(ctx context.Context, program string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", program}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "ckscale/cmd/server")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}
