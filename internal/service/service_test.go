package service

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// A client that polls costs one read per poll, not two.
func TestKeysAreRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, reads := newKeyring(), 0
		lookUp := func(_ context.Context, key string) (cks.Account, string, error) {
			reads++
			if key == "bad" {
				return cks.Account{}, "", cks.Errorf(cks.NotFound, "no such key")
			}
			return cks.Account{Name: key}, "secret", nil
		}
		find := func(key string, wantReads int) {
			t.Helper()
			a, secret, err := k.find(t.Context(), key, lookUp)
			if key != "bad" && (err != nil || a.Name != key || secret != "secret") {
				t.Fatalf("found %+v, %q, %v", a, secret, err)
			}
			if reads != wantReads {
				t.Fatalf("%d reads, want %d", reads, wantReads)
			}
		}
		find("a", 1)
		<-time.After(keyLife - 1) // by the clock of the bubble
		find("a", 1)
		<-time.After(1)
		find("a", 2)
		find("bad", 3)
		find("bad", 4) // not remembered: the account may be made any moment
	})
}

// What is remembered of a key is as old as the question: an answer that took
// long is not good for longer.
func TestKeysAreRememberedFromWhenTheyWereAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, reads := newKeyring(), 0
		slow := func(context.Context, string) (cks.Account, string, error) {
			reads++
			<-time.After(keyLife - 1) // between the database's word and ours
			return cks.Account{}, "", nil
		}
		for want := 1; want <= 2; want++ {
			if _, _, err := k.find(t.Context(), "a", slow); err != nil || reads != want {
				t.Fatalf("%d reads, %v", reads, err)
			}
			<-time.After(1)
		}
	})
}

// However many keys there are, memory is bounded.
func TestKeyringIsBounded(t *testing.T) {
	t.Parallel()
	k := newKeyring()
	for i := range 3 * keyRoom {
		_, _, err := k.find(t.Context(), strconv.Itoa(i), func(context.Context, string) (cks.Account, string, error) {
			return cks.Account{}, "", nil
		})
		if err != nil || len(k.keys) > keyRoom {
			t.Fatalf("%d keys, %v", len(k.keys), err)
		}
	}
}

// Making room spares the keys that are still good when others have run out.
func TestKeyringDropsOldKeysFirst(t *testing.T) {
	t.Parallel()
	k := newKeyring()
	for i := range keyRoom - 1 {
		k.remember(strconv.Itoa(i), knownKey{until: time.Now().Add(-time.Second)})
	}
	k.remember("good", knownKey{until: time.Now().Add(time.Hour)})
	k.remember("new", knownKey{until: time.Now().Add(time.Hour)})
	if _, ok := k.remembered("good"); !ok || len(k.keys) != 2 {
		t.Errorf("%d keys, the good one among them: %t", len(k.keys), ok)
	}
}

// A key is that of its account, known at once; any other is unauthorized.
//
// Keeps: §1.7/unknown-key, §1.7/key-access.
func TestAuthenticate(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	other := s.account("other", false)
	for range 2 {
		a, secret, err := s.Authenticate(t.Context(), "key-of-other")
		if err != nil || a != other || secret != "secret-of-other" {
			t.Fatalf("account %+v, %v", a, err)
		}
	}
	_, _, err := s.Authenticate(t.Context(), "nobody's")
	coded(t, err, cks.Unauthorized, "unable to verify user credentials and/or request signature")
	s.account("late", false)
	if _, _, err := s.Authenticate(t.Context(), "key-of-late"); err != nil {
		t.Error(err)
	}
}

// simulator remembers what it was asked.
type simulator struct {
	fault   cks.Fault
	cluster string
}

func (s *simulator) Configure(_ context.Context, f cks.Fault) error {
	s.fault = f
	return nil
}

func (s *simulator) Query(_ context.Context, clusterID string) (cks.Simulation, error) {
	s.cluster = clusterID
	return cks.Simulation{}, nil
}

