package main

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// newRegistry returns a registry with what is true of every process. stat
// gives the numbers of the database pool.
func newRegistry(stat func() *pgxpool.Stat) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, g := range []struct {
		name, help string
		value      func(*pgxpool.Stat) float64
	}{
		{"max_connections", "Size of the database pool.", func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) }},
		{"connections", "Open connections of the database pool.", func(s *pgxpool.Stat) float64 { return float64(s.TotalConns()) }},
		{"connections_in_use", "Connections of the database pool in use.", func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) }},
	} {
		reg.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "ckscale_database_" + g.name, Help: g.help}, func() float64 { return g.value(stat()) }))
	}
	for _, c := range []struct {
		name, help string
		value      func(*pgxpool.Stat) float64
	}{
		{"acquires_total", "Connections taken from the database pool.", func(s *pgxpool.Stat) float64 { return float64(s.AcquireCount()) }},
		{"waits_total", "Connections that had to be waited for.", func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) }},
		{"wait_seconds_total", "Time spent taking connections.", func(s *pgxpool.Stat) float64 { return s.AcquireDuration().Seconds() }},
	} {
		reg.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "ckscale_database_" + c.name, Help: c.help}, func() float64 { return c.value(stat()) }))
	}
	return reg
}
