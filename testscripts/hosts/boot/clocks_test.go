package boot

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"bijou/testscripts/kit/offclock"
)

// clocks sets two servers' clocks off by an hour, one each way. All hosts share the clock of this
// machine's kernel. So this release's bijou adds the difference, which a file on the host contains,
// where Go's package time reads the clock.
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
	w.publish(*p.news()) // in the middle of it, its workers get clocks that are off
	w.succeeds(p.version)
	w.reported(p.version, "succeeded")
	w.publish(*p.next()) // all clocks are off from the start
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
