package boot

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestBootServers takes three boot servers from release to release.
func TestBootServers(t *testing.T) {
	w := newWorld(t)
	first := parts{"1.0-0", "3.5", "1", "1", "1", "1", "1.0"}
	w.install(first)
	w.succeeds("1.0-0")
	w.spawn(3, "standin probe "+strings.Join(members(), " "), "/var/log/probe")
	w.spawn(3, "standin load "+strings.Join(members(), " "), "/var/log/load")
	p := first
	w.whole(p)
	for _, part := range []struct {
		name string
		run  func(w *world, p *parts)
	}{
		{"all components, etcd from 3.5 to 3.6", unattended},
		{"nothing to do", nothing},
		{"workers killed in each step", killed},
		{"power cut in mid-step", powerCut},
		{"partition", partition},
		{"updaters killed", leaderKilled},
		{"download cut", cut},
		{"sum wrong", swapped},
		{"signature wrong", unsigned},
		{"disk full", diskFull},
		{"compaction and defragmentation", compaction},
		{"configuration set in the middle", configSet},
		{"a server without a worker", missing},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			w := &world{t: t, fleet: w.fleet, dir: w.dir}
			part.run(w, &p)
			w.whole(p)
		})
		if !ok {
			return // where the servers are now is no beginning for another case
		}
	}
}

// next is the next release, of the same parts.
func (p *parts) next() *parts {
	major, _, _ := strings.Cut(p.version, "-")
	n, _ := strconv.Atoi(strings.TrimPrefix(major, "1."))
	p.version = fmt.Sprintf("1.%d-0", n+1)
	return p
}

// news is the next release, of which all is new but etcd.
func (p *parts) news() *parts {
	p.next()
	n := strings.TrimSuffix(strings.TrimPrefix(p.version, "1."), "-0")
	p.cke, p.vault, p.sabakan, p.serf, p.deb = n, n, n, n, n+".0"
	return p
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("it never came true: %s\n%s", what, w.journals())
		}
	}
}

// whole holds all servers against the release that they should be at, and against
// what was seen meanwhile.
func (w *world) whole(p parts) {
	w.t.Helper()
	for host := range 3 {
		if v := w.on(host, "dpkg-query -W -f '${Version}' neco; systemctl is-active -q cke vault etcd sabakan setup-hw serf ep-agent neco-worker neco-updater && echo ' all active'"); v != p.version+" all active" {
			w.t.Errorf("host %d: %s", host, v)
		}
		if v := w.on(host, "cd /opt; cat cke/version vault/version sabakan/version serf/version ep-agent/version | tr '\\n' ' '"); v != strings.Join([]string{p.cke, p.vault, p.sabakan, p.serf, p.deb}, " ") {
			w.t.Errorf("host %d has %s", host, v)
		}
		if v := w.on(host, "ls /etc/systemd/system/*.d/90-neco-stopped.conf 2>/dev/null || true"); v != "" {
			w.t.Errorf("host %d: still held: %s", host, v)
		}
		if v := w.on(host, "cat /var/lib/neco/components/setup-hw.env"); v != "IMAGE=quay.io/example/setup-hw:"+p.sabakan {
			w.t.Errorf("host %d: %s", host, v)
		}
	}
	for _, log := range []string{"outages", "lost"} {
		if said := w.on(3, "cat "+logs+"/"+log+" 2>/dev/null || true"); said != "" {
			w.t.Errorf("%s: %s", log, said)
		}
	}
	w.apart("cke")
	w.apart("vault")
}

// apart makes sure that no version of a component lived when the next one did, on
// whatever servers.
func (w *world) apart(component string) {
	w.t.Helper()
	first, last := map[string]int64{}, map[string]int64{}
	for host := range 3 {
		path, err := w.fleet.Host(host).Path(filepath.Join(logs, component))
		w.check(err)
		data, err := os.ReadFile(path)
		w.check(err)
		for line := range strings.Lines(string(data)) {
			version, at, ok := strings.Cut(strings.TrimSpace(line), " ")
			ns, err := strconv.ParseInt(at, 10, 64)
			if !ok || err != nil {
				continue // cut off by a kill
			}
			if first[version] == 0 || ns < first[version] {
				first[version] = ns
			}
			last[version] = max(last[version], ns)
		}
	}
	for a := range first {
		for b := range first {
			if a != b && first[a] <= first[b] && last[a] >= first[b] {
				w.t.Errorf("%s: version %s lived until %d, version %s since %d", component, a, last[a], b, first[b])
			}
		}
	}
}

// unattended: all that is done is that a release appears.
func unattended(w *world, p *parts) {
	p.news().etcd = "3.6"
	w.publish(*p)
	w.succeeds(p.version)
	for host := range 3 {
		if v := w.on(host, "/opt/etcd/etcd --version | head -n1; readlink -f /proc/$(pidof etcd)/exe"); !strings.Contains(v, "3.6.5") || strings.Contains(v, "by-test") {
			w.t.Errorf("host %d runs %s", host, v)
		}
		if v := w.on(host, "sort "+logs+"/unsealed | uniq -c | awk '{print $2}' | tr '\\n' ' '; journalctl -o cat | grep -c key- || true"); v != "key-one key-three key-two 0" {
			w.t.Errorf("host %d: unsealed with %s", host, v)
		}
	}
	held := ""
	for host := range 3 {
		held += w.on(host, "cat "+logs+"/sabakan 2>/dev/null || true") + "\n"
	}
	for _, what := range []string{"images/coreos/" + p.version + " ", "ignitions/boot/" + p.version + " ", "tools-" + p.version + ".img "} {
		if n := strings.Count(held, what); n != 1 {
			w.t.Errorf("%s was uploaded %d times:\n%s", what, n, held)
		}
	}
	fmt.Printf("boot: %s probes of etcd, %s writes to it\n", w.on(3, "cat "+logs+"/probes"), w.on(3, "cat "+logs+"/load"))
}

