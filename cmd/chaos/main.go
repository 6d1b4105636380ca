// Command chaos lets clients scale many clusters at once through several
// servers on one database, while servers are killed and paused, VMs stop and
// start, and calls to the simulated cloud go wrong. Then it checks what the
// clients were told, what the database records and what the cloud holds against
// a history that the database wrote by itself. It exits with 1 if anything is
// violated. Its choices follow from its seed; when they meet does not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options is what a run depends on.
type options struct {
	seed                       uint64
	duration                   time.Duration // of the disturbances
	servers, clusters, clients int
	server                     string // the program to start; "" = built here, with clocks that are apart
	database                   string // a PostgreSQL to make the database on; "" = a private one
	logs                       string // folder for what the servers write; "" = nowhere
	settings                   []string
	stdout, progress           io.Writer
}

// settings let a run see much in a short time. The lease is the default.
var settings = []string{
	"CKSCALE_SIM_SPEED=20", "CKSCALE_RETRY_WAIT=1s", "CKSCALE_SCALE_TIMEOUT=30s", "CKSCALE_DRAIN_TIMEOUT=5s", "CKSCALE_SCAN_INTERVAL=5s",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	o := options{settings: settings, stdout: os.Stdout, progress: os.Stderr, database: os.Getenv("TEST_DATABASE_URL")}
	flag.Uint64Var(&o.seed, "seed", 0, "what the choices follow from; 0 = another one each time")
	flag.DurationVar(&o.duration, "duration", time.Minute, "how long servers are killed and requests are made; setting up and settling come on top")
	flag.IntVar(&o.servers, "servers", 3, "servers on the one database")
	flag.IntVar(&o.clusters, "clusters", 50, "clusters to scale")
	flag.IntVar(&o.clients, "clients", 20, "clients that scale them")
	flag.StringVar(&o.server, "server", "", "the server to start; without it one is built whose clock can be set, and the clocks are 15 minutes apart")
	flag.StringVar(&o.logs, "logs", "", "folder for what the servers write")
	flag.Parse()
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// run is a whole run. Its error says that something is violated, or why that is
// not known.
func run(ctx context.Context, o options) (err error) {
	fmt.Fprintf(o.progress, "seed %d\n", o.seed)
	program := o.server
	if program == "" {
		var remove func() error
		if program, remove, err = build(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
	}
	database, drop, err := newDatabase(ctx, o.database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	f, err := newFleet(ctx, o, program, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	return o.on(ctx, f)
}

// on runs on a fleet that has just been started.
func (o options) on(ctx context.Context, f *fleet) error {
	phase := o.phases()
	town, err := found(ctx, o, f)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	phase("%d clusters on %d servers are made", len(town.clusters), o.servers)
	if err := town.live(ctx); err != nil {
		return err
	}
	phase("%d requests were made; %d servers were killed and %d paused", len(town.requests()), len(f.kills), len(f.pauses))
	unsettled := town.settle(ctx)
	phase("it has settled")
	e, err := gather(ctx, town)
	if err != nil {
		return fmt.Errorf("gather what happened: %w", err)
	}
	found := append(unsettled, e.violations()...)
	if err := report(o.stdout, o, e, found); err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%d violations with seed %d", len(found), o.seed)
	}
	return nil
}

// phases tells how long each part took.
func (o options) phases() func(format string, args ...any) {
	begin := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(o.progress, "%5.1f s  %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
}
