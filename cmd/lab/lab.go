package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// lab is a cluster on a server whose world is the simulator, and what is known
// of that server.
type lab struct {
	*client
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
	if _, err := call[world](ctx, l.client, "querySimulator"); err != nil {
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
	_, document, err := l.read(ctx, strings.TrimSuffix(l.url, "/client/api")+"/openapi.yaml")
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

// item is an entry of a catalogue.
type item struct {
	ID, Name     string
	IsCustomized bool
	CPUNumber    int
	Memory       int
}

// fit are the offerings that a node can have.
func (l *lab) fit(ctx context.Context) ([]item, error) {
	list, err := call[struct {
		Items []item `json:"serviceoffering"`
	}](ctx, l.client, "listServiceOfferings")
	var fit []item
	for _, o := range list.Items {
		if !o.IsCustomized && o.CPUNumber >= 2 && o.Memory >= 2048 {
			fit = append(fit, o)
		}
	}
	if err == nil && len(fit) < 2 {
		err = errors.New("the lab needs two service offerings with 2 cores and 2048 MB or more")
	}
	return fit, err
}

func (l *lab) create(ctx context.Context) error {
	zones, err := call[struct {
		Items []item `json:"zone"`
	}](ctx, l.client, "listZones")
	if err != nil {
		return err
	}
	versions, err := call[struct {
		Items []item `json:"kubernetessupportedversion"`
	}](ctx, l.client, "listKubernetesSupportedVersions", "keyword=1.33.1")
	if err != nil {
		return err
	}
	offerings, err := l.fit(ctx)
	if err != nil {
		return err
	}
	if len(zones.Items) == 0 || len(versions.Items) == 0 {
		return errors.New("the server has no zone, or no Kubernetes version 1.33.1; CKSCALE_DEMO=true fills an empty database")
	}
	made, err := call[struct{ ID, JobID string }](ctx, l.client, "createKubernetesCluster", "name="+clusterName, "description=lab",
		"zoneid="+zones.Items[0].ID, "kubernetesversionid="+versions.Items[0].ID, "serviceofferingid="+offerings[0].ID,
		"controlnodes=3", "size=2")
	if err != nil {
		return err
	}
	l.id = made.ID
	_, err = l.succeeds(ctx, made.JobID)
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

func (l *lab) cluster(ctx context.Context) (cluster, error) {
	list, err := call[struct {
		Clusters []cluster `json:"kubernetescluster"`
	}](ctx, l.client, "listKubernetesClusters", "id="+l.id)
	if err == nil && len(list.Clusters) != 1 {
		err = fmt.Errorf("%d clusters are listed by one id", len(list.Clusters))
	}
	if err != nil {
		return cluster{}, err
	}
	return list.Clusters[0], nil
}

func (l *lab) world(ctx context.Context) (world, error) {
	return call[world](ctx, l.client, "querySimulator", "clusterid="+l.id)
}

// simulate gives an order to the simulated cloud.
func (l *lab) simulate(ctx context.Context, name, value string, params ...string) error {
	_, err := call[struct{}](ctx, l.client, "configureSimulator", append(params, "name="+name, "value="+value)...)
	return err
}

// fault lets an operation on the cluster go wrong until clear is called.
func (l *lab) fault(ctx context.Context, name, value string) (clear func() error, err error) {
	if err := l.simulate(ctx, name, value, "clusterid="+l.id); err != nil {
		return nil, err
	}
	return func() error {
		return l.simulate(context.WithoutCancel(ctx), name, "clear", "clusterid="+l.id)
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
func (l *lab) ended(ctx context.Context, id string) (j job, err error) {
	err = l.until(ctx, "the job has ended", patience+l.timeout, func() (bool, error) {
		j, err = l.job(ctx, id)
		return j.Status != pending, err
	})
	return j, err
}

func (l *lab) succeeds(ctx context.Context, id string) (job, error) {
	j, err := l.ended(ctx, id)
	if err == nil && j.Status != succeeded {
		err = fmt.Errorf("the job failed: %s", j.Result.ErrorText)
	}
	return j, err
}

// do carries out an asynchronous command that must succeed.
func (l *lab) do(ctx context.Context, command string, params ...string) (job, error) {
	id, err := l.submit(ctx, command, params...)
	if err != nil {
		return job{}, err
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
