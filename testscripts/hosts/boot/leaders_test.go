package boot

import (
	"fmt"
	"strings"
)

// leadersKilled kills the leader in each of its states, during updates that succeed, stop, or are retried.
// Each time a different updater must take over, and the end of each update must be reported.
func leadersKilled(w *world, p *parts) {
	w.hears()
	for host := range 3 {
		w.spawn(host, "standin kill-leader "+members()[host], "/root/leaders")
	}
	defer w.end()
	w.publish(*p.news())
	w.succeeds(p.version)
	w.reported(p.version, "succeeded")

	w.offer(*p.next())
	w.spoils(*p, func() { w.fault("swapped") })
	w.stops(p.version, "step install", "cannot read SHA256SUMS")
	w.reported(p.version, "stopped")
	w.fault("none")
	w.neco("recover")
	w.succeeds(p.version)
	w.reported(p.version, "recovered", "succeeded")
	killed := ""
	for host := range 3 {
		w.on(host, "kill $(cat /root/leaders.pid)")
		killed += w.on(host, "cat /root/leaders") + "\n"
	}
	fmt.Printf("boot: leaders killed, and who led then: %s\n", strings.ReplaceAll(strings.TrimSpace(killed), "\n", ", "))
	for _, state := range []string{"release known", "requested", "gate ", "succeeded", "stopped", "reported", "recovery asked for"} {
		if !strings.Contains(killed, state) {
			w.t.Errorf("no leader was killed at %q:\n%s", state, killed)
		}
	}
}
