package store

import (
	"context"
	"time"

	"ckscale/internal/cks"
)

// event is written with a fact, in the transaction of the fact, by the method
// that writes the fact.
type event struct {
	kind   cks.EventType
	level  cks.Level
	state  cks.Progress
	text   string
	job    string // id of the job that did it, or that it was done to: what that acts on is what
	step   bool   // it tells of the job itself: that it is Scheduled, Started or Completed
	caller string // id of the account that did it; "" = the job's, or nobody: the service
	// What it is about, unless a job says so.
	cluster, vm string
	// The thing is not the caller's: the event is, and it shows no more of the
	// thing than the caller knew.
	foreign bool
}

// insertEvents is the rest of a statement: it writes the events in f, which has
// the columns kind, level, state, text, caller, cluster, vm, own (the id of the
// job whose step it is), job (the id of the job that did it) and strange.
const insertEvents = `
	INSERT INTO events (type, level, state, description, caller_id, account_id, job_id, start_id,
		resource_type, resource_id, resource_name)
	SELECT f.kind, f.level, f.state, f.text, f.caller,
		CASE WHEN f.strange THEN f.caller ELSE coalesce(c.account_id, v.account_id, f.caller) END, f.own, s.id,
		CASE WHEN f.vm IS NOT NULL THEN 'VirtualMachine' WHEN f.cluster IS NOT NULL THEN 'KubernetesCluster' END,
		coalesce(f.vm, f.cluster), CASE WHEN NOT f.strange THEN coalesce(v.host_name, v.name, c.name) END
	FROM f LEFT JOIN vms v ON v.id = f.vm LEFT JOIN clusters c ON c.id = coalesce(f.cluster, v.cluster_id)
		LEFT JOIN events s ON s.job_id = f.job AND s.state = 'Scheduled'
	ON CONFLICT DO NOTHING`

// addEvent writes e. It is to be called in the transaction of the fact.
func (q *Queries) addEvent(ctx context.Context, e event) error {
	_, err := q.exec(ctx, `
		WITH f AS (
			SELECT $1 AS kind, $2 AS level, $3 AS state, $4 AS text, coalesce(nullif($5, '')::uuid, j.account_id) AS caller,
				coalesce(j.cluster_id, nullif($6, '')::uuid) AS cluster, coalesce(j.vm_id, nullif($7, '')::uuid) AS vm,
				CASE WHEN $9 THEN j.id END AS own, j.id AS job, $10::boolean AS strange
			FROM (SELECT) one LEFT JOIN jobs j ON j.id = nullif($8, '')::uuid)`+insertEvents,
		string(e.kind), string(e.level), string(e.state), clean(e.text), e.caller, e.cluster, e.vm, e.job, e.step, e.foreign)
	return err
}

// jobScheduled writes that j was accepted.
func (q *Queries) jobScheduled(ctx context.Context, j cks.Job) error {
	a, known := cks.Actions[j.Command]
	if !known {
		return nil
	}
	on := j.ClusterID + j.VMID // a job has one of them at most
	return q.addEvent(ctx, event{kind: a.Type, level: cks.LevelInfo, state: cks.Scheduled, text: a.Scheduled(on), job: j.ID, step: true})
}

// startedJobs is the part of ClaimJobs that writes which of the jobs in j begin
// now. The arguments are those of actions, from $4 on.
const startedJobs = `f AS (
		SELECT a.kind, 'INFO' AS level, 'Started' AS state, a.text, j.account_id AS caller, j.cluster_id AS cluster,
			j.vm_id AS vm, j.id AS own, j.id AS job, false AS strange
		FROM j JOIN unnest($4::text[], $5::text[], $6::text[]) AS a (command, kind, text) ON a.command = j.command
		WHERE j.attempt = 1), started AS (` + insertEvents + `)`

// actions are the commands, with the type and the text of their Started events.
func actions() (commands, kinds, texts []string) {
	for command, a := range cks.Actions {
		commands, kinds, texts = append(commands, command), append(kinds, string(a.Type)), append(texts, a.Started())
	}
	return commands, kinds, texts
}

// jobCompleted writes that j has ended, or why it failed.
func (q *Queries) jobCompleted(ctx context.Context, j cks.Job, failed bool, why string) error {
	a, known := cks.Actions[j.Command]
	if !known {
		return nil
	}
	level, text := a.Succeeded()
	if failed {
		level, text = a.Failed(why)
	}
	return q.addEvent(ctx, event{kind: a.Type, level: level, state: cks.Completed, text: text, job: j.ID, step: true})
}

// jobCancelled writes that the account wants the job to end.
func (q *Queries) jobCancelled(ctx context.Context, jobID, accountID string) error {
	a := cks.Actions["cancelAsyncJob"]
	return q.addEvent(ctx, event{kind: a.Type, level: cks.LevelInfo, state: cks.Completed, text: a.Scheduled(jobID), job: jobID, caller: accountID})
}

// clusterCreated writes that c was recorded.
func (q *Queries) clusterCreated(ctx context.Context, c cks.Cluster, callerID string) error {
	a := cks.Actions["createKubernetesCluster"]
	return q.addEvent(ctx, event{kind: a.Type, level: cks.LevelInfo, state: cks.EntityCreated, text: a.Created(), caller: callerID, cluster: c.ID})
}

