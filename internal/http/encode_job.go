package http

import (
	"time"

	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

// encodeAccepted is the answer to an asynchronous command: the jobid and
// nothing else (cks.md §2.2).
func encodeAccepted(job cks.Job) api.Accepted { return api.Accepted{Jobid: job.ID} }

// encodeJob returns a job's API object (cks.md §2.3).
func encodeJob(j cks.Job) api.AsyncJob {
	out := api.AsyncJob{
		Accountid:  j.Account.ID,
		Account:    j.Account.Name,
		Domainid:   j.Account.DomainID,
		Domainpath: j.Account.DomainPath,
		Userid:     j.Account.UserID,
		Cmd:        cks.Classes[j.Command],
		Created:    date(j.Created),
		Jobid:      j.ID,
		Jobstatus:  int(j.Status),
	}
	if j.VMID != "" { // CloudStack has no such pair for clusters
		out.Jobinstancetype, out.Jobinstanceid = "VirtualMachine", j.VMID
	}
	out.Message = j.Message
	out.Steps = each(j.Steps, encodeStep)
	if j.Status == cks.JobPending {
		out.Managementserverid = j.Server
		return out
	}
	out.Completed = date(j.Completed)
	out.Jobresulttype = "object"
	out.Jobresult = encodeResult(j)
	out.Jobresultcode = out.Jobresult.Errorcode
	return out
}

// encodeStep returns one step of a job as it is shown (our extension).
func encodeStep(s cks.JobStep) api.JobStep {
	return api.JobStep{Name: s.Name, State: string(s.State), Started: dateOrNothing(s.Started), Ended: dateOrNothing(s.Ended)}
}

// dateOrNothing is date, and nothing for the zero time.
func dateOrNothing(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return date(t)
}

// encodeResult returns what a job has come to. A failed job's result has code
// and text only, another's has exactly one key: clients take the first they
// see (A02).
func encodeResult(j cks.Job) *api.JobResult {
	switch {
	case j.Status == cks.JobFailed:
		return &api.JobResult{Errorcode: cks.FailedCode, Errortext: j.ErrorText}
	case j.Result != nil && j.Result.Cluster != nil:
		cluster := encodeCluster(*j.Result.Cluster)
		return &api.JobResult{Kubernetescluster: &cluster}
	case j.Result != nil && j.Result.VM != nil:
		vm := encodeVM(*j.Result.VM)
		return &api.JobResult{Virtualmachine: &vm}
	}
	return &api.JobResult{Success: true}
}
