package systemd

import (
	"fmt"
	"strings"
	"testing"
)

// TestService runs one environment through all events that can affect its service.
func TestService(t *testing.T) {
	w := newWorld(t)
	w.install()
	for _, part := range []struct {
		name string
		run  func(w *world)
	}{
		{"restart", restart},
		{"stop", stop},
		{"crash", crash},
		{"watchdog", watchdog},
		{"handover", handover},
		{"power cut", powerCut},
		{"a unit alone", alone},
		{"an end", end},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(&world{t, w.host}) }) {
			return
		}
	}
}

// install bootstraps without systemd and deploys two related units, one of which has a daemon. It then hands
// the environment's process over to systemd.
func (w *world) install() {
	w.t.Helper()
	w.on("juju bootstrap")
	w.on("juju deploy /root/recorder one && juju deploy /root/recorder two && juju set one daemon=config-changed && juju add-relation one:server two:client")
	w.eventually("cat "+unitDir("one/0")+"/recorder.log", `"end","hook":"server-relation-changed"`)
	before := w.on("cut -d' ' -f1 " + env + "/machines/0/agent.pid")

	w.on("bijou install --systemd")
	if said := w.on("bijou install --systemd"); strings.Count(said, "already up to date") != 3 {
		w.t.Errorf("a second install says %q", said)
	}
	w.on("systemd-analyze verify /etc/systemd/system/bijou-*.service")
	w.on("mkdir -p /etc/systemd/system/" + machine + ".d; printf '[Service]\\nWatchdogSec=3\\nTimeoutAbortSec=2\\n' >/etc/systemd/system/" + machine + ".d/test.conf; systemctl daemon-reload")
	w.on("systemctl enable --now " + machine)
	pid := w.ready()
	// The previous process must have exited. A zombie does not run a program.
	w.refused("readlink /proc/" + before + "/exe")
	if said := w.on("juju start"); !strings.Contains(said, "process id "+pid+", as systemd's "+machine) {
		w.t.Errorf("juju start says %q", said)
	}
	w.on("cp /etc/systemd/system/" + machine + " /root/kept; echo other >/etc/systemd/system/" + machine)
	if said := w.refused("bijou install --systemd"); !strings.Contains(said, "hint: --force") {
		w.t.Errorf("over a file that is not ours: %q", said)
	}
	w.on("bijou install --systemd --force && cmp /root/kept /etc/systemd/system/" + machine)
	w.change("one", 1)
}

// daemon returns the process id of the charm's daemon.
func (w *world) daemon() string { return w.on("cat " + unitDir("one/0") + "/daemon.pid") }

// goesOn changes an option of both applications, so that their units run hooks. The daemon must still run as the
// same process.
func (w *world) goesOn(daemon string, number int) {
	w.t.Helper()
	w.on("kill -0 " + daemon)
	w.change("one", number)
	w.change("two", number)
	fmt.Printf("systemd: %s: %d hooks done, nothing lost\n", w.t.Name(), w.whole("one/0")+w.whole("two/0"))
}

// held starts a hook that waits, and returns once it waits.
func (w *world) held(number int) {
	w.t.Helper()
	control := unitDir("one/0") + "/control"
	w.on("mkdir -p " + control + "; rm -f " + control + "/go-config-changed; touch " + control + "/hold-config-changed")
	w.on(fmt.Sprintf("juju set one big=%d", number))
	w.eventually("tail -n 1 "+unitDir("one/0")+"/recorder.log", fmt.Sprintf(`"big":%d`, number))
}

// let allows that hook and all later hooks to end.
func (w *world) let() {
	w.t.Helper()
	w.on("rm " + unitDir("one/0") + "/control/hold-config-changed; touch " + unitDir("one/0") + "/control/go-config-changed")
}

// restart checks that a restart waits for the end of a running hook.
func restart(w *world) {
	daemon, pid := w.daemon(), w.main()
	w.held(10)
	w.on("(sleep 1; rm " + unitDir("one/0") + "/control/hold-config-changed; touch " + unitDir("one/0") + "/control/go-config-changed) & systemctl restart " + machine)
	if now := w.ready(); now == pid {
		w.t.Errorf("after a restart it is the same process %s", pid)
	}
	w.seen("one/0", 10)
	for i, all := 0, w.events("one/0"); i+1 < len(all); i++ {
		if all[i].Event == "begin" && all[i+1].Event == "begin" {
			w.t.Errorf("%s was cut off although it had ten seconds", all[i].Hook)
		}
	}
	w.goesOn(daemon, 11)
}

