package boot

import (
	"fmt"
	"slices"
	"strings"
)

// replaced replaces the files of a release that the other servers have installed while one server's worker is
// away. On that server neither the old files nor the new files may run until an operator chooses one of them.
func replaced(w *world, p *parts) {
	w.hears()
	before := *p
	w.on(2, "systemctl stop neco-worker neco-updater")
	w.publish(*p.news())
	w.await(p.version, "server 12 is named", func(s status) bool { return fmt.Sprint(s.Current.Missing) == "[12]" })
	for host := range 2 {
		w.eventually("the others have installed it", func() bool { return w.on(host, "dpkg-query -W -f '${Version}' neco") == p.version })
	}
	p.cke += ".replaced"
	p.vault += ".replaced"
	w.publish(*p)
	w.on(2, "systemctl start neco-worker neco-updater")
	w.stops(p.version, "server 12, step install", "were replaced")
	w.eventually("an alert says so", func() bool {
		return slices.ContainsFunc(w.heard(p.version), func(a alert) bool { return a.Kind == "replaced" })
	})
	if said := w.on(3, "NECO_STATE="+storage+" neco status || true"); !strings.Contains(said, "the files of release "+p.version+" were replaced") {
		w.t.Errorf("neco status does not say that the files were replaced: %s", said)
	}
	for host := range 3 {
		if v := w.on(host, "cat /opt/cke/version"); v != before.cke {
			w.t.Errorf("host %d has CKE %s", host, v)
		}
	}
	w.neco("recover --why 'the files are meant'")
	w.succeeds(p.version)
}

// firstImage makes an image of everything that a server's first release installed, except etcd.
const firstImage = `tar -C / -cf /root/image.tar --exclude=opt/etcd* opt usr/lib/bijou var/lib/neco var/lib/dpkg || [ $? = 1 ]` // the exit code is 1 if a file was changed while tar read it

// reimage restores that image, as an operator who reinstalls a server from an old image would. That
// does not start CKE and Vault.
const reimage = `units="setup-hw serf ep-agent sabakan neco-worker neco-updater"
	systemctl stop cke vault $units && rm -rf /opt/[!e]* /opt/ep-agent /usr/lib/bijou /var/lib/neco /var/lib/dpkg &&
	tar -C / -xf /root/image.tar && systemctl daemon-reload && systemctl start $units`

// reinstalled restores a server from the image of its first release, and changes a unit file on another
// by hand. Both must be named, and one repair must correct both.
func reinstalled(w *world, p *parts) {
	w.hears()
	w.on(1, reimage)
	w.on(2, "echo '# by hand' >>/etc/systemd/system/sabakan.service && systemctl daemon-reload")
	sabakan := w.on(2, "systemctl show -P MainPID sabakan")
	w.shows("exit 5", "degraded", "server 11: its worker has version 1.0-0, not "+p.version, "server 12, sabakan: its unit files or declared files have changed")
	w.eventually("alerts name both", func() bool {
		named := map[int]bool{}
		for _, a := range w.heard(p.version) {
			for _, lrn := range a.Servers {
				named[lrn] = named[lrn] || a.Kind == "degraded"
			}
		}
		return named[11] && named[12]
	})
	w.neco("repair --why 'reinstalled from an old image'")
	w.eventually("it is repaired", func() bool {
		var r request
		return w.look("status/current", &r) && r.Repair && r.EndedAt != nil
	})
	w.succeeds(p.version)
	w.shows("exit 0", "up to date")
	if w.on(2, "systemctl show -P MainPID sabakan") == sabakan {
		w.t.Error("sabakan was not restarted, whose unit file has changed")
	}
}

// shows waits until the output of neco status contains all these words.
func (w *world) shows(words ...string) {
	w.t.Helper()
	w.eventually("neco status says "+strings.Join(words, "; "), func() bool {
		said, _ := w.fleet.Host(3).Shell("NECO_STATE=" + storage + " neco status; echo exit $?")
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(said, word) })
	})
}