// pids are the processes of services that nothing should touch.
func (w *world) pids() (all string) {
	for host := range 3 {
		all += w.on(host, "systemctl show -p MainPID --value etcd sabakan setup-hw serf ep-agent | tr '\\n' ' '")
	}
	return all
}

// nothing: of a release that changes nothing, only what is always stopped is started again.
func nothing(w *world, p *parts) {
	before := w.pids()
	w.publish(*p.next())
	w.succeeds(p.version)
	if after := w.pids(); after != before {
		w.t.Errorf("something was restarted: %s, %s", before, after)
	}
	fmt.Printf("boot: nothing to do: %s\n", w.neco("history 1"))
	if out := os.Getenv("BIJOU_BOOT_JOURNAL"); out != "" {
		_ = os.WriteFile(out, []byte(w.on(0, "journalctl --no-pager -o short-precise -u neco-worker -u neco-updater -n 90")), 0o600)
	}
}

// killed: each worker dies once in everything that it does.
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

// begun publishes a release and waits until a server's worker has come to a step.
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
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		if request, at := doing(); request > before && at >= step {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("host %d never came to step %d\n%s", host, step, w.journals())
		}
	}
}

// The steps that begun is asked for.
const (
	installs   = 0
	updatesCKE = 2
	stopsVault = 3
)

// powerCut: a server loses power in the middle of its update.
func powerCut(w *world, p *parts) {
	w.begun(p.news(), 1, stopsVault)
	w.check(w.fleet.Host(1).PowerCut())
	w.check(w.fleet.Host(1).Start())
	w.succeeds(p.version)
}

// partition: a server reaches nobody for a while.
func partition(w *world, p *parts) {
	w.begun(p.news(), 2, updatesCKE)
	w.check(w.fleet.Host(2).Link(false))
	w.eventually("others have noticed", func() bool { return strings.Contains(fmt.Sprint(w.status().Current.Missing), "12") })
	w.check(w.fleet.Host(2).Link(true))
	w.succeeds(p.version)
}

// leaderKilled: whichever updater leads dies.
func leaderKilled(w *world, p *parts) {
	w.begun(p.news(), 0, updatesCKE)
	for host := range 3 {
		w.on(host, "systemctl kill -s KILL neco-updater || true")
	}
	w.succeeds(p.version)
}

// fault has the server of releases misbehave.
func (w *world) fault(name string) { w.on(3, "echo "+name+" >/srv/fault; sleep 0.2") }

// cut: for some seconds every answer ends half-way.
func cut(w *world, p *parts) {
	w.fault("cut")
	w.begun(p.next(), 0, installs)
	w.on(3, "sleep 4")
	w.fault("none")
	w.succeeds(p.version)
}

// swapped: what comes is not what was published.
func swapped(w *world, p *parts) {
	w.fault("swapped")
	w.publish(*p.next())
	w.stops(p.version, "server 1", "step install", "sum")
	w.fault("none")
	w.neco("retry")
	w.succeeds(p.version)
}

// unsigned: a key is configured, and the release is not signed.
func unsigned(w *world, p *parts) {
	w.neco("config set minisign-public-key RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3")
	w.publish(*p.next())
	w.stops(p.version, "server 1", "step install", "SHA256SUMS.minisig")
	w.neco("config unset minisign-public-key")
	w.neco("retry")
	w.succeeds(p.version)
}

// diskFull: a server has no room for the release.
func diskFull(w *world, p *parts) {
	w.on(0, "mount -t tmpfs -o size=1m tmpfs /var/lib/neco/releases")
	w.publish(*p.next())
	w.stops(p.version, "server 10", "step install", "no space left")
	w.on(0, "umount /var/lib/neco/releases")
	w.neco("recover")
	w.succeeds(p.version)
}

// compaction: etcd forgets its history, and its members stand still, one by one.
func compaction(w *world, p *parts) {
	w.begun(p.news(), 0, installs)
	for range 3 {
		w.on(3, "standin compact "+strings.Join(members(), " "))
	}
	w.succeeds(p.version)
}

// configSet: a change of configuration restarts nothing.
func configSet(w *world, p *parts) {
	w.begun(p.news(), 0, updatesCKE)
	before := w.on(0, "systemctl show -p MainPID --value neco-worker neco-updater")
	w.neco("config set worker-timeout 50m")
	w.neco("config set check-update-interval 2s")
	w.succeeds(p.version)
	if after := w.on(0, "systemctl show -p MainPID --value neco-worker neco-updater"); after != before {
		w.t.Errorf("a daemon was restarted: %q, %q", before, after)
	}
}

// missing: a server whose worker does not run is named long before the time is over.
func missing(w *world, p *parts) {
	w.on(2, "systemctl stop neco-worker")
	w.publish(*p.next())
	w.await(p.version, "server 12 is named", func(s status) bool { return fmt.Sprint(s.Current.Missing) == "[12]" })
	w.on(2, "systemctl start neco-worker")
	w.succeeds(p.version)
}
