package boot

import (
	"fmt"
	"os"
	"strings"
)

// install turns three hosts into boot servers, with an existing etcd and neco's first package, which is
// packed like a real release by .ci/release.
func (w *world) install(first parts) {
	w.t.Helper()
	self, err := os.Executable()
	w.check(err)
	for host := range 4 {
		w.put(host, self, "/usr/local/bin/standin")
		w.on(host, "mkdir -p "+logs)
	}
	w.outside()
	for host := range 3 {
		w.bootServer(host)
	}
	for host := range 3 {
		w.on(host, "systemctl start --no-block etcd.service")
	}
	w.eventually("etcd answers", func() bool {
		out, err := w.fleet.Host(3).Shell("standin get /none " + strings.Join(members(), " "))
		return err == nil && out == ""
	})
	w.neco("init")
	w.neco("bootserver add 10 11 12")
	for _, set := range []string{"env production", "github-url http://" + outside + ":8080/", "github-repository bijou/boot", "check-update-interval 1s"} {
		w.neco("config set " + set)
	}
	w.offer(first)
	for host := range 3 {
		deb := fmt.Sprintf("neco_%s_amd64.deb", first.version)
		w.put(host, w.path(deb), "/root/"+deb)
		w.on(host, "dpkg -i /root/"+deb+" && systemctl enable -q --now neco-worker neco-updater")
	}
	w.eventually("all workers were seen, so that the first update is for all", func() bool {
		var p struct{ Version string }
		return w.look("presence/10", &p) && w.look("presence/11", &p) && w.look("presence/12", &p)
	})
	w.announce(first)
}

// outside sets up the host that serves releases.
func (w *world) outside() {
	w.put(3, w.path("bijou"), "/opt/bijou/bijou")
	w.on(3, "ln -s /opt/bijou/bijou /usr/local/bin/neco; mkdir -p /srv/tags /srv/files /srv/images/blobs")
	w.run("go", "build", "-trimpath", "-ldflags=-s -w", "-o", w.path("resident"), "bijou/testscripts/hosts/boot/resident")
	w.put(3, w.path("resident"), "/srv/images/resident")
	w.spawn(3, "standin releases /srv", "/var/log/releases")
	w.write("agent.json", serfConfig("none"), 0o644)
	w.put(3, w.path("agent.json"), "/etc/serf/agent.json")
	w.spawn(3, serfAgent("serf", "/etc/serf/agent.json", "outside", outside), "/var/log/serf")
	w.spawn(3, "standin serf", "/var/log/watch-serf")
}

// service installs a systemd unit file on a host.
func (w *world) service(host int, name, text string) {
	w.t.Helper()
	w.write("unit", text, 0o644)
	w.put(host, w.path("unit"), "/etc/systemd/system/"+name+".service")
}

// container runs a component as a container on a host with podman. Podman cannot make control groups or
// keyrings there, nor overlays on the host's disk.
func (w *world) container(host int, name string) {
	w.t.Helper()
	env := "/var/lib/neco/components/" + name + ".env"
	text := unit(name, "podman", "EnvironmentFile="+env, "TimeoutStopSec=10")
	run := "/usr/bin/podman run --rm --replace --name=" + name + " --cgroups=disabled --network=host $IMAGE"
	w.service(host, name, strings.Replace(text, "/usr/local/bin/podman", run, 1))
	w.write("storage.conf", "[storage]\ndriver = \"vfs\"\nrunroot = \"/run/containers/storage\"\ngraphroot = \"/var/lib/containers/storage\"\n", 0o644)
	w.put(host, w.path("storage.conf"), "/etc/containers/storage.conf")
	w.write("containers.conf", "[containers]\nkeyring = false\n", 0o644)
	w.put(host, w.path("containers.conf"), "/etc/containers/containers.conf")
	w.write("registries.conf", "[[registry]]\nlocation = \""+images+"\"\ninsecure = true\n", 0o644)
	w.put(host, w.path("registries.conf"), "/etc/containers/registries.conf")
}

// bootServer installs the files on a host that neco's package does not contain.
func (w *world) bootServer(host int) {
	for _, c := range []struct{ name, command string }{
		{"cke", "standin service cke"}, {"vault", "standin service vault"}, {"sabakan", "standin sabakan"},
	} {
		w.service(host, c.name, unit(c.name, c.command))
	}
	w.service(host, "serf", serfUnit(host))
	w.container(host, "setup-hw")
	name, address := fmt.Sprintf("h%d", host), members()[host]
	var cluster []string
	for i, m := range members() {
		cluster = append(cluster, fmt.Sprintf("h%d=http://%s:2380", i, m))
	}
	text := unit("etcd", "etcd", "Type=notify", "TimeoutStartSec=60")
	text = strings.Replace(text, "/usr/local/bin/etcd", strings.Join([]string{
		"/opt/etcd/etcd --name=" + name, "--data-dir=/var/lib/etcd", "--log-level=error", "--unsafe-no-fsync",
		"--listen-client-urls=http://0.0.0.0:2379", "--advertise-client-urls=http://" + address + ":2379",
		"--listen-peer-urls=http://" + address + ":2380", "--initial-advertise-peer-urls=http://" + address + ":2380",
		"--initial-cluster=" + strings.Join(cluster, ","),
	}, " "), 1)
	w.service(host, "etcd", text)
	w.put(host, w.path("etcd-3.5"), "/opt/etcd.releases/by-test")
	w.write("keys", "key-one\nkey-two\nkey-three\n", 0o600)
	w.put(host, w.path("keys"), "/etc/neco/vault-unseal-keys")
	w.on(host, fmt.Sprintf("ln -s /opt/etcd.releases/by-test /opt/etcd; echo %d >/etc/neco/rack; echo NECO_STATE=%s >/etc/neco/environment; systemctl daemon-reload; systemctl enable -q etcd cke vault sabakan setup-hw serf", 10+host, storage))
}
