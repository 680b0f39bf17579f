package boot

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"bijou/testscripts/kit/fleet"
	"bijou/updater/release"
)

// Serf's binary comes from Debian and is packed into an archive. To imitate a new version, its configuration
// sets a tag with the version, which all members of the cluster see.

// serfArchive makes the archive of a version of Serf and returns its entry for a manifest.
func (w *world) serfArchive(version string) string {
	w.t.Helper()
	tree, err := fleet.Tree()
	w.check(err)
	w.write("serf-"+version+"/agent.json", serfConfig(version), 0o644)
	w.run("cp", filepath.Join(tree, "usr/bin/serf"), w.path("serf-"+version, "serf"))
	return w.archive("serf", version, "serf", "agent.json")
}

// serfConfig returns a configuration with which members that have lost each other meet again within
// seconds.
func serfConfig(version string) string {
	return fmt.Sprintf(`{"tags": {"version": %q}, "reconnect_interval": "2s", "retry_interval": "1s", "log_level": "warn", "rpc_addr": "0.0.0.0:7373"}`, version)
}

// serfAgent returns the command line of a member, which joins all other boot servers.
func serfAgent(program, config, name, address string) string {
	line := fmt.Sprintf("%s agent -config-file=%s -node=%s -bind=%s", program, config, name, address)
	for _, m := range members() {
		if m != address {
			line += " -retry-join=" + m
		}
	}
	return line
}

// serfUnit returns the service of Serf on a boot server, like that of Debian's package. When the service is
// stopped, its member leaves the cluster, and the others notice that immediately.
func serfUnit(host int) string {
	agent := serfAgent("/opt/serf/serf", "/opt/serf/agent.json", fmt.Sprintf("boot-%d", 10+host), members()[host])
	return strings.Replace(unit("serf", "serf", "KillSignal=SIGINT"), "/usr/local/bin/serf", agent, 1)
}

// serfChecks returns the checks of Serf in the built-in manifest.
func (w *world) serfChecks() string {
	w.t.Helper()
	m, err := release.DefaultManifest()
	w.check(err)
	for _, c := range m.Components {
		if c.Name == "serf" {
			return fmt.Sprintf("health: {command: %s}, members: {command: %s}", list(c.Health.Command), list(c.Members.Command))
		}
	}
	w.t.Fatal("there is no Serf in the manifest that is built in")
	return ""
}

// list returns a YAML list of strings.
func list(words []string) string {
	var quoted []string
	for _, word := range words {
		quoted = append(quoted, fmt.Sprintf("%q", word))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// alive returns the boot servers' members that are alive, as this host's member sees them.
func alive() (map[string]bool, error) {
	out, err := exec.Command("serf", "members", "-status=alive", "-name=boot-.*").Output()
	names := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 {
			names[f[0]] = true
		}
	}
	return names, err
}

// answering returns the boot servers' members that accept connections. It does not use the view of the other
// members: when a member is cut off, they may briefly consider another member dead if the machine is busy.
func answering() (addresses []string) {
	var asked sync.WaitGroup
	var mu sync.Mutex
	for _, m := range members() {
		asked.Go(func() {
			c, err := net.DialTimeout("tcp", m+":7373", time.Second)
			if err != nil {
				return
			}
			c.Close()
			mu.Lock()
			defer mu.Unlock()
			addresses = append(addresses, m)
		})
	}
	asked.Wait()
	return addresses
}

// serving returns the number of boot servers that must serve. One of three may be away at a time, and so may
// one of the two that remain after a death.
func serving() int {
	data, err := os.ReadFile(filepath.Join(logs, servingFile))
	if n, bad := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && bad == nil {
		return n
	}
	return len(members())
}

// servingFile contains the number of serving boot servers if it differs from the default.
const servingFile = "serving"

// watchSerf checks the cluster several times a second once it is complete. It records each time when more
// than one of the serving members does not answer, and the members that leave.
func watchSerf() error {
	before := map[string]bool{}
	for n := 0; ; time.Sleep(150 * time.Millisecond) {
		now, err := alive()
		if err != nil || n == 0 && len(now) < len(members()) {
			continue
		}
		for name := range before {
			if !now[name] {
				if err := line("serf-left", "%s", name); err != nil {
					return err
				}
			}
		}
		least := serving() - 1
		if live := answering(); len(live) < least {
			if err := line("outages", "%s of Serf only %v answer", time.Now().Format(time.RFC3339Nano), live); err != nil {
				return err
			}
		}
		before = now
		n++
		if err := tell("serf-looks", n); err != nil {
			return err
		}
	}
}

// clustered waits until all members see that all members run this version.
func (w *world) clustered(version string) {
	w.t.Helper()
	for host := range 4 {
		w.eventually(fmt.Sprintf("host %d sees three members of Serf %s", host, version), func() bool {
			out, err := w.fleet.Host(host).Exec("serf", "members", "-status=alive", "-name=boot-.*", "-tag=version="+version)
			return err == nil && strings.Count(out, "alive") == 3
		})
	}
}
