package jobs

import (
	"context"
	"sync"

	"ckscale/internal/cks"
)

// shares bounds how many jobs of one cluster are worked at once, so that one
// whose cloud hangs leaves workers to the others. It can have many jobs: one
// for each of its VMs.
type shares struct {
	most int

	mu    sync.Mutex
	taken map[string]int // by cluster
}

// take reports whether the cluster may have one job more; then give has to
// follow.
func (s *shares) take(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[cluster] >= s.most {
		return false
	}
	s.taken[cluster]++
	return true
}

func (s *shares) give(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[cluster]--; s.taken[cluster] == 0 {
		delete(s.taken, cluster)
	}
}

// placeOf returns the cluster that j acts on: its own, or its VM's. For a VM that
// the cloud knows by itself it is the VM.
func (r *Runner) placeOf(ctx context.Context, j cks.Job) (string, error) {
	if j.VMID == "" {
		return j.ClusterID, nil
	}
	vm, err := r.store.VMByRef(ctx, j.VMID)
	return vm.Place, err
}
