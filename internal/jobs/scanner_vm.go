package jobs

import (
	"context"
	"fmt"

	"ckscale/internal/cks"
)

// scanDueVMs scans the VMs, in no cluster, whose turn it is.
func (s *Scanner) scanDueVMs(ctx context.Context) {
	const batch = 100
	for {
		ids, err := s.store.VMsToScan(ctx, batch, s.cfg.Interval)
		if err != nil {
			s.report(ctx, "", err)
			return
		}
		for _, id := range ids {
			s.request(ctx, id)
		}
		if len(ids) < batch {
			return
		}
	}
}

// scanVM looks at one VM that is in no cluster: records its state, wakes its
// waiting job, and destroys it when it is doomed, or when it was made by a call
// that was still under way when its row was removed.
func (s *Scanner) scanVM(ctx context.Context, id string) error {
	v, err := s.store.VMByRef(ctx, id)
	if err != nil {
		return gone(err)
	}
	found, err := s.machines(ctx, id)
	if err != nil {
		return err
	}
	_, exists := found.byID[id]
	switch {
	case v.Removed && exists, v.Phase == cks.Doomed && !v.Removed:
		return s.expunge(ctx, v)
	case v.Removed, v.Place != id:
		return nil
	}
	if err := observe(ctx, s.store, []cks.VM{v}, found); err != nil {
		return err
	}
	_, err = s.store.WakeVM(ctx, id)
	return err
}

func (s *Scanner) expunge(ctx context.Context, v cks.VM) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	if err := gone(s.vms.Destroy(ctx, v.ID, v.ID)); err != nil {
		return fmt.Errorf("destroy VM %s: %w", v.ID, err)
	}
	return s.store.DropDoomed(ctx, v.ID)
}
