package jobs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ckscale/internal/cks"
)

// metrics counts what jobs did. A nil *metrics counts nothing.
type metrics struct {
	ended *prometheus.CounterVec
	steps *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		return nil
	}
	m := &metrics{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ckscale_jobs_ended_total", Help: "Jobs that ended, by kind and outcome.",
		}, []string{"kind", "outcome"}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ckscale_job_step_seconds", Help: "Time spent in one try of a step.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60},
		}, []string{"step"}),
	}
	reg.MustRegister(m.ended, m.steps)
	return m
}

func (m *metrics) finished(kind cks.Kind, failed bool) {
	if m == nil {
		return
	}
	outcome := "succeeded"
	if failed {
		outcome = "failed"
	}
	m.ended.WithLabelValues(string(kind), outcome).Inc()
}

func (m *metrics) step(name string, took time.Duration) {
	if m != nil {
		m.steps.WithLabelValues(name).Observe(took.Seconds())
	}
}
