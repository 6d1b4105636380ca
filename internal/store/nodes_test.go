package store_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// cks.md §8.1
//
// Keeps: §8.1/hex, §8.2/order.
func TestNewVMsAreNamedAndOrdered(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Workers: 1})
	offering := v.Cluster.DefaultOffering
	want := []store.NewVM{
		{Role: cks.Etcd, OfferingID: offering, Prefix: "Demo-etcd-1"},
		{Role: cks.Control, OfferingID: offering, Prefix: "demo-control", NodeVersion: "1.33.1"},
		{Role: cks.Worker, OfferingID: offering, Prefix: "demo-node", NodeVersion: "1.33.1"},
		{Role: cks.Worker, OfferingID: offering, Prefix: "demo-node", NodeVersion: "1.33.1"},
	}
	before := read[time.Time](t, st, `SELECT clock_timestamp()`)
	got := must[[]cks.VM](t)(st.ChooseNew(t.Context(), j, want))
	if len(got) != len(want) {
		t.Fatalf("%d rows", len(got))
	}
	name := regexp.MustCompile(`^(.+)-([0-9a-f]{11})$`)
	for i, vm := range got {
		m := name.FindStringSubmatch(vm.Name)
		if m == nil || m[1] != want[i].Prefix {
			t.Fatalf("name %d is %s", i, vm.Name)
		}
		ms := must[int64](t)(strconv.ParseInt(m[2], 16, 64))
		if age := time.UnixMilli(ms).Sub(before); age < -time.Millisecond || age > time.Minute {
			t.Errorf("name %s is %s off the database's clock", vm.Name, age)
		}
		if vm.Role != want[i].Role || vm.NodeVersion != want[i].NodeVersion || vm.Phase != cks.Chosen ||
			vm.State != cks.VMStopped || vm.Cores != 2 || vm.External || vm.ClusterID != v.Cluster.ID {
			t.Errorf("row %d is %+v", i, vm)
		}
		if i > 0 && vm.Seq <= got[i-1].Seq {
			t.Errorf("row %d has seq %d after %d", i, vm.Seq, got[i-1].Seq)
		}
	}
	if c := cluster(t, st, v); c.Size != v.Cluster.Size {
		t.Errorf("chosen VMs count: size %d", c.Size)
	}
	again := must[[]cks.VM](t)(st.ChooseNew(t.Context(), j, want))
	diff(t, got, again)
	diff(t, got, must[[]cks.VM](t)(st.JobVMs(t.Context(), j.ID)))
}

// Two clusters of one name that grow in the same millisecond, and a name that is
// taken for the next seconds, all get names of their own.
//
// Keeps: §8.1/unique.
// Keeps: A49.
func TestNamesAreDistinct(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	a, ja := scaling(t, st, storetest.Spec{Workers: 1})
	b, jb := scaling(t, st, storetest.Spec{Workers: 1})
	sql(t, st, `INSERT INTO vms (cluster_id, name, role, offering_id, state, phase)
		SELECT $1, 'test-node-' || lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint + i), 11, '0'),
			'worker', $2, 'Running', 'member' FROM generate_series(0, 1500) i`, a.Cluster.ID, a.Cluster.DefaultOffering)
	for _, err := range together(2, func(i int) error {
		j, v := ja, a
		if i == 1 {
			j, v = jb, b
		}
		vms, err := st.ChooseNew(t.Context(), j, wantNode(v, 40))
		if err == nil && len(vms) != 40 {
			err = fmt.Errorf("%d rows", len(vms))
		}
		return err
	}) {
		ok(t, err)
	}
}

