package service

import (
	"context"
	"errors"

	"ckscale/internal/cks"
	"ckscale/internal/store"
)

// Clusters lists clusters, with how many there are on all pages. An id that
// names nothing is cks.UnknownID, somebody else's is cks.Denied.
func (s *Service) Clusters(ctx context.Context, caller cks.Account, f cks.ClusterFilter) ([]cks.ClusterView, int, error) {
	if f.Type != "" && f.Type != "CloudManaged" && f.Type != "ExternalManaged" {
		return nil, 0, cks.Errorf(cks.Failed,
			"Unable to resolve cluster type %s to a supported value (CloudManaged, ExternalManaged)", f.Type)
	}
	if f.ID != "" {
		c, err := cluster(ctx, s.store.Queries, caller, "id", f.ID)
		if err != nil {
			return nil, 0, err
		}
		f.ID = c.ID
	}
	var err error
	f.Reach, err = reach(ctx, s.store.Queries, caller, asked{f.Account, f.Project, f.ListAll || f.ID != "", f.ID != ""})
	if cks.CodeOf(err) == cks.Invalid { // this command wraps it (cks.md §2.6)
		return nil, 0, cks.Errorf(cks.Failed, "%w", err)
	}
	if err != nil {
		return nil, 0, err
	}
	return s.store.Views(ctx, f, "")
}

// VMs lists VMs, with how many there are on all pages. An id that names
// nothing is cks.UnknownID, somebody else's is cks.Denied.
func (s *Service) VMs(ctx context.Context, caller cks.Account, f cks.VMFilter) ([]cks.VMView, int, error) {
	f, err := s.resolveVMFilter(ctx, caller, f)
	if err != nil {
		return nil, 0, err
	}
	named := f.ID != "" || len(f.IDs) > 0 || f.Cluster != ""
	f.Reach, err = reach(ctx, s.store.Queries, caller, asked{f.Account, f.Project, f.ListAll || named, named})
	if err != nil {
		return nil, 0, err
	}
	return s.store.VMViews(ctx, f, "")
}

// resolveVMFilter returns f with every id in its canonical form.
func (s *Service) resolveVMFilter(ctx context.Context, caller cks.Account, f cks.VMFilter) (cks.VMFilter, error) {
	q := s.store.Queries
	if f.ID != "" {
		v, err := vm(ctx, q, caller, "id", f.ID)
		if err != nil {
			return f, err
		}
		f.ID = v.ID
	}
	ids, err := vmIDs(ctx, q, caller, f.IDs)
	if err != nil {
		return f, err
	}
	f.IDs = ids
	if f.Cluster != "" {
		c, err := cluster(ctx, q, caller, "kubernetesclusterid", f.Cluster)
		if err != nil {
			return f, err
		}
		f.Cluster = c.ID
	}
	if f.ZoneID != "" {
		zone, err := q.Zone(ctx, f.ZoneID)
		if err != nil {
			return f, unknown(err, "zoneid", f.ZoneID)
		}
		f.ZoneID = zone.ID
	}
	return f, nil
}

// vmIDs resolves refs, each of them once.
func vmIDs(ctx context.Context, q *store.Queries, caller cks.Account, refs []string) ([]string, error) {
	var ids []string
	seen := map[string]bool{}
	for _, ref := range refs {
		if seen[ref] {
			continue
		}
		seen[ref] = true
		v, err := vm(ctx, q, caller, "ids", ref)
		if err != nil {
			return nil, err
		}
		ids = append(ids, v.ID)
	}
	return ids, nil
}

// Jobs lists the jobs that are not finished, oldest first.
func (s *Service) Jobs(ctx context.Context, caller cks.Account, f cks.JobFilter) ([]cks.Job, int, error) {
	owner, err := scope(ctx, s.store.Queries, caller, f.Account, f.ListAll)
	if err != nil {
		return nil, 0, err
	}
	jobs, total, err := s.store.Jobs(ctx, f, owner)
	for i := range jobs {
		jobs[i] = s.shown(jobs[i])
	}
	return jobs, total, err
}

// shown is job with how far it has come.
func (s *Service) shown(job cks.Job) cks.Job {
	job.Steps, job.Message = job.Progress(s.steps(job.Kind), s.undoSteps(job.Kind))
	return job
}

// steps are the names of the steps of a job of this kind.
func (s *Service) steps(kind cks.Kind) []string {
	if s.set.Steps == nil {
		return nil
	}
	return s.set.Steps(kind)
}

// undoSteps are the names of those that follow when it is given up.
func (s *Service) undoSteps(kind cks.Kind) []string {
	if s.set.UndoSteps == nil {
		return nil
	}
	return s.set.UndoSteps(kind)
}

// Job is one job; clients poll it, so it is one read. Of another account's job
// a caller learns that there is one (CloudStack does the same), no more.
func (s *Service) Job(ctx context.Context, caller cks.Account, jobID string) (cks.Job, error) {
	job, err := s.store.Job(ctx, jobID)
	if err != nil {
		return cks.Job{}, unknown(err, "jobid", jobID)
	}
	if permit(caller, job.Account.ID) != nil {
		return cks.Job{}, cks.Errorf(cks.Denied, "Account %s is not authorized to see job id=%d", caller.Name, job.Seq)
	}
	return s.shown(job), nil
}

// known fails with cks.UnknownID when ref, unless it is empty, names nothing.
func known[T any](ctx context.Context, param, ref string, find func(context.Context, string) (T, error)) error {
	if ref == "" {
		return nil
	}
	_, err := find(ctx, ref)
	return unknown(err, param, ref)
}

// Offerings lists service offerings.
func (s *Service) Offerings(ctx context.Context, f cks.CatalogFilter) ([]cks.Offering, int, error) {
	if err := known(ctx, "id", f.ID, s.store.Offering); err != nil {
		return nil, 0, err
	}
	return s.store.Offerings(ctx, f)
}

// Versions lists the supported Kubernetes versions.
func (s *Service) Versions(ctx context.Context, f cks.CatalogFilter) ([]cks.KubernetesVersion, int, error) {
	if err := errors.Join(known(ctx, "id", f.ID, s.store.Version), known(ctx, "zoneid", f.ZoneID, s.store.Zone)); err != nil {
		return nil, 0, err
	}
	return s.store.Versions(ctx, f)
}

// Zones lists zones.
func (s *Service) Zones(ctx context.Context, f cks.CatalogFilter) ([]cks.Zone, int, error) {
	if err := known(ctx, "id", f.ID, s.store.Zone); err != nil {
		return nil, 0, err
	}
	return s.store.Zones(ctx, f)
}
