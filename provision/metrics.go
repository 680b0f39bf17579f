package provision

import "bijou/state/metrics"

// measure updates the metrics from the leader's last plan. docs/how-to/watch-it.md describes each metric.
func (l *leader) measure(s snapshot) {
	now := metrics.NewRegistry()
	now.Set(1, leaderMetric)
	now.Set(float64(len(l.last.actions)), "bijou_provisioner_queue_length")

	count := map[string]int{}
	for _, m := range s.machines {
		count[string(m.Status)]++
	}
	for status, n := range count {
		now.Set(float64(n), "bijou_machines", "status", status)
	}
	l.State.Metrics().Replace(now)
}

const leaderMetric = "bijou_provisioner_leader"

func measureIdle(r *metrics.Registry) {
	idle := metrics.NewRegistry()
	idle.Set(0, leaderMetric)
	r.Replace(idle)
}
