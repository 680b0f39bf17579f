package boot

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bijou/testscripts/hosts/versions"
)

// parts is the content of a release: the version of each component's stand-in.
type parts struct {
	version                        string
	etcd                           string // 3.5 or 3.6
	cke, vault, sabakan, serf, deb string
	timeout                        string // the timeout of commands that may hang; "" means the default
}

// archive makes an archive with a version and additional files, and returns its entry for a manifest.
func (w *world) archive(component, version string, beside ...string) string {
	w.t.Helper()
	name := component + "-" + version
	if _, err := os.Stat(w.path("srv/files", name+".tar")); err != nil {
		w.write(name+"/version", version+"\n", 0o644)
		w.run(append([]string{"tar", "-C", w.path(name), "-cf", w.path("srv/files", name+".tar"), "version"}, beside...)...)
	}
	return w.named(name+".tar", component)
}

// named returns a manifest's entry for a served archive.
func (w *world) named(file, component string) string {
	return fmt.Sprintf("{archive: {url: \"http://%s:8081/%s\", sha256: %s, to: /opt/%s}}", outside, file, w.sum("srv/files/"+file), component)
}

func (w *world) sum(path string) string {
	w.t.Helper()
	data, err := os.ReadFile(w.path(path))
	w.check(err)
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// small serves a file and returns its entry for a manifest.
func (w *world) small(name, text string) string {
	w.t.Helper()
	w.write("srv/files/"+name, text, 0o644)
	return fmt.Sprintf("{url: \"http://%s:8081/%s\", sha256: %s}", outside, name, w.sum("srv/files/"+name))
}

// manifest returns a manifest with the nine components of a data centre. It has no version, since the packing
// adds it.
func (w *world) manifest(p parts) string {
	w.t.Helper()
	var b bytes.Buffer
	fmt.Fprintln(&b, "components:")
	add := func(format string, args ...any) { fmt.Fprintf(&b, "  - "+format+"\n", args...) }
	add("{name: cke, strategy: stop-all, services: [cke.service], artifact: %s}", w.archive("cke", p.cke))
	add(`{name: vault, strategy: stop-all, services: [vault.service], artifact: %s,
     after-start: {command: [standin, vault, operator, unseal], each-line-of: /etc/neco/vault-unseal-keys}}`, w.archive("vault", p.vault))
	add(`{name: etcd, strategy: rolling, services: [etcd.service], artifact: %s, soak: 1s,
     health: {http: "http://127.0.0.1:2379/health"}, members: {http: "http://10.77.0.{lrn}:2379/health"}, etcd: "etcd://10.77.0.{lrn}:2379"}`, w.named("etcd-"+p.etcd+".tar", "etcd"))
	add(`{name: sabakan, strategy: any, services: [sabakan.service], artifact: %s, health: {http: "http://127.0.0.1:10080/health"}}`, w.archive("sabakan", p.sabakan))
	add(`{name: sabakan-contents, strategy: leader-once, contents: {key: sabakan, url: "http://127.0.0.1:10080/",
     os-images: [{id: "%s", kernel: %s, initrd: %s}], ignitions: [{role: boot, id: "%s", file: %s}]}}`,
		p.version, w.small("kernel-"+p.version, "kernel"), w.small("initrd-"+p.version, "initrd"), p.version, w.small("ignition-"+p.version, "{}"))
	add(`{name: cke-contents, strategy: leader-once, contents: {key: cke, url: "http://127.0.0.1:10080/", images-of: [echo, "%s/tools:%s"]}}`, images, p.version)
	timeout := ""
	if p.timeout != "" {
		timeout = ", timeout: " + p.timeout
	}
	add(`{name: setup-hw, strategy: any, services: [setup-hw.service], artifact: {image: "%s/setup-hw:%s"}%s}`, images, p.sabakan, timeout)
	add("{name: serf, strategy: rolling, services: [serf.service], artifact: %s, %s, soak: 200ms}", w.serfArchive(p.serf), w.serfChecks())
	add("{name: etcdpasswd, strategy: any, services: [ep-agent.service], artifact: {deb: %s}%s}", w.agent(p.deb), timeout)
	return b.String()
}

// agent builds a component's package.
func (w *world) agent(version string) string {
	w.t.Helper()
	dir := "agent-" + version
	file := "etcdpasswd_" + version + ".deb"
	if _, err := os.Stat(w.path("srv/files", file)); err != nil {
		w.write(dir+"/DEBIAN/control", control("etcdpasswd", version), 0o644)
		w.write(dir+"/DEBIAN/postinst", "#!/bin/sh\nwhile [ -e /root/hang ]; do sleep 0.1; done\n", 0o755)
		w.write(dir+"/opt/ep-agent/version", version+"\n", 0o644)
		w.write(dir+"/lib/systemd/system/ep-agent.service", unit("ep-agent", "standin service ep-agent"), 0o644)
		w.run("dpkg-deb", "--root-owner-group", "-Zgzip", "-b", w.path(dir), w.path("srv/files", file))
	}
	return fmt.Sprintf("{url: \"http://%s:8081/%s\", sha256: %s}", outside, file, w.sum("srv/files/"+file))
}

func control(name, version string) string {
	return fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: bijou <root@localhost>\nDescription: a package of the tests\n", name, version)
}

// unit returns a unit file.
func unit(name, command string, more ...string) string {
	return fmt.Sprintf("[Unit]\nDescription=%s\nStartLimitIntervalSec=0\n[Service]\nExecStart=/usr/local/bin/%s\nRestart=always\nRestartSec=200ms\n%s\n[Install]\nWantedBy=multi-user.target\n",
		name, command, strings.Join(more, "\n"))
}

// release builds neco's own package of release p, like a real one.
func (w *world) release(p parts) (deb string) {
	w.t.Helper()
	w.write("manifest.yaml", w.manifest(p), 0o644)
	r := versions.Release{Version: p.version, Arch: "amd64", Binary: w.path("bijou"), Manifest: w.path("manifest.yaml"), Folder: w.dir}
	return filepath.Base(r.Debian(w.t))
}

// publish builds a release and announces it to the servers.
func (w *world) publish(p parts) {
	w.t.Helper()
	w.offer(p)
	w.announce(p)
}

// tag returns the directory of a release on the host that serves it.
func (w *world) tag(p parts) string { return "/srv/tags/release-" + p.version }

// announce publishes a release with its current files, for the first time or again.
func (w *world) announce(p parts) {
	w.t.Helper()
	w.on(3, "touch "+w.tag(p)+"/published; while [ -e "+w.tag(p)+"/published ]; do sleep 0.02; done")
}

// offer builds a release and copies it to the directory from which the host outside serves it. The release is
// not announced yet.
func (w *world) offer(p parts) {
	w.t.Helper()
	deb := w.release(p)
	files, err := w.fleet.Host(3).Path("/srv/files")
	w.check(err)
	// Files that exist are not copied again.
	w.run("cp", "-a", "-u", "-T", w.path("srv/files"), files)
	w.put(3, w.path(deb), w.tag(p)+"/"+deb)
}
