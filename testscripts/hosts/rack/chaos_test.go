package rack

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// services are the services of the environment. Each has a unit on each machine.
var services = []string{"hub", "east", "west"}

// TestChaos repeatedly cuts the power of a host, cuts the network of a host, and kills the leading
// provisioner, in an environment of three hosts whose units change their relations all the time.
func TestChaos(t *testing.T) {
	w := newWorld(t)
	w.startEtcd()
	w.bootstrap()
	w.deploy()
	w.settle("the beginning")
	for _, fault := range []struct {
		name   string
		strike func()
	}{
		{"a power cut", func() { w.cutPower(2) }},
		{"a link that is cut", func() { w.cutLink(1) }},
		{"the provisioner's leader killed", w.killLeader},
	} {
		l := w.drive()
		fault.strike()
		l.halt(fault.name)
		w.settle(fault.name)
		w.agents()
	}
	w.upgrade()
	w.settle("the upgrade")
	w.agents()
	w.destroy()
}

// destroy destroys the environment, and checks that nothing remains except the files that were installed on
// the hosts by hand.
func (w *world) destroy() {
	w.t.Helper()
	w.juju("destroy-environment -y")
	for i := range w.hosts {
		// On host 0 the unit file was installed by hand, so it remains. On the other hosts only the *.d
		// directories were installed by hand.
		units := ""
		if i > 0 {
			units = "find /etc/systemd/system -name 'bijou*' ! -name '*.d';"
		}
		left := w.on(i, "pgrep -a -f '[m]achine-agent --machine'; pgrep -a -f '/[u]nits/'; ls -d /var/lib/bijou /root/.bijou/default /run/bijou/* 2>/dev/null; "+units+" true")
		if left != "" {
			w.t.Errorf("after destroy-environment there is on %s:\n%s", w.hosts[i].Name, left)
		}
	}
}

// upgrade upgrades all hosts to a binary that only host 0 has.
func (w *world) upgrade() {
	w.t.Helper()
	w.on(0, "mkdir /opt/newer && cp /opt/bijou/bijou /opt/newer/ && echo newer >>/opt/newer/bijou")
	began := time.Now()
	w.on(0, "/opt/newer/bijou juju upgrade-juju --wait 2m")
	w.eventually("all agents are what machine 0's is", func() string {
		s, err := w.status()
		if err != nil {
			return err.Error()
		}
		for id, m := range s.Machines {
			if m.Agent != s.Machines["0"].Agent {
				return fmt.Sprintf("machine %s runs %s, and machine 0 %s", id, m.Agent, s.Machines["0"].Agent)
			}
		}
		return w.untrue("")
	})
	fmt.Printf("rack: all hosts run a newer binary %.1f s after upgrade-juju was called\n", time.Since(began).Seconds())
}

// bootstrap makes host 0 machine 0, and adds the other hosts through the provider ssh.
func (w *world) bootstrap() {
	w.t.Helper()
	w.write(0, "/root/password", password+"\n")
	w.on(0, "mkdir -p /root/.ssh && ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519")
	key := w.on(0, "cat /root/.ssh/id_ed25519.pub")
	for i, h := range w.hosts {
		w.write(i, "/root/.ssh/authorized_keys", key+"\n")
		w.on(i, "systemctl enable --now --quiet ssh")
		known := fmt.Sprintf("%s %s\n", h.Address, w.on(i, "cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub"))
		w.on(0, fmt.Sprintf("echo '%s' >>/root/.ssh/known_hosts", strings.TrimSpace(known)))
	}
	// Machine 1 also runs a provisioner, which must be able to reach machine 2's host.
	for _, file := range []string{"id_ed25519", "known_hosts"} {
		w.copy(1, w.hosts[0].Disk("/root/.ssh/"+file), "/root/.ssh/"+file)
	}
	w.juju("bootstrap --provider ssh --state '" + w.stateURL() + "' --config update-status-interval=0 --config ssh.identity=/root/.ssh/id_ed25519 --config ssh.known-hosts=/root/.ssh/known_hosts")
	w.on(0, "bijou install --systemd && systemctl --quiet enable --now bijou-machine-default.service")
	w.juju("add-machine --provisioner ssh:root@" + w.hosts[1].Address)
	w.juju("add-machine ssh:root@" + w.hosts[2].Address)
	w.eventually("all machines run", func() string {
		s, err := w.status()
		if err == nil && len(s.Machines) != 3 {
			err = fmt.Errorf("there are %d machines", len(s.Machines))
		}
		if err != nil {
			return err.Error()
		}
		return w.untrue("")
	})
}

