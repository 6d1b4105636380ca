// Command lab carries out the scenarios of the seed's test report on a live
// server, through its API, and writes such a report. It exits with 1 if one of
// them does not come out as it should.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"ckscale/cmd/internal/live"
)

// options is what a run depends on.
type options struct {
	url, key, secret string // of a running server; "" = start one
	server           string // the program to start
	database         string // a PostgreSQL to make its database on; "" = an embedded one
	speed            float64
	timeout          time.Duration
	output           string // file for the report; "" = none
	scenarios        []scenario
	stdout, progress io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	o := options{scenarios: seed, stdout: os.Stdout, progress: os.Stderr, database: os.Getenv("TEST_DATABASE_URL")}
	flag.StringVar(&o.url, "url", "", "address of the API of a running server whose cloud is the simulator; without it one is started")
	flag.StringVar(&o.key, "key", "", "API key for -url")
	flag.StringVar(&o.secret, "secret", "", "secret key for -url")
	flag.StringVar(&o.server, "server", "bin/server", "the server to start; its database is made on TEST_DATABASE_URL, or is an embedded one")
	flag.Float64Var(&o.speed, "speed", 0, "CKSCALE_SIM_SPEED of the server; 10 for one that is started, unless given")
	flag.DurationVar(&o.timeout, "timeout", 0, "CKSCALE_SCALE_TIMEOUT of the server; 150s/speed for one that is started, unless given")
	flag.StringVar(&o.output, "o", "", "file to write the report to, besides standard output")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// run carries out the scenarios and writes the report. Its error says that some
// fail, or why there is no report.
func run(ctx context.Context, o options) error {
	if o.speed == 0 && o.url == "" {
		o.speed = 10
	}
	if o.speed < 1 {
		return errors.New("-speed must be 1 or more, and is needed with -url")
	}
	if o.url == "" {
		return o.onOwnServer(ctx)
	}
	return o.on(ctx, live.NewClient(o.url, o.key, o.secret))
}

// onOwnServer runs on a server that is there for this only.
func (o options) onOwnServer(ctx context.Context) (err error) {
	if o.timeout == 0 {
		o.timeout = time.Duration(float64(150*time.Second) / o.speed)
	}
	database := ""
	if o.database != "" {
		var drop func() error
		if database, drop, err = live.NewDatabase(ctx, o.database, "ckscale_lab_"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, drop()) }()
	}
	key, secret := rand.Text(), rand.Text()
	s, err := live.Start(ctx, o.server, settings(key, secret, database, o.speed, o.timeout), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	return o.on(ctx, live.NewClient(s.URL, key, secret))
}

// settings are those of a server for the lab. An empty database stands for an
// embedded PostgreSQL.
func settings(key, secret, database string, speed float64, timeout time.Duration) []string {
	return []string{
		"CKSCALE_ADMIN_API_KEY=" + key, "CKSCALE_ADMIN_SECRET_KEY=" + secret, "CKSCALE_DEMO=true", "DATABASE_URL=" + database,
		fmt.Sprintf("CKSCALE_SIM_SPEED=%g", speed), "CKSCALE_SCALE_TIMEOUT=" + timeout.String(),
	}
}

// on runs on the server that c speaks to, on a cluster that is there for this
// only.
func (o options) on(ctx context.Context, c *live.Client) (err error) {
	l := &lab{Client: c, speed: o.speed, timeout: o.timeout, ours: o.url == ""}
	defer func() { err = errors.Join(err, l.tidy(context.WithoutCancel(ctx))) }()
	if err := l.setUp(ctx); err != nil {
		return err
	}
	trials, err := l.tryAll(ctx, o.scenarios, o.progress)
	if err != nil {
		return err
	}
	text := report(l, trials)
	if _, err := io.WriteString(o.stdout, text); err != nil {
		return err
	}
	if o.output != "" {
		if err := os.WriteFile(o.output, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, t := range trials {
		if t.failed() {
			return errors.New(summary(trials))
		}
	}
	return nil
}
