package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// plain adds a Running plain VM of the view's account.
func plain(t *testing.T, st *store.Store, v cks.ClusterView, name string) cks.VM {
	t.Helper()
	id := uuid.NewString()
	ok(t, st.AddPlainVM(t.Context(), store.NewPlainVM{ID: id, AccountID: v.Account.ID, ZoneID: v.Zone.ID, TemplateID: v.Template.ID,
		OfferingID: v.Cluster.DefaultOffering, Name: name, NetworkID: uuid.NewString(), NetworkName: "net"}))
	ok(t, st.ObserveVM(t.Context(), id, cks.Machine{State: cks.VMRunning}, time.Now()))
	return vm(t, st, id)
}

// holding holds the view's cluster for a new job of the kind, unclaimed.
func holding(t *testing.T, st *store.Store, v cks.ClusterView, event cks.Event) cks.Job {
	t.Helper()
	j := must[cks.Job](t)(st.AddJob(t.Context(), newJob(v)))
	ok(t, st.HoldCluster(t.Context(), cluster(t, st, v), j.ID, event))
	return j
}

// jobOf is a live job of a VM.
func jobOf(t *testing.T, st *store.Store, v cks.ClusterView, id string) cks.Job {
	t.Helper()
	n := loose(v)
	n.VMID = id
	return must[cks.Job](t)(st.AddJob(t.Context(), n))
}

// linkedTo is an externally managed cluster of the view's account.
func linkedTo(t *testing.T, st *store.Store, v cks.ClusterView, name string) cks.Cluster {
	t.Helper()
	return must[cks.Cluster](t)(st.AddCluster(t.Context(), cks.Cluster{
		Name: name, AccountID: v.Account.ID, ZoneID: v.Zone.ID, State: cks.Running, ControlNodes: 1, ExternalManaged: true}))
}

// Writes about external nodes, plain VMs and links change no rows but their own.
func TestNodeWritesTouchOnlyTheirOwnRows(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	n := storetest.Fixture(t, st, storetest.Spec{Workers: 1, External: 2})
	theirs := holding(t, st, n, cks.AddNodeRequested)
	ok(t, st.TakeIn(ctx, theirs, []string{plain(t, st, n, "theirs").ID}, "1.33.1", true))
	making := plain(t, st, n, "making")
	ok(t, st.ChoosePlain(ctx, jobOf(t, st, n, making.ID), cks.Chosen))
	outside := linkedTo(t, st, n, "theirs")
	ok(t, st.LinkVM(ctx, outside.ID, plain(t, st, n, "linked").ID, cks.Worker))

	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1, External: 1})
	ours := linkedTo(t, st, v, "ours")
	a, b, own := plain(t, st, v, "a"), plain(t, st, v, "b"), ofRole(v, cks.Worker, true)[0]
	var j cks.Job
	snapshot := func() string {
		return read[string](t, st, `SELECT jsonb_pretty(jsonb_build_array(
			(SELECT jsonb_agg(to_jsonb(c) ORDER BY seq) FROM clusters c WHERE id NOT IN ($1, $2)),
			(SELECT jsonb_agg(to_jsonb(m) ORDER BY seq) FROM vms m WHERE id NOT IN ($3, $4, $5) AND cluster_id IS DISTINCT FROM $1),
			(SELECT jsonb_agg(to_jsonb(j) ORDER BY seq) FROM jobs j WHERE cluster_id IS DISTINCT FROM $1 AND vm_id IS DISTINCT FROM $3)))`,
			v.Cluster.ID, ours.ID, a.ID, b.ID, own.ID)
	}
	before := snapshot()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"TakeIn", func() error {
			j = holding(t, st, v, cks.AddNodeRequested)
			return st.TakeIn(ctx, j, []string{a.ID, b.ID}, "1.33.1", false)
		}},
		{"claim", func() error { j = claim(t, st, j.ID); return nil }},
		{"NodeJoined", func() error { return st.NodeJoined(ctx, j, a.ID, true) }},
		{"NodeReturned", func() error { return st.NodeReturned(ctx, j, b.ID) }},
		{"FreeCluster", func() error { return st.FreeCluster(ctx, j, cks.OperationSucceeded) }},
		{"FinishJob", func() error { return st.FinishJob(ctx, j, cks.JobResult{Success: true}) }},
		{"TakeOut", func() error {
			j = holding(t, st, v, cks.RemoveNodeRequest)
			return st.TakeOut(ctx, j, []string{a.ID, own.ID})
		}},
		{"claim", func() error { j = claim(t, st, j.ID); return nil }},
		{"NodeReturned", func() error { return st.NodeReturned(ctx, j, a.ID) }},
		{"NodeReturned", func() error { return st.NodeReturned(ctx, j, own.ID) }},
		{"FreeCluster", func() error { return st.FreeCluster(ctx, j, cks.OperationFailed) }},
		{"FinishJob", func() error { return st.FinishJob(ctx, j, cks.JobResult{Success: true}) }},
		{"LinkVM", func() error { return st.LinkVM(ctx, ours.ID, a.ID, cks.Control) }},
		{"LinkVM", func() error { return st.LinkVM(ctx, ours.ID, b.ID, cks.Worker) }},
		{"UnlinkVM", func() error { _, err := st.UnlinkVM(ctx, ours.ID, b.ID); return err }},
		{"ChoosePlain", func() error { j = jobOf(t, st, v, a.ID); return st.ChoosePlain(ctx, j, cks.Leaving) }},
		{"WakeVM", func() error { _, err := st.WakeVM(ctx, a.ID); return err }},
		{"claim", func() error { j = claim(t, st, j.ID); return nil }},
		{"PlainSettled", func() error { return st.PlainSettled(ctx, j, false) }},
		{"ChoosePlain", func() error { return st.ChoosePlain(ctx, j, cks.Leaving) }},
		{"PlainRemoved", func() error { return st.PlainRemoved(ctx, j) }},
		{"LinkVM", func() error { return st.LinkVM(ctx, ours.ID, b.ID, cks.Worker) }},
		{"ForgetCluster", func() error {
			return st.ForgetCluster(ctx, must[cks.Cluster](t)(st.ClusterByRef(ctx, ours.ID)))
		}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if after := snapshot(); after != before {
			t.Fatalf("after %s the others are\n%s\nand were\n%s", step.name, after, before)
		}
	}
	for id, want := range map[string]bool{a.ID: true, b.ID: false, own.ID: false} {
		if got := vm(t, st, id); got.ClusterID != "" && !want || got.Removed != want || got.Linked && !want || got.External {
			t.Errorf("%+v", got)
		}
	}
	if c := cluster(t, st, v); c.Size != 1 {
		t.Errorf("size %d", c.Size)
	}
	if back := vm(t, st, own.ID); back.AccountID != v.Account.ID { // it had no owner of its own before
		t.Errorf("%+v", back)
	}
}

