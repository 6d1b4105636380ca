package store_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// told returns the events after number seq, the oldest first, a line each.
func told(t *testing.T, st *store.Store, seq int64) (lines []string) {
	t.Helper()
	list, _, err := st.Events(t.Context(), cks.EventFilter{}, "")
	ok(t, err)
	for _, e := range list {
		if e.Seq > seq {
			parent := ""
			if e.ParentID != "" {
				parent = " of " + string(must[cks.AuditEvent](t)(st.EventByRef(t.Context(), e.ParentID)).State)
			}
			lines = append([]string{fmt.Sprintf("%s %s %s%s: %s | by %s of %s on %s %s", e.Type, e.Level, e.State, parent, e.Description,
				e.Username, e.Account.Name, e.ResourceType, e.ResourceName)}, lines...)
		}
	}
	return lines
}

// newestEvent is the number of the newest event.
func newestEvent(t *testing.T, st *store.Store) int64 {
	t.Helper()
	return read[int64](t, st, `SELECT coalesce(max(seq), 0) FROM events`)
}

// kept is all that facts are kept in.
func kept(t *testing.T, st *store.Store) string {
	t.Helper()
	return read[string](t, st, `SELECT concat_ws(E'\n', (SELECT jsonb_agg(to_jsonb(j) ORDER BY seq) FROM jobs j),
		(SELECT jsonb_agg(to_jsonb(c) ORDER BY seq) FROM clusters c), (SELECT jsonb_agg(to_jsonb(v) ORDER BY seq) FROM vms v),
		(SELECT count(*) FROM events))`)
}

// fact is something that events tell of. arrange makes what comes before it.
type fact struct {
	name    string
	arrange func(t *testing.T, st *store.Store) (act func(*store.Queries) error)
	told    []string // ID and NODE stand for the cluster's or VM's id and the node's name
}

