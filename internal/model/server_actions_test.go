package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ckscale/internal/cks"
	"ckscale/internal/jobs"
	"ckscale/internal/store"
)

func (p *player) scan(a args) error {
	c := a.cluster()
	before := p.now[c]
	err := p.scanner.Scan(p.ctx, p.ids[c])
	if err != nil && p.strikesNow() == 0 {
		p.complain("a scan failed", "%v", err)
	}
	if err := p.look(); err != nil {
		return err
	}
	after := p.now[c]
	for id := range p.stray {
		_, exists := after.machines[id]
		switch left := exists && !has(after.view.VMs, id); {
		case before.view.Cluster.State.Busy():
		case !left:
			delete(p.stray, id)
		case p.strikesNow() == 0:
			p.complain("a scan left a VM that was made too late", "%s", id)
		}
	}
	if p.strikes["vm.list"] > 0 || p.strikes["node.list"] > 0 {
		return nil
	}
	if want := scanned(before); !before.view.Cluster.State.Busy() && after.view.Cluster.State != want {
		p.complain("a scan left the wrong state", "cluster %s was %s and is %s; expected %s", a["CLUSTER"], before.view.Cluster.State, after.view.Cluster.State, want)
	}
	for _, v := range after.view.VMs {
		if m, exists := after.machines[v.ID]; exists && m.State != v.State {
			p.complain("a scan did not record a state", "%s is %s and recorded as %s", v.Name, m.State, v.State)
		}
	}
	return nil
}

// looking is a scan that stands still before it writes what it makes of what it
// saw.
type looking struct {
	*life
	cluster int
	version int64
	st      *store.Store
	ended   chan error
}

// peek scans a cluster, and takes its time before it moves it, until resume.
func (p *player) peek(a args) error {
	if p.peeking != nil {
		return errSkipped
	}
	c := a.cluster()
	l := &looking{life: newLife(beforeMove, 1), cluster: c, version: p.now[c].view.Cluster.Version, ended: make(chan error, 1)}
	var err error
	if l.st, err = p.arena.connect(p.ctx, l.life); err != nil {
		return err
	}
	eye := cloud{World: p.world, life: &life{}, p: p}
	scanner := jobs.NewScanner(l.st, eye, eye, jobs.ScanConfig{CallTimeout: limits.CallTimeout})
	go func() { l.ended <- scanner.Scan(p.ctx, p.ids[c]) }()
	select {
	case <-l.held:
		p.peeking = l
	case err = <-l.ended: // it has nothing to move
		l.st.Close()
		if p.strikesNow() > 0 {
			err = nil
		}
	}
	return err
}

// resumeScan lets the slow scan go on. It may move only what is still as it saw
// it (A48).
func (p *player) resumeScan() error {
	l := p.peeking
	if l == nil {
		return errSkipped
	}
	p.peeking = nil
	l.wake()
	err := <-l.ended
	l.st.Close()
	if err != nil && p.strikesNow() == 0 {
		p.complain("a scan failed", "%v", err)
	}
	was := p.now[l.cluster].view.Cluster
	if err := p.look(); err != nil {
		return err
	}
	if now := p.now[l.cluster].view.Cluster; was.Version != l.version && now.State != was.State {
		p.complain("a scan moved what had changed since it looked", "from %s to %s", was.State, now.State)
	}
	return nil
}

func (p *player) run(args) error { return p.passed(p.main.pass(p.ctx)) }

// passed complains of a pass that failed by itself.
func (p *player) passed(err error) error {
	if err != nil {
		p.complain("a runner failed", "%v", err)
	}
	return nil
}

func (p *player) turn(a args) error {
	if err := p.run(nil); err != nil || len(p.wrong) > 0 {
		return err
	}
	if err := p.time(a); err != nil {
		return err
	}
	for i := range p.ids {
		if err := p.check(); err != nil {
			return err
		}
		if err := p.scan(args{"CLUSTER": letter(i)}); err != nil {
			return err
		}
	}
	if err := p.check(); err != nil || len(p.wrong) > 0 {
		return err
	}
	return p.run(nil)
}

