package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ckscale/cmd/internal/live"
)

// seed lists the scenarios of the seed's lab report, in its order, and then
// what that report does not cover. One leaves the cluster as the next wants it
// where it can.
var seed = []scenario{
	{name: "S1", what: "stop a worker VM; the scanner moves the cluster to Alert",
		workers: 2, run: (*trial).alert},
	{name: "S2", what: "size 2 -> 3 in Alert, one worker stopped, scale started as soon as the cluster is in Alert",
		workers: 2, run: (*trial).scaleUpInAlert},
	{name: "S2, stale-Ready window", what: "the count is met by a stopped node that is still Ready",
		workers: 2, down: 1, run: (*trial).staleReady},
	{name: "S3, 3 -> 1", what: "in Alert with two stopped workers: both removed, not drained",
		workers: 3, down: 2, run: (*trial).scaleDown},
	{name: "Follow-up", what: "a normal scale-up in Running, 1 -> 2",
		workers: 1, run: (*trial).scaleUp},
	{name: "S3, 3 -> 2", what: "in Alert: the stopped worker goes first, and is not drained",
		workers: 3, down: 1, run: (*trial).scaleDown},
	{name: "S4", what: "stop the other worker, remove it with `nodeids` in Alert, scale up again",
		workers: 2, run: (*trial).removeNamed},
	{name: "S5a", what: "refused in Alert: another service offering",
		workers: 2, down: 1, run: (*trial).refuseOffering},
	{name: "S5b", what: "refused in Alert: autoscaling",
		workers: 2, down: 1, run: (*trial).refuseAutoscaling},
	{name: "S5c", what: "refused in Alert: the size that it has",
		workers: 2, down: 1, run: (*trial).refuseSameSize},
	{name: "S5d", what: "refused in Alert: a control node in `nodeids`",
		workers: 2, down: 1, run: (*trial).refuseControlNode},
	{name: "S5e", what: "refused in Alert: any, while a control VM is down",
		workers: 2, down: 1, run: (*trial).refuseControlDown},
	{name: "S5", what: "start the stopped worker, whose node is Unknown; the scanner moves the cluster back to Running, all nodes are Ready",
		workers: 2, down: 1, run: (*trial).comeBack},
	{name: "Timeout", what: "in the stale-Ready window, a new node that never becomes Ready: the wait by name ends, the cluster goes to Alert",
		workers: 2, down: 1, run: (*trial).neverReady},
	{name: "Unknown", what: "a VM in Unknown (host disconnected) is not down: alone it is no reason to scale, its node is waited for, and drained",
		workers: 2, drains: 1, run: (*trial).unknown},
	{name: "Autoscaler", what: "the cluster-autoscaler's requests in Alert, signed GETs: `size`, then `nodeids` of the stopped node",
		workers: 2, down: 1, run: (*trial).autoscaler},
}

// alert is S1.
func (t *trial) alert(ctx context.Context) error {
	begin := time.Now()
	if err := t.stop(ctx, t.before.Workers()[0].ID); err != nil {
		return err
	}
	if err := t.inState(ctx, "Alert"); err != nil {
		return err
	}
	t.measure("Alert", time.Since(begin))
	return nil
}

// scaleUpInAlert is S2. It ends in Alert, for the worker is still down.
func (t *trial) scaleUpInAlert(ctx context.Context) error {
	if err := t.stop(ctx, t.before.Workers()[0].ID); err != nil {
		return err
	}
	if err := t.inState(ctx, "Alert"); err != nil {
		return err
	}
	if err := t.grow(ctx, newWatch(t.before), t.before.Size+1); err != nil {
		return err
	}
	return t.inState(ctx, "Alert")
}

// scaleUp is a normal scale-up.
func (t *trial) scaleUp(ctx context.Context) error {
	return t.grow(ctx, newWatch(t.before), t.before.Size+1)
}

// grow scales up under the eyes of w, and checks the result.
func (t *trial) grow(ctx context.Context, w *watch, size int) error {
	id, err := t.Submit(ctx, "scaleKubernetesCluster", "id="+t.id, fmt.Sprintf("size=%d", size))
	if err != nil {
		return err
	}
	if err := w.follow(ctx, t.lab, id); err != nil {
		return err
	}
	if err := w.succeeded(); err != nil {
		return err
	}
	t.measure("count met", w.matched)
	if w.early {
		t.measure("then waited by name", w.ready-w.matched)
	}
	t.measure("new node Ready", w.ready)
	t.measure("ISO out after that", w.detached-w.ready)
	t.measure("API returned", w.ended)
	c := w.job.Result.Cluster
	if c.Size != size || len(c.Workers()) != size || c.State != "Running" {
		return fmt.Errorf("the result is size %d with %d workers, %s", c.Size, len(c.Workers()), c.State)
	}
	return nil
}

// scaleDown is S3: the stopped workers go.
func (t *trial) scaleDown(ctx context.Context) error {
	size := t.workers - t.down
	return t.shrink(ctx, t.before.Workers()[:t.down], size, fmt.Sprintf("size=%d", size))
}

