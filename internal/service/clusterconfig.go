package service

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/kubeconfig"
)

// ClusterConfig returns a cluster's kubeconfig. Its credentials are made when
// they are first asked for, and stay the same. An id that names nothing is
// cks.UnknownID, somebody else's cluster cks.Denied; a cluster that was never
// set up has none.
func (s *Service) ClusterConfig(ctx context.Context, caller cks.Account, id string) (cks.ClusterConfig, error) {
	c, err := clusterOrNumber(ctx, s.store.Queries, caller, id)
	if err != nil {
		return cks.ClusterConfig{}, err
	}
	var view cks.ClusterView
	if c.ID != "" {
		if view, err = s.store.View(ctx, c.ID); err != nil {
			return cks.ClusterConfig{}, err
		}
	}
	if err := cks.CheckConfig(view); err != nil {
		return cks.ClusterConfig{}, err
	}
	credentials, err := s.credentials(ctx, c.ID)
	if err != nil {
		return cks.ClusterConfig{}, err
	}
	return cks.ClusterConfig{ID: c.ID, Name: c.Name, Data: kubeconfig.File(view.Cluster.Endpoint, credentials)}, nil
}

// credentials returns those of the cluster, which it makes if there are none.
// Of several that are made at once the first to be kept counts.
func (s *Service) credentials(ctx context.Context, clusterID string) (cks.Credentials, error) {
	kept, err := s.store.Credentials(ctx, clusterID)
	if cks.CodeOf(err) != cks.NotFound {
		return kept, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return cks.Credentials{}, err
	}
	made, err := kubeconfig.NewCredentials(now)
	if err != nil {
		return cks.Credentials{}, err
	}
	if err := s.store.AddCredentials(ctx, clusterID, made); err != nil {
		return cks.Credentials{}, err
	}
	kept, err = s.store.Credentials(ctx, clusterID)
	if cks.CodeOf(err) == cks.NotFound { // deleted meanwhile
		err = cks.Errorf(cks.Failed, "Invalid Kubernetes cluster ID specified")
	}
	return kept, err
}