// clusterMoved writes that a cluster is in another state than it was.
func (q *Queries) clusterMoved(ctx context.Context, clusterID, name, jobID string, from, to cks.State, why []cks.Event) error {
	if from == to {
		return nil
	}
	level, text := cks.Moved(name, from, to, why...)
	return q.addEvent(ctx, event{kind: cks.EventClusterState, level: level, state: cks.Completed, text: text, job: jobID, cluster: clusterID})
}

// nodeEvent writes what j did with a node; text makes the words of the node's
// and the cluster's names.
func (q *Queries) nodeEvent(ctx context.Context, j cks.Job, kind cks.EventType, vmID string, text func(node, cluster string) string) error {
	type names struct{ node, cluster string }
	n, err := one(ctx, q, func(n *names) []any { return []any{&n.node, &n.cluster} },
		`SELECT lower(`+vmName+`), c.name FROM vms v JOIN clusters c ON c.id = v.cluster_id WHERE v.id = $1`, vmID)
	if err != nil {
		return err
	}
	return q.addEvent(ctx, event{kind: kind, level: cks.LevelInfo, state: cks.Completed, text: text(n.node, n.cluster), job: j.ID, cluster: j.ClusterID})
}

// Refusal is a command that was refused, and left nothing else behind.
type Refusal struct {
	Command   string
	CallerID  string // account
	ClusterID string // of somebody else's cluster that it was about
	VMID      string // of somebody else's VM
	Why       string
}

// AddRefusal writes the event of r. It belongs to the caller, and tells nothing
// of what is somebody else's but the id.
func (q *Queries) AddRefusal(ctx context.Context, r Refusal) error {
	a := cks.Actions[r.Command]
	level, text := a.Failed(r.Why)
	return q.addEvent(ctx, event{kind: a.Type, level: level, state: cks.Completed, text: text,
		caller: r.CallerID, cluster: r.ClusterID, vm: r.VMID, foreign: true})
}

// eventColumns reads an event e with the account a that it belongs to.
const eventColumns = `e.id, e.seq, e.type, e.level, e.state, e.description,
	coalesce((SELECT name FROM accounts WHERE id = e.caller_id), '` + cks.System + `'),
	coalesce(e.start_id::text, ''), coalesce(e.resource_type, ''), coalesce(e.resource_id::text, ''),
	coalesce(e.resource_name, ''), e.created, ` + accountColumns

var eventRows = source[cks.AuditEvent]{
	from:  "events e",
	alias: "e",
	joins: `JOIN accounts a ON a.id = e.account_id JOIN domains d ON d.id = a.domain_id`,
	row:   eventColumns,
	fields: func(e *cks.AuditEvent) []any {
		return append([]any{&e.ID, &e.Seq, &e.Type, &e.Level, &e.State, &e.Description, &e.Username,
			&e.ParentID, &e.ResourceType, &e.ResourceID, &e.ResourceName, &e.Created}, accountFields(&e.Account)...)
	},
	newest: true,
}

// EventByRef returns the event with that uuid or internal number; else
// cks.NotFound.
func (q *Queries) EventByRef(ctx context.Context, ref string) (cks.AuditEvent, error) {
	return eventRows.ref(ctx, q, "event", ref, "")
}

// Events returns a page of the events, the newest first, and the number of all
// that match. An empty accountID stands for all accounts.
func (q *Queries) Events(ctx context.Context, f cks.EventFilter, accountID string) ([]cks.AuditEvent, int, error) {
	w := &filter{}
	w.ref("e", f.ID)
	if id := parseUUID(f.StartID); id != "" {
		w.and("(e.id = ? OR e.start_id = ?)", id)
	}
	w.text("e.type = upper(?)", f.Type)
	w.text("e.level = upper(?)", f.Level)
	w.text(contains("e.type || ' ' || e.level || ' ' || e.description"), f.Keyword)
	if !f.Since.IsZero() {
		w.and("e.created >= ?", f.Since)
	}
	if !f.Until.IsZero() { // dates are shown without fractions: the whole second counts
		w.and("e.created < ?::timestamptz + interval '1 second'", f.Until)
	}
	w.id("e.resource_id", f.ResourceID)
	w.text("lower(e.resource_type) = lower(?)", f.ResourceType)
	w.id("e.account_id", accountID)
	w.text("e.account_id = (SELECT id FROM accounts WHERE name = ?)", f.Account)
	w.reach("e.account_id", f.Reach)
	return eventRows.page(ctx, q, w, f.Page)
}

// PurgeEvents deletes events that are older than age, at most n and the oldest
// first, and returns how many. Servers that do it at once share the work.
func (q *Queries) PurgeEvents(ctx context.Context, age time.Duration, n int) (int64, error) {
	return q.exec(ctx, `
		DELETE FROM events WHERE id IN (
			SELECT id FROM events WHERE created < now() - $1::interval ORDER BY created LIMIT $2 FOR UPDATE SKIP LOCKED)`, age, n)
}
