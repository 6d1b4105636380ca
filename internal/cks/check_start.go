package cks

// CheckStart says what it takes to start a cluster: StartCluster; CreateCluster
// for one that has been recorded only and has no VMs yet; Nothing if it runs. A
// cluster in Alert is not started, though some of its VMs may be down: no
// transition leads from there to Starting (spec/cks.md §4).
func CheckStart(c Cluster) (Kind, error) {
	if err := checkManaged(c, "Start"); err != nil {
		return "", err
	}
	return kindIn(c, map[State]Kind{Running: Nothing, Created: CreateCluster, Stopped: StartCluster}, "started")
}

// CheckStop says what it takes to stop a cluster: StopCluster, or Nothing if it
// is stopped. One that is Starting is held by the job that starts it, which
// would have to be cancelled first.
func CheckStop(c Cluster) (Kind, error) {
	if err := checkManaged(c, "Stop"); err != nil {
		return "", err
	}
	return kindIn(c, map[State]Kind{Stopped: Nothing, Running: StopCluster, Alert: StopCluster}, "stopped")
}

// checkManaged refuses a cluster that does not exist, and one whose VMs are
// none of ours.
func checkManaged(c Cluster, what string) error {
	switch {
	case c.ID == "":
		return Errorf(Invalid, "Invalid Kubernetes cluster ID")
	case c.Removed:
		return Errorf(Invalid, "Kubernetes cluster : %s is already deleted", c.Name)
	case c.ExternalManaged:
		return Errorf(Invalid, "%s kubernetes cluster is not supported for an externally managed cluster (%s)", what, c.Name)
	}
	return nil
}

// kindIn picks what the cluster's state comes to.
func kindIn(c Cluster, kinds map[State]Kind, what string) (Kind, error) {
	kind, ok := kinds[c.State]
	if !ok {
		return "", Errorf(Conflict, "Kubernetes cluster : %s is in %s state and can not be %s", c.Name, c.State, what)
	}
	return kind, nil
}
