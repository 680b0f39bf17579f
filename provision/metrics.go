package provision

import "bijou/state/metrics"

// measure replaces the provisioner's metrics with those of the leader. They count the actions in its last plan,
// and the machines in s with each status. docs/how-to/watch-it.md describes each metric.
func (l *leader) measure(s snapshot) {
	registry := metrics.NewRegistry()
	registry.Set(1, leaderMetric)
	registry.Set(float64(len(l.last.actions)), "bijou_provisioner_queue_length")

	count := map[string]int{}
	for _, m := range s.machines {
		count[string(m.Status)]++
	}
	for status, n := range count {
		registry.Set(float64(n), "bijou_machines", "status", status)
	}

	l.State.Metrics().Replace(registry)
}

// leaderMetric is 1 while this process is the leader, and otherwise 0.
const leaderMetric = "bijou_provisioner_leader"

// measureIdle replaces the metrics with those of a provisioner that is not the leader.
func measureIdle(r *metrics.Registry) {
	idle := metrics.NewRegistry()
	idle.Set(0, leaderMetric)
	r.Replace(idle)
}