// A worker is counted once when it joins and once when it goes, an external one too;
// what is no worker is not counted (cks.md §8.5).
//
// Keeps: §8.2/external, §8.5/external.
// Keeps: §5.8/at-once, E1.
func TestNodesCountOnce(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Control: 2, Etcd: 1, Workers: 3, External: 1})
	chosen := choose(t, st, v, j, 3)
	worker := workers(v)
	ok(t, st.ChooseLeaving(t.Context(), j, []string{worker[0].ID}))
	size := v.Cluster.Size
	for _, step := range []struct {
		what string
		do   func() error
		by   int
	}{
		{"a chosen VM joins", func() error { return st.NodeJoined(t.Context(), j, chosen[0].ID, true) }, +1},
		{"it joins again", func() error { return st.NodeJoined(t.Context(), j, chosen[0].ID, true) }, 0},
		{"one joins uncounted", func() error { return st.NodeJoined(t.Context(), j, chosen[1].ID, false) }, 0},
		{"a chosen VM is removed", func() error { return st.NodeRemoved(t.Context(), j, chosen[2].ID) }, 0},
		{"a leaving worker is removed", func() error { return st.NodeRemoved(t.Context(), j, worker[0].ID) }, -1},
		{"it is removed again", func() error { return st.NodeRemoved(t.Context(), j, worker[0].ID) }, 0},
		{"a member is removed", func() error { return st.NodeRemoved(t.Context(), j, worker[1].ID) }, -1},
		{"an external worker is removed", func() error {
			return st.NodeRemoved(t.Context(), j, ofRole(v, cks.Worker, true)[0].ID)
		}, -1},
		{"a control node is removed", func() error {
			return st.NodeRemoved(t.Context(), j, ofRole(v, cks.Control, false)[1].ID)
		}, 0},
		{"an etcd node is removed", func() error {
			return st.NodeRemoved(t.Context(), j, ofRole(v, cks.Etcd, false)[0].ID)
		}, 0},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if size += step.by; cluster(t, st, v).Size != size {
			t.Fatalf("%s: size is %d, want %d", step.what, cluster(t, st, v).Size, size)
		}
	}
	if c := cluster(t, st, v); c.Version <= v.Cluster.Version {
		t.Error("the version did not grow")
	}
	if m := vm(t, st, worker[0].ID); !m.Removed || m.State != cks.VMExpunging || m.Name != worker[0].Name {
		t.Errorf("the removed VM is %+v", m)
	}
	if m := vm(t, st, chosen[0].ID); m.Phase != cks.Member {
		t.Errorf("the joined VM is %s", m.Phase)
	}
}

// Concurrent repeats of one recording are one.
func TestNodesCountOnceAtTheSameTime(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Workers: 1})
	chosen := choose(t, st, v, j, 1)
	for _, err := range together(8, func(int) error { return st.NodeJoined(t.Context(), j, chosen[0].ID, true) }) {
		ok(t, err)
	}
	if c := cluster(t, st, v); c.Size != 2 {
		t.Errorf("size is %d after one node joined", c.Size)
	}
	for _, err := range together(8, func(int) error { return st.NodeRemoved(t.Context(), j, chosen[0].ID) }) {
		ok(t, err)
	}
	if c := cluster(t, st, v); c.Size != 1 {
		t.Errorf("size is %d after it was removed", c.Size)
	}
}

// Only a member of j's cluster that is an own worker can be chosen to leave;
// one that cannot keeps the others.
//
// Keeps: §8.2/external-left.
func TestOnlyOwnWorkersLeave(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Etcd: 1, Workers: 6, External: 1})
	other := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	w := workers(v)
	chosen := choose(t, st, v, j, 1)[0]
	stranger := must[cks.Job](t)(st.AddJob(t.Context(), loose(v)))
	sql(t, st, `UPDATE vms SET phase = 'leaving', job_id = $2 WHERE id = $1`, w[1].ID, stranger.ID)
	sql(t, st, `UPDATE vms SET phase = 'doomed' WHERE id = $1`, w[2].ID)
	sql(t, st, `UPDATE vms SET removed = now() WHERE id = $1`, w[3].ID)
	for name, id := range map[string]string{
		"control":                ofRole(v, cks.Control, false)[0].ID,
		"etcd":                   ofRole(v, cks.Etcd, false)[0].ID,
		"external":               ofRole(v, cks.Worker, true)[0].ID,
		"of another cluster":     workers(other)[0].ID,
		"chosen":                 chosen.ID,
		"leaving by another job": w[1].ID,
		"doomed":                 w[2].ID,
		"removed":                w[3].ID,
		"unknown":                stranger.ID,
	} {
		wantCode(t, st.ChooseLeaving(t.Context(), j, []string{w[0].ID, id}), cks.Conflict)
		if m := vm(t, st, w[0].ID); m.Phase != cks.Member {
			t.Errorf("%s: the other VM is %s", name, m.Phase)
		}
	}
	leave := []string{w[4].ID, w[5].ID}
	ok(t, st.ChooseLeaving(t.Context(), j, leave))
	ok(t, st.ChooseLeaving(t.Context(), j, leave))
	var got []string
	for _, m := range must[[]cks.VM](t)(st.JobVMs(t.Context(), j.ID)) {
		if m.Phase == cks.Leaving {
			got = append(got, m.ID)
		}
	}
	if !slices.Equal(got, leave) {
		t.Errorf("leaving are %v, want %v", got, leave)
	}
	if c := cluster(t, st, v); c.Size != v.Cluster.Size {
		t.Error("a leaving VM does not count any more")
	}
}

