package uniter

import (
	"cmp"
	"slices"

	"bijou/agent/uniter/decide"
	"bijou/state"
	"bijou/state/metrics"
)

// docs/how-to/watch-it.md says what each metric is.
const (
	hookMetric  = "bijou_hook_seconds"
	unitMetric  = "bijou_unit_state"
	queueMetric = "bijou_unit_queue_length"
)

func (u *uniter) measureHook(r *runningHook, failure string) {
	u.State.Metrics().Observe(r.endedAt.Sub(r.op.Started), hookMetric, "hook", r.op.Hook.Name, "result",
		metrics.Result(failure == ""))
}

// measureUnit adds the unit to the metrics, unless they are switched off.
func (u *uniter) measureUnit(s decide.Snapshot) {
	if u.State.Metrics() == nil {
		return
	}

	u.State.Metrics().Set(float64(s.CountQueued()), queueMetric, "unit", u.Unit)
	now := []string{"unit", u.Unit, "state", cmp.Or(s.Uniter.Workflow.State, state.UnitPending), "workload", cmp.Or(s.Unit.Status.Status, "unknown")}
	if !slices.Equal(now, u.measured) {
		u.State.Metrics().Set(1, unitMetric, now...)
		u.State.Metrics().Remove(unitMetric, u.measured...)
		u.measured = now
	}
}

func (u *uniter) clearMetrics() {
	u.State.Metrics().Remove(queueMetric, "unit", u.Unit)
	u.State.Metrics().Remove(unitMetric, u.measured...)
}
