package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ckscale/internal/cks"
)

// Of a request's parameters only what the job needs is kept. CloudStack keeps
// all of them with the job; here no API key, secret or signature is in any
// table but that of the accounts, which has the keys (cks.md §1.11).
//
// Keeps: §1.11/stored-parameters.
func TestJobsKeepNoCredentials(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	db := connect(t, l.url)
	id := l.id()
	up := pairs([]string{"id=" + id, "size=3", "signatureVersion=3", "expires=2099-01-01T00:00:00Z", "sessionkey=our-session-key"})
	for _, e := range spellings {
		req, err := e.write(t.Context(), l.client.url, l.keys, "scaleKubernetesCluster", up)
		if err != nil {
			t.Fatal(err)
		}
		r := l.fetch(req)
		if r.status != http.StatusOK {
			t.Fatalf("%s: %d %s", e.name, r.status, r.raw)
		}
		l.polled(dialects[0], r.answer.text("jobid"))
	}
	l.refused("for size, 0", "scaleKubernetesCluster", "id="+id, "size=0")
	tables := strings.Fields(ask[string](t, db,
		`SELECT string_agg(table_name, ' ') FROM information_schema.tables WHERE table_schema = 'public' AND table_name <> 'accounts'`))
	kept := ""
	for _, name := range tables {
		kept += ask[string](t, db, fmt.Sprintf(`SELECT coalesce(string_agg(to_jsonb(r)::text, ' '), '') FROM %q r`, name))
	}
	if !strings.Contains(kept, id) || len(tables) < 5 {
		t.Fatalf("tables %q without the cluster", tables)
	}
	for _, secret := range []string{adminKeys.API, adminKeys.Secret, l.keys.signature(l.keys.sign("scaleKubernetesCluster", up)[:len(up)+3]),
		"signature", "our-session-key", "2099-01-01"} {
		if strings.Contains(strings.ToLower(kept), strings.ToLower(secret)) {
			t.Errorf("%q is kept", secret)
		}
	}
}

// A service offering that was removed is as unknown as one that never was: 431
// at once. CloudStack finds the row and says so in the job (cks.md §1.3;
// design.md §3). The uuid of a removed cluster or VM does lead to a job.
//
// Keeps: §1.3/uuid-removed-offering.
func TestRemovedOfferingIsUnknown(t *testing.T) {
	t.Parallel()
	l := newLab(t, nil)
	db := connect(t, l.url)
	large := l.call("listServiceOfferings", "name=large").list("serviceoffering")[0].text("id")
	if _, err := db.Exec(t.Context(), "UPDATE service_offerings SET removed = now() WHERE id = $1", large); err != nil {
		t.Fatal(err)
	}
	status, a := l.send("scaleKubernetesCluster", "id="+l.id(), "serviceofferingid="+large)
	want := "Unable to execute API command scalekubernetescluster due to invalid value. " + cks.UnknownEntity("serviceofferingid", large).Message
	if status != 431 || a.text("errortext") != want {
		t.Errorf("%d %v", status, a)
	}
	l.refused("Cannot find a service offering with ID "+large, "scaleKubernetesCluster", "id="+l.id(),
		"nodeofferings[0].node=worker", "nodeofferings[0].offering="+large)
}
