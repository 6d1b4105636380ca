package cks

import "slices"

// DryRun is what a scale request would come to now.
type DryRun struct {
	Kind    Kind
	Steps   []string // of its job, in order; none when it needs none
	From    int      // size, external workers included
	To      int
	Leaving []VM // the workers that would be removed, the first one first
	// What is changed besides; zero when it stays as it is.
	Offerings       map[Role]Offering
	DefaultOffering *Offering
	Autoscaling     *Autoscaling
	// Refusal is why the request is refused, in the words of its failed job; ""
	// when it is accepted. All the rest is zero then.
	Refusal string
}

// Foresee says what a change that CheckScale allows would come to.
func (c Change) Foresee(f ScaleFacts) DryRun {
	size := f.View.Cluster.Size
	d := DryRun{Kind: c.Kind, From: size, To: size, Autoscaling: c.Args.Autoscaling}
	switch {
	case c.Args.VMIDs != nil:
		d.Leaving = RemovalOrder(slices.DeleteFunc(slices.Clone(f.View.VMs), func(v VM) bool { return !slices.Contains(c.Args.VMIDs, v.ID) }))
		d.To -= len(d.Leaving)
	case c.Kind == RecordSize: // there are no VMs yet
		d.To = c.Args.Size
	case c.Args.Size > 0:
		d.To = c.Args.Size
		d.Leaving = Surplus(f.View.VMs, size, d.To)
	}
	if o, ok := f.Offerings[c.Args.DefaultOffering]; ok {
		d.DefaultOffering = &o
	}
	for role, id := range c.Args.Offerings {
		if d.Offerings == nil {
			d.Offerings = map[Role]Offering{}
		}
		d.Offerings[role] = f.Offerings[id]
	}
	return d
}

// Surplus returns the workers that are removed from a cluster with these VMs to
// bring its size to another one, the first to go first; none when it grows.
func Surplus(vms []VM, size, to int) []VM {
	own := slices.DeleteFunc(slices.Clone(vms), func(v VM) bool { return !v.OwnWorker() || v.Phase != Member })
	return RemovalOrder(own)[:min(max(size-to, 0), len(own))]
}
