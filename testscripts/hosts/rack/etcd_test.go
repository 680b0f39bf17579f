package rack

import (
	"encoding/base64"
	"fmt"
	"strings"

	"bijou/testscripts/fakes/etcdtest"
)

// etcdUnit is one member's unit file. The member syncs to its disk, as in production.
const etcdUnit = `[Unit]
Description=etcd
After=fleet-network.service
[Service]
Type=notify
ExecStart=/opt/etcd/etcd --name=%[1]s --data-dir=/var/lib/etcd --log-level=error \
  --listen-client-urls=https://%[2]s:2379,https://127.0.0.1:2379 --advertise-client-urls=https://%[2]s:2379 \
  --listen-peer-urls=https://%[2]s:2380 --initial-advertise-peer-urls=https://%[2]s:2380 \
  --initial-cluster=%[3]s --initial-cluster-state=new \
  --cert-file=/opt/etcd/cert --key-file=/opt/etcd/key \
  --peer-cert-file=/opt/etcd/cert --peer-key-file=/opt/etcd/key --peer-trusted-ca-file=/opt/etcd/ca --peer-client-cert-auth
Restart=always
RestartSec=1
StartLimitIntervalSec=0
[Install]
WantedBy=multi-user.target
`

// password is the password of etcd's user.
const password = "Pa55 of bijou"

// startEtcd starts a cluster with a member on each host. It accepts only TLS, and its user bijou has access
// to the keys below /rack/.
func (w *world) startEtcd() {
	w.t.Helper()
	binary, err := etcdtest.Binary()
	check(w.t, err)
	ca := newAuthority(w.t)
	var members []string
	for _, h := range w.hosts {
		members = append(members, h.Name+"=https://"+h.Address+":2380")
	}
	for i, h := range w.hosts {
		cert, key := ca.issue(w.t, h.Address)
		w.copy(i, binary, "/opt/etcd/etcd")
		w.write(i, "/opt/etcd/ca", string(ca.pem))
		w.write(i, "/opt/etcd/cert", string(cert))
		w.write(i, "/opt/etcd/key", string(key))
		w.write(i, "/etc/systemd/system/etcd.service", fmt.Sprintf(etcdUnit, h.Name, h.Address, strings.Join(members, ",")))
		w.on(i, "chmod 700 /opt/etcd/etcd && systemctl daemon-reload && systemctl --quiet enable etcd && systemctl --no-block start etcd")
	}
	for i := range w.hosts {
		w.eventually("etcd is up", func() string { return w.lacks(i, "systemctl is-active etcd", "active\n") })
	}
	w.addUsers()
}

// addUsers enables etcd's users through its JSON gateway.
func (w *world) addUsers() {
	w.t.Helper()
	b64 := base64.StdEncoding.EncodeToString
	for _, call := range [][2]string{
		{"user/add", `{"name":"root","password":"of root"}`},
		{"user/grant", `{"user":"root","role":"root"}`},
		{"role/add", `{"name":"bijou"}`},
		{"role/grant", fmt.Sprintf(`{"name":"bijou","perm":{"permType":"READWRITE","key":%q,"range_end":%q}}`, b64([]byte("/rack/")), b64([]byte("/rack0")))},
		{"user/add", fmt.Sprintf(`{"name":"bijou","password":%q}`, password)},
		{"user/grant", `{"user":"bijou","role":"bijou"}`},
		{"enable", `{}`},
	} {
		request := fmt.Sprintf("POST /v3/auth/%s HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", call[0], len(call[1]), call[1])
		w.write(0, "/root/request", request)
		said := w.on(0, "openssl s_client -quiet -verify_return_error -CAfile /opt/etcd/ca -connect 127.0.0.1:2379 </root/request 2>&1 || true")
		if !strings.Contains(said, "200 OK") && !strings.Contains(said, "already exists") {
			w.t.Fatalf("etcd's %s says %s", call[0], said)
		}
	}
}

// stateURL returns the URL of the environment's state. The files in it are files on host 0.
func (w *world) stateURL() string {
	var members []string
	for _, h := range w.hosts {
		members = append(members, h.Address+":2379")
	}
	return "etcd://" + strings.Join(members, ",") + "/rack/env?ca=/opt/etcd/ca&user=bijou&password-file=/root/password"
}
