package http

import (
	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// encodeDryRun returns what scaleKubernetesCluster with dryrun=true shows. A
// refusal looks like the result of the job that would have failed with it.
func encodeDryRun(d cks.DryRun) *api.DryRun {
	if d.Refusal != "" {
		return &api.DryRun{Refusal: &api.Refusal{Errorcode: cks.FailedCode, Errortext: d.Refusal}}
	}
	out := &api.DryRun{
		Accepted: true,
		Kind:     string(d.Kind),
		Steps:    d.Steps,
		Size:     &api.SizeChange{From: d.From, To: d.To},
		Nodes:    each(d.Leaving, encodeLeaving),
	}
	if d.DefaultOffering != nil {
		out.Offerings = append(out.Offerings, encodeOfferingChange("default", *d.DefaultOffering))
	}
	for _, role := range []cks.Role{cks.Worker, cks.Control, cks.Etcd} {
		if o, ok := d.Offerings[role]; ok {
			out.Offerings = append(out.Offerings, encodeOfferingChange(string(role), o))
		}
	}
	if a := d.Autoscaling; a != nil {
		out.Autoscaling = &api.AutoscalingChange{Enabled: a.Enabled, Minsize: a.Min, Maxsize: a.Max}
	}
	return out
}

// encodeLeaving shows a node that would be removed. A machine that is down is
// not drained: it could not confirm that its pods ended.
func encodeLeaving(v cks.VM) api.LeavingNode {
	return api.LeavingNode{Id: v.ID, Name: v.Name, State: string(v.State), Drained: !v.State.Down()}
}

func encodeOfferingChange(node string, o cks.Offering) api.OfferingChange {
	return api.OfferingChange{Node: node, Id: o.ID, Name: o.Name}
}
