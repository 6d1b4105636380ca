package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// client speaks to a server as the cluster-autoscaler does: signed GETs.
type client struct {
	url, key, secret string // url is that of the API
	http             http.Client
}

func newClient(url, key, secret string) *client {
	return &client{url, key, secret, http.Client{Timeout: 30 * time.Second}}
}

// signed is the query string of a request. Each of params is NAME=VALUE.
func (c *client) signed(command string, params ...string) string {
	var pairs []string
	for _, p := range append(params, "command="+command, "response=json", "apiKey="+c.key) {
		name, value, _ := strings.Cut(p, "=")
		pairs = append(pairs, name+"="+strings.ReplaceAll(url.QueryEscape(value), "+", "%20"))
	}
	slices.Sort(pairs)
	query := strings.Join(pairs, "&")
	mac := hmac.New(sha1.New, []byte(c.secret))
	mac.Write([]byte(strings.ToLower(query)))
	return query + "&signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// read gets address and returns the status and the body.
func (c *client) read(ctx context.Context, address string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// call makes a request and reads what is under the one top-level key of its
// answer. An answer other than 200 is an error with the server's text.
func call[T any](ctx context.Context, c *client, command string, params ...string) (result T, err error) {
	status, body, err := c.read(ctx, c.url+"?"+c.signed(command, params...))
	if err != nil {
		return result, fmt.Errorf("%s: %w", command, withoutURL(err))
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil || len(top) != 1 {
		return result, fmt.Errorf("%s: answered by %d with what is no CloudStack answer", command, status)
	}
	for _, under := range top {
		if status != http.StatusOK {
			var e struct{ ErrorText string }
			if err := json.Unmarshal(under, &e); err != nil {
				return result, fmt.Errorf("%s: answered by %d: %w", command, status, err)
			}
			return result, fmt.Errorf("%s: answered by %d: %s", command, status, e.ErrorText)
		}
		if err := json.Unmarshal(under, &result); err != nil {
			return result, fmt.Errorf("%s: %w", command, err)
		}
	}
	return result, nil
}

// withoutURL takes the address with the keys out of what net/http says.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// job is an asynchronous job as queryAsyncJobResult shows it.
type job struct {
	Status int `json:"jobstatus"`
	Result struct {
		ErrorText string
		Cluster   cluster `json:"kubernetescluster"`
	} `json:"jobresult"`
}

const (
	pending   = 0
	succeeded = 1
)

// submit sends an asynchronous command and returns the id of its job.
func (c *client) submit(ctx context.Context, command string, params ...string) (string, error) {
	a, err := call[struct{ JobID string }](ctx, c, command, params...)
	if err == nil && a.JobID == "" {
		err = fmt.Errorf("%s: answered without a jobid", command)
	}
	return a.JobID, err
}

func (c *client) job(ctx context.Context, id string) (job, error) {
	return call[job](ctx, c, "queryAsyncJobResult", "jobid="+id)
}
