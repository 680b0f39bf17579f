package worker

import "bijou/state/metrics"

// docs/how-to/watch-it.md describes each metric.
const (
	stepMetric  = "neco_worker_step"
	busyMetric  = "neco_worker_busy"
	tasksMetric = "neco_worker_steps_total"
)

// measureSnapshot sets the metrics about this worker's step.
func measureSnapshot(r *metrics.Registry, s Snapshot) {
	step := 0
	if s.Current != nil && s.Status != nil && s.Status.IsFor(*s.Current) && !s.Status.Finished {
		step = s.Status.Step
	}
	r.Set(float64(step), stepMetric)
	r.Set(metrics.BoolValue(s.Busy), busyMetric)
	r.Add(0, tasksMetric, "result", Done)
	r.Add(0, tasksMetric, "result", Failed)
}
