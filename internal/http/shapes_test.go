package http

import (
	"fmt"
	"testing"

	"ckscale/internal/cks"
)

// Fields that look alike have values of their own: none shows another's.
//
// Keeps: §2.6/masternodes, §2.6/controlnodes, §2.6/etcdnodes, §2.6/size, §2.6/bounds.
// Keeps: §2.6/default-offering, §2.6/type-offerings.
func TestFieldsThatLookAlikeAreTheirOwn(t *testing.T) {
	t.Parallel()
	v := fullCluster()
	c := &v.Cluster
	c.ControlNodes, c.EtcdNodes, c.Size, c.Autoscaling = 3, 5, 7, cks.Autoscaling{Enabled: true, Min: 4, Max: 9}
	c.DefaultOffering, c.Offerings = "d", map[cks.Role]string{cks.Worker: "w", cks.Control: "c", cks.Etcd: "e"}
	for id, name := range map[string]string{"d": "default", "w": "of workers", "c": "of control nodes", "e": "of etcd nodes"} {
		v.Offerings[id] = cks.Offering{ID: id, Name: name}
	}
	got := asJSON(t, encodeCluster(v))
	for field, want := range map[string]any{
		"masternodes": 3.0, "controlnodes": 3.0, "etcdnodes": 5.0, "size": 7.0, "minsize": 4.0, "maxsize": 9.0,
		"serviceofferingid": "d", "serviceofferingname": "default", "workerofferingid": "w", "workerofferingname": "of workers",
		"controlofferingid": "c", "controlofferingname": "of control nodes", "etcdofferingid": "e", "etcdofferingname": "of etcd nodes",
	} {
		if got[field] != want {
			t.Errorf("%s is %v, want %v", field, got[field], want)
		}
	}
}

// The fields that are plain yes or no are there when they say no, too.
//
// Keeps: §2.1/booleans, §2.7/isexternalnode, §2.7/isetcdnode.
func TestNoIsAnAnswer(t *testing.T) {
	t.Parallel()
	cluster := asJSON(t, encodeCluster(bareCluster()))
	for _, field := range []string{"autoscalingenabled", "csienabled", "hasannotations"} {
		if cluster[field] != false {
			t.Errorf("%s of a cluster is %v", field, cluster[field])
		}
	}
	v := fullCluster()
	for _, role := range []cks.Role{cks.Etcd, cks.Control, cks.Worker} {
		for _, external := range []bool{false, true} {
			node := asJSON(t, encodeNode(v, cks.VM{Role: role, External: external}))
			want := map[string]any{"isetcdnode": role == cks.Etcd, "isexternalnode": external, "deleteprotection": false, "haenable": false}
			for field, yes := range want {
				if node[field] != yes {
					t.Errorf("%s of a %s VM is %v", field, role, node[field])
				}
			}
		}
	}
}

// No field tells control nodes from workers: clients go by the name, so their
// entries have the same fields with the same values but for what is each VM's
// own.
//
// Keeps: §2.7/no-control-flag.
func TestControlNodesLookLikeWorkers(t *testing.T) {
	t.Parallel()
	v := fullCluster()
	vm := v.VMs[2]
	worker := asJSON(t, encodeNode(v, vm))
	vm.Role = cks.Control
	if control := asJSON(t, encodeNode(v, vm)); fmt.Sprint(control) != fmt.Sprint(worker) {
		t.Errorf("a control node is %v, a worker %v", control, worker)
	}
}
