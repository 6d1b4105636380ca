package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/jobs"
	"ckscale/internal/service"
	"ckscale/internal/sim"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// player plays a script and holds what happens against the model.
type player struct {
	ctx     context.Context
	arena   *arena
	st      *store.Store
	clock   *clock
	world   *sim.World
	account cks.Account
	ids     []string // of the clusters
	gone    string   // the VM that was removed last
	offers  map[string]cks.Offering

	scanner  *jobs.Scanner
	main     *server         // lives on
	paused   []*server       // stand still
	waiting  *asking         // a slow request
	peeking  *looking        // a slow scan
	strikes  map[string]int  // by operation: how often a fault that was not cleared may strike at most
	limited  bool            // the capacity
	stuck    map[string]bool // clusters with a VM that an ISO may be stuck in
	orders   []*tracked
	promises map[string]*promise // by job: those that live and hold a cluster
	now      []sight
	last     bool // look at all jobs

	mu    sync.Mutex
	slows map[string]bool // operations that a fault lets hang
	lost  map[string]int  // how many answers to an operation are lost
	acts  []act
	stray map[string]bool // VMs that may have been made too late: a scan destroys them

	counts  map[string]int
	leftOut []string // lines
	wrong   []complaint
	trace   func(format string, a ...any) // told of every line; may be nil
}

// tracked is a job that was recorded.
type tracked struct {
	job   cks.Job
	ended bool
	vm    *vmPromise // of a VM job
}

// complaint is something that is not as it should be. rule is the same for
// the same defect, details are not.
type complaint struct{ rule, detail string }

var (
	errSkipped  = errors.New("nothing to do it with")
	errRestless = errors.New("a runner never rests")
)

func (p *player) complain(rule, format string, a ...any) {
	p.wrong = append(p.wrong, complaint{rule, fmt.Sprintf(format, a...)})
}

// always is more strikes than a job survives, however they fall.
const always = 1000

// patience is how many failed tries of one step a job survives.
const patience = 2

// newPlayer makes the script's clusters, running.
func newPlayer(ctx context.Context, a *arena, s script) (*player, error) {
	p := &player{
		ctx: ctx, arena: a, st: a.st, clock: &clock{Store: a.st, now: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)},
		strikes: map[string]int{}, promises: map[string]*promise{}, slows: map[string]bool{}, lost: map[string]int{}, stray: map[string]bool{}, stuck: map[string]bool{}, counts: map[string]int{},
		offers: map[string]cks.Offering{},
	}
	timings := sim.DefaultTimings
	timings.Drain = 0 // the clock stands still while one waits for it
	if s.instant {
		timings.Boot, timings.Join, timings.FirstReady = 0, 0, 0
	}
	p.world = sim.New(p.clock, sim.Config{Timings: timings, Capacity: -1})
	var specs []cks.MachineSpec
	for _, c := range s.clusters {
		view := storetest.Fixture(a, p.st, c)
		p.ids, p.account = append(p.ids, view.Cluster.ID), view.Account
		for _, v := range view.VMs {
			specs = append(specs, cks.MachineSpec{ID: v.ID, ClusterID: view.Cluster.ID, Name: v.Name, Role: v.Role, Cores: v.Cores, MemoryMB: v.MemoryMB})
		}
	}
	for _, name := range []string{storetest.SmallName, storetest.MediumName} {
		found, _, err := p.st.Offerings(ctx, cks.CatalogFilter{Name: name})
		if err != nil {
			return nil, err
		}
		p.offers[name] = found[0]
	}
	if err := p.world.Adopt(ctx, specs); err != nil {
		return nil, err
	}
	eye := cloud{World: p.world, life: &life{}, p: p}
	p.scanner = jobs.NewScanner(p.st, eye, eye, jobs.ScanConfig{CallTimeout: limits.CallTimeout})
	var err error
	if p.main, err = p.serve(&life{}); err != nil {
		return nil, err
	}
	return p, p.look()
}

// service is what commands are sent to.
func (p *player) service(st *store.Store) *service.Service {
	return service.New(st, nil, service.Settings{MaxSize: maxSize, ScaleTimeout: time.Hour, StartTimeout: time.Hour, UpgradeTimeout: time.Hour, EndpointURL: "https://api.example.test/client/api"})
}

// cluster is the position of the line's cluster.
func (a args) cluster() int { return int(a["CLUSTER"][0] - 'A') }