// Nodes are taken all or none, and only as they were judged.
//
// Keeps: ours/nodes-whole, ours/nodes-alone.
func TestNodesAreTakenAllOrNone(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1, External: 2})
	good, other := plain(t, st, v, "good"), plain(t, st, v, "other")
	ext := ofRole(v, cks.Worker, true)
	outside := linkedTo(t, st, v, "outside")
	linked := plain(t, st, v, "linked")
	ok(t, st.LinkVM(ctx, outside.ID, linked.ID, cks.Worker))
	in := func(id string) func(j cks.Job) error {
		return func(j cks.Job) error { return st.TakeIn(ctx, j, []string{good.ID, id}, "1.33.1", false) }
	}
	out := func(id string) func(j cks.Job) error {
		return func(j cks.Job) error { return st.TakeOut(ctx, j, []string{ext[0].ID, id}) }
	}
	for name, c := range map[string]struct {
		spoil string // of other
		take  func(cks.Job) error
	}{
		"in: stopped":     {`UPDATE vms SET state = 'Stopped' WHERE id = $1`, in(other.ID)},
		"in: removed":     {`UPDATE vms SET removed = now() WHERE id = $1`, in(other.ID)},
		"in: doomed":      {`UPDATE vms SET phase = 'doomed' WHERE id = $1`, in(other.ID)},
		"in: a member":    {``, in(ext[0].ID)},
		"in: a worker":    {``, in(workers(v)[0].ID)},
		"in: linked":      {``, in(linked.ID)},
		"out: plain":      {``, out(other.ID)},
		"out: own worker": {``, out(workers(v)[0].ID)},
		"out: linked":     {``, out(linked.ID)},
		"out: removed": {``, func(j cks.Job) error {
			sql(t, st, `UPDATE vms SET removed = now() WHERE id = $1`, ext[1].ID)
			return out(ext[1].ID)(j)
		}},
	} {
		event := cks.AddNodeRequested
		if name[:3] == "out" {
			event = cks.RemoveNodeRequest
		}
		sql(t, st, `UPDATE vms SET removed = NULL, phase = 'member', state = 'Running' WHERE id IN ($1, $2)`, other.ID, ext[1].ID)
		if c.spoil != "" {
			sql(t, st, c.spoil, other.ID)
		}
		j := holding(t, st, v, event)
		err := st.InTx(ctx, func(*store.Queries) error { return c.take(j) })
		if cks.CodeOf(err) != cks.Conflict {
			t.Errorf("%s: %v", name, err)
		}
		if got := vm(t, st, good.ID); got.ClusterID != "" || vm(t, st, ext[0].ID).Phase != cks.Member {
			t.Errorf("%s: %+v", name, got)
		}
		j = claim(t, st, j.ID)
		ok(t, st.FreeCluster(ctx, j, cks.OperationSucceeded))
		ok(t, st.FailJob(ctx, j, "x"))
	}
	sql(t, st, `UPDATE vms SET removed = NULL, phase = 'member', state = 'Running' WHERE id = $1`, other.ID)
	busy := jobOf(t, st, v, other.ID)
	j := holding(t, st, v, cks.AddNodeRequested)
	wantCode(t, in(other.ID)(j), cks.Conflict)
	ok(t, st.FinishJob(ctx, claim(t, st, busy.ID), cks.JobResult{Success: true}))
	ok(t, in(other.ID)(j))
}

