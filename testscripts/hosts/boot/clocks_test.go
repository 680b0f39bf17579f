package boot

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"bijou/testscripts/kit/offclock"
)

// clocks sets two servers' clocks off by an hour, one each way. All hosts share the clock of this machine's
// kernel. Therefore the bijou in this release adds a difference, which it reads from a file on the host,
// whenever Go's package time reads the clock.
func clocks(w *world, p *parts) {
	w.hears()
	plain := w.path("bijou")
	w.check(os.Rename(plain, plain+".plain"))
	defer func() { w.check(os.Rename(plain+".plain", plain)) }()
	offclock.Build(w.t, plain, "/etc/clock-offset")
	for host, seconds := range []int{3600, -3600, 0} {
		w.on(host, fmt.Sprintf("echo %d >/etc/clock-offset", seconds))
		w.spawn(host, "standin kill-leader "+members()[host], "/root/leaders")
	}
	defer w.end()
	// The clocks are changed in the middle of this update.
	w.publish(*p.news())
	w.succeeds(p.version)
	w.reported(p.version, "succeeded")
	// During this update all clocks are off from the start.
	w.publish(*p.next())
	w.succeeds(p.version)
	w.reported(p.version, "succeeded")
	for host := range 3 {
		w.on(host, "kill $(cat /root/leaders.pid); rm /etc/clock-offset")
		fmt.Printf("boot: host %d led until killed: %s\n", host, strings.ReplaceAll(w.on(host, "cat /root/leaders"), "\n", ", "))
	}
	if off := w.journaled(0).Sub(w.journaled(1)); off < 100*time.Minute {
		w.t.Errorf("the clocks are only %s apart", off)
	}
	fmt.Printf("boot: clocks: %s\n", w.neco("history 2"))
}

// journaled returns the time at which a host's worker last ended an action, by its clock.
func (w *world) journaled(host int) time.Time {
	w.t.Helper()
	data, err := os.ReadFile(w.fleet.Host(host).Disk("/var/lib/neco/journal.json"))
	w.check(err)
	var j struct{ At time.Time }
	w.check(json.Unmarshal(data, &j))
	return j.At
}
