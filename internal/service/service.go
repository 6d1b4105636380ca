// Package service has one method per command: it validates what was asked and
// records it. What is recorded as a job is carried out elsewhere; nothing here
// acts on the world, and no transaction waits for anything but the database.
package service

import (
	"context"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// Settings are the server's settings that the rules need, as its environment has
// them. Some of them updateConfiguration can change.
type Settings struct {
	MaxSize        int           // most workers and control nodes of one cluster
	ScaleTimeout   time.Duration // how long a job may take, unless one of the next applies
	StartTimeout   time.Duration // a start, a create or a stop of a cluster
	UpgradeTimeout time.Duration // an upgrade
	AddTimeout     time.Duration // adding external nodes; 0 = ScaleTimeout
	RemoveTimeout  time.Duration // removing external nodes; 0 = ScaleTimeout
	DrainTimeout   time.Duration // one attempt to drain a node
	EndpointURL    string        // where clusters reach this server; autoscaling needs it
	EnforcePost    bool          // changes have to be sent by POST
	ServerID       string        // this process, as jobs show it while it executes them
	// Steps and UndoSteps give the names of the steps of a job of a kind, and of
	// those that follow when it is given up. nil = jobs show no steps.
	Steps, UndoSteps func(cks.Kind) []string
}

// Simulator is a world that can be asked to misbehave and to show itself.
type Simulator interface {
	Configure(ctx context.Context, f cks.Fault) error
	Query(ctx context.Context, clusterID string) (cks.Simulation, error)
}

// Service answers commands. It is safe for concurrent use, and any number of
// services may share one database.
type Service struct {
	store *store.Store
	sim   Simulator // nil: the world is not simulated
	set   Settings
	keys  *keyring
	lobby *lobby

	passwords checker
}

// New returns a service on st. sim is nil when the world is not simulated.
func New(st *store.Store, sim Simulator, set Settings) *Service {
	return &Service{store: st, sim: sim, set: set, keys: newKeyring(), lobby: newLobby(), passwords: newChecker()}
}

// Ready fails with cks.Unavailable while the database cannot be reached or does
// not have the tables that this program needs.
func (s *Service) Ready(ctx context.Context) error {
	version, dirty, err := s.store.SchemaVersion(ctx)
	switch {
	case err != nil:
		return err
	case dirty, version < store.LatestVersion():
		return cks.Errorf(cks.Unavailable, "database schema is at version %d (unfinished: %t) and has to be at %d",
			version, dirty, store.LatestVersion())
	}
	return nil
}
