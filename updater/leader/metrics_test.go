package leader

import (
	"strings"
	"testing"
	"time"

	"bijou/state/metrics"
	"bijou/updater/decide"
	"bijou/updater/record"
)

// TestMetricsOfUpdates checks that the fleet's metrics match the last observed request, and are zero
// without one.
func TestMetricsOfUpdates(t *testing.T) {
	ended := time.Unix(1, 0)
	for name, test := range map[string]struct {
		current *record.Request
		want    [4]string // running, stopped, missing, version
	}{
		"none":    {nil, [4]string{"0", "0", "0", ""}},
		"running": {&record.Request{Version: "2", Missing: []int{1}}, [4]string{"1", "0", "1", "2"}},
		"stopped": {&record.Request{Version: "2", Stop: true}, [4]string{"0", "1", "0", "2"}},
		"ended":   {&record.Request{Version: "2", EndedAt: &ended}, [4]string{"0", "0", "0", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := metrics.NewRegistry()
			measureFleet(m, decide.Snapshot{Servers: []int{0, 1}, Release: "3", Current: test.current})
			var text strings.Builder
			m.Write(&text)
			for _, line := range []string{
				"neco_updater_servers 2", "neco_updater_running " + test.want[0], "neco_updater_stopped " + test.want[1],
				"neco_updater_missing_servers " + test.want[2], `neco_updater_version_info{release="3",current="` + test.want[3] + `"} 1`,
			} {
				if !strings.Contains(text.String(), "\n"+line+"\n") {
					t.Errorf("%s: there is no line %q in:\n%s", name, line, text.String())
				}
			}
		})
	}
}
