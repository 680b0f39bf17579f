package systemd

import (
	"strings"
	"testing"

	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/fleet"
	"bijou/testscripts/kit/need"
)

// TestPackage installs Debian's package of a release, upgrades it while units work and a boot server's
// daemons run, and removes it without a trace.
func TestPackage(t *testing.T) {
	need.Long(t)
	fleet.Need(t)
	w := &world{t, fleet.New(t, 1).Host(0)}
	release := versions.Release{Version: "1.0-1", Arch: "amd64", Binary: versions.Current(t), Folder: t.TempDir()}
	first := release.Debian(t)
	release.Version, release.Binary = "1.0-2", versions.Build(t, []string{"BIJOU_LDFLAGS=-X bijou/multicall/applet.Version=1.0-2"})
	second := release.Debian(t)
	w.host.Put(t, first, "/root/first.deb")
	w.host.Put(t, second, "/root/second.deb")
	w.host.Put(t, "../../../multicall/tour/charms", "/root/charms")
	// The triggers of dpkg would do this later in any case.
	w.on("ldconfig; systemd-sysusers; true")
	before := w.files()

	w.on("dpkg -i /root/first.deb")
	w.on("for name in juju neco machine-agent neco-worker; do command -v $name || exit 1; done; /usr/lib/bijou/relation-get --help")
	w.on("systemctl cat neco-worker neco-updater; ! systemctl is-enabled neco-worker")
	w.on("ls " + strings.Join(completions, " "))
	w.on("juju bootstrap; juju deploy /root/charms/mysql; juju deploy /root/charms/wordpress; juju add-relation wordpress mysql; juju wait --timeout 2m")
	w.on("mkdir -p /root/state; echo NECO_STATE=sqlite:/root/state/neco.db >/etc/neco/environment; echo 0 >/etc/neco/rack")
	w.on("neco --state sqlite:/root/state/neco.db init; systemctl enable -q --now neco-worker neco-updater")
	if said := w.on(askBash); said != "wordpress/0" {
		t.Errorf("bash completes the name of a unit to %q", said)
	}
	w.on(`systemd-run -q --unit work -E HOME=/root bash -ec 'for i in $(seq 60); do juju set wordpress blog-title="title $i"; sleep 0.1; done'`)

	w.on("dpkg -i /root/second.deb")
	w.eventually("neco --state sqlite:/root/state/neco.db diagnose 2>&1; journalctl -u neco-worker --no-pager", `version=1.0-2`)
	if said := w.on("bijou version"); !strings.HasPrefix(said, "1.0-2 ") {
		t.Errorf("the version is %s", said)
	}
	w.on("juju upgrade-juju")
	if said := w.on(askBash); said != "wordpress/0" {
		t.Errorf("after the upgrade bash completes the name of a unit to %q", said)
	}
	w.eventually("systemctl is-active work", "inactive")
	w.on("juju wait --timeout 2m")
	w.eventually("cat $(find /root/.bijou -name wp-config.php)", "title 60")
	if said := w.on("juju hook-history wordpress/0; juju status"); strings.Contains(said, "fail") || strings.Contains(said, "error") {
		t.Errorf("not all went well:\n%s", said)
	}

	w.on("juju destroy-environment -y default; rm -r /root/.bijou /root/state /etc/neco/environment /etc/neco/rack")
	w.on("dpkg --purge neco")
	if after := w.files(); after != before {
		t.Errorf("left behind:\n%s", w.on("diff /root/before /root/after || true"))
	}
	w.refused("ls " + strings.Join(completions, " ") + " | grep .")
}

// completions are the places where shells look for completion.
var completions = []string{
	"/usr/share/bash-completion/completions/juju", "/usr/share/zsh/vendor-completions/_bijou", "/usr/share/fish/vendor_completions.d/juju.fish",
}

// askBash loads the completion for juju as bash-completion does, and completes a unit.
const askBash = `source /usr/share/bash-completion/completions/juju
	COMP_WORDS=(juju remove-unit wordp) COMP_CWORD=2; _bijou; echo "${COMPREPLY[@]}"`

// files lists the files on the host's disk, except those that dpkg and the journal keep for themselves.
func (w *world) files() string {
	w.t.Helper()
	w.on("[ ! -e /root/before ] || list=/root/after; find / -xdev -not -path '/var/lib/dpkg/*' -not -path '/var/log/*' -not -path '/var/cache/*' -not -path '/tmp/*' -not -path '/proc/*' -not -path '/sys/*' " +
		"-not -path '/run/*' -not -path '/dev/*' -not -path '/var/lib/systemd/*' -not -path '/var/tmp/systemd-private-*' -not -path /root/before -not -path /root/after -not -name '*.dpkg-*' | sort >${list:-/root/before}")
	return w.on("cat $(ls -t /root/before /root/after 2>/dev/null | head -1)")
}