// shrink sends a request that leaves a Running cluster of that size, without
// those VMs and their nodes.
func (t *trial) shrink(ctx context.Context, leaving []vm, size int, request string) error {
	begin := time.Now()
	c, err := t.scale(ctx, request)
	if err != nil {
		return err
	}
	t.measure("API returned", time.Since(begin))
	if c.Size != size || len(c.Workers()) != size || c.State != "Running" {
		return fmt.Errorf("the result is size %d with %d workers, %s", c.Size, len(c.Workers()), c.State)
	}
	w, err := t.world(ctx)
	if err != nil {
		return err
	}
	for _, v := range leaving {
		if c.Has(v.ID) {
			return fmt.Errorf("stopped worker %s is still there", v.Name)
		}
		if w.NodeOf(v.ID).Name != "" {
			return fmt.Errorf("the node object of %s is still there", v.Name)
		}
	}
	return nil
}

// removeNamed is S4.
func (t *trial) removeNamed(ctx context.Context) error {
	other := t.before.Workers()[1]
	if err := t.stop(ctx, other.ID); err != nil {
		return err
	}
	if err := t.inState(ctx, "Alert"); err != nil {
		return err
	}
	if err := t.shrink(ctx, []vm{other}, 1, "nodeids="+other.ID); err != nil {
		return err
	}
	begin := time.Now()
	_, err := t.scale(ctx, "size=2")
	t.measure("scale-up afterwards", time.Since(begin))
	return err
}

// comeBack is the end of S5.
func (t *trial) comeBack(ctx context.Context) error {
	if err := t.silent(ctx, t.before.Workers()[0]); err != nil {
		return err
	}
	begin := time.Now()
	if err := t.start(ctx, t.before.Workers()[0].ID); err != nil {
		return err
	}
	if err := t.inState(ctx, "Running"); err != nil {
		return err
	}
	t.measure("Running", time.Since(begin))
	w, err := t.world(ctx)
	if err == nil && ready(w) != len(t.before.VMs) {
		err = fmt.Errorf("%d of %d nodes are Ready", ready(w), len(t.before.VMs))
	}
	return err
}

// The texts of refusals, behind "Kubernetes cluster NAME".
const (
	onlySize    = " is in Alert state; only its size can be changed or nodes removed"
	notOffering = onlySize + ". Recover the cluster before changing its service offering or autoscaling"
	neither     = onlySize + ", and the request does neither"
	onlyWorkers = " is in Alert state; only worker nodes can be removed from it"
	controlDown = " is in Alert state and a control or etcd node VM is down; recover the control plane before scaling the cluster"
	noneDown    = " is in Alert state but none of its worker node VMs is down; scaling will not recover it"
)

// refused sends a request that must be refused with that text, and change
// nothing.
func (t *trial) refused(ctx context.Context, text string, request ...string) error {
	begin := time.Now()
	id, err := t.Submit(ctx, "scaleKubernetesCluster", append(request, "id="+t.id)...)
	if err != nil {
		return err
	}
	j, err := t.ended(ctx, id)
	t.measure("refused", time.Since(begin))
	switch t.text = j.Result.ErrorText; {
	case err != nil:
		return err
	case j.Status == live.Succeeded:
		return fmt.Errorf("%s was accepted", strings.Join(request, " "))
	case t.text != "Kubernetes cluster "+t.before.Name+text:
		return fmt.Errorf("refused with another text: %s", t.text)
	}
	c, err := t.cluster(ctx)
	if err == nil && (c.State != "Alert" || c.Size != t.before.Size) {
		err = fmt.Errorf("after the refusal the cluster is %s with size %d", c.State, c.Size)
	}
	return err
}

func (t *trial) refuseOffering(ctx context.Context) error {
	from, err := t.Catalogue(ctx)
	if err != nil {
		return err
	}
	another := from.Offerings[0].ID
	if another == t.before.Offering {
		another = from.Offerings[1].ID
	}
	return t.refused(ctx, notOffering, "serviceofferingid="+another)
}

func (t *trial) refuseAutoscaling(ctx context.Context) error {
	return t.refused(ctx, notOffering, "autoscalingenabled=true", "minsize=1", "maxsize=3")
}

func (t *trial) refuseSameSize(ctx context.Context) error {
	return t.refused(ctx, neither, fmt.Sprintf("size=%d", t.before.Size))
}

func (t *trial) refuseControlNode(ctx context.Context) error {
	return t.refused(ctx, onlyWorkers, "nodeids="+t.before.Controls()[1].ID)
}

// refuseControlDown stops the last control node, and starts it again.
func (t *trial) refuseControlDown(ctx context.Context) error {
	control := t.before.Controls()[2].ID
	if err := t.stop(ctx, control); err != nil {
		return err
	}
	if err := t.refused(ctx, controlDown, "size=3"); err != nil {
		return err
	}
	return t.start(ctx, control)
}
