package service

import (
	"context"

	"ckscale/internal/cks"
)

// ConfigureSimulator gives the simulator an order. It fails with
// cks.Unsupported for all but administrators, and where nothing is simulated.
func (s *Service) ConfigureSimulator(ctx context.Context, caller cks.Account, f cks.Fault) error {
	if err := s.needSimulator(caller, "configureSimulator"); err != nil {
		return err
	}
	if f.ClusterID != "" {
		c, err := cluster(ctx, s.store.Queries, caller, "clusterid", f.ClusterID)
		if err != nil {
			return err
		}
		f.ClusterID = c.ID
	}
	if f.VMID != "" {
		v, err := vm(ctx, s.store.Queries, caller, "vmid", f.VMID)
		if err != nil {
			return err
		}
		f.VMID = v.ID
	}
	return s.sim.Configure(ctx, f)
}

// QuerySimulator shows the simulated world, or one cluster's part of it. It
// fails like ConfigureSimulator.
func (s *Service) QuerySimulator(ctx context.Context, caller cks.Account, clusterID string) (cks.Simulation, error) {
	if err := s.needSimulator(caller, "querySimulator"); err != nil {
		return cks.Simulation{}, err
	}
	if clusterID != "" {
		c, err := cluster(ctx, s.store.Queries, caller, "clusterid", clusterID)
		if err != nil {
			return cks.Simulation{}, err
		}
		clusterID = c.ID
	}
	return s.sim.Query(ctx, clusterID)
}

func (s *Service) needSimulator(caller cks.Account, command string) error {
	switch {
	case !caller.Admin:
		return cks.Errorf(cks.Unsupported,
			"The API [%s] does not exist or is not available for the account for user id [%s].", command, caller.UserID)
	case s.sim == nil:
		return cks.Errorf(cks.Unsupported, "The API [%s] is not available: this server does not simulate its machines.", command)
	}
	return nil
}
