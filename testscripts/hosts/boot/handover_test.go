package boot

import "fmt"

// dpkgInUse lets another process hold dpkg's lock on a server while the worker installs its release.
func dpkgInUse(w *world, p *parts) {
	w.on(1, "systemd-run --quiet --unit=other standin lock /var/lib/dpkg/lock-frontend")
	w.publish(*p.next())
	w.soon("dpkg is in use", func() bool {
		return w.says(1, "/var/lib/neco/install.log", "frontend lock was locked by another process")
	})
	w.on(1, "systemctl stop other")
	w.succeeds(p.version)
	w.audited()
}

// neverComes installs a release whose worker exits immediately on one server. After that, no process on that
// server can report the failure.
func neverComes(w *world, p *parts) {
	w.hears()
	p.next()
	const dropIn = "/etc/systemd/system/neco-worker.service.d/10-broken.conf"
	w.write("broken", "[Service]\nExecStartPre=/bin/sh -c \"! grep -q 'version: "+p.version+"' /usr/lib/bijou/manifest.yaml\"\n", 0o644)
	w.put(1, w.path("broken"), dropIn)
	w.on(1, "systemctl daemon-reload")
	w.publish(*p)
	w.await(p.version, "it is named", func(s status) bool { return fmt.Sprint(s.Current.Missing) == "[11]" })
	w.stops(p.version, "server 11, step install: no worker has been alive there for 1m0s", p.version)
	w.reported(p.version, "stopped")
	w.on(1, "rm "+dropIn+"; systemctl daemon-reload")
	w.neco("retry")
	w.succeeds(p.version)
	w.audited()
}