// facts are all that the store writes with an event. The admin acts on alice's
// cluster.
var facts = []fact{
	{"a job is accepted", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		n := byAdmin(t, st, newJob(storetest.Fixture(t, st, storetest.Spec{})))
		return func(q *store.Queries) error { return second(q.AddJob(t.Context(), n)) }
	}, []string{"KUBERNETES.CLUSTER.SCALE INFO Scheduled: Scaling Kubernetes cluster ID: ID | by admin of alice on KubernetesCluster test"}},

	{"a VM's job is accepted", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		n := byAdmin(t, st, vmJob(storetest.Fixture(t, st, storetest.Spec{Workers: 1})))
		return func(q *store.Queries) error { return second(q.AddJob(t.Context(), n)) }
	}, []string{"VM.STOP INFO Scheduled: Stopping Instance: ID | by admin of alice on VirtualMachine NODE"}},

	{"a job is refused", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		n := byAdmin(t, st, newJob(storetest.Fixture(t, st, storetest.Spec{})))
		return func(q *store.Queries) error { return second(q.AddFailedJob(t.Context(), n, "it is Upgrading")) }
	}, []string{
		"KUBERNETES.CLUSTER.SCALE INFO Scheduled: Scaling Kubernetes cluster ID: ID | by admin of alice on KubernetesCluster test",
		"KUBERNETES.CLUSTER.SCALE ERROR Completed of Scheduled: Error while scaling Kubernetes cluster. it is Upgrading | by admin of alice on KubernetesCluster test",
	}},

	{"a job about nothing is refused without a word", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		n := byAdmin(t, st, loose(storetest.Fixture(t, st, storetest.Spec{})))
		return func(q *store.Queries) error { return second(q.AddFailedJob(t.Context(), n, "")) }
	}, []string{
		"KUBERNETES.CLUSTER.SCALE INFO Scheduled: Scaling Kubernetes cluster | by admin of admin on  ",
		"KUBERNETES.CLUSTER.SCALE ERROR Completed of Scheduled: Error while scaling Kubernetes cluster | by admin of admin on  ",
	}},

	{"a job has nothing to do", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		n := newJob(storetest.Fixture(t, st, storetest.Spec{}))
		return func(q *store.Queries) error {
			return second(q.AddDoneJob(t.Context(), n, cks.JobResult{Success: true}))
		}
	}, []string{
		"KUBERNETES.CLUSTER.SCALE INFO Scheduled: Scaling Kubernetes cluster ID: ID | by alice of alice on KubernetesCluster test",
		"KUBERNETES.CLUSTER.SCALE INFO Completed of Scheduled: Successfully completed scaling Kubernetes cluster | by alice of alice on KubernetesCluster test",
	}},

	{"a job begins", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		n := byAdmin(t, st, newJob(storetest.Fixture(t, st, storetest.Spec{})))
		must[cks.Job](t)(st.AddJob(t.Context(), n))
		return func(q *store.Queries) error { return second(q.ClaimJobs(t.Context(), "me", 9, time.Minute)) }
	}, []string{"KUBERNETES.CLUSTER.SCALE INFO Started of Scheduled: Scaling Kubernetes cluster | by admin of alice on KubernetesCluster test"}},

	{"a job succeeds", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		_, j := scaling(t, st, storetest.Spec{})
		return func(q *store.Queries) error { return q.FinishJob(t.Context(), j, cks.JobResult{Success: true}) }
	}, []string{"KUBERNETES.CLUSTER.SCALE INFO Completed of Scheduled: Successfully completed scaling Kubernetes cluster | by alice of alice on KubernetesCluster test"}},

	{"a job fails", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		_, j := scaling(t, st, storetest.Spec{})
		return func(q *store.Queries) error { return q.FailJob(t.Context(), j, "no\x00 room") }
	}, []string{"KUBERNETES.CLUSTER.SCALE ERROR Completed of Scheduled: Error while scaling Kubernetes cluster. no room | by alice of alice on KubernetesCluster test"}},

	{"a job takes hold of its cluster", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		v := storetest.Fixture(t, st, storetest.Spec{State: cks.Alert})
		j := must[cks.Job](t)(st.AddJob(t.Context(), byAdmin(t, st, newJob(v))))
		return func(q *store.Queries) error {
			return q.HoldCluster(t.Context(), v.Cluster, j.ID, cks.ScaleUpRequested)
		}
	}, []string{"KUBERNETES.CLUSTER.STATE INFO Completed of Scheduled: Kubernetes cluster test moved from Alert to Scaling: ScaleUpRequested | by admin of alice on KubernetesCluster test"}},

	{"a job gives its cluster back", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		_, j := scaling(t, st, storetest.Spec{})
		return func(q *store.Queries) error { return q.FreeCluster(t.Context(), j, cks.OperationFailed) }
	}, []string{"KUBERNETES.CLUSTER.STATE WARN Completed of Scheduled: Kubernetes cluster test moved from Scaling to Alert: OperationFailed | by alice of alice on KubernetesCluster test"}},

	{"the scanner moves a cluster", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		v := storetest.Fixture(t, st, storetest.Spec{State: cks.Alert})
		return func(q *store.Queries) error {
			return second(q.MoveCluster(t.Context(), v.Cluster, cks.RecoveryRequested, cks.OperationSucceeded))
		}
	}, []string{"KUBERNETES.CLUSTER.STATE INFO Completed: Kubernetes cluster test moved from Alert to Running: RecoveryRequested, OperationSucceeded | by system of alice on KubernetesCluster test"}},

	{"a cluster is recorded", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		c := storetest.Fixture(t, st, storetest.Spec{}).Cluster
		c.ID, c.Name = "", "second"
		return func(q *store.Queries) error { return second(q.AddCluster(t.Context(), c)) }
	}, []string{"KUBERNETES.CLUSTER.CREATE INFO Created: Successfully created entity for creating Kubernetes cluster | by alice of alice on KubernetesCluster second"}},

	{"a node joins", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		v, j := scaling(t, st, storetest.Spec{})
		vm := choose(t, st, v, j, 1)[0]
		return func(q *store.Queries) error { return q.NodeJoined(t.Context(), j, vm.ID, true) }
	}, []string{"KUBERNETES.CLUSTER.NODE.ADD INFO Completed of Scheduled: Node NODE was added to Kubernetes cluster test | by alice of alice on KubernetesCluster test"}},

	{"a node is gone", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		v, j := scaling(t, st, storetest.Spec{Workers: 2})
		return func(q *store.Queries) error { return q.NodeRemoved(t.Context(), j, workers(v)[0].ID) }
	}, []string{"KUBERNETES.CLUSTER.NODE.REMOVE INFO Completed of Scheduled: Node NODE was removed from Kubernetes cluster test | by alice of alice on KubernetesCluster test"}},

	{"somebody cancels a job", func(t *testing.T, st *store.Store) func(*store.Queries) error {
		v, j := scaling(t, st, storetest.Spec{})
		admin := byAdmin(t, st, newJob(v)).AccountID
		return func(q *store.Queries) error { return second(q.CancelJob(t.Context(), j.ID, admin)) }
	}, []string{"JOB.CANCEL INFO Completed of Scheduled: Cancelling job ID: ID | by admin of alice on KubernetesCluster test"}},
}

