package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"ckscale/cmd/internal/live"
)

// What the cloud takes longer for in the stale-Ready window, at speed 1: the
// lab's took as long, and so the samples show one thing after the other.
const (
	joinDelay   = 25 * time.Second
	detachDelay = 5 * time.Second
)

// slowly lets an operation take so much longer at speed 1, until clear.
func (t *trial) slowly(ctx context.Context, operation string, d time.Duration) (clear func() error, err error) {
	return t.fault(ctx, operation, "delay:"+time.Duration(float64(d)/t.speed).String())
}

// enterWindow leads to where the seed's first run failed: worker 1 is long down
// and Unknown, worker 2 is stopped just now and still Ready in Kubernetes.
func (t *trial) enterWindow(ctx context.Context) (*watch, error) {
	workers := t.before.Workers()
	if err := t.silent(ctx, workers[0]); err != nil {
		return nil, err
	}
	if err := t.stop(ctx, workers[1].ID); err != nil {
		return nil, err
	}
	w := newWatch(t.before)
	w.stale = workers[1].ID
	w.say("worker 2 stopped")
	return w, nil
}

// silent waits until Kubernetes has noticed that a VM is down.
func (t *trial) silent(ctx context.Context, v vm) error {
	return t.until(ctx, "its node is Unknown", patience, func() (bool, error) {
		w, err := t.world(ctx)
		return w.NodeOf(v.ID).Ready == "Unknown", err
	})
}

// staleReady is S2 inside the stale-Ready window: 6 nodes less 2 down make 4,
// and so do the 3 control nodes and the stale worker 2. The scale-up must wait
// for the new node by name all the same.
func (t *trial) staleReady(ctx context.Context) (err error) {
	clearJoin, err := t.slowly(ctx, "node.join", joinDelay)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clearJoin()) }()
	clearDetach, err := t.slowly(ctx, "iso.detach", detachDelay)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clearDetach()) }()
	w, err := t.enterWindow(ctx)
	if err != nil {
		return err
	}
	t.timeline = w
	w.say("scaleKubernetesCluster size=3 sent; cluster in Alert")
	if err := t.grow(ctx, w, 3); err != nil {
		return err
	}
	w.say("API returned success")
	if !w.early {
		return fmt.Errorf("the window was %w: the count was not met before the new node was Ready", errMissed)
	}
	t.measure("worker 2 Unknown", w.silent)
	t.nodes = nodesAt(w.job.Result.Cluster, w.last, w.fresh.ID)
	return t.inState(ctx, "Alert")
}

// workerNames are the names of workers.
var workerNames = regexp.MustCompile(regexp.QuoteMeta(clusterName) + `-node-[0-9a-f]+`)

// neverReady is the other end of the wait by name: the job gives up at its
// limit, takes the new VM away, and leaves the cluster in Alert.
func (t *trial) neverReady(ctx context.Context) (err error) {
	if t.timeout == 0 {
		return fmt.Errorf("%w: -timeout does not say how long the server lets a scaling job take", errNotRun)
	}
	clearJoin, err := t.fault(ctx, "node.join", "fail")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clearJoin()) }()
	w, err := t.enterWindow(ctx)
	if err != nil {
		return err
	}
	sent := time.Now()
	id, err := t.Submit(ctx, "scaleKubernetesCluster", "id="+t.id, "size=3")
	if err != nil {
		return err
	}
	if err := w.follow(ctx, t.lab, id); err != nil {
		return err
	}
	took, text := time.Since(sent), w.job.Result.ErrorText
	t.measure("given up", took)
	t.text = workerNames.ReplaceAllString(text, "<new worker>")
	switch {
	case w.job.Status == live.Succeeded:
		return errors.New("the scale-up succeeded without its node")
	case !w.early:
		return fmt.Errorf("the window was %w: the count was not met while worker 2 was still Ready", errMissed)
	case !strings.HasSuffix(text, "nodes never became ready: "+strings.ToLower(w.fresh.Name)):
		return fmt.Errorf("it failed for another reason: %s", text)
	case took < t.timeout:
		return fmt.Errorf("it gave up before the limit of %s", t.timeout)
	}
	c, err := t.cluster(ctx)
	if err == nil && (c.State != "Alert" || c.Size != 2) {
		err = fmt.Errorf("afterwards the cluster is %s with size %d", c.State, c.Size)
	}
	return err
}
