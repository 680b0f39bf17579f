package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// powerCuts cuts servers' power while a package is unpacked, while it is configured, while their etcd
// is restarted, and while the worker checks etcd after that.
func powerCuts(w *world, p *parts) {
	w.otherEtcd(p.news())
	w.publish(*p)
	w.cuts(0, "a package is unpacked", func() bool { return w.unpacks(0) })
	w.cuts(1, "etcd is restarted", func() bool { return w.restartsEtcd(1) })
	w.succeeds(p.version)
	w.whole(*p)
	w.audited()

	w.otherEtcd(p.news())
	w.publish(*p)
	w.cuts(1, "a package is configured", func() bool { return w.configures(1) })
	w.cuts(2, "etcd is watched", func() bool { return w.watchesEtcd(2) })
	w.succeeds(p.version)
	w.audited()
}

// cuts cuts a host's power once ok returns true, and starts the host again.
func (w *world) cuts(host int, what string, ok func() bool) {
	w.t.Helper()
	w.soon(fmt.Sprintf("host %d: %s", host, what), ok)
	w.check(w.fleet.Host(host).PowerCut())
	w.check(w.fleet.Host(host).Start())
}

// unpacks reports whether dpkg is writing neco's binary.
func (w *world) unpacks(host int) bool {
	_, err := os.Stat(w.fleet.Host(host).Disk("/usr/lib/bijou/bijou.dpkg-new"))
	return err == nil
}

// configures reports whether dpkg's journal allows the script of neco's package to run now.
func (w *world) configures(host int) bool {
	files, _ := filepath.Glob(w.fleet.Host(host).Disk("/var/lib/dpkg/updates/*"))
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err == nil && strings.HasPrefix(string(data), "Package: neco\n") && strings.Contains(string(data), "half-configured") {
			return true
		}
	}
	return false
}

// watchesEtcd reports whether the host runs the new etcd, which has reported that it is ready, while its
// worker still checks it.
func (w *world) watchesEtcd(host int) bool {
	if !w.restartsEtcd(host) {
		return false
	}
	_, err := w.fleet.Host(host).Shell("systemctl is-active -q etcd && [[ $(readlink -f /opt/etcd)/etcd = $(readlink -f /proc/$(systemctl show -P MainPID etcd)/exe) ]]")
	return err == nil
}
