package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"ckscale/cmd/internal/live"
)

// town is the clusters of a run and who acts on them.
type town struct {
	options
	fleet     *fleet
	catalogue live.Catalogue
	clusters  []string
	customers []*customer

	mu  sync.Mutex
	set map[string]int // how often the cloud was disturbed, by what
}

// choices follow from the seed and from whose they are.
func (o options) choices(whose string, number int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", whose, number)
	return rand.New(rand.NewPCG(o.seed, h.Sum64()))
}

// weathers is how many disturbances of the cloud can be under way at once.
const weathers = 4

// room is for more VMs than there will be.
const room = 100000

// found makes the clusters, each with one control node and two workers.
func found(ctx context.Context, o options, f *fleet) (*town, error) {
	t := &town{options: o, fleet: f, clusters: make([]string, o.clusters), set: map[string]int{}}
	mayor := newCaller(f, o.choices("mayor", 0), answerTime)
	var err error
	if t.catalogue, err = mayor.to(f.addresses()[0]).Catalogue(ctx); err != nil {
		return nil, err
	}
	if err := mayor.simulate(ctx, "capacity", fmt.Sprint(room)); err != nil {
		return nil, err
	}
	for i := range o.clients {
		choose := o.choices("customer", i)
		t.customers = append(t.customers, &customer{caller: newCaller(f, choose, answerTime), town: t})
	}
	var group errgroup.Group
	for i, c := range t.customers {
		group.Go(func() error {
			for n := i; n < len(t.clusters); n += len(t.customers) {
				if err := c.build(ctx, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return t, group.Wait()
}

// build makes the nth cluster and waits until it runs.
func (c *customer) build(ctx context.Context, n int) error {
	all := c.fleet.addresses()
	id, job, err := c.to(all[n%len(all)]).Create(ctx, c.town.catalogue, fmt.Sprintf("c%d", n+1), "controlnodes=1", "size=2")
	if err != nil {
		return err
	}
	c.town.clusters[n] = id
	r := &request{command: "createKubernetesCluster", cluster: id, outcome: accepted, job: job}
	if err := c.follow(ctx, r); err != nil {
		return err
	}
	if r.told == nil || r.told.Status != live.Succeeded {
		return fmt.Errorf("a cluster could not be made: %s", r.told.Result.ErrorText)
	}
	c.made = append(c.made, r)
	return nil
}

// live lets everybody act for the time of the run. It returns when all servers
// are up again and every customer has been told how its last request ended.
func (t *town) live(ctx context.Context) error {
	during, cancel := context.WithTimeout(ctx, t.duration)
	defer cancel()
	group, all := errgroup.WithContext(ctx)
	run := func(f func(ctx, until context.Context) error) {
		group.Go(func() error { return f(all, during) })
	}
	for _, c := range t.customers {
		run(c.live)
	}
	for i := range weathers {
		run(func(ctx, until context.Context) error { return t.weather(ctx, until, t.choices("weather", i)) })
	}
	run(t.tides)
	group.Go(func() error { return t.fleet.trouble(during, t.choices("fleet", 0)) })
	if err := group.Wait(); err != nil {
		return err
	}
	return t.fleet.whole()
}

func (t *town) requests() []*request {
	var all []*request
	for _, c := range t.customers {
		all = append(all, c.made...)
	}
	return all
}

// customer is a client that makes one request after the other.
type customer struct {
	*caller
	town *town
	made []*request
}

// live makes requests until the time is over, and waits for the end of the last.
func (c *customer) live(ctx, until context.Context) error {
	for until.Err() == nil {
		r, err := c.next(ctx)
		if err != nil {
			return err
		}
		c.made = append(c.made, r)
		if err := c.carryOut(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
	}
	return nil
}

// wish is something to ask of a cluster. It returns nil where it makes no sense.
type wish struct {
	weight int
	make   func(c *customer, k live.Cluster) *request
}

var wishes = []wish{
	{30, (*customer).anySize},
	{22, (*customer).removal},
	{6, (*customer).sameSize},
	{2, (*customer).badSize},
	{6, (*customer).anotherOffering},
	{14, (*customer).stopWorker},
	{3, (*customer).stopControl},
	{40, (*customer).start},
}

// next looks at a cluster and decides what to ask of it.
func (c *customer) next(ctx context.Context) (*request, error) {
	id := c.town.clusters[c.choose.IntN(len(c.town.clusters))]
	list, err := ask[struct {
		Clusters []live.Cluster `json:"kubernetescluster"`
	}](ctx, c.caller, "listKubernetesClusters", "id="+id)
	if err != nil || len(list.Clusters) != 1 {
		return nil, fmt.Errorf("look at cluster %s: %d are listed, %w", id, len(list.Clusters), err)
	}
	for {
		r := c.pick().make(c, list.Clusters[0])
		if r == nil {
			continue
		}
		r.cluster = id
		if c.choose.IntN(2) == 0 {
			r.custom = c.uuid()
		}
		return r, nil
	}
}

func (c *customer) pick() wish {
	total := 0
	for _, w := range wishes {
		total += w.weight
	}
	n := c.choose.IntN(total)
	for _, w := range wishes {
		if n -= w.weight; n < 0 {
			return w
		}
	}
	return wishes[0]
}

// uuid follows from the seed, too.
func (c *customer) uuid() string {
	var u uuid.UUID
	for i := range u {
		u[i] = byte(c.choose.Uint32())
	}
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return u.String()
}

const scale = "scaleKubernetesCluster"

func (c *customer) anySize(live.Cluster) *request {
	size := 1 + c.choose.IntN(6)
	return &request{command: scale, size: &size}
}

func (c *customer) sameSize(k live.Cluster) *request { return &request{command: scale, size: &k.Size} }

func (c *customer) badSize(live.Cluster) *request {
	size := []int{0, 99}[c.choose.IntN(2)]
	return &request{command: scale, size: &size}
}

func (c *customer) removal(k live.Cluster) *request {
	workers := k.Workers()
	if len(workers) == 0 {
		return nil
	}
	c.choose.Shuffle(len(workers), func(i, j int) { workers[i], workers[j] = workers[j], workers[i] })
	var ids []string
	for _, v := range workers[:min(len(workers), 1+c.choose.IntN(2))] {
		ids = append(ids, v.ID)
	}
	return &request{command: scale, nodes: ids}
}

func (c *customer) anotherOffering(live.Cluster) *request {
	all := c.town.catalogue.Offerings
	return &request{command: scale, offering: all[c.choose.IntN(len(all))].ID}
}

func (c *customer) stopWorker(k live.Cluster) *request { return c.stop(k.Workers()) }

func (c *customer) stopControl(k live.Cluster) *request { return c.stop(k.Controls()) }

func (c *customer) stop(vms []live.VM) *request {
	if len(vms) == 0 {
		return nil
	}
	return &request{command: "stopVirtualMachine", vm: vms[c.choose.IntN(len(vms))].ID}
}

// start is for a VM that is down, or seems to be.
func (c *customer) start(k live.Cluster) *request {
	for _, v := range k.VMs {
		if v.State == "Stopped" || v.State == "Shutdown" {
			return &request{command: "startVirtualMachine", vm: v.ID}
		}
	}
	return nil
}

func (t *town) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set[what]++
}

// simulate gives an order to the simulated cloud. Given twice it does the same.
func (c *caller) simulate(ctx context.Context, name, value string, params ...string) error {
	_, err := ask[struct{}](ctx, c, "configureSimulator", append([]string{"name=" + name, "value=" + value}, params...)...)
	return err
}