// Each phase is reached only from the one before it, and only by the job that
// chose the VM.
func TestPhasesFollowEachOther(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	moves := []struct {
		name     string
		from, to cks.Phase
		do       func(cks.Job, string) error
	}{
		{"NodeJoined", cks.Chosen, cks.Member, func(j cks.Job, id string) error { return st.NodeJoined(ctx, j, id, true) }},
		{"NodeDoomed", cks.Chosen, cks.Doomed, func(j cks.Job, id string) error { return st.NodeDoomed(ctx, j, id) }},
		{"KeepNode", cks.Leaving, cks.Member, func(j cks.Job, id string) error { return st.KeepNode(ctx, j, id) }},
	}
	v, j := scaling(t, st, storetest.Spec{Workers: 1})
	stranger := must[cks.Job](t)(st.AddJob(ctx, loose(v)))
	other := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	id := workers(v)[0].ID
	for _, move := range moves {
		for _, phase := range []cks.Phase{cks.Chosen, cks.Member, cks.Leaving, cks.Doomed} {
			for _, by := range []cks.Job{j, stranger} {
				for _, removed := range []bool{false, true} {
					sql(t, st, `UPDATE vms SET phase = $2, job_id = $3,
						removed = CASE WHEN $4 THEN now() END WHERE id = $1`, id, phase, by.ID, removed)
					size := cluster(t, st, v).Size
					err := move.do(j, id)
					got := vm(t, st, id)
					name := fmt.Sprintf("%s of a VM %s by job %s, removed %t", move.name, phase, by.ID, removed)
					switch {
					case phase == move.from && by.ID == j.ID && !removed:
						if err != nil || got.Phase != move.to {
							t.Errorf("%s: %v, then %s", name, err, got.Phase)
						}
						continue
					case phase == move.to && !removed:
						ok(t, err)
					default:
						wantCode(t, err, cks.Conflict)
					}
					if got.Phase != phase || cluster(t, st, v).Size != size {
						t.Errorf("%s: it is %s, size %d", name, got.Phase, cluster(t, st, v).Size)
					}
				}
			}
		}
		wantCode(t, move.do(j, workers(other)[0].ID), cks.NotFound)
		wantCode(t, move.do(j, stranger.ID), cks.NotFound)
	}
	wantCode(t, st.NodeRemoved(ctx, j, workers(other)[0].ID), cks.NotFound)
	wantCode(t, st.SetOfferingOf(ctx, j, workers(other)[0].ID, medium(t, st).ID), cks.NotFound)
}

// A VM that nobody answers for belongs to no job.
func TestDoomedAndKeptVMsLeaveTheJob(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Workers: 2})
	chosen := choose(t, st, v, j, 1)[0]
	w := workers(v)
	ok(t, st.ChooseLeaving(t.Context(), j, []string{w[0].ID}))
	ok(t, st.NodeDoomed(t.Context(), j, chosen.ID))
	ok(t, st.KeepNode(t.Context(), j, w[0].ID))
	if vms := must[[]cks.VM](t)(st.JobVMs(t.Context(), j.ID)); len(vms) != 0 {
		t.Errorf("the job still has %d VMs", len(vms))
	}
	if c := cluster(t, st, v); c.Size != 2 {
		t.Errorf("size is %d", c.Size)
	}
	ok(t, st.DropDoomed(t.Context(), w[0].ID))
	if vm(t, st, w[0].ID).Removed {
		t.Error("a member was dropped")
	}
	ok(t, st.DropDoomed(t.Context(), chosen.ID))
	ok(t, st.DropDoomed(t.Context(), chosen.ID))
	if m := vm(t, st, chosen.ID); !m.Removed || m.State != cks.VMExpunging {
		t.Errorf("the doomed VM is %s, removed %t", m.State, m.Removed)
	}
	if got := must[[]cks.VM](t)(st.VMs(t.Context(), v.Cluster.ID)); len(got) != 3 {
		t.Errorf("the cluster has %d VMs", len(got))
	}
}

func TestOfferingOfAVM(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Workers: 1})
	id := workers(v)[0].ID
	ok(t, st.SetOfferingOf(t.Context(), j, id, medium(t, st).ID))
	if m := vm(t, st, id); m.OfferingID != medium(t, st).ID || m.Cores != 4 || m.MemoryMB != 4096 {
		t.Errorf("the VM is %+v", m)
	}
	ok(t, st.NodeRemoved(t.Context(), j, id))
	wantCode(t, st.SetOfferingOf(t.Context(), j, id, medium(t, st).ID), cks.NotFound)
}