// A node that could neither join nor go back is counted when its cluster is
// freed, so that it can be removed.
func TestFreeClusterKeepsNodesThatAreStuck(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	a, b := plain(t, st, v, "a"), plain(t, st, v, "b")
	j := holding(t, st, v, cks.AddNodeRequested)
	ok(t, st.TakeIn(ctx, j, []string{a.ID, b.ID}, "1.33.1", false))
	j = claim(t, st, j.ID)
	ok(t, st.NodeJoined(ctx, j, b.ID, true))
	ok(t, st.FreeCluster(ctx, j, cks.OperationFailed))
	if c := cluster(t, st, v); c.State != cks.Running || c.Size != 3 || vm(t, st, a.ID).Phase != cks.Member {
		t.Errorf("%s, size %d, %+v", c.State, c.Size, vm(t, st, a.ID))
	}
}

// What has lost its lease, or its hold, changes nothing.
func TestNodeWritesAreFenced(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1, External: 1})
	box := plain(t, st, v, "box")
	j := jobOf(t, st, v, box.ID)
	ok(t, st.ChoosePlain(ctx, j, cks.Leaving))
	wantCode(t, st.ChoosePlain(ctx, j, cks.Leaving), cks.Conflict)
	old := claim(t, st, j.ID)
	now := claim(t, st, j.ID)
	wantErr(t, st.PlainSettled(ctx, old, true), store.ErrLeaseLost)
	wantErr(t, st.PlainRemoved(ctx, old), store.ErrLeaseLost)
	if got := vm(t, st, box.ID); got.Phase != cks.Leaving || got.Removed {
		t.Errorf("%+v", got)
	}
	ok(t, st.PlainRemoved(ctx, now))
	at := read[time.Time](t, st, `SELECT removed FROM vms WHERE id = $1`, box.ID)
	ok(t, st.PlainRemoved(ctx, now))
	if again := read[time.Time](t, st, `SELECT removed FROM vms WHERE id = $1`, box.ID); !again.Equal(at) {
		t.Error("it was removed twice")
	}
	ext := ofRole(v, cks.Worker, true)[0]
	free := must[cks.Job](t)(st.AddJob(ctx, newJob(v)))
	wantErr(t, st.NodeReturned(ctx, claim(t, st, free.ID), ext.ID), store.ErrNotHeld)
}

// A VM that is not where it was when it was looked for is not taken for gone;
// nor is one that a job is making or moving.
func TestVMElsewhereIsNotGone(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1, External: 1})
	later := must[time.Time](t)(st.Now(ctx)).Add(time.Hour)
	gone := func(seen cks.VM) bool {
		t.Helper()
		ok(t, st.ObserveGone(ctx, seen, later))
		return vm(t, st, seen.ID).State == cks.VMExpunging
	}
	box, ext := plain(t, st, v, "box"), ofRole(v, cks.Worker, true)[0]
	j := holding(t, st, v, cks.AddNodeRequested)
	ok(t, st.TakeIn(ctx, j, []string{box.ID}, "1.33.1", false))
	if gone(box) || gone(vm(t, st, box.ID)) {
		t.Error("a VM that moves in is gone")
	}
	j = claim(t, st, j.ID)
	ok(t, st.NodeJoined(ctx, j, box.ID, true))
	ok(t, st.FreeCluster(ctx, j, cks.OperationSucceeded))
	ok(t, st.FinishJob(ctx, j, cks.JobResult{Success: true}))
	if gone(box) {
		t.Error("a VM that has moved in is gone from where it was")
	}
	member := vm(t, st, box.ID)
	j = holding(t, st, v, cks.RemoveNodeRequest)
	ok(t, st.TakeOut(ctx, j, []string{box.ID}))
	if gone(member) {
		t.Error("a VM that moves out is gone")
	}
	ok(t, st.NodeReturned(ctx, claim(t, st, j.ID), box.ID))
	if gone(member) || !gone(vm(t, st, box.ID)) || !gone(ext) {
		t.Error("it is looked for in the wrong place")
	}
}

