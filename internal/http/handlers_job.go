package http

import (
	"context"
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) QueryAsyncJobResult(ctx context.Context, req api.QueryAsyncJobResultRequestObject) (api.QueryAsyncJobResultResponseObject, error) {
	job, err := s.job(ctx, req.Params)
	if err != nil {
		return nil, err
	}
	return api.QueryAsyncJobResult200JSONResponse{Queryasyncjobresultresponse: encodeJob(job)}, nil
}

// maxWait is how many seconds a request may wait for a job to end.
const maxWait = 60

// job reads the job at once, or when it has ended.
func (s *server) job(ctx context.Context, p api.QueryAsyncJobResultParams) (cks.Job, error) {
	x := exchangeFrom(ctx)
	if p.Wait == nil || *p.Wait == 0 {
		return s.svc.Job(ctx, x.caller, p.Jobid)
	}
	if *p.Wait < 0 || *p.Wait > maxWait {
		return cks.Job{}, x.command.unable("invalid value %d for parameter wait: it is from 0 to %d seconds", *p.Wait, maxWait)
	}
	wait := time.Duration(*p.Wait) * time.Second
	ctx, done := x.longer(wait)
	defer done()
	s.metrics.waits.Inc()
	defer s.metrics.waits.Dec()
	return s.svc.AwaitJob(ctx, x.caller, p.Jobid, wait)
}

func (s *server) ListAsyncJobs(ctx context.Context, req api.ListAsyncJobsRequestObject) (api.ListAsyncJobsResponseObject, error) {
	p := req.Params
	if err := checkScope(callerFrom(ctx), p.Domainid, ""); err != nil {
		return nil, err
	}
	filter := cks.JobFilter{
		Keyword: p.Keyword,
		Server:  p.Managementserverid,
		Account: p.Account,
		ListAll: p.Listall,
		Page:    decodePage(p.Page, p.Pagesize),
	}
	if p.Startdate != nil {
		filter.Since = *p.Startdate
	}
	jobs, total, err := s.svc.Jobs(ctx, callerFrom(ctx), filter)
	if err != nil {
		return nil, err
	}
	return api.ListAsyncJobs200JSONResponse{Listasyncjobsresponse: api.AsyncJobs{
		Count:     total,
		Asyncjobs: each(jobs, encodeJob),
	}}, nil
}

func (s *server) CancelAsyncJob(ctx context.Context, req api.CancelAsyncJobRequestObject) (api.CancelAsyncJobResponseObject, error) {
	if err := s.svc.CancelJob(ctx, callerFrom(ctx), req.Params.Jobid); err != nil {
		return nil, err
	}
	return api.CancelAsyncJob200JSONResponse{Cancelasyncjobresponse: api.Success{Success: true}}, nil
}