var (
	anyID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	node  = regexp.MustCompile(`test-(node|control)-[0-9a-f]{11}`)
)

func byAdmin(t *testing.T, st *store.Store, n store.NewJob) store.NewJob {
	t.Helper()
	n.AccountID = must[cks.Account](t)(st.EnsureAdmin(t.Context(), "admin-key", "admin-secret")).ID
	return n
}

// Every fact has its events: who did it, whose it is, and to what; the fact
// itself, done over again, has no second ones.
//
// Keeps: §1.10/events, §1.10/events-owner.
func TestFactsAreTold(t *testing.T) {
	t.Parallel()
	for _, f := range facts {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			st := storetest.New(t)
			act := f.arrange(t, st)
			before := newestEvent(t, st)
			ok(t, st.InTx(t.Context(), act))
			got := told(t, st, before)
			for i := range got {
				got[i] = node.ReplaceAllString(anyID.ReplaceAllString(got[i], "ID"), "NODE")
			}
			diff(t, f.told, got)
		})
	}
}

// A fact and its events are one: when an event cannot be written there is no
// fact, and when the fact's transaction is given up there is no event.
//
// Keeps: §1.10/events-same-transaction.
func TestFactAndEventAreOne(t *testing.T) {
	t.Parallel()
	for _, f := range facts {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			st := storetest.New(t)
			act := f.arrange(t, st)
			before := kept(t, st)
			enough := errors.New("given up")
			wantErr(t, st.InTx(t.Context(), func(q *store.Queries) error {
				ok(t, act(q))
				return enough
			}), enough)
			diff(t, before, kept(t, st))

			sql(t, st, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no event'; END $$`)
			sql(t, st, `CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse()`)
			if err := act(st.Queries); err == nil || !strings.Contains(err.Error(), "no event") {
				t.Fatalf("error is %v", err)
			}
			diff(t, before, kept(t, st))
			sql(t, st, `DROP TRIGGER refuse ON events`)
			ok(t, act(st.Queries))
			if kept(t, st) == before {
				t.Error("the fact is not written without the trigger either")
			}
		})
	}
}