// turns are more than a job needs whom nothing keeps.
const turns = 12

func (p *player) settle(args) error {
	for range turns {
		if err := p.turn(args{"DURATION": "30s"}); err != nil {
			return err
		}
		if err := p.check(); err != nil || len(p.wrong) > 0 || !p.busy() {
			return err
		}
	}
	return nil
}

// busy reports whether a job is live.
func (p *player) busy() bool {
	return slices.ContainsFunc(p.orders, func(t *tracked) bool { return !t.ended })
}

func (p *player) race(args) error {
	second, err := p.serve(&life{})
	if err != nil {
		return err
	}
	defer second.st.Close()
	var errs [3]error
	var wg sync.WaitGroup
	wg.Go(func() { errs[0] = p.main.pass(p.ctx) })
	wg.Go(func() { errs[1] = second.pass(p.ctx) })
	wg.Go(func() {
		for range 3 {
			for _, id := range p.ids {
				if err := p.scanner.Scan(p.ctx, id); err != nil && p.strikesNow() == 0 {
					errs[2] = err
				}
			}
		}
	})
	wg.Wait()
	return p.passed(errors.Join(errs[:]...))
}

func (p *player) crash(a args) error {
	n, _ := strconv.Atoi(a["NUMBER"])
	s, err := p.serve(newLife(a["MOMENT"], n))
	if err != nil {
		return err
	}
	defer s.st.Close()
	err = s.pass(p.ctx)
	if !s.dead {
		return p.passed(err)
	}
	p.counts["died"]++
	return nil
}

// mostPaused is how many servers stand still at once at most.
const mostPaused = 2

func (p *player) pause(a args) error {
	if len(p.paused) == mostPaused {
		return errSkipped
	}
	n, _ := strconv.Atoi(a["NUMBER"])
	at := heldUp
	if a.has("late") {
		at = lateCreate
	}
	s, err := p.serve(newLife(at, n))
	if err != nil {
		return err
	}
	go func() { s.ended <- s.pass(p.ctx) }()
	select {
	case <-s.held:
		s.quiet()
		p.paused = append(p.paused, s)
		p.counts["stood still"]++
		return nil
	case err := <-s.ended:
		s.st.Close()
		return p.passed(err)
	}
}

func (p *player) wake(args) error {
	if len(p.paused) == 0 {
		return errSkipped
	}
	if !p.paused[0].expired() {
		return p.passed(p.rouse())
	}
	before, err := p.recorded()
	if err != nil {
		return err
	}
	_ = p.rouse() // what it could not do it tells nobody
	after, err := p.recorded()
	if err == nil && before != after {
		p.complain("a server whose lease had run out changed something", "%s\n%s", before, after)
	}
	return err
}

// recorded is what is recorded of the live jobs and of the clusters, but for
// what is only seen.
func (p *player) recorded() (string, error) {
	live, _, err := p.st.Jobs(p.ctx, cks.JobFilter{}, "")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, j := range live {
		fmt.Fprintln(&b, j.Kind, j.Step, j.Tries, j.Failure, j.Status, j.Server, j.Attempt, j.Notes)
	}
	for _, id := range p.ids {
		view, err := p.st.View(p.ctx, id)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&b, view.Cluster.State, view.Cluster.Size, view.Cluster.Version, view.Cluster.HeldBy)
		for _, v := range view.VMs {
			fmt.Fprintln(&b, v.Name, v.Phase, v.OfferingID)
		}
	}
	return b.String(), nil
}

// rouse lets the server go on that has stood still the longest, to the end of
// its pass.
func (p *player) rouse() error {
	s := p.paused[0]
	p.paused = p.paused[1:]
	s.wake()
	err := <-s.ended
	s.st.Close()
	return err
}

// restart is the end of all servers, and the start of one that knows it is
// alone.
func (p *player) restart(args) error {
	for len(p.paused) > 0 {
		p.paused[0].die()
		_ = p.rouse() // it died
	}
	return p.st.ReleaseLeases(p.ctx)
}

func (l *life) die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
}