// VMs in no cluster are due to be looked at, in turn; those in clusters are
// looked at with them.
func TestVMsToScan(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1, External: 1})
	a, b, c := plain(t, st, v, "a"), plain(t, st, v, "b"), plain(t, st, v, "c")
	ok(t, st.LinkVM(ctx, linkedTo(t, st, v, "outside").ID, b.ID, cks.Worker))
	sql(t, st, `UPDATE vms SET removed = now() WHERE id = $1`, c.ID)
	diff(t, []string{a.ID, b.ID}, must[[]string](t)(st.LivePlainVMs(ctx)))
	one := must[[]string](t)(st.VMsToScan(ctx, 1, time.Hour))
	two := must[[]string](t)(st.VMsToScan(ctx, 5, time.Hour))
	diff(t, []string{a.ID, b.ID}, append(one, two...))
	if more := must[[]string](t)(st.VMsToScan(ctx, 5, time.Hour)); len(more) > 0 {
		t.Errorf("due again: %v", more)
	}
}

// A VM is shown with all that it was given.
func TestPlainVMView(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	id := uuid.NewString()
	n := store.NewPlainVM{ID: id, AccountID: v.Account.ID, ZoneID: v.Zone.ID, TemplateID: v.Template.ID, OfferingID: v.Cluster.DefaultOffering,
		Name: "Box", DisplayName: "d", Keypair: "k", NetworkID: v.Cluster.NetworkID, NetworkName: "net"}
	ok(t, st.AddPlainVM(ctx, n))
	got := must[cks.VMView](t)(st.VMView(ctx, id))
	if got.NetworkName != "net" || got.NetworkID != v.Cluster.NetworkID || got.Zone != v.Zone || *got.Template != *v.Template || got.Account.ID != v.Account.ID || got.VM.Name != "Box" {
		t.Errorf("%+v", got)
	}
	n.ID, n.Name = uuid.NewString(), "bOX"
	wantCode(t, st.AddPlainVM(ctx, n), cks.Invalid)
	if taken := must[bool](t)(st.HasVMNamed(ctx, v.Account.ID, "bOx")); !taken {
		t.Error("the name is free")
	}
	for want, f := range map[int]cks.VMFilter{
		1: {Name: "ox"}, 3: {ZoneID: v.Zone.ID}, 2: {Cluster: v.Cluster.ID}, 0: {Name: id},
	} {
		if _, n, err := st.VMViews(ctx, f, v.Account.ID); err != nil || n != want {
			t.Errorf("%+v: %d VMs, %v", f, n, err)
		}
	}
	if _, n, err := st.VMViews(ctx, cks.VMFilter{NetworkID: v.Cluster.NetworkID, Account: v.Account.Name}, ""); err != nil || n != 3 {
		t.Errorf("%d VMs in the network: %v", n, err)
	}
}

// Whoever destroys a linked VM waits for whoever changes the links of its
// cluster, and not the other way round as well.
func TestLinkedVMIsRemovedAfterItsLinksAreChanged(t *testing.T) {
	t.Parallel()
	st, ctx := storetest.New(t), t.Context()
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	c, box := linkedTo(t, st, v, "outside"), plain(t, st, v, "box")
	ok(t, st.LinkVM(ctx, c.ID, box.ID, cks.Worker))
	j := jobOf(t, st, v, box.ID)
	ok(t, st.ChoosePlain(ctx, j, cks.Leaving))
	j = claim(t, st, j.ID)
	removed := make(chan bool, 1)
	ok(t, st.InTx(ctx, func(q *store.Queries) error {
		if err := q.LockCluster(ctx, c.ID); err != nil {
			return err
		}
		go lockNext(t, st, func(q *store.Queries) (bool, error) { return true, q.PlainRemoved(ctx, j) }, removed)
		waitBlocked(t, st, 1)
		_, err := q.UnlinkVM(ctx, c.ID, box.ID)
		return err
	}))
	if <-removed; !vm(t, st, box.ID).Removed || cluster(t, st, cks.ClusterView{Cluster: c}).Size != 0 {
		t.Errorf("%+v", vm(t, st, box.ID))
	}
}
