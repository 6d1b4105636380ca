package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	nethttp "net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"ckscale/internal/cks"
	"ckscale/internal/http"
	"ckscale/internal/jobs"
	"ckscale/internal/service"
	"ckscale/internal/sim"
	"ckscale/internal/store"
)

// requestGrace is for requests in flight when the last step has ended: net/http
// spares a connection that was never used for 5 s.
const requestGrace = 7 * time.Second

// serve runs the whole server until ctx ends, and then lets go of everything
// in order: jobs, requests, the store, the database.
func (p process) serve(ctx context.Context, cfg config, args []string) (err error) {
	if len(args) > 0 {
		return errUsage
	}
	log := slog.New(slog.NewJSONHandler(p.stdout, &slog.HandlerOptions{Level: cfg.LogLevel}))
	if unknown := unknownSettings(p.environ); len(unknown) > 0 {
		log.WarnContext(ctx, "these variables are no settings of ours", "names", strings.Join(unknown, " "))
	}
	// First, since an address that is taken should not cost the start of a database.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return err
	}
	defer listener.Close() // the HTTP server has closed it, if it got that far
	secure, err := cfg.tlsConfig(listener.Addr(), log)
	if err != nil {
		return err
	}
	if cfg.EndpointURL == "" {
		cfg.EndpointURL = cfg.apiURL(listener.Addr().String())
	}
	db, err := openDatabase(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	st, err := openStore(ctx, db, log)
	if err != nil {
		return err
	}
	defer st.Close()
	s, err := newServer(ctx, st, cfg, log)
	if err != nil {
		return err
	}
	s.http.TLSConfig = secure
	return s.run(ctx, listener, db.ended(), func() error { return p.announce(cfg, listener.Addr().String(), s.admin) })
}

// announce says where requests are served, and how to make one.
func (p process) announce(cfg config, addr string, a admin) error {
	if cfg.AddrFile != "" {
		if err := writeFile(cfg.AddrFile, []byte(addr+"\n"), 0o644); err != nil {
			return fmt.Errorf("CKSCALE_ADDR_FILE: %w", err)
		}
	}
	return printBanner(p.stderr, cfg.EndpointURL, a)
}

// server is all that runs in one process.
type server struct {
	log     *slog.Logger
	store   *store.Store
	world   *sim.World
	runner  *jobs.Runner
	scanner *jobs.Scanner
	front   *front
	http    *nethttp.Server
	admin   admin
}

// newServer wires everything, and fills a new database. Nothing runs yet.
func newServer(ctx context.Context, st *store.Store, cfg config, log *slog.Logger) (*server, error) {
	s := &server{log: log, store: st}
	reg := newRegistry(st.Stat)
	s.world = sim.New(st, sim.Config{
		Speed: cfg.SimSpeed, Log: log,
		Changes: func(ctx context.Context) <-chan string { return st.Subscribe(ctx, store.TopicWorld) },
	})
	s.runner = jobs.NewRunner(st, s.world, s.world, jobs.Config{
		Workers: cfg.Workers, Lease: cfg.Lease, DrainTimeout: cfg.DrainTimeout, RetryWait: cfg.RetryWait, Grace: cfg.Grace, Log: log, Registerer: reg,
	})
	s.scanner = jobs.NewScanner(st, s.world, s.world, jobs.ScanConfig{Interval: cfg.ScanInterval, KeepEvents: cfg.KeepEvents, Log: log})
	s.front = &front{Service: service.New(st, s.world, service.Settings{
		MaxSize: cfg.MaxSize, ScaleTimeout: cfg.ScaleTimeout, StartTimeout: cfg.StartTimeout, UpgradeTimeout: cfg.UpgradeLimit,
		AddTimeout: cfg.AddTimeout, RemoveTimeout: cfg.LeaveTimeout, DrainTimeout: cfg.DrainTimeout,
		EndpointURL: cfg.EndpointURL, EnforcePost: cfg.EnforcePost,
		ServerID: s.runner.Owner(), Steps: jobs.Steps, UndoSteps: jobs.UndoSteps,
	})}
	err := s.front.clock.read(ctx, st.Now)
	if err != nil {
		return nil, err
	}
	if s.http, err = newHTTP(s.front, cfg, reg, log); err != nil {
		return nil, err
	}
	if s.admin, err = ensureAdmin(ctx, st, cfg, log); err != nil {
		return nil, err
	}
	if cfg.Demo {
		return s, fillDemo(ctx, st, s.world, s.admin.account)
	}
	return s, nil
}

