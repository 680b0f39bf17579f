package worker

import (
	"io"
	"sync"

	"bijou/updater/metrics"
)

// Metrics counts what a worker does. A nil one counts nothing.
type Metrics struct {
	mu           sync.Mutex
	step         int
	busy         bool
	done, failed int
}

func (m *Metrics) observe(s Snapshot) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy, m.step = s.Busy, 0
	if s.Current != nil && s.Status != nil && s.Status.IsFor(*s.Current) && !s.Status.Finished {
		m.step = s.Status.Step
	}
}

func (m *Metrics) countTask(err error) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.failed++
	} else {
		m.done++
	}
}

// WriteTo writes the metrics in Prometheus's text format.
func (m *Metrics) WriteTo(w io.Writer) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b metrics.Exposition
	b.Add("gauge", "neco_worker_step", "The step of the update that runs; 0 is none.", "", int64(m.step))
	b.Add("gauge", "neco_worker_busy", "1 while a step or an installation runs.", "", metrics.BoolValue(m.busy))
	b.Add("counter", "neco_worker_steps_total", "Steps and installations that have ended, by result.", `{result="done"}`, int64(m.done))
	b.Add("counter", "neco_worker_steps_total", "", `{result="failed"}`, int64(m.failed))
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}
