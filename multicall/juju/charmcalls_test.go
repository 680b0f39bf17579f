package juju

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
)

func TestMachineNeeds(t *testing.T) {
	for _, test := range []struct {
		file, text string
		want       map[string]bool // the actions of the charm that must be found
	}{
		{"src/charm.py", "from charms.operator_libs_linux.v2 import snap", map[string]bool{"installs snaps": true}},
		{"src/charm.py", "from charmlibs import snap", map[string]bool{"installs snaps": true}},
		{"src/charm.py", `check_call("sudo snap install core", shell=True)`, map[string]bool{"installs snaps": true}},
		{"src/microk8s.py", "\"\"\"`snap install microk8s`\"\"\"", map[string]bool{"installs snaps": true}},
		{"hooks/install", "snap install core", map[string]bool{"installs snaps": true}},
		{"hooks/install", "modprobe br_netfilter", map[string]bool{"loads kernel modules": true}},
		{"src/charm.py", `check_call(["modprobe", name])`, map[string]bool{"loads kernel modules": true}},
		{"reactive/x.py", "from charmhelpers.core.kernel import modprobe", map[string]bool{"loads kernel modules": true}},
		{"src/charm.py", `Path("/etc/modules-load.d/x.conf")`, map[string]bool{"loads kernel modules": true}},
		{"lxd-profile.yaml", "config:\n  linux.kernel_modules: ip_tables", map[string]bool{"loads kernel modules": true}},

		{"src/charm.py", "# What follows a snap install of ours", nil},
		{"x.just", "snap install core", nil},
		{"README.md", "modprobe x; snap install y", nil},
		{"tests/test_x.py", `["modprobe", "x"]`, nil},
		{"src/charm.py", "# no modprobe here, nor any snapshot", nil},
	} {
		t.Run(test.file+" "+test.text, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, test.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(test.text), 0o644); err != nil {
				t.Fatal(err)
			}

			var got map[string]bool
			for _, need := range machineNeeds() {
				if _, signs := findInCode(dir, need.inCode, need.inYAML, 3, "tests"); len(signs) > 0 {
					got = map[string]bool{need.does: true}
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDescribeObstacle(t *testing.T) {
	for _, test := range []struct {
		provider      string
		hasSnapd      bool
		snaps, kernel string
	}{
		{state.ProviderLocal, true, "", ""},
		{state.ProviderLocal, false, "and this host has no snapd", ""},
		{
			state.ProviderNspawn, true, "and snapd does not run in containers of the provider nspawn",
			"which containers of the provider nspawn cannot do",
		},
		{"ssh", true, "which need snapd on its machines", ""},
	} {
		t.Run(test.provider, func(t *testing.T) {
			if got := describeMissingSnapd(test.provider, test.hasSnapd); got != test.snaps {
				t.Errorf("snaps: %q, want %q", got, test.snaps)
			}
			if got := describeForeignKernel(test.provider, test.hasSnapd); got != test.kernel {
				t.Errorf("kernel modules: %q, want %q", got, test.kernel)
			}
		})
	}
}
