package model

import (
	"strconv"
	"strings"
	"time"

	"ckscale/internal/cks"
)

// order gives the simulator one; that it has no use for is left out.
func (p *player) order(f cks.Fault) error {
	err := p.world.Configure(p.ctx, f)
	if cks.CodeOf(err) == cks.Invalid {
		return errSkipped
	}
	return err
}

func (p *player) setVM(a args) error {
	v, err := p.vm(a.cluster(), a["VM"])
	if err != nil {
		return err
	}
	state := cks.VMState(a["STATE"])
	if err := p.order(cks.Fault{Operation: "vm.set", Value: string(state), VMID: v.ID}); err != nil {
		return err
	}
	p.touch(a.cluster(), v, "was set "+string(state))
	if !state.Down() && !running(state) {
		p.excuse(a.cluster(), "a VM was on its way")
	}
	return nil
}

func (p *player) setNode(a args) error {
	v, err := p.vm(a.cluster(), a["VM"])
	if err != nil {
		return err
	}
	f := cks.Fault{Operation: "node.set", Value: a["CHANGE"], VMID: v.ID}
	if a["CHANGE"] == "forget" {
		f = cks.Fault{Operation: "node.forget", VMID: v.ID}
	}
	if err := p.order(f); err != nil {
		return err
	}
	p.touch(a.cluster(), v, "has lost its node")
	return nil
}

func (p *player) fault(a args) error {
	operation, value := a["OPERATION"], a["VALUE"]
	f := cks.Fault{Operation: operation, Value: value}
	if a.has("count") {
		f.Count, _ = strconv.Atoi(a["count"])
	}
	if c, given := a["cluster"]; given {
		f.ClusterID = p.ids[c[0]-'A']
	}
	if value == "lost" {
		p.mu.Lock()
		p.lost[operation] = max(f.Count, 1)
		p.mu.Unlock()
		f.Count = max(f.Count, 1)
	} else if err := p.order(f); err != nil {
		return err
	}
	hangs := value == "hang" || value == "budget"
	switch {
	case operation == "node.join", strings.HasPrefix(value, "delay"):
	case f.Count == 0, hangs:
		p.strikes[operation] += always
	default:
		p.strikes[operation] += f.Count
	}
	p.mu.Lock()
	p.slows[operation] = p.slows[operation] || hangs
	p.mu.Unlock()
	if p.strikesNow() > patience {
		p.excuse(-1, "faults were set")
		for _, t := range p.orders {
			if t.vm != nil {
				t.vm.excused = true
			}
		}
	}
	for _, pr := range p.promises {
		pr.blind = pr.blind || operation == "node.list"
	}
	p.stick()
	return nil
}

// stick notes where a fault may leave an ISO in its drive.
func (p *player) stick() {
	if p.strikes["iso.detach"] > 0 && p.strikesNow() > patience {
		for _, pr := range p.promises {
			p.stuck[p.ids[pr.cluster]] = true
		}
	}
}

func (p *player) clear(a args) error {
	if err := p.order(cks.Fault{Operation: a["OPERATION"], Value: "clear"}); err != nil {
		return err
	}
	delete(p.strikes, a["OPERATION"])
	p.mu.Lock()
	delete(p.slows, a["OPERATION"])
	delete(p.lost, a["OPERATION"])
	p.mu.Unlock()
	p.limited = p.limited && a["OPERATION"] != "capacity"
	return nil
}

func (p *player) capacity(a args) error {
	p.limited = true
	p.excuse(-1, "the hosts are full")
	return p.order(cks.Fault{Operation: "capacity", Value: a["NUMBER"]})
}

func (p *player) deadline(args) error {
	p.excuse(-1, "its deadline passed")
	for _, t := range p.orders {
		if t.vm != nil {
			t.vm.excused = true
		}
	}
	return p.arena.deadline(p.ctx)
}

// patiently is when leases are over and jobs look again by themselves.
const patiently = 15 * time.Second

func (p *player) time(a args) error {
	d, err := time.ParseDuration(a["DURATION"])
	if err != nil {
		return err
	}
	p.clock.pass(d)
	for _, id := range p.ids { // an order for nobody: what is due happens, as it does while the simulator runs
		err := p.world.Configure(p.ctx, cks.Fault{Operation: "node.join", Value: "clear", ClusterID: id, VMID: nobody})
		if err != nil {
			return err
		}
	}
	if d < patiently {
		return nil
	}
	for _, s := range p.paused {
		s.expire()
	}
	return p.st.ReleaseLeases(p.ctx)
}
