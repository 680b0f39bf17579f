package leader

import (
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"bijou/updater/decide"
	"bijou/updater/metrics"
	"bijou/updater/record"
)

// Metrics counts what an updater does. A nil one counts nothing.
type Metrics struct {
	mu                  sync.Mutex
	leading             bool
	checks, failures    int
	delivered, rejected int
	lastCheck           time.Time
	fleet               decide.Snapshot // as it was observed last
}

func (m *Metrics) update(f func()) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *Metrics) setLeading(yes bool) { m.update(func() { m.leading = yes }) }

func (m *Metrics) observe(s decide.Snapshot) {
	m.update(func() {
		m.fleet = s
		m.fleet.Workers, m.fleet.Present = maps.Clone(s.Workers), maps.Clone(s.Present) // these are kept current
	})
}

func (m *Metrics) countCheck(err error) {
	m.update(func() {
		if err != nil {
			m.failures++
			return
		}
		m.checks, m.lastCheck = m.checks+1, time.Now()
	})
}

func (m *Metrics) countDelivery(err error) {
	m.update(func() {
		if err != nil {
			m.rejected++
			return
		}
		m.delivered++
	})
}

// WriteTo writes the metrics in Prometheus's text format.
func (m *Metrics) WriteTo(w io.Writer) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b metrics.Exposition
	metric := b.Add
	var last record.Request
	if m.fleet.Current != nil {
		last = *m.fleet.Current
	}
	runs := m.fleet.Current != nil && !last.Ended() && !last.Stop
	metric("gauge", "neco_updater_leader", "1 while this updater leads. What it says of updates is right then only.", "", metrics.BoolValue(m.leading))
	metric("gauge", "neco_updater_servers", "Boot servers that are registered.", "", int64(len(m.fleet.Servers)))
	metric("gauge", "neco_updater_running", "1 while an update runs.", "", metrics.BoolValue(runs))
	metric("gauge", "neco_updater_stopped", "1 while an update is stopped, and waits for an operator.", "", metrics.BoolValue(last.Stop))
	metric("gauge", "neco_updater_missing_servers", "Servers of the update whose worker is not alive.", "", int64(len(last.Missing)))
	metric("gauge", "neco_updater_version_info", "Versions: the newest release, and that of the last update.", fmt.Sprintf("{release=%q,current=%q}", m.fleet.Release, last.Version), 1)
	metric("counter", "neco_updater_checks_total", "Looks for releases, by result.", `{result="done"}`, int64(m.checks))
	metric("counter", "neco_updater_checks_total", "", `{result="failed"}`, int64(m.failures))
	metric("gauge", "neco_updater_last_check_timestamp_seconds", "When releases were looked for successfully.", "", metrics.UnixSeconds(m.lastCheck))
	metric("counter", "neco_updater_alerts_total", "Deliveries of alerts, by result.", `{result="done"}`, int64(m.delivered))
	metric("counter", "neco_updater_alerts_total", "", `{result="failed"}`, int64(m.rejected))
	metric("gauge", "neco_updater_degraded", "What is not as the last update left it, while none runs.", "", int64(len(m.fleet.Degraded.Findings)))
	addServerMetrics(&b, m.fleet)
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func addServerMetrics(b *metrics.Exposition, s decide.Snapshot) {
	gauge := func(name, help string, value func(lrn int) (labels string, value int64)) {
		for _, lrn := range s.Servers {
			labels, v := value(lrn)
			b.Add("gauge", "neco_server_"+name, help, fmt.Sprintf(`{lrn="%d"%s}`, lrn, labels), v)
			help = ""
		}
	}
	gauge("present", "1 while the server's worker is alive.", func(lrn int) (string, int64) { _, alive := s.Present[lrn]; return "", metrics.BoolValue(alive) })
	gauge("info", "What the server's worker is.", func(lrn int) (string, int64) {
		p := s.Present[lrn]
		return fmt.Sprintf(",version=%q,sums=%q,plan=%q", p.Version, p.Sums, p.Plan), 1
	})
	gauge("step", "The step of the last update that the server has come to.", func(lrn int) (string, int64) {
		return fmt.Sprintf(",name=%q", s.Workers[lrn].StepName), int64(s.Workers[lrn].Step)
	})
	gauge("step_since_timestamp_seconds", "When it has come there, by its clock; it waits, or is at it, since.", func(lrn int) (string, int64) { return "", metrics.UnixSeconds(s.Workers[lrn].At) })
	gauge("finished", "1 once it has done all steps.", func(lrn int) (string, int64) { return "", metrics.BoolValue(s.Workers[lrn].Finished) })
}
