package cks

// Change is what an accepted scale request comes to: the kind of job, and what
// it needs to know.
type Change struct {
	Kind Kind
	Args Args
}

// change says what the request means, once all checks have passed.
//
// Order of combinations (cks.md §5.1.6, A34): an offering and more nodes, first
// the offering; an offering and fewer nodes, first the size; nodeids with an
// offering of control or etcd nodes, first the offering; autoscaling and an
// offering, first autoscaling.
//
// Some combinations do less than they say, and succeed, as upstream (§3.3):
//   - autoscalingenabled=false with size or nodeids, while autoscaling is on,
//     turns it off and does nothing else. Sent again, the rest is done.
//   - an autoscaling change with nodeofferings that have no entry for workers,
//     and without size or nodeids, is dropped.
//   - minsize and maxsize without autoscalingenabled=true are ignored.
//   - an entry for "default" in nodeofferings does nothing, and
//     serviceofferingid beside nodeofferings does nothing.
//
// A cluster in Created has no VMs yet: only its record changes, its offerings
// too if they are among the Args.
func (s scaling) change() Change {
	if s.c.State == Created {
		return s.recordOnly()
	}
	args := Args{}
	if s.c.State != Alert {
		args.Offerings, args.DefaultOffering = s.newOfferings(), s.newDefault()
	}
	offering := args.Offerings != nil || args.DefaultOffering != ""
	kind := Nothing
	switch {
	case s.actsOnAutoscaling():
		kind, args.Autoscaling = pick(offering, AutoscaleThenOffering, Autoscale), s.wantedAutoscaling()
	case s.req.NodeIDs != nil:
		kind, args.VMIDs = pick(offering, OfferingThenRemoveNodes, RemoveNodes), vmIDs(s.NodeVMs)
	case s.grows():
		kind, args.Size = pick(offering, OfferingThenScaleUp, ScaleUp), int(*s.req.Size)
	case s.resizes():
		kind, args.Size = pick(offering, ScaleDownThenOffering, ScaleDown), int(*s.req.Size)
	case offering:
		kind = ChangeOffering
	}
	return Change{kind, args}
}

// pick returns with if an offering changes too, else without.
func pick(offering bool, with, without Kind) Kind {
	if offering {
		return with
	}
	return without
}

func (s scaling) recordOnly() Change {
	args := Args{Offerings: s.newOfferings(), DefaultOffering: s.newDefault()}
	if !s.resizes() && args.Offerings == nil && args.DefaultOffering == "" {
		return Change{Kind: Nothing}
	}
	args.Size = s.c.Size
	if s.resizes() {
		args.Size = int(*s.req.Size)
	}
	return Change{RecordSize, args}
}

// actsOnAutoscaling reports whether the change of autoscaling that is asked for
// is not one that is dropped.
func (s scaling) actsOnAutoscaling() bool {
	_, worker := entryFor(s.req.NodeOfferings, Worker)
	reached := len(s.req.NodeOfferings) == 0 || worker || s.resizes() || s.req.NodeIDs != nil
	return s.changesAutoscaling() && reached
}

func (s scaling) wantedAutoscaling() *Autoscaling {
	if !*s.req.Autoscaling {
		return &Autoscaling{}
	}
	return &Autoscaling{Enabled: true, Min: int(*s.req.MinSize), Max: int(*s.req.MaxSize)}
}
