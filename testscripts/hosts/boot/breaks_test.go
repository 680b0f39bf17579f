package boot

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// killed kills each worker once in each of its actions.
func killed(w *world, p *parts) {
	for host := range 3 {
		w.spawn(host, "standin kill /var/lib/neco/journal.json", "/root/killed")
	}
	defer w.end()
	w.publish(*p.news())
	w.succeeds(p.version)
	for host := range 3 {
		w.on(host, "kill $(cat /root/killed.pid)")
		fmt.Printf("boot: host %d: killed in %s\n", host, strings.ReplaceAll(w.on(host, "cat /root/killed"), "\n", ", "))
	}
}

// begun publishes a release and waits until a server's worker has reached a step.
func (w *world) begun(p *parts, host, step int) {
	w.t.Helper()
	path, err := w.fleet.Host(host).Path("/var/lib/neco/journal.json")
	w.check(err)
	doing := func() (request, step int) {
		var d doing
		data, err := os.ReadFile(path)
		w.check(err)
		w.check(json.Unmarshal(data, &d))
		return d.Request, d.Step
	}
	before, _ := doing()
	w.publish(*p)
	w.soon(fmt.Sprintf("host %d comes to step %d", host, step), func() bool {
		request, at := doing()
		return request > before && at >= step
	})
}

// These are the steps for begun.
const (
	installs   = 0
	updatesCKE = 2
	stopsVault = 3
)

// powerCut cuts a server's power in the middle of its update.
func powerCut(w *world, p *parts) {
	w.begun(p.news(), 1, stopsVault)
	w.check(w.fleet.Host(1).PowerCut())
	w.check(w.fleet.Host(1).Start())
	w.succeeds(p.version)
}

// partition cuts a server off from all others for a while.
func partition(w *world, p *parts) {
	w.begun(p.news(), 2, updatesCKE)
	w.check(w.fleet.Host(2).Link(false))
	w.eventually("others have noticed", func() bool { return strings.Contains(fmt.Sprint(w.status().Current.Missing), "12") })
	w.check(w.fleet.Host(2).Link(true))
	w.succeeds(p.version)
}

// leaderKilled kills the updater that leads.
func leaderKilled(w *world, p *parts) {
	w.begun(p.news(), 0, updatesCKE)
	for host := range 3 {
		w.on(host, "systemctl kill -s KILL neco-updater || true")
	}
	w.succeeds(p.version)
}

// fault makes the server of releases misbehave.
func (w *world) fault(name string) {
	w.on(3, "echo "+name+" >/srv/fault; while [ -e /srv/fault ]; do sleep 0.02; done")
}

// cut makes every answer of the server of releases end halfway for some seconds, first for the leader and
// then for workers.
func cut(w *world, p *parts) {
	w.neco("pause")
	w.fault("cut")
	w.publish(*p.next())
	w.on(3, "sleep 2")
	w.fault("none")
	w.spoils(*p, func() { w.fault("cut") })
	w.on(3, "sleep 4")
	w.fault("none")
	w.succeeds(p.version)
}

// refuses waits until the leader and an alert report why no update to that release begins. No update may have
// begun.
func (w *world) refuses(version string, words ...string) {
	w.t.Helper()
	var said struct{ Message, Refused string }
	w.eventually("the leader refuses release "+version, func() bool {
		said.Message, said.Refused = "", ""
		if w.look("info/check-failure", &said) && said.Refused == version {
			return true // it is unavailable now
		}
		var refusals struct {
			Releases []struct{ Version, Why string }
		}
		if !w.look("info/refused", &refusals) {
			return false
		}
		for _, r := range refusals.Releases {
			if r.Version == version {
				said.Message = r.Why
				return true
			}
		}
		return false
	})
	w.eventually("an alert says so", func() bool {
		return slices.ContainsFunc(w.heard(version), func(a alert) bool { return a.Kind == "refused" && strings.Contains(a.Message, said.Message) })
	})
	for _, word := range words {
		if !strings.Contains(said.Message, word) {
			w.t.Fatalf("the refusal of %s does not say %q: %s", version, word, said.Message)
		}
	}
	if s := w.status(); s.Current.Version == version {
		w.t.Fatalf("an update to %s has begun: %s", version, s.raw)
	}
	fmt.Printf("boot: %s: refused: %s\n", w.t.Name(), said.Message)
}

// spoils announces a correct release. It spoils the release after the leader has seen it, and before an
// update to it begins. Therefore the workers must refuse it.
func (w *world) spoils(p parts, spoil func()) {
	w.t.Helper()
	w.neco("pause")
	w.announce(p)
	var published struct{ Version string }
	w.eventually("the leader knows release "+p.version, func() bool { return w.look("info/published", &published) && published.Version == p.version })
	spoil()
	w.neco("resume")
}

// swapped serves files that differ from the published ones.
func swapped(w *world, p *parts) {
	w.hears()
	w.fault("swapped")
	w.publish(*p.next())
	w.refuses(p.version, "cannot read SHA256SUMS")
	w.fault("none")
	w.succeeds(p.version)
}

// unsigned publishes an unsigned release while a key is configured.
func unsigned(w *world, p *parts) {
	w.hears()
	w.neco("config set minisign-public-key RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3")
	w.publish(*p.next())
	w.refuses(p.version, "SHA256SUMS.minisig")
	w.neco("config unset minisign-public-key")
	w.succeeds(p.version)
}

// diskFull gives a server no space for the release.
func diskFull(w *world, p *parts) {
	w.on(0, "mount -t tmpfs -o size=1m tmpfs /var/lib/neco/releases")
	w.publish(*p.next())
	w.stops(p.version, "server 10", "step install", "no space left")
	w.on(0, "umount /var/lib/neco/releases")
	w.neco("recover")
	w.succeeds(p.version)
}

// compaction compacts etcd's history and defragments its members one by one, during which they do not
// answer.
func compaction(w *world, p *parts) {
	w.begun(p.news(), 0, installs)
	for range 3 {
		w.on(3, "standin compact "+strings.Join(members(), " "))
	}
	w.succeeds(p.version)
}

// configSet checks that a change of configuration restarts nothing, and that a reexecution of systemd
// disturbs nothing.
func configSet(w *world, p *parts) {
	w.begun(p.news(), 0, updatesCKE)
	before := w.on(0, "systemctl show -p MainPID --value neco-worker neco-updater")
	w.neco("config set worker-timeout 50m")
	w.neco("config set check-update-interval 2s")
	for range 5 {
		for host := range 3 {
			w.on(host, "systemctl daemon-reexec")
		}
	}
	w.succeeds(p.version)
	if after := w.on(0, "systemctl show -p MainPID --value neco-worker neco-updater"); after != before {
		w.t.Errorf("a daemon was restarted: %q, %q", before, after)
	}
}
