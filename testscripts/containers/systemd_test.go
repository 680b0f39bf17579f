package containers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/fleet"
	"bijou/testscripts/need"
)

// TestUnderSystemd: on a host that systemd manages, containers are its units: they go
// on without the background process, and are gone with their machine. The host's own
// system is the tree that they boot from.
func TestUnderSystemd(t *testing.T) {
	need.Long(t)
	fleet.Need(t)
	host := fleet.New(t, 1).Host(0)
	w := &world{t: t, bin: t.TempDir(), home: t.TempDir()}
	w.build()
	put := func(from, to string) {
		t.Helper()
		path, err := host.Path(to)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-a", from, path).CombinedOutput(); err != nil {
			t.Fatalf("cannot copy to the host: %v\n%s", err, out)
		}
	}
	on := func(line string) string {
		t.Helper()
		out, err := host.Exec("bash", "-c", line)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	eventually := func(line, want string) {
		t.Helper()
		out := ""
		for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if out, _ = host.Exec("bash", "-c", line); strings.Contains(out, want) {
				return
			}
		}
		journal, _ := host.Exec("bash", "-c", "juju status; journalctl --no-pager -n 40; tail -n 30 /root/.bijou/default/machines/0/agent.log")
		t.Fatalf("%s: it never said %q, but\n%s\n%s", line, want, out, journal)
	}
	program, err := exec.LookPath("systemd-nspawn")
	if err != nil {
		t.Fatal(err)
	}
	put(program, "/usr/bin/systemd-nspawn")
	put(filepath.Join(w.bin, "bijou"), "/opt/bijou/bijou")
	// Its files are an overlay, over which there can be no second one.
	on("/opt/bijou/bijou install --dir /usr/local/bin && mkdir /root/.bijou && mount -t tmpfs tmpfs /root/.bijou")
	on("juju bootstrap --provider nspawn --config nspawn.tree=/ && juju add-machine --constraints mem=300M")
	eventually("juju machines | grep -c running", "2")
	eventually(`juju machines | awk '$1 == 1 { print $4 }'`, "bj") // which is recorded after the agent has come up
	unit := "bijou-" + on(`juju machines | awk '$1 == 1 { print $4 }'`) + ".service"
	if is := on("systemctl show -p MemoryMax --value " + unit); is != "314572800" {
		t.Errorf("MemoryMax is %s", is)
	}
	on("juju stop && systemctl is-active " + unit + " && juju start")
	on("systemctl kill -s KILL " + unit)
	eventually("juju machines | grep '^1'; systemctl is-active "+unit, "\nactive")
	on("juju destroy-environment -y default")
	left := "?"
	for end := time.Now().Add(time.Minute); left != "" && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		left = on("systemctl list-units --all --plain --no-legend 'bijou-*'; ip -o link | grep bj; ls /root/.bijou | grep -v current; ls /run/systemd/transient | grep bijou || true")
	}
	if left != "" {
		t.Errorf("left on the host: %s", left)
	}
}
