package boot

import (
	"os"
	"strings"
)

// says reports whether a file on a host's disk contains the words. The host need not run.
func (w *world) says(host int, path, words string) bool {
	data, err := os.ReadFile(w.fleet.Host(host).Disk(path))
	return err == nil && strings.Contains(string(data), words)
}

// restartsEtcd reports whether the host's member of etcd is being updated.
func (w *world) restartsEtcd(host int) bool {
	return w.says(host, "/var/lib/neco/components/etcd.json", `"changing"`)
}

// otherEtcd gives p a version of etcd that no server runs yet: the newer version, packed again under a new
// name.
func (w *world) otherEtcd(p *parts) {
	w.t.Helper()
	p.etcd = "3.6-" + p.version
	w.write(p.etcd+"/note", p.etcd, 0o644)
	w.run("ln", w.path("etcd-3.6/etcd"), w.path(p.etcd, "etcd"))
	w.run("tar", "-C", w.path(p.etcd), "-cf", w.path("srv/files", "etcd-"+p.etcd+".tar"), "etcd", "note")
}

// audited checks that dpkg reports no partly installed package.
func (w *world) audited() {
	w.t.Helper()
	for host := range 3 {
		if said := w.on(host, "dpkg --audit"); said != "" {
			w.t.Errorf("host %d: dpkg says %s", host, said)
		}
	}
}
