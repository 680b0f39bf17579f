package boot

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// serverDead: the server whose updater leads dies in the middle of an update, and is
// named by the next leader; the others go on without it; later it is taken in again.
func serverDead(w *world, p *parts) {
	w.hears()
	dead := w.leader()
	lrn := strconv.Itoa(10 + dead)
	n := p.next().version
	p.sabakan, p.serf = n, n
	w.begun(p, dead, stopsVault)
	w.check(w.fleet.Host(dead).PowerCut())
	began := time.Now()
	w.await(p.version, "the server is named", func(s status) bool { return fmt.Sprint(s.Current.Missing) == "["+lrn+"]" })
	fmt.Printf("boot: host %d, which led, has died, and was named after %.1f s\n", dead, time.Since(began).Seconds())
	w.eventually("an alert names it", func() bool {
		return slices.ContainsFunc(w.heard(p.version), func(a alert) bool {
			return a.Kind == "missing" && slices.Equal(a.Servers, []int{10 + dead})
		})
	})
	w.neco("stop --why 'server " + lrn + " is dead'")
	w.stops(p.version, "by hand: server "+lrn+" is dead")
	w.neco("bootserver remove " + lrn)
	w.on(3, "echo 2 >"+logs+"/"+servingFile) // their Serf is restarted without the third
	w.neco("recover")
	w.succeeds(p.version)
	w.reported(p.version, "recovered", "succeeded")

	w.check(w.fleet.Host(dead).Start())
	w.neco("bootserver add " + lrn)
	w.eventually("an update takes it in", func() bool {
		var r request
		return w.look("status/current", &r) && slices.Equal(r.Servers, []int{10, 11, 12})
	})
	w.succeeds(p.version)
	w.reported(p.version, "recovered", "succeeded", "succeeded")
	w.clustered(p.serf)
	w.on(3, "rm "+logs+"/"+servingFile)
}