// What the world shows is recorded when it differs, and never for a VM that is
// gone.
func TestObserve(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 2})
	m := workers(v)[0]
	same := cks.Machine{State: m.State, IPAddress: m.IPAddress, MACAddress: m.MACAddress}
	row := func() string { return read[string](t, st, `SELECT xmin::text FROM vms WHERE id = $1`, m.ID) }
	before := row()
	ok(t, st.ObserveVM(t.Context(), m.ID, same, time.Now()))
	ok(t, st.ObserveVM(t.Context(), m.ID, cks.Machine{State: m.State}, time.Now()))
	if row() != before {
		t.Error("a VM that did not change was written")
	}
	ok(t, st.ObserveVM(t.Context(), m.ID, cks.Machine{State: m.State, IPAddress: "10.9.9.9"}, time.Now()))
	got := vm(t, st, m.ID)
	if got.IPAddress != "10.9.9.9" || got.MACAddress != m.MACAddress || !got.Updated.Equal(m.Updated) {
		t.Errorf("the VM is %+v", got)
	}
	ok(t, st.ObserveVM(t.Context(), m.ID, cks.Machine{State: m.State, MACAddress: "02:00:00:00:00:01"}, time.Now()))
	ok(t, st.ObserveVM(t.Context(), m.ID, cks.Machine{State: cks.VMStopped}, time.Now()))
	got = vm(t, st, m.ID)
	if got.State != cks.VMStopped || got.IPAddress != "10.9.9.9" || got.MACAddress != "02:00:00:00:00:01" || !got.Updated.After(m.Updated) {
		t.Errorf("the VM is %+v", got)
	}
	ok(t, st.ObserveGone(t.Context(), m, time.Now()))
	if got = vm(t, st, m.ID); got.State != cks.VMExpunging || got.Removed {
		t.Errorf("the VM is %+v", got)
	}
	sql(t, st, `UPDATE vms SET removed = now() WHERE id = $1`, m.ID)
	ok(t, st.ObserveVM(t.Context(), m.ID, same, time.Now()))
	if got = vm(t, st, m.ID); got.State != cks.VMExpunging {
		t.Errorf("the removed VM is %s", got.State)
	}
	if c := cluster(t, st, v); c.Version != v.Cluster.Version {
		t.Error("observing changed the cluster's version")
	}
}

// Who asked earlier knows less, however late it says so: a scanner that read
// Stopping does not overwrite the Stopped that a job has waited for.
func TestStaleObservationChangesNothing(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	m := workers(storetest.Fixture(t, st, storetest.Spec{Workers: 1}))[0]
	early := must[time.Time](t)(st.Now(t.Context()))
	late := must[time.Time](t)(st.Now(t.Context()))
	ok(t, st.ObserveVM(t.Context(), m.ID, cks.Machine{State: cks.VMStopped}, late))
	ok(t, st.ObserveVM(t.Context(), m.ID, cks.Machine{State: cks.VMStopping}, early))
	ok(t, st.ObserveGone(t.Context(), m, early))
	if got := vm(t, st, m.ID); got.State != cks.VMStopped {
		t.Errorf("the VM is %s", got.State)
	}
}

// Size and list of VMs are of one moment, whenever they are read.
func TestSizeAndVMsAgree(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v, j := scaling(t, st, storetest.Spec{Workers: 1})
	chosen := choose(t, st, v, j, 20)
	done := make(chan error, 1)
	go func() {
		for _, m := range chosen {
			err := errors.Join(st.NodeJoined(t.Context(), j, m.ID, true), st.NodeRemoved(t.Context(), j, m.ID))
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for reading := true; reading; {
		select {
		case err := <-done:
			ok(t, err)
			reading = false
		default:
		}
		list, _, err := st.Views(t.Context(), cks.ClusterFilter{}, "")
		ok(t, err)
		for _, got := range []cks.ClusterView{list[0], must[cks.ClusterView](t)(st.View(t.Context(), v.Cluster.ID))} {
			members := 0
			for _, m := range workers(got) {
				if m.Phase == cks.Member {
					members++
				}
			}
			if members != got.Cluster.Size {
				t.Fatalf("size is %d with %d workers", got.Cluster.Size, members)
			}
		}
	}
}