// stop checks that no process of bijou runs after a stop, while the charm's daemon does, and that juju
// start starts the service through systemd.
func stop(w *world) {
	daemon := w.daemon()
	w.on("systemctl stop " + machine)
	w.on("kill -0 " + daemon)
	w.on("juju set one big=20")
	if said := w.on("juju start"); !strings.Contains(said, "as systemd's "+machine) {
		w.t.Errorf("juju start says %q", said)
	}
	w.ready()
	w.seen("one/0", 20)
	w.goesOn(daemon, 21)
}

// crash checks that a running hook counts as failed after a crash, and runs again.
func crash(w *world) {
	daemon := w.daemon()
	for i := range 3 {
		pid := w.main()
		w.held(30 + i)
		w.on("kill -9 " + pid)
		w.let()
		w.another(pid)
		// The hook whose agent was killed may also succeed.
		w.seenTimes("one/0", 30+i, 2)
	}
	w.eventually("juju status --wide", "one/0")
	w.goesOn(daemon, 39)
}

// another waits until the service runs as a different process.
func (w *world) another(pid string) {
	w.t.Helper()
	w.eventually("p=$(systemctl show -p MainPID --value "+machine+"); [ $p != 0 ] && [ $p != "+pid+" ] && echo another", "another")
	w.ready()
}

// watchdog checks that a process that hangs is killed and restarted.
func watchdog(w *world) {
	daemon, pid := w.daemon(), w.main()
	w.on("kill -STOP " + pid)
	w.another(pid)
	w.eventually("journalctl --no-pager -u "+machine, "Watchdog timeout")
	w.goesOn(daemon, 40)
}

// handover checks that a newer binary takes over the service in the same process.
func handover(w *world) {
	daemon, pid, restarts := w.daemon(), w.main(), w.restarts()
	w.on("mkdir -p /opt/new && cp /opt/bijou/bijou /opt/new/bijou && echo newer >>/opt/new/bijou && /opt/new/bijou juju upgrade-juju")
	newest := "$(ls -dt " + env + "/tools/*/ | head -n 1)"
	w.on("[ $(readlink /proc/" + pid + "/exe) = " + newest + "bijou ]")
	if now := w.ready(); now != pid || w.restarts() != restarts {
		w.t.Errorf("process %s, restarts %s; want %s, %s", now, w.restarts(), pid, restarts)
	}
	w.goesOn(daemon, 50)

	// The unit file still names the old binary, which switches to the new one at once.
	w.on("systemctl restart " + machine)
	w.on("[ $(readlink /proc/" + w.ready() + "/exe) = " + newest + "bijou ]")
	w.goesOn(daemon, 51)
	// This is longer than the watchdog's timeout.
	w.on("sleep 4")
	if now := w.restarts(); now != "0" {
		w.t.Errorf("after a hand-over and a restart it was started again %s times", now)
	}
}

// powerCut kills all processes of the host at random moments, and boots it again.
func powerCut(w *world) {
	for i := range 3 {
		number := 60 + i
		w.on(fmt.Sprintf("juju set one big=%d; juju set two big=%d", number, number))
		w.check(w.host.PowerCut())
		w.check(w.host.Start())
		w.ready()
		w.seen("one/0", number)
		w.seen("two/0", number)
	}
	w.goesOn(w.daemon(), 69)
}

// alone runs a unit with its own agent while the machine's agent is stopped.
func alone(w *world) {
	w.on("systemctl stop " + machine)
	w.on("systemctl start bijou-unit-default@two-0.service bijou-provisioner-default.service")
	w.change("two", 70)
	w.on("systemctl restart bijou-unit-default@two-0.service")
	w.change("two", 71)
	w.on("systemctl start --no-block " + machine)
	w.ready()
	w.change("one", 72)
	w.on("systemctl stop bijou-unit-default@two-0.service bijou-provisioner-default.service")
	w.change("two", 73)
	w.whole("two/0")
}

// end checks that the destruction of the environment removes its unit files, and that nothing starts again.
func end(w *world) {
	w.on("juju destroy-environment -y default")
	if left := w.on("ls /etc/systemd/system | grep '^bijou-.*service$' || true"); left != "" {
		w.t.Errorf("unit files are left: %s", left)
	}
	w.eventually("systemctl is-active "+machine, "inactive\n")
	if left := w.on("pgrep -x machine-agent || true"); left != "" {
		w.t.Errorf("a process is left: %s", left)
	}
}
