package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ckscale/internal/cks"
	"ckscale/internal/invariant"
	"ckscale/internal/sim"
)

// end brings a script to its end, as people would: faults are over, what stands
// still goes on, what is down is started, or removed when it is down for good.
// Then every job has ended (I4), and every cluster can be scaled up by one and
// down by one again, and deleted: no state is a dead end.
//
// Two things have no way back by CloudStack's rules and are not made by
// scripts that are drawn: a control or etcd node that is down for good (A6:
// "recover the control plane"), and a cluster whose VMs have all been stopped,
// which takes startKubernetesCluster, a command that is no verb of scripts.
// Such a cluster is only deleted.
func (p *player) end() error {
	steps := []func() error{
		func() error { return p.do("wake") },
		func() error { return p.do("wake") }, // mostPaused
		func() error { return p.do("resume") },
		func() error { return p.do("resume") }, // a scan
		p.heal,
		func() error { return p.do("settle") },
		p.repair,
		func() error { return p.do("settle") },
		p.allEnded,
		p.remove,
		func() error { return p.do("settle") },
		func() error { return p.do("turn 60s") },
		func() error { return p.do("turn 60s") },
		p.scaleAgain,
		p.deleteAll,
	}
	for _, step := range steps {
		if err := step(); err != nil || len(p.wrong) > 0 {
			return err
		}
	}
	return nil
}

// heal ends all faults.
func (p *player) heal() error {
	for _, operation := range sim.Clearable() {
		if err := p.clear(args{"OPERATION": operation}); err != nil {
			return err
		}
	}
	return nil
}

// repair lets the cloud come to rest, and starts what is stopped. A VM that
// runs without its node being Ready is started anew. One that a live job has
// made is brought back in any case: the job would wait for it until its
// deadline.
func (p *player) repair() error {
	for i, s := range p.now {
		for _, v := range s.view.VMs {
			m, exists := s.machines[v.ID]
			awaited := slices.ContainsFunc(p.live(), func(pr *promise) bool { return pr.cluster == i && !pr.before.member(v.ID) })
			switch {
			case !exists || v.Phase == cks.Doomed:
			case !awaited && (m.State == cks.VMStopped || m.State == cks.VMShutdown):
				if err := p.switchVM(i, v, true); err != nil {
					return err
				}
			case !awaited && m.State.Down() && v.OwnWorker():
			case m.State != cks.VMRunning:
				if err := p.do("vm %s %s Running", letter(i), p.word(i, v)); err != nil {
					return err
				}
			}
		}
	}
	for range 2 { // until they run, and until they are Ready
		if err := p.do("turn 30s"); err != nil || len(p.wrong) > 0 {
			return err
		}
	}
	return p.rejoin()
}

// rejoin starts anew what runs and is not Ready.
func (p *player) rejoin() error {
	for i, s := range p.now {
		for _, v := range s.view.VMs {
			if v.Role == cks.Etcd || s.ready[v.ID] || s.machines[v.ID].State != cks.VMRunning {
				continue
			}
			word := p.word(i, v)
			if word == "" {
				continue // it was removed meanwhile
			}
			if err := p.do("node %s %s Ready", letter(i), word); err != nil || len(p.wrong) > 0 {
				return err
			}
			if p.now[i].ready[v.ID] {
				continue
			}
			for _, line := range []string{"stop %s %s", "turn 30s", "turn 30s", "start %s %s", "turn 30s", "turn 30s"} {
				if strings.Contains(line, "%") {
					line = fmt.Sprintf(line, letter(i), word)
				}
				if err := p.do("%s", line); err != nil || len(p.wrong) > 0 {
					return err
				}
			}
		}
	}
	return nil
}

// switchVM starts or stops a VM by command.
func (p *player) switchVM(cluster int, v cks.VM, start bool) error {
	if err := p.do("scan %s", letter(cluster)); err != nil { // the command judges by what is recorded
		return err
	}
	word := p.word(cluster, v)
	if word == "" {
		return nil
	}
	if start {
		return p.do("start %s %s", letter(cluster), word)
	}
	return p.do("stop %s %s", letter(cluster), word)
}

