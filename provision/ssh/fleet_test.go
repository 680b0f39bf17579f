package ssh

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"bijou/provision/provider"
	"bijou/provision/provider/providertest"
	"bijou/testscripts/fleet"
)

// world is hosts of their own, with OpenSSH's server and systemd, and a provider
// that has the product's own binary for them.
type world struct {
	*Provider
	t     *testing.T
	hosts []*fleet.Host
}

// newWorld boots the hosts.
func newWorld(t *testing.T, hosts int) *world {
	t.Helper()
	if os.Getenv("BIJOU_TEST_LONG") == "" {
		t.Skip("BIJOU_TEST_LONG is not set")
	}
	fleet.Need(t)
	dir := t.TempDir()
	own, identity := newKey(t)
	f := fleet.New(t, hosts)
	w := &world{t: t}
	var known, pool []string
	for i := range hosts {
		h := f.Host(i)
		w.hosts = append(w.hosts, h)
		w.on(h, "mkdir -p /root/.ssh && echo '"+strings.TrimSpace(string(ssh.MarshalAuthorizedKey(own.PublicKey())))+"' >/root/.ssh/authorized_keys && systemctl enable --now --quiet ssh")
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(w.on(h, "cat /etc/ssh/ssh_host_ed25519_key.pub")))
		check(t, err)
		known = append(known, knownhosts.Line([]string{h.Address}, key))
		pool = append(pool, "root@"+h.Address)
	}
	write := func(path, text string, mode os.FileMode) string {
		path = filepath.Join(dir, path)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	write("ca.pem", "a certificate", 0o600)
	write("environment.yaml", "name: test\nuuid: e0a1\nstate: etcd://10.77.0.254:1/a?ca="+dir+"/ca.pem\nprovider: ssh\ntools: 1-x\n", 0o600)
	write("tools/1-x/.made", "", 0o600)
	build(t, filepath.Join(dir, "tools/1-x/bijou"))
	t.Setenv("SSH_AUTH_SOCK", "")
	p, err := New(provider.Environment{UUID: "e0a1", Name: "test", Dir: dir, Config: map[string]string{
		"identity": write("id", string(identity), 0o600), "known-hosts": write("known_hosts", strings.Join(known, "\n")+"\n", 0o600),
		"pool": "[" + strings.Join(pool, ", ") + "]",
	}})
	check(t, err)
	w.Provider = p
	w.Provider.wire = f.Dial
	return w
}

// build makes the product's own binary.
func build(t *testing.T, path string) {
	t.Helper()
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "bijou")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
}

// on runs a shell's line on a host and returns what it prints.
func (w *world) on(h *fleet.Host, line string) string {
	w.t.Helper()
	out, err := h.Exec("bash", "-c", line)
	check(w.t, err)
	return strings.TrimSpace(out)
}

// host finds that of an instance.
func (w *world) host(instance string) *fleet.Host {
	w.t.Helper()
	for _, h := range w.hosts {
		if strings.HasPrefix(instance, "root@"+h.Address+":") {
			return h
		}
	}
	w.t.Fatalf("no host is instance %q", instance)
	return nil
}

// fresh takes away what a promise left.
func (w *world) fresh() {
	w.t.Helper()
	for _, h := range w.hosts {
		if left := w.on(h, "find / -xdev -newer /etc/machine-id \\( -path '*bijou*' -o -name '*e0a1*' \\) -not -path '/proc/*' -not -path '/var/log/*'; systemctl list-units --all --no-legend 'bijou-*'; pgrep -x machine-agent"+" || true"); left != "" {
			w.t.Errorf("on %s is left: %s", h.Name, left)
		}
	}
}

// TestRealHosts holds the provider against every promise, on hosts with OpenSSH's
// server and systemd.
func TestRealHosts(t *testing.T) {
	w := newWorld(t, 2)
	began := time.Now()
	providertest.Run(t, func(t *testing.T) providertest.Fixture {
		w.t = t
		w.fresh()
		return providertest.Fixture{Provider: w, Crash: func(t *testing.T, instance string) {
			w.on(w.host(instance), "systemctl stop 'bijou-machine-*'")
		}}
	})
	w.t = t
	w.fresh()
	w.reboot()
	w.fullDisk()
	t.Logf("ssh: all in %s", time.Since(began).Round(time.Millisecond))
}

// reboot has a host lose its power: its agent is back by itself, and meanwhile it
// counts as running.
func (w *world) reboot() {
	w.t.Helper()
	i, err := w.Start(w.t.Context(), spec("1", ""), io.Discard)
	check(w.t, err)
	h := w.host(i.ID)
	check(w.t, h.PowerCut())
	w.wants(i)
	check(w.t, h.Start())
	eventually(w.t, "the agent is back", func() bool {
		out, _ := h.Exec("pgrep", "-fc", "machine-agent --machine 1 --env /var/lib/bijou/e0a1")
		return strings.TrimSpace(out) == "1"
	})
	if mode := w.on(h, "stat -c %a /var/lib/bijou/e0a1/credentials/ca; cat /var/lib/bijou/e0a1/credentials/ca"); mode != "600\na certificate" {
		w.t.Errorf("the certificate on the host: %s", mode)
	}
	check(w.t, h.Link(false))
	w.wants(i)
	check(w.t, h.Link(true))
	w.Provider.recall = 0
	w.wants(i)
	eventually(w.t, "it can be stopped", func() bool { return w.Stop(w.t.Context(), i.ID) == nil })
	w.fresh()
}

// wants wants one instance.
func (w *world) wants(want provider.Instance) {
	w.t.Helper()
	found, err := w.Instances(w.t.Context())
	check(w.t, err)
	if len(found) != 1 || found[0] != want {
		w.t.Errorf("instances %+v, want %+v", found, want)
	}
}

// fullDisk has a disk be full while the binary is copied.
func (w *world) fullDisk() {
	w.t.Helper()
	h := w.hosts[0]
	w.on(h, "mkdir /var/lib/bijou && mount -t tmpfs -o size=200m tmpfs /var/lib/bijou && fallocate -l 60m /var/lib/bijou/other")
	// What was looked at as free is not, once it is written.
	w.on(h, "(until ls /var/lib/bijou/e0a1/tools/*/*part-* 2>/dev/null; do :; done; fallocate -l 139m /var/lib/bijou/more) >/dev/null 2>&1 &")
	_, err := w.Start(w.t.Context(), spec("1", "root@"+h.Address), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "No space left on device") || !strings.Contains(err.Error(), "hint: its disk is full") {
		w.t.Errorf("on a full disk: %v", err)
	}
	if left := w.on(h, "find /var/lib/bijou -size +1M -not -name other -not -name more"); left != "" {
		w.t.Errorf("half a copy is left: %s", left)
	}
	check(w.t, w.Stop(w.t.Context(), instanceID(target{User: "root", Host: h.Address, Port: "22"}, "1")))
	w.on(h, "umount /var/lib/bijou; rmdir /var/lib/bijou")
	w.fresh()
}
