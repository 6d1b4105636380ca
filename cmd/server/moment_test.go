package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// moment is a point in the life of the only live job at which its server can
// be killed. The server knows nothing of it: triggers that the test puts into
// the database make the server's session wait for a lock that the test holds.
type moment struct {
	step string
	// recorded false: the step has done all it does, in the world and, if it
	// writes rows, in its transaction, of which only the commit is missing.
	//
	// recorded true: that is committed, and the job's next deed has not
	// happened: an order to the world, or a write to the job's row (the next
	// step's record, a wait, the end). The next step may have looked around.
	recorded bool
	// vmID is the worker that is being removed at that moment; "" for any: then
	// the first time that the job comes by.
	vmID string
	// undo: of the plan that follows when the job is given up. Both plans may
	// have steps of one name.
	undo bool
}

func (m moment) String() string {
	if m.recorded {
		return m.step + " is recorded"
	}
	return m.step + " has acted"
}

// standLock is the advisory lock that a server waits for at a moment.
const standLock = 0x7374616e64

// What makes a server wait at a moment: {LOCK} is the lock, {AT} says that the row
// NEW of a job has come to the moment's step.
//
// What concerns a commit is done by deferred triggers: they fire when all else
// in the transaction is done. A step that ends a loop is overwritten there by
// the one to go back to, and then it is not recorded. lock_timeout is the
// pool's; it would end the wait, for a new try.
const (
	stand = `
		CREATE TABLE recorded (step text);
		CREATE FUNCTION stand() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$ BEGIN
			PERFORM pg_advisory_xact_lock({LOCK});
			RETURN NEW;
		END $$;
		CREATE FUNCTION stand_after() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$ BEGIN
			IF EXISTS (SELECT FROM recorded) THEN
				PERFORM pg_advisory_xact_lock({LOCK});
			END IF;
			RETURN NEW;
		END $$;
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO recorded SELECT step FROM jobs WHERE id = NEW.id AND step = NEW.step;
			RETURN NULL;
		END $$;`
	standBeforeRecord = `
		CREATE CONSTRAINT TRIGGER stand AFTER UPDATE OF step ON jobs DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN ({AT} AND OLD.step <> NEW.step) EXECUTE FUNCTION stand();`
	// Every order to the simulated cloud begins with being counted, and only
	// the job gives any while it holds the cluster.
	standAfterRecord = `
		CREATE CONSTRAINT TRIGGER note AFTER UPDATE OF step ON jobs DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN ({AT} AND OLD.step <> NEW.step) EXECUTE FUNCTION note();
		CREATE TRIGGER stand BEFORE UPDATE ON jobs FOR EACH ROW WHEN (OLD.owner IS NOT NULL
			AND (NEW.step <> OLD.step OR NEW.status <> 0 OR NEW.owner IS NULL)) EXECUTE FUNCTION stand_after();
		CREATE TRIGGER stand BEFORE UPDATE ON world_documents FOR EACH ROW
			WHEN (NEW.key LIKE 'simulator/calls/%') EXECUTE FUNCTION stand_after();`
	standNoMore = `
		DROP FUNCTION stand, stand_after, note CASCADE;
		DROP TABLE recorded`
)

// sql fills in what statements leave open.
func (m moment) sql(statements string) string {
	at := fmt.Sprintf("NEW.step = '%s' AND (NEW.failure <> '') = %t", m.step, m.undo)
	if m.vmID != "" {
		at += fmt.Sprintf(" AND NEW.notes->>'vmid' = '%s'", m.vmID)
	}
	return strings.NewReplacer("{LOCK}", fmt.Sprint(standLock), "{AT}", at).Replace(statements)
}

// gate is a moment at which servers wait.
type gate struct {
	testing.TB
	moment moment
	db     *pgx.Conn
}

// shut closes the gate at m. Jobs that come after are stopped there.
func shut(t testing.TB, url string, m moment) *gate {
	t.Helper()
	g := &gate{t, m, connect(t, url)}
	g.exec("SELECT pg_advisory_lock($1)", int64(standLock))
	triggers := standBeforeRecord
	if m.recorded {
		triggers = standAfterRecord
	}
	g.exec(m.sql(stand + triggers))
	return g
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return db
}

func (g *gate) exec(sql string, args ...any) {
	g.Helper()
	if _, err := g.db.Exec(g.Context(), sql, args...); err != nil {
		g.Fatalf("%s: %v", sql, err)
	}
}

// ask returns the one value that a query gives.
func ask[T any](t testing.TB, db *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// reached waits until a server stands at the gate.
func (g *gate) reached(c *client) {
	g.Helper()
	c.until(g.moment.String(), time.Minute, func() bool {
		return ask[bool](g, g.db, `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`)
	})
}

// buried waits until nothing that a killed server had begun can still happen,
// and checks that the database is at the moment. Sessions outlive the process
// for a while; the one at the gate would for ever.
func (g *gate) buried(c *client) {
	g.Helper()
	c.until("the sessions of the dead server end", time.Minute, func() bool {
		return ask[int](g, g.db, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'ckscale'`) == 0
	})
	step := ask[string](g, g.db, "SELECT step FROM jobs WHERE status = 0")
	if (step == g.moment.step) != g.moment.recorded {
		g.Errorf("at %s, %q is recorded", g.moment, step)
	}
}

// open lets everybody pass.
func (g *gate) open() {
	g.Helper()
	g.exec(standNoMore)
	g.exec("SELECT pg_advisory_unlock($1)", int64(standLock))
}

// ended waits for the end of a job and returns it. It asks the database, which
// costs less than the API.
func (g *gate) ended(c *client, job string) answer {
	g.Helper()
	c.until("job ended", time.Minute, func() bool {
		return ask[bool](g, g.db, "SELECT status <> 0 FROM jobs WHERE id = $1", job)
	})
	return c.ended(job)
}
