package containers

import (
	"strings"
	"testing"
)

// TestConfined checks that containers that reach the state through a gateway work like others, and have
// no direct access to the state. During the test the gateway is killed, hangs, and comes back.
func TestConfined(t *testing.T) {
	w := newWorld(t, "trial", "--config nspawn.confined=true")
	deploy := "juju deploy --series " + w.series + " testscripts/charms/trivial "
	w.sh(deploy + "one && " + deploy + "two && juju add-relation one:server two:client")
	w.eventually("juju status --wide", `(?s)one/0 \S* +started.*two/0 \S* +started`)
	w.eventually("juju do --unit two/0 relation-get -r client private-address one/0", w.address("1"))

	env := w.home + "/trial"
	own := "environment.yaml\ngateway\nmachines\nsocket\ntools\n"
	if said := w.inside("1", "ls "+env+" "+env+"/gateway "+env+"/gateway/1; touch "+env+"/gateway/1/x 2>&1; true"); said !=
		env+":\n"+own+"\n"+env+"/gateway:\n1\n\n"+env+"/gateway/1:\n"+own+"touch: cannot touch '"+env+"/gateway/1/x': Read-only file system" {
		t.Errorf("a container has not its own gateway, or has more: %s", said)
	}
	for _, others := range []string{"state", "secret-keys.yaml", "credentials", "gateway/2", "current"} {
		if said := w.inside("1", "ls -d "+env+"/"+others+" 2>&1; true"); !strings.Contains(said, "No such file or directory") {
			t.Errorf("a container sees %s: %s", others, said)
		}
	}
	if said := w.inside("1", "cat "+env+"/environment.yaml"); !strings.Contains(said, "state: bijou+unix://"+env+"/gateway/1/socket") || strings.Contains(said, "sqlite") {
		t.Errorf("a container's environment.yaml is %s", said)
	}
	w.eventually("juju status --format yaml", `(?s)"0":.*confined: false.*"1":.*confined: true.*"2":.*confined: true`)
	w.sh("juju run one/0 -- 'id=$(secret-add --owner unit password=s3cr3t) && secret-get $id | grep -x \"password: s3cr3t\"'")

	if said := w.inside("1", "pgrep -a machine-agent || ps -eo args | grep [m]achine-agent"); !strings.Contains(said, "--state bijou+unix://"+env+"/gateway/1/socket") {
		t.Errorf("the agent runs as: %s", said)
	}

	// After machine 0's process is killed, the agents must continue as after any outage of their store.
	agents := w.inside("1", "systemctl show -p MainPID bijou-agent") + w.inside("2", "systemctl show -p MainPID bijou-agent")
	process := `$(pgrep -f -- '^\S*machine-agent --machine 0 --env ` + env + `')`
	w.sh("P=" + process + "; kill -9 $P; while kill -0 $P 2>/dev/null; do sleep 0.1; done; juju start && juju run one/0 two/0 -- true")
	w.sh("P=" + process + "; kill -STOP $P; sleep 20; kill -CONT $P")
	w.eventually("juju run one/0 two/0 -- true && echo done", `^done`) // once they have announced themselves again
	if now := w.inside("1", "systemctl show -p MainPID bijou-agent") + w.inside("2", "systemctl show -p MainPID bijou-agent"); now != agents {
		t.Errorf("an agent has ended with its gateway: %s, then %s", agents, now)
	}

	// A machine's files must be removed together with the machine.
	w.sh("juju remove-unit two/0")
	w.eventually("juju destroy-machine 2 >/dev/null 2>&1; juju machines", `(?s)^[^\n]*\n0 [^\n]*\n1 [^\n]*\n$`)
	w.eventually("ls "+env+"/gateway", `\A1\n\z`)
	w.sh("juju destroy-environment -y trial")
}
