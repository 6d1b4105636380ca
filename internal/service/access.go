package service

import (
	"context"
	"strconv"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// permit refuses with cks.Denied what neither belongs to caller or to a project
// of his, nor is shown to an administrator.
func permit(caller cks.Account, ownerID string) error {
	if caller.Owns(ownerID) {
		return nil
	}
	return cks.Errorf(cks.Denied, "Caller does not have permission to operate with provided resource.")
}

// cluster resolves ref, sent as the parameter param, for a caller who may use
// the cluster. Removed clusters resolve too.
func cluster(ctx context.Context, q *store.Queries, caller cks.Account, param, ref string) (cks.Cluster, error) {
	c, err := q.ClusterByRef(ctx, ref)
	if err != nil {
		return cks.Cluster{}, unknown(err, param, ref)
	}
	if err := permit(caller, c.AccountID); err != nil {
		return c, &refusal{err, c.ID, ""}
	}
	return c, nil
}

// vm resolves ref, sent as the parameter param, for a caller who may use the
// VM. Removed VMs resolve too.
func vm(ctx context.Context, q *store.Queries, caller cks.Account, param, ref string) (cks.VM, error) {
	v, err := q.VMByRef(ctx, ref)
	if err != nil {
		return cks.VM{}, unknown(err, param, ref)
	}
	owner := v.AccountID
	if owner == "" {
		c, err := q.ClusterByRef(ctx, v.ClusterID)
		if err != nil {
			return cks.VM{}, err
		}
		owner = c.AccountID
	}
	if err := permit(caller, owner); err != nil {
		return v, &refusal{err, "", v.ID}
	}
	return v, nil
}

// unknown turns the store's cks.NotFound into the text by which clients know
// that something is gone; every other error stays as it is.
func unknown(err error, param, ref string) error {
	if cks.CodeOf(err) == cks.NotFound {
		return cks.UnknownEntity(param, ref)
	}
	return err
}

// number reports whether ref is an internal number rather than a uuid.
// CloudStack passes numbers on unchecked, so the command itself finds out that
// one names nothing.
func number(ref string) bool {
	_, err := strconv.ParseInt(ref, 10, 64)
	return err == nil
}

// scope says whose things a list shows: one account's, or with "" everybody's.
// everything is what an administrator has asked to see beyond his own
// (spec/cks.md §2.6).
func scope(ctx context.Context, q *store.Queries, caller cks.Account, name string, everything bool) (string, error) {
	switch {
	case name == "" && caller.Admin && everything:
		return "", nil
	case name == "" || name == caller.Name:
		return caller.ID, nil
	case !caller.Admin:
		return "", permit(caller, "")
	}
	owner, err := q.AccountByName(ctx, name)
	if cks.CodeOf(err) == cks.NotFound {
		return "", cks.Errorf(cks.Invalid, "Unable to find account by name %s", name)
	}
	return owner.ID, err
}
