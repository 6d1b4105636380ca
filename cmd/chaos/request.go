package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"ckscale/cmd/internal/live"
)

// outcome is what a client knows of its request.
type outcome string

const (
	accepted outcome = "accepted" // there is a jobid
	refused  outcome = "refused"  // there was an error instead
	unknown  outcome = "unknown"  // there was no answer, and nothing to ask by
)

// request is what a client asked for, and what it was told.
type request struct {
	command, cluster, vm string
	size                 *int
	nodes                []string // nodeids
	offering             string
	custom               string // its customjobid; "" = none

	doubted bool // an answer did not come, once at least
	outcome outcome
	status  int    // of a refusal
	text    string // likewise
	job     string // its id
	told    *told  // how it ended
}

// told is how a job ended, as the client was told.
type told struct {
	raw json.RawMessage // of queryAsyncJobResult
	live.Job
}

func (r *request) params() []string {
	id := r.cluster
	if r.vm != "" {
		id = r.vm
	}
	params := []string{"id=" + id}
	if r.size != nil {
		params = append(params, fmt.Sprintf("size=%d", *r.size))
	}
	if r.nodes != nil {
		params = append(params, "nodeids="+strings.Join(r.nodes, ","))
	}
	if r.offering != "" {
		params = append(params, "serviceofferingid="+r.offering)
	}
	if r.custom != "" {
		params = append(params, "customjobid="+r.custom)
	}
	return params
}

func (r *request) String() string { return fmt.Sprintf("%s %v", r.command, r.params()) }

// caller speaks to the servers as through a balancer: to any of them, and to
// another if one does not answer.
type caller struct {
	fleet  *fleet
	choose *rand.Rand
	http   http.Client
}

func newCaller(f *fleet, choose *rand.Rand, wait time.Duration) *caller {
	// On a connection that was used before, net/http would make a GET again by
	// itself, and the second error would hide that the first one got through.
	return &caller{f, choose, http.Client{Timeout: wait, Transport: &http.Transport{DisableKeepAlives: true}}}
}

func (c *caller) to(address string) *live.Client {
	return &live.Client{URL: address, Key: c.fleet.key, Secret: c.fleet.secret, HTTP: c.http}
}

const (
	// answerTime is how long a client waits for an answer: less than a server is
	// paused for.
	answerTime = 8 * time.Second
	// patience is how long it goes on asking others.
	patience = 3 * time.Minute
)

// ask makes a request that may be repeated, until it is answered.
func ask[T any](ctx context.Context, c *caller, command string, params ...string) (answer T, err error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		all := c.fleet.addresses()
		answer, err = live.Call[T](limited, c.to(all[c.choose.IntN(len(all))]), command, params...)
		if refusal, ok := errors.AsType[*live.Refusal](err); err == nil || ok && refusal.Status != http.StatusServiceUnavailable {
			return answer, err
		}
		if !sleep(limited, 50*time.Millisecond) {
			return answer, fmt.Errorf("nobody answers: %w", err)
		}
	}
}

// send makes r, and again while it is certain that nobody has got it.
func (c *caller) send(ctx context.Context, r *request) error {
	for {
		all := c.fleet.addresses()
		job, err := c.to(all[c.choose.IntN(len(all))]).Submit(ctx, r.command, r.params()...)
		if refusal, ok := errors.AsType[*live.Refusal](err); ok {
			r.outcome, r.status, r.text = refused, refusal.Status, refusal.Text
			return nil
		}
		if err == nil {
			r.outcome, r.job = accepted, job
			return nil
		}
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			r.doubted, r.outcome = true, unknown
			return nil
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// carryOut makes r, settles what is doubtful about it, and waits for its end.
func (c *caller) carryOut(ctx context.Context, r *request) error {
	if err := c.send(ctx, r); err != nil {
		return err
	}
	if r.outcome == unknown {
		if err := c.settle(ctx, r); err != nil {
			return err
		}
	}
	if r.outcome != accepted {
		return nil
	}
	return c.follow(ctx, r)
}

// settle finds out what became of a request without an answer. One with an id
// of its own is made again until that is known: it can only be accepted once.
// Without, a client sees what is going on, and leaves it at that.
func (c *caller) settle(ctx context.Context, r *request) error {
	if r.custom == "" {
		if _, err := ask[live.Cluster](ctx, c, "listKubernetesClusters", "id="+r.cluster); err != nil {
			return err
		}
		_, err := ask[struct{}](ctx, c, "listAsyncJobs")
		return err
	}
	for r.outcome == unknown {
		_, err := ask[live.Job](ctx, c, "queryAsyncJobResult", "jobid="+r.custom)
		refusal, isRefusal := errors.AsType[*live.Refusal](err)
		switch {
		case err == nil:
			r.outcome, r.job = accepted, r.custom
			return nil
		case !isRefusal || refusal.Status != 431:
			return err
		}
		if err := c.send(ctx, r); err != nil {
			return err
		}
		if r.outcome == refused && r.text == taken(r.custom) { // the first one had got through after all
			r.outcome, r.job = accepted, r.custom
		}
	}
	return nil
}

// taken is the answer to a customjobid that has been used.
func taken(id string) string {
	return "UUID: " + id + " already exists so can't create/update with custom id"
}

// follow asks for the end of r's job until it is there.
func (c *caller) follow(ctx context.Context, r *request) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		raw, err := ask[json.RawMessage](limited, c, "queryAsyncJobResult", "jobid="+r.job)
		if _, ok := errors.AsType[*live.Refusal](err); ok {
			r.text = err.Error() // its job is not known: for the rules
			return nil
		}
		if err != nil {
			return err
		}
		end := &told{raw: raw}
		if err := json.Unmarshal(raw, &end.Job); err != nil {
			return err
		}
		if end.Status != live.Pending {
			r.told = end
			return nil
		}
		if !sleep(limited, 200*time.Millisecond) {
			return nil // it has not been told anything: for the rules
		}
	}
}
