// Package metrics holds what Prometheus reads of a process. What is measured is the affair of
// whoever has a Registry; it imports nothing of bijou.
package metrics

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// Registry holds the values of metrics. Labels are given in pairs: a name, a value. A nil one holds nothing.
type Registry struct {
	values *metrics.Set
	part   atomic.Pointer[Registry]
}

// NewRegistry returns one without values.
func NewRegistry() *Registry { return &Registry{values: metrics.NewSet()} }

func labelled(name string, labels []string) string {
	var pairs []string
	for pair := range slices.Chunk(labels, 2) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", pair[0], pair[1]))
	}
	if len(pairs) == 0 {
		return name
	}
	return name + "{" + strings.Join(pairs, ",") + "}"
}

// Set sets a gauge.
func (r *Registry) Set(value float64, name string, labels ...string) {
	if r != nil {
		r.values.GetOrCreateGauge(labelled(name, labels), nil).Set(value)
	}
}

// Remove removes a gauge.
func (r *Registry) Remove(name string, labels ...string) {
	if r != nil {
		r.values.UnregisterMetric(labelled(name, labels))
	}
}

// Add adds to a counter; 0 has it written before anything is counted.
func (r *Registry) Add(n int, name string, labels ...string) {
	if r != nil {
		r.values.GetOrCreateCounter(labelled(name, labels)).Add(n)
	}
}

// bounds are a histogram's, in seconds: from a read of a file's store to a hook that installs packages.
var bounds = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60, 300, 1800}

// Observe counts a duration in a histogram.
func (r *Registry) Observe(took time.Duration, name string, labels ...string) {
	if r != nil {
		r.values.GetOrCreatePrometheusHistogramExt(labelled(name, labels), bounds).Update(took.Seconds())
	}
}

// Replace writes another registry's values beside the own ones from now on, in place of those of
// the call before.
func (r *Registry) Replace(part *Registry) {
	if r != nil {
		r.part.Store(part)
	}
}

// Write writes all values in Prometheus's text format.
func (r *Registry) Write(w io.Writer) {
	metrics.ExposeMetadata(true)
	r.values.WritePrometheus(w)
	if part := r.part.Load(); part != nil {
		part.values.WritePrometheus(w)
	}
}

// Result returns the word of a label for what has succeeded or not.
func Result(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}

// BoolValue returns 1 for true.
func BoolValue(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// UnixSeconds returns the time as Prometheus has it; 0 for none.
func UnixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}
