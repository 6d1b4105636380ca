package http

import (
	"context"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func (s *server) QueryAsyncJobResult(ctx context.Context, req api.QueryAsyncJobResultRequestObject) (api.QueryAsyncJobResultResponseObject, error) {
	job, err := s.svc.Job(ctx, callerFrom(ctx), req.Params.Jobid)
	if err != nil {
		return nil, err
	}
	return api.QueryAsyncJobResult200JSONResponse{Queryasyncjobresultresponse: encodeJob(job)}, nil
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
