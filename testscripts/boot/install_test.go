package boot

import (
	"fmt"
	"os"
	"strings"
)

// install makes three boot servers of three hosts: an etcd that is there already, and
// neco's first package.
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
		out, err := w.fleet.Host(3).Exec("bash", "-c", "standin get /none "+strings.Join(members(), " "))
		return err == nil && out == ""
	})
	w.neco("init")
	w.neco("bootserver add 10 11 12")
	for _, set := range []string{"env production", "github-url http://" + outside + ":8080/", "github-repository bijou/boot", "check-update-interval 1s"} {
		w.neco("config set " + set)
	}
	w.publish(first)
	for host := range 3 {
		deb := fmt.Sprintf("neco_%s_amd64.deb", first.version)
		w.put(host, w.path(deb), "/root/"+deb)
		w.on(host, "dpkg -i /root/"+deb)
	}
}

// outside makes the host that serves releases.
func (w *world) outside() {
	w.put(3, w.path("bijou"), "/opt/bijou/bijou")
	w.on(3, "ln -s /opt/bijou/bijou /usr/local/bin/neco; mkdir -p /srv/tags /srv/files")
	w.spawn(3, "standin releases /srv", "/var/log/releases")
}

// bootServer puts onto a host what neco's package does not bring.
func (w *world) bootServer(host int) {
	for _, c := range []struct{ name, command string }{
		{"cke", "standin service cke"}, {"vault", "standin service vault"}, {"sabakan", "standin sabakan"},
		{"setup-hw", "standin service setup-hw"}, {"serf", "standin service serf"},
	} {
		w.write("unit", unit(c.name, c.command), 0o644)
		w.put(host, w.path("unit"), "/etc/systemd/system/"+c.name+".service")
	}
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
	w.write("unit", text, 0o644)
	w.put(host, w.path("unit"), "/etc/systemd/system/etcd.service")
	w.put(host, w.path("etcd-3.5"), "/opt/etcd.releases/by-test")
	w.write("podman", "#!/bin/sh\ncase $1 in image) exit 1;; save) echo image >\"$3\";; esac\n", 0o755)
	w.put(host, w.path("podman"), "/usr/local/bin/podman")
	w.write("keys", "key-one\nkey-two\nkey-three\n", 0o600)
	w.put(host, w.path("keys"), "/etc/neco/vault-unseal-keys")
	w.on(host, fmt.Sprintf("ln -s /opt/etcd.releases/by-test /opt/etcd; echo %d >/etc/neco/rack; echo NECO_STATE=%s >/etc/neco/environment; systemctl daemon-reload; systemctl enable -q etcd cke vault sabakan setup-hw serf", 10+host, storage))
}
