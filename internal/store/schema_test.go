package store_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("differs (-want +got):\n%s", d)
	}
}

// The schema itself refuses rows that no code may write.
//
// Keeps: §4/held, §8.2/external.
// Keeps: §2.3/jobstatus.
// Keeps: §5.9/no-dead-end, §6/never, #14609.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	v := storetest.Fixture(t, st, storetest.Spec{Workers: 1, External: 1})
	j := must[cks.Job](t)(st.AddJob(t.Context(), newJob(v)))
	for name, change := range map[string]string{
		"Scaling without hold":        `UPDATE clusters SET state = 'Scaling'`,
		"hold without Scaling":        `UPDATE clusters SET held_by = '` + j.ID + `'`,
		"unknown cluster state":       `UPDATE clusters SET state = 'Sleeping'`,
		"Destroyed but not removed":   `UPDATE clusters SET state = 'Destroyed'`,
		"removed but not Destroyed":   `UPDATE clusters SET removed = now()`,
		"autoscaling without bounds":  `UPDATE clusters SET autoscaling = true`,
		"bounds without autoscaling":  `UPDATE clusters SET min_size = 1, max_size = 2`,
		"negative size":               `UPDATE clusters SET size = -1`,
		"cluster without name":        `UPDATE clusters SET name = ''`,
		"finished without completed":  `UPDATE jobs SET status = 1, result = '{}'`,
		"completed but pending":       `UPDATE jobs SET completed = now()`,
		"succeeded without result":    `UPDATE jobs SET status = 1, completed = now()`,
		"failed without text":         `UPDATE jobs SET status = 2, completed = now()`,
		"failed with result":          `UPDATE jobs SET status = 2, completed = now(), error_text = 'x', result = '{}'`,
		"pending with text":           `UPDATE jobs SET error_text = 'x'`,
		"finished but owned":          `UPDATE jobs SET status = 2, completed = now(), error_text = 'x', owner = 'me'`,
		"owned by nobody":             `UPDATE jobs SET owner = ''`,
		"unknown status":              `UPDATE jobs SET status = 3, completed = now()`,
		"job of a cluster and a VM":   `UPDATE jobs SET vm_id = (SELECT id FROM vms LIMIT 1)`,
		"negative tries":              `UPDATE jobs SET tries = -1`,
		"unknown VM state":            `UPDATE vms SET state = 'Sleeping'`,
		"unknown phase":               `UPDATE vms SET phase = 'lost'`,
		"unknown role":                `UPDATE vms SET role = 'boss'`,
		"external control node":       `UPDATE vms SET external = true WHERE role = 'control'`,
		"chosen by no job":            `UPDATE vms SET phase = 'chosen'`,
		"leaving by no job":           `UPDATE vms SET phase = 'leaving'`,
		"VM of nobody":                `UPDATE vms SET cluster_id = NULL`,
		"own VM without zone":         `UPDATE vms SET account_id = (SELECT id FROM accounts LIMIT 1), network_id = id`,
		"own VM without network":      `UPDATE vms SET account_id = (SELECT id FROM accounts LIMIT 1), zone_id = (SELECT id FROM zones LIMIT 1)`,
		"cluster's own VM linked":     `UPDATE vms SET linked = true`,
		"VM of an empty name":         `UPDATE vms SET host_name = ''`,
		"account without key":         `UPDATE accounts SET api_key = ''`,
		"version that is no version":  `UPDATE kubernetes_versions SET version = 'v1.33'`,
		"offering of negative memory": `UPDATE service_offerings SET memory_mb = -1`,
		"event of no type":            `UPDATE events SET type = ''`,
		"event of unknown level":      `UPDATE events SET level = 'DEBUG'`,
		"event in unknown state":      `UPDATE events SET state = 'Lost'`,
		"event on a thing of no type": `UPDATE events SET resource_type = NULL`,
		"cancelled by nobody":         `UPDATE jobs SET cancelled = now()`,
	} {
		_, err := st.Pool().Exec(t.Context(), change)
		if pe, ok := errors.AsType[*pgconn.PgError](err); !ok || pe.Code != "23514" {
			t.Errorf("%s: error is %v, want a broken CHECK", name, err)
		}
	}
}

func texts[T ~string](words []T) (list []string) {
	for _, w := range words {
		list = append(list, string(w))
	}
	return list
}

var quoted = regexp.MustCompile(`'([^']+)'`)

// The words in the schema are those of package cks.
//
// Keeps: §4/words, §4/held, §8.2/roles, §8.7/states.
func TestSchemaKnowsTheSameWords(t *testing.T) {
	t.Parallel()
	st := storetest.New(t)
	rows, err := st.Pool().Query(t.Context(), `
		SELECT conrelid::regclass || ': ' || pg_get_constraintdef(oid) FROM pg_constraint
		WHERE contype = 'c' AND conrelid IN ('clusters'::regclass, 'vms'::regclass, 'events'::regclass)`)
	ok(t, err)
	checks := must[[]string](t)(pgx.CollectRows(rows, pgx.RowTo[string]))
	words := func(start string) (words []string) {
		t.Helper()
		i := slices.IndexFunc(checks, func(c string) bool { return strings.HasPrefix(c, start) })
		if i < 0 {
			t.Fatalf("no CHECK starts with %q in %q", start, checks)
		}
		for _, m := range quoted.FindAllStringSubmatch(checks[i], -1) {
			words = append(words, m[1])
		}
		slices.Sort(words)
		return words
	}
	var states, busy, vmStates []string
	for _, s := range cks.States {
		states = append(states, string(s))
		if s.Busy() {
			busy = append(busy, string(s))
		}
	}
	for _, s := range cks.VMStates {
		vmStates = append(vmStates, string(s))
	}
	for _, tt := range []struct {
		start string
		want  []string
	}{
		{"events: CHECK ((level = ANY", texts(cks.Levels)},
		{"events: CHECK ((state = ANY", texts(cks.Progresses)},
		{"clusters: CHECK ((state = ANY", states},
		{"clusters: CHECK (((held_by IS NOT NULL) = (state = ANY", busy},
		{"vms: CHECK ((state = ANY", vmStates},
		{"vms: CHECK ((role = ANY", []string{string(cks.Control), string(cks.Etcd), string(cks.Worker)}},
		{"vms: CHECK ((phase = ANY", []string{string(cks.Chosen), string(cks.Doomed), string(cks.Leaving), string(cks.Member)}},
	} {
		slices.Sort(tt.want)
		diff(t, tt.want, words(tt.start))
	}
}
