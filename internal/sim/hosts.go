package sim

import (
	"context"
	"math"

	"ckscale/internal/cks"
)

// hosts is the document of who has a place on the hosts. Places are by VM, so
// that a repeated call takes or gives back the same place.
type hosts struct {
	Limit  *int            `json:"limit,omitempty"` // places in all, by order; nil: the configured number
	Places map[string]bool `json:"places,omitempty"`
}

// limit returns how many places there are; ok is false if there is no limit.
func (h *hosts) limit(capacity int) (n int, ok bool) {
	if h.Limit != nil {
		return *h.Limit, true
	}
	return capacity, capacity >= 0
}

// take gives VMs places; without force only while there are some.
func (h *hosts) take(capacity int, force bool, vmIDs ...string) error {
	limit, limited := h.limit(capacity)
	for _, id := range vmIDs {
		if h.Places[id] {
			continue
		}
		if limited && !force && len(h.Places) >= limit {
			return cks.Errorf(cks.Failed, "Unable to create a deployment for VM %s: insufficient capacity", id)
		}
		if h.Places == nil {
			h.Places = map[string]bool{}
		}
		h.Places[id] = true
	}
	return nil
}

// place takes places on the hosts.
func (w *World) place(ctx context.Context, force bool, vmIDs ...string) error {
	h, err := peek[hosts](ctx, w.mem, keyHosts)
	if err != nil {
		return err
	}
	if _, ok := h.limit(w.cfg.Capacity); !ok {
		return nil // without a limit nobody counts
	}
	return update(ctx, w.mem, keyHosts, func(h *hosts) error { return h.take(w.cfg.Capacity, force, vmIDs...) })
}

// vacate gives a place back.
func (w *World) vacate(ctx context.Context, vmID string) error {
	h, err := peek[hosts](ctx, w.mem, keyHosts)
	if err != nil || !h.Places[vmID] {
		return err
	}
	return update(ctx, w.mem, keyHosts, func(h *hosts) error {
		delete(h.Places, vmID)
		return nil
	})
}

// setRoom lets n more VMs fit; n < 0: as many as configured.
func (w *World) setRoom(ctx context.Context, n int) error {
	return update(ctx, w.mem, keyHosts, func(h *hosts) error {
		h.Limit = nil
		if n >= 0 {
			limit := len(h.Places) + n
			h.Limit = &limit
		}
		return nil
	})
}

// Room returns how many more machines fit. Hosts have room for so many VMs of
// any size.
func (w *World) Room(ctx context.Context, _, _ int) (int, error) {
	h, err := peek[hosts](ctx, w.mem, keyHosts)
	if err != nil {
		return 0, err
	}
	limit, ok := h.limit(w.cfg.Capacity)
	if !ok {
		return math.MaxInt32, nil
	}
	return max(0, limit-len(h.Places)), nil
}
