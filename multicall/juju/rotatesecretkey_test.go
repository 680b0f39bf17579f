package juju

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bijou/multicall/home"
	"bijou/state"
)

// hostsElsewhere is a provider that keeps each machine's directory outside the environment's, as if the
// machine were on a different host.
type hostsElsewhere struct {
	testProviders
	dir string
}

func (p hostsElsewhere) Access(_ home.Environment, _ state.Environment, m state.Machine) (Access, error) {
	return Access{Host: "host" + m.ID, Dir: filepath.Join(p.dir, m.ID, "machines", m.ID), Run: func(_, line string, _ bool) *exec.Cmd {
		return exec.Command("sh", "-c", line)
	}}, nil
}

// TestKeysReachOtherHostsFirst checks that machines on other hosts get a key before any secret is sealed with
// it. While one of these machines cannot be reached, no secret is sealed.
func TestKeysReachOtherHostsFirst(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w := newTestEnv(t)
	elsewhere := t.TempDir()
	w.parts.Providers = hostsElsewhere{dir: elsewhere}
	w.mustRun("bootstrap")
	w.mustRun("add-secret", "one", "token=abc")
	w.mustRun("add-machine", "-n", "2")
	e, err := w.home.Environment("default")
	must(t, err)
	s, err := state.Open(t.Context(), e.State)
	must(t, err)
	defer s.Close()
	must(t, s.Update(t.Context(), func(tx *state.Tx) error {
		return errors.Join(tx.SetInstance("1", "i1", state.Addresses{}), tx.SetInstance("2", "i2", state.Addresses{}))
	}))
	must(t, os.MkdirAll(filepath.Join(elsewhere, "1", "machines", "1"), 0o755))
	before, err := e.SecretKeys().Read()
	must(t, err)

	w.mustFail(1, "cannot copy the keys for secrets to machine 2", "rotate-secret-key")
	ring, err := e.SecretKeys().Read()
	must(t, err)
	if ring[len(ring)-1] != before[0] {
		t.Errorf("the new key seals although machine 2 does not have it")
	}
	must(t, os.MkdirAll(filepath.Join(elsewhere, "2", "machines", "2"), 0o755))
	w.mustRun("rotate-secret-key")
	own, err := os.ReadFile(string(e.SecretKeys()))
	must(t, err)
	for _, id := range []string{"1", "2"} {
		given, err := os.ReadFile(filepath.Join(elsewhere, id, "secret-keys.yaml"))
		if string(given) != string(own) || strings.Count(string(given), "id:") < 3 {
			t.Errorf("machine %s has %q (%v), want %q", id, given, err, own)
		}
	}
	if got := w.mustRun("show-secret", "one", "--reveal"); !strings.Contains(got, "abc") {
		t.Errorf("after the rotation: %q", got)
	}
}
