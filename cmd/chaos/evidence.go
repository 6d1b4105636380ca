package main

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ckscale/cmd/internal/live"
	"ckscale/internal/cks"
)

// What the recorder has written, in the order of seq.
type (
	clusterRow struct {
		Seq     int64
		At      time.Time
		Cluster string
		State   cks.State
		Size    int
		Holder  string // the job that holds it; "" = none
		VMs     []memberRow
	}
	memberRow struct {
		ID    string
		Role  cks.Role
		Phase cks.Phase
	}
	vmRow struct {
		Seq         int64
		At          time.Time
		VM, Cluster string
		Job         string
		Role        cks.Role
		State       cks.VMState
		Phase       cks.Phase
		Removed     bool
	}
	jobRow struct {
		Seq     int64
		At      time.Time
		App     string
		Job     string
		Owner   string // "" = it waits
		Attempt int64
		Taken   bool // from somebody who still had it
		Status  cks.JobStatus
		Step    string
		Tries   int
		Failure string
	}
	callRow struct {
		Seq                    int64
		At                     time.Time
		App                    string
		Cluster, Operation, VM string
	}
)

// jobRecord is a job as it is recorded in the end.
type jobRecord struct {
	ID, Cluster, VM string
	Command         string
	Kind            cks.Kind
	Args            cks.Args
	Notes           cks.Notes
	Status          cks.JobStatus
	Unchanged       bool
	Text            string // of a failed one
	Created         time.Time
	Deadline        time.Time
}

// evidence is all that is known of a run.
type evidence struct {
	requests []*request
	clusters map[string][]clusterRow // by cluster
	vms      map[string][]vmRow      // by VM
	jobs     map[string][]jobRow     // by job
	calls    []callRow
	records  map[string]jobRecord  // by job
	again    map[string]string     // by job: what the API tells now of those it has told the end of
	cloud    map[string]live.World // of each cluster, in the end
	kills    []blow
	pauses   []blow
	set      map[string]int
	lease    time.Duration
}

// margin is how far what is written in a transaction may be from what others
// could see: until its commit, which a busy machine may delay.
const margin = time.Second

func gather(ctx context.Context, t *town) (*evidence, error) {
	e := &evidence{
		requests: t.requests(), kills: t.fleet.kills, pauses: t.fleet.pauses, set: t.set,
		records: map[string]jobRecord{}, again: map[string]string{}, cloud: map[string]live.World{}, lease: 10 * time.Second,
	}
	db := t.fleet.pool
	clusters, err := rows[clusterRow](ctx, db, `
		SELECT seq, at, cluster::text, state, size, coalesce(holder::text, ''), vms FROM chaos.clusters ORDER BY seq`)
	if err != nil {
		return nil, err
	}
	e.clusters = by(clusters, func(r clusterRow) string { return r.Cluster })
	vms, err := rows[vmRow](ctx, db, `
		SELECT seq, at, vm::text, cluster::text, coalesce(job::text, ''), role, state, phase, removed
		FROM chaos.vms ORDER BY seq`)
	if err != nil {
		return nil, err
	}
	e.vms = by(vms, func(r vmRow) string { return r.VM })
	jobs, err := rows[jobRow](ctx, db, `
		SELECT seq, at, app, job::text, coalesce(owner, ''), attempt, taken, status, step, tries, failure
		FROM chaos.jobs ORDER BY seq`)
	if err != nil {
		return nil, err
	}
	e.jobs = by(jobs, func(r jobRow) string { return r.Job })
	if e.calls, err = rows[callRow](ctx, db, `SELECT seq, at, app, cluster, operation, vm FROM chaos.calls ORDER BY seq`); err != nil {
		return nil, err
	}
	records, err := rows[jobRecord](ctx, db, `
		SELECT id::text, coalesce(cluster_id::text, ''), coalesce(vm_id::text, ''), command, kind, args, notes, status,
			unchanged, coalesce(error_text, ''), created, deadline FROM jobs`)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		e.records[r.ID] = r
	}
	return e, e.askAgain(ctx, t)
}

// askAgain asks the API once more for what it has told, and for the cloud.
func (e *evidence) askAgain(ctx context.Context, t *town) error {
	c := newCaller(t.fleet, t.choices("mayor", 0), answerTime)
	for _, r := range e.requests {
		if r.told == nil {
			continue
		}
		raw, err := ask[json.RawMessage](ctx, c, "queryAsyncJobResult", "jobid="+r.job)
		if err != nil {
			return err
		}
		e.again[r.job] = string(raw)
	}
	for _, id := range t.clusters {
		w, err := ask[live.World](ctx, c, "querySimulator", "clusterid="+id)
		if err != nil {
			return err
		}
		e.cloud[id] = w
	}
	return nil
}

func rows[T any](ctx context.Context, db interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}, sql string) ([]T, error) {
	found, err := db.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByPos[T])
}

func by[T any](all []T, key func(T) string) map[string][]T {
	m := map[string][]T{}
	for _, v := range all {
		m[key(v)] = append(m[key(v)], v)
	}
	return m
}

// workers are the VMs that count.
func (r clusterRow) workers() int {
	n := 0
	for _, v := range r.VMs {
		if v.Role == cks.Worker && (v.Phase == cks.Member || v.Phase == cks.Leaving) {
			n++
		}
	}
	return n
}

func (r clusterRow) ids() []string {
	var ids []string
	for _, v := range r.VMs {
		ids = append(ids, v.ID)
	}
	return ids
}

func (r clusterRow) has(id string) bool { return slices.Contains(r.ids(), id) }

// span is a time within which something was so.
type span struct{ from, to time.Time }

// during returns the rows that were in force within s, each from its own time
// to that of the next.
func during[T any](all []T, at func(T) time.Time, s span) []T {
	var in []T
	for i, r := range all {
		if at(r).After(s.to) || i+1 < len(all) && at(all[i+1]).Before(s.from) {
			continue
		}
		in = append(in, r)
	}
	return in
}

func (e *evidence) clusterDuring(id string, s span) []clusterRow {
	return during(e.clusters[id], func(r clusterRow) time.Time { return r.At }, s)
}

func (e *evidence) vmDuring(id string, s span) []vmRow {
	return during(e.vms[id], func(r vmRow) time.Time { return r.At }, s)
}

// judged is when the request of a job that was ended at once was judged.
func (e *evidence) judged(j jobRecord) span {
	last := j.Created
	for _, r := range e.jobs[j.ID] {
		last = r.At
		break
	}
	return span{j.Created.Add(-margin), last.Add(margin)}
}
