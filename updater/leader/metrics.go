package leader

import (
	"strconv"

	"bijou/state/metrics"
	"bijou/updater/decide"
	"bijou/updater/record"
)

// docs/monitoring.md says what each metric is.
const (
	leadsMetric      = "neco_updater_leader"
	checksMetric     = "neco_updater_checks_total"
	lastCheckMetric  = "neco_updater_last_check_timestamp_seconds"
	deliveriesMetric = "neco_updater_alerts_total"
)

// startMetrics has all metrics written before anything has happened.
func startMetrics(r *metrics.Registry) {
	r.Set(0, leadsMetric)
	r.Set(0, lastCheckMetric)
	for _, result := range []string{"done", "failed"} {
		r.Add(0, checksMetric, "result", result)
		r.Add(0, deliveriesMetric, "result", result)
	}
	measureFleet(r, decide.Snapshot{})
}

// measureFleet has the metrics say what was observed last.
func measureFleet(r *metrics.Registry, s decide.Snapshot) {
	if r == nil {
		return
	}
	fleet := metrics.NewRegistry()
	var last record.Request
	if s.Current != nil {
		last = *s.Current
	}
	fleet.Set(float64(len(s.Servers)), "neco_updater_servers")
	fleet.Set(metrics.BoolValue(s.Current != nil && !last.Ended() && !last.Stop), "neco_updater_running")
	fleet.Set(metrics.BoolValue(last.Stop), "neco_updater_stopped")
	fleet.Set(float64(len(last.Missing)), "neco_updater_missing_servers")
	fleet.Set(float64(len(s.Degraded.Findings)), "neco_updater_degraded")
	fleet.Set(1, "neco_updater_version_info", "release", s.Release, "current", last.Version)
	for _, n := range s.Servers {
		lrn, w := strconv.Itoa(n), s.Workers[n]
		p, alive := s.Present[n]
		fleet.Set(metrics.BoolValue(alive), "neco_server_present", "lrn", lrn)
		fleet.Set(1, "neco_server_info", "lrn", lrn, "version", p.Version, "sums", p.Sums, "plan", p.Plan)
		fleet.Set(float64(w.Step), "neco_server_step", "lrn", lrn, "name", w.StepName)
		fleet.Set(metrics.UnixSeconds(w.At), "neco_server_step_since_timestamp_seconds", "lrn", lrn)
		fleet.Set(metrics.BoolValue(w.Finished), "neco_server_finished", "lrn", lrn)
	}
	r.Replace(fleet)
}
