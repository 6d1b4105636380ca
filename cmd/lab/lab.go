package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ckscale/cmd/internal/live"
)

// lab is a cluster on a server whose world is the simulator, and what is known
// of that server.
type lab struct {
	*live.Client
	speed   float64       // of the simulated cloud
	timeout time.Duration // of one scaling job; 0: not known
	ours    bool          // the server was started for this
	id      string        // of the cluster; "" until there is one
	version string        // of the API
	made    cluster       // as it was created
	making  time.Duration
}

// clusterName is in the texts of refusals.
const clusterName = "cluster-a"

// setUp makes the cluster: 3 control nodes and 2 workers, as in the seed.
func (l *lab) setUp(ctx context.Context) (err error) {
	if _, err := live.Call[world](ctx, l.Client, "querySimulator"); err != nil {
		return fmt.Errorf("the lab needs a server whose cloud is the simulator: %w", err)
	}
	if l.version, err = l.apiVersion(ctx); err != nil {
		return err
	}
	begin := time.Now()
	if err := l.create(ctx); err != nil {
		return fmt.Errorf("make the cluster: %w", err)
	}
	l.making = time.Since(begin)
	l.made, err = l.cluster(ctx)
	return err
}

// apiVersion is that of the document which the server serves.
func (l *lab) apiVersion(ctx context.Context) (string, error) {
	_, document, err := l.Read(ctx, strings.TrimSuffix(l.URL, "/client/api")+"/openapi.yaml")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(document)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "version: "); ok {
			return strings.Trim(v, `"`), nil
		}
	}
	return "", errors.New("the server's API document has no version")
}

func (l *lab) create(ctx context.Context) error {
	from, err := l.Catalogue(ctx)
	if err != nil {
		return err
	}
	id, job, err := l.Create(ctx, from, clusterName, "controlnodes=3", "size=2")
	if err != nil {
		return err
	}
	l.id = id
	_, err = l.succeeds(ctx, job)
	return err
}

// tidy deletes the cluster, unless it goes with its server.
func (l *lab) tidy(ctx context.Context) error {
	if l.ours || l.id == "" {
		return nil
	}
	_, err := l.do(ctx, "deleteKubernetesCluster", "id="+l.id)
	return err
}

func (l *lab) cluster(ctx context.Context) (cluster, error) { return l.Cluster(ctx, l.id) }

func (l *lab) world(ctx context.Context) (world, error) { return l.World(ctx, l.id) }

// fault lets an operation on the cluster go wrong until clear is called.
func (l *lab) fault(ctx context.Context, name, value string) (clear func() error, err error) {
	if err := l.Simulate(ctx, name, value, "clusterid="+l.id); err != nil {
		return nil, err
	}
	return func() error {
		return l.Simulate(context.WithoutCancel(ctx), name, "clear", "clusterid="+l.id)
	}, nil
}

// patience is how long the lab waits for what should come within seconds or, at
// speed 1, within two minutes.
const patience = 3 * time.Minute

// until looks again and again, but most of the time it waits.
func (l *lab) until(ctx context.Context, what string, limit time.Duration, ok func() (bool, error)) error {
	end := time.After(limit)
	for {
		begin := time.Now()
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-time.After(max(10*time.Millisecond, 2*time.Since(begin))):
		case <-end:
			return fmt.Errorf("not within %s: %s", limit, what)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// inState waits until the cluster is.
func (l *lab) inState(ctx context.Context, state string) error {
	return l.until(ctx, "cluster in "+state, patience, func() (bool, error) {
		c, err := l.cluster(ctx)
		return c.State == state, err
	})
}

// ended waits for the end of a job, well beyond its own limit.
func (l *lab) ended(ctx context.Context, id string) (j live.Job, err error) {
	err = l.until(ctx, "the job has ended", patience+l.timeout, func() (bool, error) {
		j, err = l.Job(ctx, id)
		return j.Status != live.Pending, err
	})
	return j, err
}

func (l *lab) succeeds(ctx context.Context, id string) (live.Job, error) {
	j, err := l.ended(ctx, id)
	if err == nil && j.Status != live.Succeeded {
		err = fmt.Errorf("the job failed: %s", j.Result.ErrorText)
	}
	return j, err
}

// do carries out an asynchronous command that must succeed.
func (l *lab) do(ctx context.Context, command string, params ...string) (live.Job, error) {
	id, err := l.Submit(ctx, command, params...)
	if err != nil {
		return live.Job{}, err
	}
	j, err := l.succeeds(ctx, id)
	if err != nil {
		err = fmt.Errorf("%s: %w", command, err)
	}
	return j, err
}

func (l *lab) scale(ctx context.Context, params ...string) (cluster, error) {
	j, err := l.do(ctx, "scaleKubernetesCluster", append(params, "id="+l.id)...)
	return j.Result.Cluster, err
}

func (l *lab) stop(ctx context.Context, vmID string) error {
	_, err := l.do(ctx, "stopVirtualMachine", "id="+vmID)
	return err
}

func (l *lab) start(ctx context.Context, vmID string) error {
	_, err := l.do(ctx, "startVirtualMachine", "id="+vmID)
	return err
}
