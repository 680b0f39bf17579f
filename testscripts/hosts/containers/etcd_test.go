package containers

import (
	"strings"
	"testing"

	"bijou/testscripts/fakes/etcdtest"
)

// TestEtcd checks that containers see the environment's directory and cannot write into it when the
// state is in etcd. A machine that cannot be made must show the reason.
func TestEtcd(t *testing.T) {
	w := newWorld(t, "trial", "--state '"+etcdtest.For(t, etcdtest.Options{}).URL("/trial")+"'")
	w.sh("juju deploy --series " + w.series + " testscripts/charms/trivial one && juju deploy --series " + w.series + " testscripts/charms/trivial two && juju add-relation one:server two:client")
	w.eventually("juju status --wide", `(?s)one/0 \S* +started.*two/0 \S* +started`)
	w.eventually("juju do --unit two/0 relation-get -r client private-address one/0", w.address("1"))

	env := w.home + "/trial"
	if said := w.inside("1", "touch "+env+"/x 2>&1; ls "+env+"/machines "+env+"/nspawn"); !strings.Contains(said, "Read-only") ||
		!strings.HasSuffix(said, "/machines:\n1\n\n"+env+"/nspawn:") {
		t.Errorf("a container writes, or sees more than its own: %s", said)
	}
	if said := w.inside("1", "ping -c1 -W5 "+w.address("2")); !strings.Contains(said, " 0% packet loss") {
		t.Errorf("containers do not reach each other: %s", said)
	}

	// Impossible machines must be refused, and must not delay the next one.
	w.sh("juju add-machine --constraints 'arch=s390x tags=ssd' && juju add-machine && juju add-machine --constraints mem=256M")
	w.sh(`! juju add-machine --series noble 2>refused && grep -q 'machines of this model cannot have series "noble"' refused`)
	w.eventually("juju status --wide", `arch=s390x tags=ssd.*: it has `)
	w.eventually("juju machines", `(?m)^5 +running`)
	w.sh("juju destroy-machine 3 4 5")
	w.eventually("juju machines | wc -l", `^4\n`)
	w.sh("juju destroy-environment -y trial")
}
