// Package metrics registers one of its metrics under a gate.
package metrics

import "example.com/features"

const subsystem = "scheduler"

var (
	a = metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: subsystem, Name: "a_total", StabilityLevel: metrics.BETA, DeprecatedVersion: "1.37.0"}, []string{"x", "y"})
	b *metrics.Histogram
)

func register() {
	b = metrics.NewHistogram(&metrics.HistogramOpts{Subsystem: subsystem, Name: "b_seconds", StabilityLevel: metrics.ALPHA, Buckets: metrics.ExponentialBuckets(0.001, 2, 15)})
	if gate.Enabled(features.SomeGate) {
		RegisterMetrics(b)
	}
}