// spec/cks.md §1.9, design.md §6.
func TestSimulatorIsForAdministrators(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	admin, sim := s.account("root", true), &simulator{}
	simulated := New(s.st, sim, settings)
	calls := func(svc *Service, caller cks.Account, f cks.Fault) error {
		err := svc.ConfigureSimulator(t.Context(), caller, f)
		_, err2 := svc.QuerySimulator(t.Context(), caller, f.ClusterID)
		if (err == nil) != (err2 == nil) || cks.CodeOf(err) != cks.CodeOf(err2) {
			t.Errorf("configure: %v, query: %v", err, err2)
		}
		return err
	}
	coded(t, calls(simulated, s.owner, cks.Fault{}), cks.Unsupported,
		"The API [configureSimulator] does not exist or is not available for the account for user id ["+s.owner.UserID+"].")
	coded(t, calls(s.Service, admin, cks.Fault{}), cks.Unsupported, "")

	nobody := uuid.NewString()
	coded(t, calls(simulated, admin, cks.Fault{ClusterID: nobody}), cks.UnknownID, unknownText("clusterid", nobody))
	err := simulated.ConfigureSimulator(t.Context(), admin, cks.Fault{VMID: nobody})
	coded(t, err, cks.UnknownID, unknownText("vmid", nobody))

	v := s.workers()[0]
	want := cks.Fault{Operation: "vm.create", Value: "hang", ClusterID: v.ClusterID, VMID: v.ID}
	sent := want
	sent.ClusterID, sent.VMID = number64(s.view.Cluster.Seq), number64(v.Seq)
	if err := calls(simulated, admin, sent); err != nil || sim.fault != want || sim.cluster != v.ClusterID {
		t.Errorf("simulator was asked %+v and for %q, %v", sim.fault, sim.cluster, err)
	}
	if err := calls(simulated, admin, cks.Fault{}); err != nil || sim.cluster != "" {
		t.Errorf("simulator was asked for %q, %v", sim.cluster, err)
	}
}

func TestCatalogs(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	if zones, n, err := s.Zones(t.Context(), cks.CatalogFilter{ID: s.view.Zone.ID}); err != nil || n != 1 || zones[0] != s.view.Zone {
		t.Errorf("%d zones, %v", n, err)
	}
	if versions, n, err := s.Versions(t.Context(), cks.CatalogFilter{ID: s.view.Version.ID}); err != nil || n != 1 || versions[0].ID != s.view.Version.ID {
		t.Errorf("%d versions, %v", n, err)
	}
	id := s.view.Cluster.DefaultOffering
	if offerings, n, err := s.Offerings(t.Context(), cks.CatalogFilter{ID: id}); err != nil || n != 1 || offerings[0].ID != id {
		t.Errorf("%d offerings, %v", n, err)
	}
}

// An id that names nothing is told as such, as everywhere (cks.md §1.3).
func TestUnknownCatalogIDs(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	const nothing = "99999999-0000-4000-8000-000000000000"
	f := cks.CatalogFilter{ID: nothing}
	_, _, zones := s.Zones(t.Context(), f)
	_, _, offerings := s.Offerings(t.Context(), f)
	_, _, versions := s.Versions(t.Context(), f)
	_, _, ofZone := s.Versions(t.Context(), cks.CatalogFilter{ZoneID: nothing})
	for _, err := range []error{zones, offerings, versions, ofZone} {
		if cks.CodeOf(err) != cks.UnknownID {
			t.Errorf("error is %v", err)
		}
	}
}

// Ready means that the database is there and has our tables.
func TestReady(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	st := must(store.Open(t.Context(), url))(t)
	t.Cleanup(st.Close)
	svc := New(st, nil, settings)
	coded(t, svc.Ready(t.Context()), cks.Unavailable, "")
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if err := svc.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := svc.Ready(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