// vm finds what a line's word names, as things are now.
func (p *player) vm(cluster int, word string) (cks.VM, error) {
	if word == "gone" {
		if p.gone == "" {
			return cks.VM{}, errSkipped
		}
		return p.st.VMByRef(p.ctx, p.gone)
	}
	if other, name, found := strings.Cut(word, "."); found {
		cluster, word = int(other[0]-'A'), name
	}
	if cluster >= len(p.now) {
		return cks.VM{}, errSkipped
	}
	is := map[byte]func(cks.VM) bool{'w': cks.VM.OwnWorker, 'x': isExternal, 'c': isRole(cks.Control), 'e': isRole(cks.Etcd)}[word[0]]
	n := int(word[1] - '0')
	for _, v := range p.now[cluster].view.VMs {
		if is(v) {
			if n--; n == 0 {
				return v, nil
			}
		}
	}
	return cks.VM{}, errSkipped
}

// play takes the steps of a script, one after the other, and brings it to its
// end. It returns the first complaints.
func (p *player) play(s script) (at string, err error) {
	defer p.leave()
	for i, st := range s.steps {
		at = fmt.Sprintf("line %d of the actions (%s)", i+1, st.line)
		verb, _, _ := strings.Cut(st.line, " ")
		err := p.take(st)
		switch {
		case errors.Is(err, errSkipped):
			p.leftOut = append(p.leftOut, at)
			p.counts["left out"]++
			continue
		case err != nil:
			return at, err
		case len(p.wrong) > 0:
			return at, nil
		}
		p.counts[verb]++
	}
	return "the end", p.end()
}

func (p *player) take(st step) error {
	err := st.verb.do(p, st.args)
	if err == nil {
		err = p.check()
	}
	if p.trace != nil {
		p.trace("%s%s", st.line, p.picture(err))
	}
	return err
}

// picture shows the clusters and the live jobs in a few words.
func (p *player) picture(err error) string {
	var b strings.Builder
	if err != nil {
		fmt.Fprintf(&b, " (%v)", err)
	}
	for i, s := range p.now {
		fmt.Fprintf(&b, "\n    %s %s, size %d:", letter(i), s.view.Cluster.State, s.view.Cluster.Size)
		for _, v := range s.view.VMs {
			ready := map[bool]string{true: " Ready"}[s.ready[v.ID]]
			iso := map[bool]string{true: " ISO"}[s.machines[v.ID].ISOAttached]
			fmt.Fprintf(&b, " [%s %s %s%s%s]", p.word(i, v), v.Phase, s.machines[v.ID].State, ready, iso)
		}
	}
	for _, t := range p.orders {
		if !t.ended {
			fmt.Fprintf(&b, "\n    %s after %q, tries %d, failure %q", t.job.Kind, t.job.Step, t.job.Tries, t.job.Failure)
		}
	}
	return b.String()
}

// leave ends what stands still.
func (p *player) leave() {
	for len(p.paused) > 0 {
		p.paused[0].expire()
		_ = p.rouse() // nobody hears it any more
	}
	if p.waiting != nil {
		p.waiting.wake()
		<-p.waiting.answered
	}
	if p.peeking != nil {
		p.peeking.wake()
		<-p.peeking.ended
	}
	p.main.st.Close()
}

// hangs reports whether a fault may let an operation hang.
func (p *player) hangs(operation string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slows[operation]
}

// loses reports whether the answer to an operation is lost, and counts it.
func (p *player) loses(operation string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	lost := p.lost[operation] > 0
	if lost {
		p.lost[operation]--
	}
	return lost
}

// strays notes that a VM is made by a server whose lease has run out.
func (p *player) strays(vmID string, late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if late {
		p.stray[vmID] = true
	}
}

// strikesNow is how often the faults that are set may strike at most.
func (p *player) strikesNow() int {
	n := 0
	for _, times := range p.strikes {
		n += times
	}
	return n
}

// excuse notes why the live jobs of a cluster, or of all (-1), may fail.
func (p *player) excuse(cluster int, why string) {
	for _, pr := range p.promises {
		if cluster < 0 || pr.cluster == cluster {
			pr.excuses = append(pr.excuses, why)
		}
	}
}

// touch notes that somebody else than its job did something to a VM.
func (p *player) touch(cluster int, v cks.VM, why string) {
	for _, pr := range p.promises {
		if pr.cluster != cluster {
			continue
		}
		pr.touched[v.ID] = true
		delete(pr.down, v.ID)
		if !pr.before.member(v.ID) {
			pr.excuses = append(pr.excuses, "its new VM "+why)
		}
	}
	for _, t := range p.orders {
		if t.vm != nil && t.vm.id == v.ID && !t.ended {
			t.vm.excused = true
		}
	}
}
