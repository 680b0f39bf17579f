package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bijou/testscripts/fakes/etcdtest"
)

// part is a step of a test with three boot servers. All three are complete before and after it.
type part struct {
	name string
	run  func(w *world, p *parts)
}

// TestUpdates updates three boot servers from release to release while servers, daemons and links fail.
func TestUpdates(t *testing.T) {
	takeThrough(t, []part{
		{"all components, etcd from 3.5 to 3.6", unattended},
		{"nothing to do", nothing},
		{"workers killed in each step", killed},
		{"power cut in mid-step", powerCut},
		{"power cut in dpkg and etcd", powerCuts},
		{"partition", partition},
		{"partition of the leader in its etcd's turn", partitionInTurn},
		{"updaters killed", leaderKilled},
		{"leaders killed in each state", leadersKilled},
	})
}

// TestBreaks updates three boot servers while releases, disks, commands, clocks and servers have faults.
func TestBreaks(t *testing.T) {
	takeThrough(t, []part{
		{"all components, etcd from 3.5 to 3.6", unattended},
		{"download cut", cut},
		{"sum wrong", swapped},
		{"signature wrong", unsigned},
		{"signed and forged", trusted},
		{"other packages", wrongPackage},
		{"disk full", diskFull},
		{"disk full in dpkg", unpackFull},
		{"compaction and defragmentation", compaction},
		{"configuration set in the middle", configSet},
		{"a release replaced while a server is away", replaced},
		{"a server from an old image, a unit file changed", reinstalled},
		{"a pull that hangs, a package that hangs", hung},
		{"all daemons killed", allKilled},
		{"dpkg in use", dpkgInUse},
		{"a worker that never comes", neverComes},
		{"a server dead for good", serverDead},
		{"clocks an hour off", clocks},
	})
}

// takeThrough installs the first release and then runs the parts in order.
func takeThrough(t *testing.T, all []part) {
	t.Helper()
	w := newWorld(t)
	first := parts{version: "1.0-0", etcd: "3.5", cke: "0", vault: "0", sabakan: "0", serf: "0", deb: "0.0"}
	w.install(first)
	w.succeeds("1.0-0")
	w.on(1, firstImage)
	w.spawn(3, "standin probe "+strings.Join(members(), " "), "/var/log/probe")
	w.spawn(3, "standin load "+strings.Join(members(), " "), "/var/log/load")
	p := first
	w.whole(p)
	for _, part := range all {
		ok := t.Run(part.name, func(t *testing.T) {
			w := &world{t: t, fleet: w.fleet, dir: w.dir}
			part.run(w, &p)
			w.whole(p)
		})
		if !ok {
			// After a failure the servers are not in a defined state for another part.
			return
		}
	}
}

// next turns p into the next release, with the same parts.
func (p *parts) next() *parts {
	major, _, _ := strings.Cut(p.version, "-")
	n, _ := strconv.Atoi(strings.TrimPrefix(major, "1."))
	p.version = fmt.Sprintf("1.%d-0", n+1)
	return p
}

// news turns p into the next release, with a new version of everything except etcd.
func (p *parts) news() *parts {
	p.next()
	n := strings.TrimSuffix(strings.TrimPrefix(p.version, "1."), "-0")
	p.cke, p.vault, p.sabakan, p.serf, p.deb = n, n, n, n, n+".0"
	return p
}

// whole compares all servers with the release that they should have, and checks the records of the services
// and probes.
func (w *world) whole(p parts) {
	w.t.Helper()
	for host := range 3 {
		// A service may just have been killed.
		w.eventually(fmt.Sprintf("all services of host %d are active", host), func() bool {
			// With several units, systemctl succeeds if one of them matches.
			_, err := w.fleet.Host(host).Shell("for unit in cke vault etcd sabakan setup-hw serf ep-agent neco-worker neco-updater; do systemctl is-active -q $unit || exit; done")
			return err == nil
		})
		if v := w.on(host, "dpkg-query -W -f '${Version}' neco"); v != p.version {
			w.t.Errorf("host %d has %s of neco", host, v)
		}
		if v := w.on(host, "dpkg --verify neco"); v != "" {
			w.t.Errorf("host %d: neco's package is not whole: %s", host, v)
		}
		if v := w.on(host, "cd /opt; cat cke/version vault/version sabakan/version serf/version ep-agent/version | tr '\\n' ' '"); v != strings.Join([]string{p.cke, p.vault, p.sabakan, p.serf, p.deb}, " ") {
			w.t.Errorf("host %d has %s", host, v)
		}
		if v := w.on(host, "ls /etc/systemd/system/*.d/90-neco-stopped.conf 2>/dev/null || true"); v != "" {
			w.t.Errorf("host %d: still held: %s", host, v)
		}
		if v := w.on(host, "cat /var/lib/neco/components/setup-hw.env"); v != "IMAGE="+images+"/setup-hw:"+p.sabakan {
			w.t.Errorf("host %d: %s", host, v)
		}
		w.contained(host, "setup-hw:"+p.sabakan)
	}
	w.clustered(p.serf)
	for _, log := range []string{"outages", "lost"} {
		if said := w.on(3, "cat "+logs+"/"+log+" 2>/dev/null || true"); said != "" {
			w.t.Errorf("%s: %s", log, said)
		}
	}
	w.apart("cke")
	w.apart("vault")
}

// contained waits until an image's container runs on a host, and checks that its content is the
// image's.
func (w *world) contained(host int, image string) {
	w.t.Helper()
	name, _, _ := strings.Cut(image, ":")
	w.eventually(image+" runs", func() bool {
		out, err := w.fleet.Host(host).Exec("podman", "ps", "--filter=status=running", "--format={{.Names}} {{.Image}}")
		return err == nil && out == name+" "+images+"/"+image+"\n"
	})
	if v := w.on(host, "cat /proc/$(podman inspect --format '{{.State.Pid}}' "+name+")/root/image"); v != image {
		w.t.Errorf("host %d: the container of %s is of %s", host, image, v)
	}
}

// apart checks that two versions of a component never ran at the same time, on any servers.
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
				// A kill has cut off this line.
				continue
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

// unattended only publishes a release.
func unattended(w *world, p *parts) {
	p.news().etcd = "3.6"
	w.publish(*p)
	w.succeeds(p.version)
	for host := range 3 {
		if v := w.on(host, "/opt/etcd/etcd --version | head -n1; readlink -f /proc/$(pidof etcd)/exe"); !strings.Contains(v, etcdtest.Version) || strings.Contains(v, "by-test") {
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
	fmt.Printf("boot: %s looks at Serf, which saw leave: %s\n", w.on(3, "cat "+logs+"/serf-looks"), w.on(3, "sort "+logs+"/serf-left | uniq -c | tr '\\n' ' '"))
}

// pids returns the process ids of the services that must not be restarted.
func (w *world) pids() (all string) {
	for host := range 3 {
		all += w.on(host, "systemctl show -p MainPID --value etcd sabakan setup-hw serf ep-agent | tr '\\n' ' '")
	}
	return all
}

// nothing publishes a release that changes nothing. Only the components that every update stops may be
// restarted.
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
