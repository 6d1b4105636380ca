package http

import (
	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// encodeSimulation returns what querySimulator shows. Its lists are there even
// when they are empty: "no call" is what tests look for.
func encodeSimulation(s cks.Simulation) api.Simulation {
	return api.Simulation{
		Call:       all(s.Calls, encodeCalls),
		Node:       all(s.Nodes, encodeSimulatedNode),
		Vm:         all(s.Machines, encodeSimulatedVM),
		Autoscaler: all(s.Autoscalers, encodeSimulatedAutoscaler),
	}
}

func encodeCalls(c cks.Calls) api.SimulatedCall {
	return api.SimulatedCall{Operation: c.Operation, Clusterid: c.ClusterID, Vmid: c.VMID, Count: c.Count}
}

func encodeSimulatedNode(n cks.SimulatedNode) api.SimulatedNode {
	return api.SimulatedNode{Name: n.Name, Clusterid: n.ClusterID, Vmid: n.VMID, Ready: string(n.Ready), Pods: n.Pods, Version: n.Version}
}

func encodeSimulatedVM(m cks.Machine) api.SimulatedVM {
	return api.SimulatedVM{Id: m.ID, Name: m.Name, Clusterid: m.ClusterID, State: string(m.State), Isoattached: m.ISOAttached}
}

func encodeSimulatedAutoscaler(a cks.SimulatedAutoscaler) api.SimulatedAutoscaler {
	return api.SimulatedAutoscaler{Clusterid: a.ClusterID, Minsize: a.Min, Maxsize: a.Max}
}

// all is each for a list that is shown even when it is empty.
func all[T, U any](items []T, encode func(T) U) []U {
	return append([]U{}, each(items, encode)...)
}