// word is the name of a VM in scripts; empty when it has none now.
func (p *player) word(cluster int, v cks.VM) string {
	for _, c := range "wxce" {
		for n := '1'; n <= '9'; n++ {
			word := string([]rune{c, n})
			if found, err := p.vm(cluster, word); err == nil && found.ID == v.ID {
				return word
			}
		}
	}
	return ""
}

func (p *player) allEnded() error {
	for _, t := range p.orders {
		if !t.ended {
			p.complain("a job never ends", "%s at step %q, failure %q", t.job.Kind, t.job.Step, t.job.Failure)
		}
	}
	return nil
}

// remove takes the workers out that are down for good. One that is the last is
// given company first.
func (p *player) remove() error {
	for i, s := range p.now {
		var dead []string
		for _, v := range s.members() {
			if m, exists := s.machines[v.ID]; v.OwnWorker() && (!exists || m.State.Down()) {
				dead = append(dead, p.word(i, v))
			}
		}
		if len(dead) == 0 || s.view.Cluster.State == cks.Stopped {
			continue
		}
		if len(dead) == count(s.members(), isRole(cks.Worker)) {
			if err := p.must("scale %s size=%d", letter(i), s.view.Cluster.Size+1); err != nil || len(p.wrong) > 0 {
				return err
			}
		}
		if err := p.must("scale %s nodeids=%s", letter(i), strings.Join(dead, ",")); err != nil || len(p.wrong) > 0 {
			return err
		}
	}
	return nil
}

// must asks for something that has to succeed.
func (p *player) must(format string, a ...any) error {
	before := p.counts["jobs ok"]
	if err := p.do(format, a...); err != nil || len(p.wrong) > 0 {
		return err
	}
	if err := p.do("settle"); err != nil || len(p.wrong) > 0 {
		return err
	}
	if p.counts["jobs ok"] == before {
		last := p.orders[len(p.orders)-1].job
		p.complain("a cluster cannot be scaled again", format+": %s", append(a, last.ErrorText)...)
	}
	return nil
}

func (p *player) scaleAgain() error {
	facts, err := invariant.Gather(p.ctx, p.st, p.world)
	if err != nil {
		return err
	}
	for _, broken := range facts.Broken() { // nothing is forgiven any more
		p.complain("at the end: "+general(broken), "%s", broken)
	}
	for i, s := range p.now {
		if s.view.Cluster.State == cks.Stopped {
			continue
		}
		if s.view.Cluster.State != cks.Running {
			p.complain("a cluster does not come back", "it is %s", s.view.Cluster.State)
			return nil
		}
		size := s.view.Cluster.Size
		sizes := []int{size + 1, size}
		if size+s.view.Cluster.ControlNodes >= maxSize {
			sizes = []int{size - 1, size}
		}
		for _, n := range sizes {
			if err := p.must("scale %s size=%d", letter(i), n); err != nil || len(p.wrong) > 0 {
				return err
			}
		}
	}
	return nil
}

// deleteAll leaves nothing behind.
func (p *player) deleteAll() error {
	p.last = true
	for _, id := range p.ids {
		job, err := p.service(p.st).DeleteCluster(p.ctx, p.account, id, "")
		if err != nil {
			return err
		}
		if err := p.passed(p.main.pass(p.ctx)); err != nil || len(p.wrong) > 0 {
			return err
		}
		if job, err = p.st.Job(p.ctx, job.ID); err != nil {
			return err
		}
		if job.Status != cks.JobSucceeded {
			p.complain("a cluster cannot be deleted", "%s", job.ErrorText)
		}
	}
	if err := p.check(); err != nil {
		return err
	}
	left := slices.ContainsFunc(p.now, func(s sight) bool { return len(s.machines) > 0 || s.view.Cluster.State != cks.Destroyed })
	if left && len(p.wrong) == 0 {
		p.complain("a deleted cluster is still there", "")
	}
	return nil
}

// do asks for something at the end of a script.
func (p *player) do(format string, a ...any) error {
	st, err := parseStep(fmt.Sprintf(format, a...))
	if err != nil {
		return err
	}
	if err := p.take(st); !errors.Is(err, errSkipped) {
		return err
	}
	return nil
}
