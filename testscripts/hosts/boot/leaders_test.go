package boot

import (
	"fmt"
	"strings"
)

// leadersKilled: whoever leads dies in each state that the leader has, of updates
// that succeed, that stop, and that are made again; another one leads, and each end
// is reported.
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
