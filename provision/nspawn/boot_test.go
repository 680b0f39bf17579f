package nspawn

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/provider"
)

// silentManager starts a container that never reports that it is up.
type silentManager struct {
	containerManager
	lives   bool
	started func()
}

func (d *silentManager) start(context.Context, string, command) ([]string, error) {
	d.lives = true
	d.started()
	return nil, nil
}

func (d *silentManager) isRunning(string) (bool, error) { return d.lives, nil }

func (d *silentManager) kill(ctx context.Context, _ string) error {
	if ctx.Err() == nil {
		d.lives = false
	}
	return ctx.Err()
}

// TestBootThatFailsIsEnded checks that a boot that exceeds its timeout leaves no process running.
func TestBootThatFailsIsEnded(t *testing.T) {
	p := newProvider(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	k := &silentManager{started: cancel}
	p.manager = k
	l := launch{
		provider: p, spec: provider.Spec{Machine: "1", Token: "t"}, boot: io.Discard,
		record: provider.Record{Machine: "1", Address: "10.70.0.10"}, tree: t.TempDir(),
	}
	if err := p.bootContainer(ctx, l); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if k.lives || p.hasBooted(l.id()) {
		t.Errorf("it runs: %v, it has come up: %v", k.lives, p.hasBooted(l.id()))
	}
}

// TestRunsOnceItIsUp checks that a container counts as running only once its boot is complete.
func TestRunsOnceItIsUp(t *testing.T) {
	p := newProvider(t, nil)
	k := &silentManager{lives: true}
	p.manager = k
	dir := filepath.Join(p.dir, p.instanceID("1"))
	if err := errors.Join(os.MkdirAll(dir, 0o700), provider.Record{Machine: "1"}.Write(dir)); err != nil {
		t.Fatal(err)
	}
	running := func(want bool) {
		t.Helper()
		if all, err := p.Instances(t.Context()); err != nil || len(all) != 1 || all[0].Running != want {
			t.Errorf("instances %+v, error %v; want one, running: %v", all, err, want)
		}
	}
	running(false)
	if err := os.WriteFile(filepath.Join(dir, bootedFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	running(true)
	k.lives = false
	running(false)
}

// TestHierarchy checks that version 2 of control groups is used only for a systemd that supports no other
// version.
func TestHierarchy(t *testing.T) {
	unified := []string{"env", "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1"}
	for name, tt := range map[string]struct {
		library string
		version int
		want    []string
	}{
		"Debian 12":    {"usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-252.so", 252, nil},
		"Debian 13":    {"usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-257.so", 257, nil},
		"Ubuntu 26.04": {"usr/lib/aarch64-linux-gnu/systemd/libsystemd-shared-259.so", 259, unified},
		"Debian 11":    {"usr/lib/systemd/libsystemd-shared-247.so", 247, nil},
		"with a patch": {"usr/lib/systemd/libsystemd-shared-258.1-2.so", 258, unified},
		"no number":    {"usr/lib/systemd/libsystemd-shared-x.so", 0, nil},
		"no library":   {"usr/lib/systemd/systemd", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tree := t.TempDir()
			path := filepath.Join(tree, tt.library)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
			if got := systemdVersion(tree); got != tt.version {
				t.Errorf("version %d, want %d", got, tt.version)
			}
			if diff := cmp.Diff(tt.want, hierarchyArgs(tree)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
