package worker

import "bijou/state/metrics"

// docs/how-to/watch-it.md describes each metric.
const (
	stepMetric  = "neco_worker_step"
	busyMetric  = "neco_worker_busy"
	tasksMetric = "neco_worker_steps_total"
)

// measureSnapshot sets the metrics about this worker: its step, and whether a task runs. The step is 0 if the
// worker has finished, or has no record for the current request. measureSnapshot also creates the counters of
// tasks, so that they exist before the first task.
func measureSnapshot(r *metrics.Registry, s Snapshot) {
	step := 0
	hasRecord := s.Current != nil && s.Status != nil && s.Status.IsFor(*s.Current)
	if hasRecord && !s.Status.Finished {
		step = s.Status.Step
	}
	r.Set(float64(step), stepMetric)
	r.Set(metrics.BoolValue(s.Busy), busyMetric)
	r.Add(0, tasksMetric, "result", Done)
	r.Add(0, tasksMetric, "result", Failed)
}
