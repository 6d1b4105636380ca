// Package live is for programs that try a whole server, or several: it starts
// them, and speaks to them as real clients do.
package live

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

// Client speaks to a server as the cluster-autoscaler does: signed GETs.
type Client struct {
	URL, Key, Secret string // URL is that of the API
	HTTP             http.Client
}

// NewClient returns a client that waits for an answer for half a minute.
func NewClient(url, key, secret string) *Client {
	return &Client{url, key, secret, http.Client{Timeout: 30 * time.Second}}
}

// signed is the query string of a request. Each of params is NAME=VALUE.
func (c *Client) signed(command string, params ...string) string {
	var pairs []string
	for _, p := range append(slices.Clone(params), "command="+command, "response=json", "apiKey="+c.Key) {
		name, value, _ := strings.Cut(p, "=")
		pairs = append(pairs, name+"="+strings.ReplaceAll(url.QueryEscape(value), "+", "%20"))
	}
	slices.Sort(pairs)
	query := strings.Join(pairs, "&")
	mac := hmac.New(sha1.New, []byte(c.Secret))
	mac.Write([]byte(strings.ToLower(query)))
	return query + "&signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// Read gets an address and returns the status and the body.
func (c *Client) Read(ctx context.Context, address string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// Refusal is an answer other than 200, with the server's text. Any other error
// of a request says that there was no answer.
type Refusal struct {
	Command string
	Status  int
	Text    string
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("%s: answered by %d: %s", e.Command, e.Status, e.Text)
}

// Call makes a request and reads what is under the one top-level key of its
// answer. It fails with a Refusal for an answer other than 200.
func Call[T any](ctx context.Context, c *Client, command string, params ...string) (result T, err error) {
	status, body, err := c.Read(ctx, c.URL+"?"+c.signed(command, params...))
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
			return result, &Refusal{command, status, e.ErrorText}
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

// Job is an asynchronous job as queryAsyncJobResult shows it.
type Job struct {
	Status int `json:"jobstatus"`
	Result struct {
		ErrorText string
		Cluster   Cluster `json:"kubernetescluster"`
		VM        VM      `json:"virtualmachine"`
	} `json:"jobresult"`
}

// What Job.Status is.
const (
	Pending   = 0
	Succeeded = 1
	Failed    = 2
)

// Submit sends an asynchronous command and returns the id of its job.
func (c *Client) Submit(ctx context.Context, command string, params ...string) (string, error) {
	a, err := Call[struct{ JobID string }](ctx, c, command, params...)
	if err == nil && a.JobID == "" {
		err = fmt.Errorf("%s: answered without a jobid", command)
	}
	return a.JobID, err
}

// Job looks at a job.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	return Call[Job](ctx, c, "queryAsyncJobResult", "jobid="+id)
}
