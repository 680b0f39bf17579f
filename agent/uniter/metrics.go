package uniter

import (
	"cmp"
	"slices"

	"bijou/agent/uniter/decide"
	"bijou/state"
	"bijou/state/metrics"
)

// The names of the unit's metrics. docs/how-to/watch-it.md describes each metric.
const (
	hookMetric  = "bijou_hook_seconds"
	unitMetric  = "bijou_unit_state"
	queueMetric = "bijou_unit_queue_length"
)

// measureHook adds the duration and result of a hook that has ended to the metrics. failure is empty if the
// hook has succeeded.
func (u *uniter) measureHook(r *runningHook, failure string) {
	u.State.Metrics().Observe(r.endedAt.Sub(r.op.Started), hookMetric, "hook", r.op.Hook.Name, "result",
		metrics.Result(failure == ""))
}

// measureUnit updates the metrics of the unit's state and queue. It does nothing if metrics are switched off.
func (u *uniter) measureUnit(s decide.Snapshot) {
	if u.State.Metrics() == nil {
		return
	}

	u.State.Metrics().Set(float64(s.CountQueued()), queueMetric, "unit", u.Unit)
	labels := []string{
		"unit", u.Unit,
		"state", cmp.Or(s.Uniter.Workflow.State, state.UnitPending),
		"workload", cmp.Or(s.Unit.Status.Status, "unknown"),
	}
	if slices.Equal(labels, u.measured) {
		return // the metric already has these labels
	}

	// The unit never lacks a state: set the new one before the old one is removed. Before the first state is set,
	// u.measured is nil, and there is nothing to remove.
	u.State.Metrics().Set(1, unitMetric, labels...)
	u.State.Metrics().Remove(unitMetric, u.measured...)
	u.measured = labels
}

// clearMetrics removes the metrics of the unit's state and queue.
func (u *uniter) clearMetrics() {
	u.State.Metrics().Remove(queueMetric, "unit", u.Unit)
	u.State.Metrics().Remove(unitMetric, u.measured...)
}
