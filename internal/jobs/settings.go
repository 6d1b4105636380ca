package jobs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"ckscale/internal/cks"
)

// drainTimeout is how long one attempt to drain a node may take: as it is set
// now, else as the environment says.
func (r *run) drainTimeout(ctx context.Context) (time.Duration, error) {
	text, set, err := r.store.Setting(ctx, cks.SettingDrainTimeout, "")
	if err != nil || !set {
		return r.cfg.DrainTimeout, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("setting %s: %w", cks.SettingDrainTimeout, err)
	}
	return time.Duration(n) * time.Second, nil
}
