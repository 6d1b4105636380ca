package cks

// CheckDelete refuses to delete a cluster whose state does not allow it.
func CheckDelete(c Cluster) error {
	if c.ID == "" || c.Removed {
		return Errorf(Invalid, "Invalid Kubernetes cluster ID")
	}
	if _, err := c.State.On(DestroyRequested); err != nil {
		return Errorf(Conflict, "Cannot perform delete operation on Kubernetes cluster : %s in state: %s", c.Name, c.State)
	}
	return nil
}

// What starting and stopping a VM comes to in each state. A VM that is on its
// way to another state, destroyed or in Error can be neither started nor
// stopped; one whose host is disconnected (Unknown) may still run, so it can
// only be stopped.
var (
	startVM = map[VMState]Kind{VMRunning: Nothing, VMStopped: StartVM, VMShutdown: StartVM}
	stopVM  = map[VMState]Kind{VMStopped: Nothing, VMShutdown: Nothing, VMRunning: StopVM, VMUnknown: StopVM}
)

// CheckStartVM says what it takes to start v: StartVM, or Nothing if it runs.
func CheckStartVM(v VM) (Kind, error) { return checkVM(v, startVM, "started") }

// CheckStopVM says what it takes to stop v: StopVM, or Nothing if it is stopped.
func CheckStopVM(v VM) (Kind, error) { return checkVM(v, stopVM, "stopped") }

func checkVM(v VM, kinds map[VMState]Kind, what string) (Kind, error) {
	if v.Removed {
		v.State = VMExpunging
	}
	if err := settled(v, what); err != nil {
		return "", err
	}
	kind, ok := kinds[v.State]
	if !ok {
		return "", Errorf(Conflict, "Instance %s is in %s state and can not be %s", v.Name, v.State, what)
	}
	return kind, nil
}