func newHTTP(f *front, cfg config, reg *prometheus.Registry, log *slog.Logger) (*nethttp.Server, error) {
	proxies, err := parseNetworks(cfg.Proxies)
	if err != nil {
		return nil, err
	}
	handler, err := http.NewHandler(f, http.Config{
		Log: log, Metrics: promhttp.HandlerFor(reg, promhttp.HandlerOpts{}), Registerer: reg,
		EnforcePost: cfg.EnforcePost, RateLimit: cfg.RateLimit, Proxies: proxies, Stopping: f.stopping.Load,
		Now: f.clock.now,
	})
	if err != nil {
		return nil, err
	}
	protocols := new(nethttp.Protocols)
	protocols.SetHTTP1(true) // and no other, by TLS either: these are the limits of HTTP/1
	return &nethttp.Server{
		Handler:           handler,
		Protocols:         protocols,
		MaxHeaderBytes:    256 << 10,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what clients do wrong
	}, nil
}

// front is the service, which is not ready any more once we are told to stop,
// nor takes jobs.
type front struct {
	*service.Service
	stopping atomic.Bool
	clock    clock
}

// Ready tells a load balancer to look elsewhere while the last steps end.
func (f *front) Ready(ctx context.Context) error {
	if f.stopping.Load() {
		return cks.Errorf(cks.Unavailable, "the server is shutting down")
	}
	return f.Service.Ready(ctx)
}

// run serves on listener and works jobs until ctx ends or something fails for
// good. Requests are served while the last steps end.
func (s *server) run(ctx context.Context, listener net.Listener, lost <-chan struct{}, announce func() error) error {
	under, stopUnder := context.WithCancel(context.WithoutCancel(ctx))
	defer stopUnder()
	below, under := errgroup.WithContext(under) // what jobs and requests stand on
	below.Go(func() error {
		return s.store.RunBus(under, func(err error) { s.log.WarnContext(under, "cannot hear the other servers", "err", err) })
	})
	below.Go(func() error { return s.front.clock.keep(under, s.store.Now, s.log) })
	below.Go(func() error { return s.world.Run(under) })
	below.Go(func() error {
		if err := s.listen(listener); !errors.Is(err, nethttp.ErrServerClosed) {
			return err
		}
		return nil
	})
	err := announce()
	if err == nil {
		s.log.InfoContext(ctx, "serving", "addr", listener.Addr().String(), "server", s.runner.Owner(), "pid", os.Getpid())
		err = s.work(ctx, under, lost)
	}
	s.log.InfoContext(ctx, "stopping")
	s.closeHTTP(ctx)
	return errors.Join(err, stop(stopUnder, below))
}

// listen serves requests until the HTTP server is shut down.
func (s *server) listen(listener net.Listener) error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(listener, "", "")
	}
	return s.http.Serve(listener)
}

// work runs the jobs until ctx ends or a part of the server does.
func (s *server) work(ctx, under context.Context, lost <-chan struct{}) error {
	defer context.AfterFunc(ctx, func() { s.front.stopping.Store(true) })()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.front.WakeWaiting(ctx) })
	group.Go(func() error { return s.runner.Run(ctx) })
	group.Go(func() error { return s.scanner.Run(ctx) })
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-under.Done():
			return errors.New("a part of the server ended")
		case <-lost:
			return errors.New("the embedded PostgreSQL has ended; postgres.log in the data directory says why")
		}
	})
	return group.Wait()
}

// closeHTTP lets requests in flight finish, for a while. A client that takes
// longer is cut off; that is no failure of ours.
func (s *server) closeHTTP(ctx context.Context) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestGrace)
	defer cancel()
	if err := s.http.Shutdown(limited); err != nil {
		s.log.WarnContext(ctx, "requests in flight were cut off", "err", errors.Join(err, s.http.Close()))
	}
}

func stop(cancel func(), group *errgroup.Group) error {
	cancel()
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
