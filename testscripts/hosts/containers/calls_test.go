package containers

import (
	"strings"
	"testing"
)

// TestCalls checks juju-exec from processes of a unit's container that no hook has started, such as
// cron jobs and daemons of charms. The unit's install hook installs a package without updating the
// package index first.
func TestCalls(t *testing.T) {
	packages := t.TempDir()
	w := newWorld(t, "calls", "--config nspawn.apt-repository="+packages)
	w.sh(`mkdir -p ` + w.home + `/greeting/DEBIAN && cat >` + w.home + `/greeting/DEBIAN/control <<'END'
Package: greeting
Version: 1
Architecture: all
Maintainer: nobody <nobody@example.com>
Description: says nothing
END
dpkg-deb --root-owner-group --build ` + w.home + `/greeting ` + packages + `/greeting.deb && rm -r ` + w.home + `/greeting`)
	charm := t.TempDir() + "/called"
	w.sh(`mkdir -p ` + charm + `/hooks && cat >` + charm + `/metadata.yaml <<'END'
name: called
summary: is called
END
printf 'options:\n  word: {type: string, default: hello}\n' >` + charm + `/config.yaml
printf '#!/bin/sh\napt-get install -y greeting\n' >` + charm + `/hooks/install
chmod 755 ` + charm + `/hooks/*`)

	w.sh("juju deploy --series " + w.series + " " + charm)
	w.eventually("juju status --wide", `called/0 \S* +started`)

	// systemd starts this process, without a hook's environment and outside the agent's service.
	cron := "systemd-run --quiet --wait --pipe --collect "
	if said := w.inside("1", cron+"/usr/bin/juju-exec called/0 'config-get word; pwd'"); !strings.HasPrefix(said, "hello\n") ||
		!strings.HasSuffix(said, "/charm") {
		t.Errorf("juju-exec prints %q", said)
	}
	w.inside("1", cron+"/usr/bin/juju-run -u called/0 'status-set blocked by-cron'")
	w.eventually("juju status --wide", `called/0 .*blocked +.*by-cron`)
	if said := w.inside("1", "! "+cron+"/usr/bin/juju-exec called/1 true 2>&1"); !strings.Contains(said, `"called/1" not found`) {
		t.Errorf("of a unit that is not here juju-exec says %q", said)
	}

	w.sh("juju destroy-environment -y calls")
}
