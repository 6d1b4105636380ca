package cks

import "slices"

// Credentials are what an administrator of a cluster logs in with, in PEM. Key
// is secret.
type Credentials struct {
	CA          string // the certificate of the cluster's own authority
	Certificate string // of the administrator, signed by it
	Key         string // of Certificate
}

// ClusterConfig is a cluster's kubeconfig. Data is secret.
type ClusterConfig struct {
	ID, Name, Data string
}

// CheckConfig refuses the kubeconfig of a cluster that has none: it was never
// set up, or not by this service. Once there it stays, whatever the state.
func CheckConfig(v ClusterView) error {
	c := v.Cluster
	setUp := slices.ContainsFunc(v.VMs, func(vm VM) bool {
		return vm.Role == Control && (vm.Phase == Member || vm.Phase == Leaving)
	})
	switch {
	case c.ID == "" || c.Removed:
		return Errorf(Failed, "Invalid Kubernetes cluster ID specified")
	case setUp && !c.ExternalManaged:
		return nil
	case c.State == Starting:
		return Errorf(Failed, "Setup is in progress for Kubernetes cluster : %s, config not available at this moment", c.Name)
	}
	return Errorf(Failed, "Config not found for Kubernetes cluster : %s", c.Name)
}
