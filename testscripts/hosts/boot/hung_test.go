package boot

import (
	"fmt"
	"slices"
)

// hung makes an image never arrive on one server, and then a package's script never end on another. The
// worker kills each of them twice after its timeout, with all its child processes. The leader must not blame
// servers that only waited.
func hung(w *world, p *parts) {
	w.hears()
	w.on(3, "echo "+members()[1]+" >/srv/images/hang")
	p.news().timeout = hangs
	w.publish(*p)
	w.shows("exit 3", "runs \"/usr/bin/podman pull")
	w.stops(p.version, "server 11, step setup-hw/update", "podman pull", "timed out after "+hangs+", twice")
	w.blamed(p.version, 11)
	w.on(1, "! pgrep -f '[p]odman pull'")
	w.on(3, "rm /srv/images/hang")

	w.on(2, "touch /root/hang")
	w.neco("retry")
	w.stops(p.version, "server 12, step etcdpasswd/update", "neco-install.service", "timed out after "+hangs+", twice", "Setting up etcdpasswd")
	w.blamed(p.version, 12)
	w.on(2, "! pgrep dpkg; ! systemctl is-active -q neco-install")
	w.on(2, "rm /root/hang")
	w.neco("retry")
	w.succeeds(p.version)
	p.timeout = ""
	w.audited()
}

// hangs is several times longer than each of the two takes on a busy machine.
const hangs = "15s"

// blamed waits for an alert that an update was stopped because of server lrn and no other.
func (w *world) blamed(version string, lrn int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("an alert blames server %d", lrn), func() bool {
		return slices.ContainsFunc(w.heard(version), func(a alert) bool { return a.Kind == "stopped" && slices.Equal(a.Servers, []int{lrn}) })
	})
}