// deploy puts three units on each machine.
func (w *world) deploy() {
	w.t.Helper()
	for _, s := range services {
		w.juju("deploy /root/recorder " + s + " --to 0")
		w.juju("add-unit " + s + " --to 1")
		w.juju("add-unit " + s + " --to 2")
	}
	for _, s := range services[1:] {
		w.juju("add-relation " + s + ":client " + services[0] + ":server")
	}
	w.eventually("all units have started", func() string { return w.untrue("") })
	w.findRecords(9)
	// Systemd restarts a killed service later than usual, so that its death is recorded before the service
	// runs again, and the other provisioner leads next. The delay is twice the time that this may take, so
	// that the machine is still down when its status is checked.
	for i := range w.hosts {
		w.on(i, `for u in /etc/systemd/system/bijou-machine-*.service; do
			mkdir -p "$u.d" && printf '[Service]\nRestartSec=60\nRestartSteps=0\n' >"$u.d/rack.conf"
		done; systemctl daemon-reload`)
	}
}

// pause is the time between two faults.
const pause = 4 * time.Second

// cutPower cuts a host's power, and restores it.
func (w *world) cutPower(host int) {
	w.t.Helper()
	time.Sleep(pause)
	check(w.t, w.hosts[host].PowerCut())
	w.bury(host)
	w.tell("status after a host lost its power", fmt.Sprint(host))
	check(w.t, w.hosts[host].Start())
	w.tell("status after it came back, from its boot on", "")
	time.Sleep(pause)
}

// cutLink cuts a host's network, and restores it.
func (w *world) cutLink(host int) {
	w.t.Helper()
	time.Sleep(pause)
	check(w.t, w.hosts[host].Link(false))
	w.tell("status after a host's link was cut", fmt.Sprint(host))
	time.Sleep(pause)
	check(w.t, w.hosts[host].Link(true))
	w.tell("status after the link was back", "")
	time.Sleep(pause)
}

// killLeader kills the process of the leading provisioner, with the processes that its hooks have started. It
// waits until the other provisioner leads.
func (w *world) killLeader() {
	w.t.Helper()
	time.Sleep(pause)
	// The leader is the provisioner that was the last to log that it leads.
	leader, other := 0, 1
	if w.lastLed(1) > w.lastLed(0) {
		leader, other = 1, 0
	}
	before := w.leadings(other)
	w.on(leader, "systemctl kill --signal=KILL --kill-whom=all 'bijou-machine-*.service'")
	w.bury(leader)
	w.within("another provisioner leads after the leader's process was killed", w.eventually("another provisioner leads", func() string {
		if w.leadings(other) > before {
			return ""
		}
		return fmt.Sprintf("%s does not lead, and %s was killed", w.hosts[other].Name, w.hosts[leader].Name)
	}))
	w.eventually("the status tells of its machine", func() string { return w.untrue(fmt.Sprint(leader)) })
	w.eventually("it was started again", func() string { return w.untrue("") })
	time.Sleep(pause)
}

// lastLed returns the time in seconds when the host's provisioner last began to lead.
func (w *world) lastLed(host int) (at float64) {
	out := w.on(host, "journalctl --no-pager -o short-unix -u 'bijou-*' | grep 'provisioner leads' | tail -n 1 || true")
	if out == "" {
		return 0
	}
	if _, err := fmt.Sscan(out, &at); err != nil {
		w.t.Fatalf("cannot read %q: %v", out, err)
	}
	return at
}