// What did not happen is not told.
func TestWhatDidNotHappenIsNotTold(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	ctx := t.Context()
	v, j := scaling(t, st, storetest.Spec{Workers: 2})
	vm := choose(t, st, v, j, 2)
	old := storetest.Fixture(t, st, storetest.Spec{State: cks.Alert}).Cluster
	sql(t, st, `UPDATE clusters SET version = version + 1 WHERE id = $1`, old.ID)
	running := storetest.Fixture(t, st, storetest.Spec{}).Cluster
	stale := j
	stale.Attempt--
	ok(t, st.NodeJoined(ctx, j, vm[0].ID, true))
	ok(t, st.NodeRemoved(ctx, j, workers(v)[0].ID))
	before := newestEvent(t, st)

	wantCode(t, st.HoldCluster(ctx, old, j.ID, cks.ScaleUpRequested), cks.Conflict)
	if must[bool](t)(st.MoveCluster(ctx, old, cks.RecoveryRequested, cks.OperationSucceeded)) {
		t.Error("a cluster that changed was moved")
	}
	wantErr(t, st.FreeCluster(ctx, stale, cks.OperationFailed), store.ErrLeaseLost)
	wantErr(t, st.FinishJob(ctx, stale, cks.JobResult{Success: true}), store.ErrLeaseLost)
	wantErr(t, st.FailJob(ctx, stale, "x"), store.ErrLeaseLost)
	wantCode(t, second(st.AddJob(ctx, newJob(v))), cks.Conflict)
	ok(t, st.NodeJoined(ctx, j, vm[0].ID, true))                        // again
	ok(t, st.NodeRemoved(ctx, j, workers(v)[0].ID))                     // again
	ok(t, st.NodeRemoved(ctx, j, vm[1].ID))                             // it never was a node
	ok(t, st.PutBack(ctx, j, 0, false))                                 // and taken up again:
	claim(t, st, j.ID)                                                  // it has begun before
	ok(t, second(st.MoveCluster(ctx, running, cks.OperationSucceeded))) // it is Running
	diff(t, []string(nil), told(t, st, before))
}

// Of a job that an older server accepted and began, only the end is told,
// without a parent; what is not known to be a command is not told at all.
func TestEventsWithoutTheirBeginning(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{})
	for command, want := range map[string][]string{
		"scaleKubernetesCluster": {"KUBERNETES.CLUSTER.SCALE ERROR Completed: Error while scaling Kubernetes cluster. x | by alice of alice on  "},
		"of a newer release":     nil,
	} {
		n := loose(v)
		n.Command = command
		j := must[cks.Job](t)(st.AddJob(t.Context(), n))
		ok(t, st.PutBack(t.Context(), claim(t, st, j.ID), 0, false))
		if got := told(t, st, 0); want == nil && len(got) > 1 { // the cluster's own is the other one
			t.Errorf("%q", got)
		}
		sql(t, st, `DELETE FROM events`)
		ok(t, st.FailJob(t.Context(), claim(t, st, j.ID), "x"))
		diff(t, want, told(t, st, 0))
	}
}

// A command that was refused to a stranger is told to him alone, with no more
// of the thing than the id that he sent.
func TestRefusalTellsNothing(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1})
	bob := must[cks.Account](t)(st.AddAccount(t.Context(), "bob", "bob-key", "bob-secret", false))
	before := newestEvent(t, st)
	ok(t, st.AddRefusal(t.Context(), store.Refusal{Command: "scaleKubernetesCluster", CallerID: bob.ID, ClusterID: v.Cluster.ID, Why: "not yours"}))
	ok(t, st.AddRefusal(t.Context(), store.Refusal{Command: "stopVirtualMachine", CallerID: bob.ID, VMID: v.VMs[0].ID, Why: "not yours"}))
	diff(t, []string{
		"KUBERNETES.CLUSTER.SCALE ERROR Completed: Error while scaling Kubernetes cluster. not yours | by bob of bob on KubernetesCluster ",
		"VM.STOP ERROR Completed: Error while stopping Instance. not yours | by bob of bob on VirtualMachine ",
	}, told(t, st, before))
	if n := read[int](t, st, `SELECT count(*) FROM events WHERE seq > $1 AND resource_id IN ($2, $3)`, before, v.Cluster.ID, v.VMs[0].ID); n != 2 {
		t.Errorf("%d of them show the id", n)
	}
}
