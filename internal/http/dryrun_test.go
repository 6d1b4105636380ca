package http

import (
	"strings"
	"testing"

	"ckscale/internal/cks"
)

// sampleDryRun has everything that a dry run can show.
func sampleDryRun() cks.DryRun {
	v := fullCluster()
	down := v.VMs[3]
	return cks.DryRun{
		Kind: cks.ScaleDownThenOffering, Steps: []string{"choose-nodes", "drain"}, From: 3, To: 1,
		Leaving:         []cks.VM{down, v.VMs[2]},
		Offerings:       map[cks.Role]cks.Offering{cks.Etcd: small, cks.Worker: large, cks.Control: large},
		DefaultOffering: &large,
		Autoscaling:     &cks.Autoscaling{Enabled: true, Min: 1, Max: 5},
	}
}

// dryrun=true makes no job: the request goes to DryRun as it is, and not to
// Scale. Every other value of it is a request.
//
// Keeps: ours/dry-run.
func TestOnlyDryRunTrueIsDry(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"true", "TRUE", "false", "", "1", "yes"} {
		svc := canned{account: admin, job: sampleJob("", 0)}
		body := string(sendTo(t, &svc, "command=scaleKubernetesCluster&size=3&id="+clusterID+"&dryrun="+value))
		if dry := strings.EqualFold(value, "true"); strings.Contains(body, "dryrun") != dry || strings.Contains(body, jobID) == dry {
			t.Errorf("dryrun=%s: %s", value, body)
		}
		if req, ok := svc.asked.(cks.ScaleRequest); !ok || *req.Size != 3 || req.Cluster != clusterID {
			t.Errorf("dryrun=%s asked %+v", value, svc.asked)
		}
	}
}
