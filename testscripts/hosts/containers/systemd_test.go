package containers

import (
	"os/exec"
	"testing"
	"time"

	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/fleet"
	"bijou/testscripts/kit/need"
)

// TestUnderSystemd checks that containers are systemd's units on a host that runs systemd. They continue to
// run without the background process, and are removed with their machine. They boot from the host's own
// system.
func TestUnderSystemd(t *testing.T) {
	need.Long(t)
	fleet.Need(t)
	host := fleet.New(t, 1).Host(0)
	binary := versions.Current(t)
	on := func(line string) string { t.Helper(); return host.On(t, line) }
	eventually := func(line, want string) {
		t.Helper()
		host.Await(t, await.Poll{Limit: limit, Pause: 100 * time.Millisecond, Report: func() string {
			journal, _ := host.Shell("juju status; journalctl --no-pager -n 40; tail -n 30 /root/.bijou/default/machines/0/agent.log")
			return journal
		}}, line, want)
	}
	program, err := exec.LookPath("systemd-nspawn")
	if err != nil {
		t.Fatal(err)
	}
	host.Put(t, program, "/usr/bin/systemd-nspawn")
	host.Put(t, binary, "/opt/bijou/bijou")
	// The host's files are an overlay, on which no second overlay can be mounted.
	on("/opt/bijou/bijou install --dir /usr/local/bin && mkdir /root/.bijou && mount -t tmpfs tmpfs /root/.bijou")
	on("juju bootstrap --provider nspawn --config nspawn.tree=/ && juju add-machine --constraints mem=300M")
	eventually("juju machines | grep -c running", "2")
	// The instance is recorded after the agent has started.
	eventually(`juju machines | awk '$1 == 1 { print $4 }'`, "bj")
	unit := "bijou-" + on(`juju machines | awk '$1 == 1 { print $4 }'`) + ".service"
	if is := on("systemctl show -p MemoryMax --value " + unit); is != "314572800" {
		t.Errorf("MemoryMax is %s", is)
	}
	on("juju stop && systemctl is-active " + unit + " && juju start")
	on("systemctl kill -s KILL " + unit)
	eventually("juju machines | grep '^1'; systemctl is-active "+unit, "\nactive")
	on("juju destroy-environment -y default")
	await.Until(t, await.Poll{Limit: time.Minute, Pause: 50 * time.Millisecond}, "nothing is left on the host", func() string {
		return on("systemctl list-units --all --plain --no-legend 'bijou-*'; ip -o link | grep bj; ls /root/.bijou | grep -v current; ls /run/systemd/transient | grep bijou || true")
	})
}
