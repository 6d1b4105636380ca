package jobs

import (
	"context"
	"time"

	"ckscale/internal/cks"
)

// VMs is the machine side of the world. Every call is idempotent by VM id and
// returns when ctx ends. What is called clusterID is the place of a machine: its
// own id while it is in no cluster. A VM that does not exist is an error with the code
// cks.NotFound. Any error with the code cks.Failed is final (its text is for
// the client); other errors may be tried again.
type VMs interface {
	// Room returns how many more machines of this size fit on the hosts.
	Room(ctx context.Context, cores, memoryMB int) (int, error)
	// Create makes a stopped machine; it does nothing if m.ID exists already.
	Create(ctx context.Context, m cks.MachineSpec) error
	// Start powers a machine on. It returns while the machine is Starting;
	// starting one that is Starting or Running does nothing.
	Start(ctx context.Context, clusterID, vmID string) error
	// Stop powers a machine off, at once when forced. It returns while the
	// machine is Stopping; stopping one that is down does nothing.
	Stop(ctx context.Context, clusterID, vmID string, forced bool) error
	// Destroy expunges a machine.
	Destroy(ctx context.Context, clusterID, vmID string) error
	// Resize gives a machine another offering's size.
	Resize(ctx context.Context, clusterID, vmID string, cores, memoryMB int) error
	// Move takes a machine, which stays as it is, into a cluster or out of it:
	// from and to are places, a cluster's id or for a machine in none its own.
	// One that has arrived does nothing.
	Move(ctx context.Context, vmID, from, to string) error
	// AttachISO and DetachISO put in and take out the binaries ISO. Doing it
	// again does nothing.
	AttachISO(ctx context.Context, clusterID, vmID string) error
	DetachISO(ctx context.Context, clusterID, vmID string) error
	// Machines lists what exists for a cluster.
	Machines(ctx context.Context, clusterID string) ([]cks.Machine, error)
	// WatchVMs yields the ids of clusters whose machines may have changed,
	// until ctx ends; "" means any. It is lossy: a timer must back it up.
	WatchVMs(ctx context.Context) <-chan string
}

// Nodes is the Kubernetes API of the clusters. Names are lower case. A node
// that does not exist is an error with the code cks.NotFound.
type Nodes interface {
	// Nodes lists a cluster's node objects.
	Nodes(ctx context.Context, clusterID string) ([]cks.Node, error)
	// Drain cordons a node and moves its pods away. It fails once timeout is
	// over, or when a disruption budget forbids it.
	Drain(ctx context.Context, clusterID, name string, timeout time.Duration) error
	// Uncordon makes a node schedulable again.
	Uncordon(ctx context.Context, clusterID, name string) error
	// Upgrade sets out to give a node another Kubernetes version ("1.34.1"), for
	// which its VM needs the binaries ISO. It returns while the node is NotReady;
	// in time that is Ready at the new version. Doing it again does nothing.
	Upgrade(ctx context.Context, clusterID, name, version string) error
	// Delete removes a node object.
	Delete(ctx context.Context, clusterID, name string) error
	// SetAutoscaler deploys the cluster-autoscaler with a's bounds, or removes it.
	SetAutoscaler(ctx context.Context, clusterID string, a cks.Autoscaling) error
	// WatchNodes yields the ids of clusters whose nodes may have changed, as
	// WatchVMs does.
	WatchNodes(ctx context.Context) <-chan string
}
