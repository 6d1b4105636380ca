package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"ckscale/internal/cks"
)

// Query shows the simulated cloud, or one cluster of it: the calls that were
// counted, nodes, machines and autoscalers, whatever the service's rows say.
func (w *World) Query(ctx context.Context, clusterID string) (cks.Simulation, error) {
	keys, err := w.keys(ctx)
	if err != nil {
		return cks.Simulation{}, err
	}
	slices.Sort(keys)
	var s cks.Simulation
	for _, key := range keys {
		id, counts := strings.CutPrefix(key, keyCalls)
		switch {
		case !narrows(clusterID, id):
		case counts:
			err = w.showCalls(ctx, id, &s)
		case isCluster(key):
			err = w.showCluster(ctx, id, &s)
		}
		if err != nil {
			return cks.Simulation{}, err
		}
	}
	return s, nil
}

// showCalls adds a cluster's calls to s.
func (w *World) showCalls(ctx context.Context, clusterID string, s *cks.Simulation) error {
	byOperation, err := peek[calls](ctx, w.mem, keyCalls+clusterID)
	if err != nil {
		return err
	}
	var all []cks.Calls
	for op, byVM := range *byOperation {
		for _, vmID := range slices.Sorted(maps.Keys(byVM)) {
			all = append(all, cks.Calls{Operation: op, ClusterID: clusterOf(clusterID, vmID), VMID: vmID, Count: byVM[vmID]})
		}
	}
	slices.SortStableFunc(all, func(a, b cks.Calls) int { return cmp.Compare(a.Operation, b.Operation) })
	s.Calls = append(s.Calls, all...)
	return nil
}

// showCluster adds a cluster to s.
func (w *World) showCluster(ctx context.Context, clusterID string, s *cks.Simulation) error {
	c, err := w.look(ctx, clusterID)
	if err != nil {
		return err
	}
	s.Machines = append(s.Machines, c.machines()...)
	for _, n := range c.nodes() {
		s.Nodes = append(s.Nodes, cks.SimulatedNode{Node: n, ClusterID: clusterID})
	}
	if c.Autoscaling != nil {
		s.Autoscalers = append(s.Autoscalers, cks.SimulatedAutoscaler{ClusterID: clusterID, Autoscaling: *c.Autoscaling})
	}
	return nil
}
