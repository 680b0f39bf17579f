package boot

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rejoins replaces the dead server with a new one, whose member of etcd starts without data.
func (w *world) rejoins(dead int) {
	w.t.Helper()
	// The command prints instructions for the flags on stderr.
	flags := w.on((dead+1)%3, "NECO_STATE="+storage+" neco bootserver replace "+strconv.Itoa(10+dead)+" --why 'its disk' 2>/dev/null")
	cluster, _, _ := strings.Cut(flags, " ")
	unit := w.fleet.Host(dead).Disk("/etc/systemd/system/etcd.service")
	text, err := os.ReadFile(unit)
	w.check(err)
	was := regexp.MustCompile(`--initial-cluster=[^ \n]*`).FindString(string(text))
	sorted := func(flag string) []string {
		return slices.Sorted(slices.Values(strings.Split(strings.TrimPrefix(flag, "--initial-cluster="), ",")))
	}
	if !slices.Equal(sorted(was), sorted(cluster)) {
		w.t.Errorf("the new member is to be started with %s, the dead one was with %s", flags, was)
	}
	w.check(os.WriteFile(unit, []byte(strings.Replace(string(text), was, flags, 1)), 0o644))
	for _, lost := range []string{"/var/lib/etcd", "/var/lib/neco"} {
		w.check(os.RemoveAll(w.fleet.Host(dead).Disk(lost)))
	}
}

// serverDead kills the server whose updater leads in the middle of an update. The next leader must name it,
// and the other servers must continue without it. Later a new server replaces it.
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
	// Serf is restarted on two servers while the third is dead.
	w.on(3, "echo 2 >"+logs+"/"+servingFile)
	w.neco("recover")
	w.succeeds(p.version)
	w.reported(p.version, "recovered", "succeeded")

	w.rejoins(dead)
	w.check(w.fleet.Host(dead).Start())
	w.eventually("an update takes it in", func() bool {
		var r request
		return w.look("status/current", &r) && slices.Equal(r.Servers, []int{10, 11, 12})
	})
	w.succeeds(p.version)
	w.reported(p.version, "recovered", "succeeded", "succeeded")
	w.clustered(p.serf)
	w.on(3, "rm "+logs+"/"+servingFile)
}

// allKilled kills all daemons. neco status must say so, and the heartbeat must stop.
func allKilled(w *world, p *parts) {
	w.hears()
	w.neco("config set notify.heartbeat http://" + outside + ":8083/heartbeat")
	beats := func() (n int, last time.Time) {
		lines := strings.Fields(w.on(3, "cat "+logs+"/heartbeats 2>/dev/null || true"))
		if len(lines) > 0 {
			ns, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
			w.check(err)
			last = time.Unix(0, ns)
		}
		return len(lines), last
	}
	w.eventually("a heart beats", func() bool { n, _ := beats(); return n > 0 })
	for host := range 3 {
		w.on(host, `for unit in neco-worker neco-updater; do
			mkdir -p /run/systemd/system/$unit.service.d && printf '[Service]\nRestart=no\n' >/run/systemd/system/$unit.service.d/dead.conf
			done; systemctl daemon-reload; systemctl kill -s KILL neco-worker neco-updater`)
	}
	w.shows("exit 5", "degraded", "no neco-updater and no neco-worker is alive", "server 10, 11 and 12: no worker is alive")
	n, last := beats()
	time.Sleep(time.Until(last.Add(heartbeat + 5*time.Second)))
	if now, _ := beats(); now != n {
		w.t.Errorf("%d heartbeats have come of a fleet that is dead", now-n)
	}
	for host := range 3 {
		w.on(host, "rm /run/systemd/system/neco-*.service.d/dead.conf; systemctl daemon-reload; systemctl start neco-worker neco-updater")
	}
	w.shows("exit 0", "up to date")
	w.eventually("a heart beats again", func() bool { now, _ := beats(); return now > n })
	w.neco("config unset notify.heartbeat")
}

// heartbeat is the interval of heartbeats while an updater leads.
const heartbeat = time.Minute
