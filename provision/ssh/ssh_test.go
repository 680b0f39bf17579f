package ssh

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"bijou/provision/provider"
	"bijou/testscripts/conformance/providertest"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// fake is a fake bijou: it installs itself, and its agent waits.
const fake = `#!/bin/sh
case $0 in
*machine-agent)
	echo "$$ 0" >"$4/machines/$2/agent.pid"
	trap "exit 0" TERM
	while :; do sleep 0.1; done
	;;
*) ln -sf bijou "$3/machine-agent" ;;
esac
`

// rig is a provider with some hosts.
type rig struct {
	*Provider
	t     *testing.T
	dir   string // the environment's directory
	hosts []*server
}

// put writes a file into the environment's directory and returns its path.
func (r *rig) put(path, text string, mode os.FileMode) string {
	r.t.Helper()
	path = filepath.Join(r.dir, path)
	check(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	_ = os.Remove(path) // the file may exist with a different mode
	check(r.t, os.WriteFile(path, []byte(text), mode))
	return path
}

// newRig returns a rig with a pool of the given number of hosts, whose keys are known.
func newRig(t *testing.T, hosts int) *rig {
	t.Helper()
	dir := t.TempDir()
	own, identity := newKey(t)
	r := &rig{t: t, dir: dir}
	r.put("environment.yaml", "name: test\nuuid: e0a1\nstate: etcd://h:1/a\nprovider: ssh\ntools: 1-x\n", 0o600)
	r.put("tools/1-x/bijou", fake, 0o755)
	var known, pool []string
	for range hosts {
		s := serve(t, own.PublicKey())
		r.hosts = append(r.hosts, s)
		known = append(known, knownhosts.Line([]string{s.address}, s.key.PublicKey()))
		pool = append(pool, "root@"+s.address)
	}
	t.Setenv("SSH_AUTH_SOCK", "")
	p, err := New(provider.Environment{UUID: "e0a1", Name: "test", Dir: dir, Config: map[string]string{
		"identity": r.put("id", string(identity), 0o600), "known-hosts": r.put("known_hosts", strings.Join(known, "\n")+"\n", 0o600),
		"pool": "[" + strings.Join(pool, ", ") + "]",
	}})
	check(t, err)
	p.hostTimeout, p.pollTimeout = time.Minute, time.Minute // these hosts are slow only when the machine is busy
	r.Provider = p
	return r
}

// host finds the server of an instance.
func (r *rig) host(instance string) *server {
	r.t.Helper()
	for _, s := range r.hosts {
		if strings.HasPrefix(instance, "root@"+s.address+"/") {
			return s
		}
	}
	r.t.Fatalf("no host is instance %q", instance)
	return nil
}

// TestProvider runs the suite of providers on hosts without systemd.
func TestProvider(t *testing.T) {
	need.Whole(t)
	providertest.Run(t, func(t *testing.T) providertest.Fixture {
		r := newRig(t, 2)
		return providertest.Fixture{Provider: r, Crash: func(t *testing.T, instance string) { crash(t, r.host(instance)) }}
	})
}

// crash ends a host's agent together with its keeper script.
func crash(t *testing.T, s *server) {
	t.Helper()
	dir := s.dir + "/lib/e0a1"
	check(t, exec.Command("sh", "-c", `kill "$(cat "$0/keep.pid")"`, dir).Run())
	await.Until(t, await.Poll{Limit: time.Minute}, "the keeper is gone", func() bool {
		return exec.Command("flock", "-n", dir+"/keep.lock", "true").Run() == nil
	})
}

// spec returns the spec of a machine of the rig's environment.
func spec(machine, placement string) provider.Spec {
	return provider.Spec{Environment: "e0a1", Machine: machine, Series: "noble", Token: "e0a1-" + machine, Placement: placement}
}

// instances returns the listed instances, each with its machine and whether it runs.
func (r *rig) instances() []provider.Instance {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	found, err := r.Instances(ctx)
	check(r.t, err)
	return found
}
