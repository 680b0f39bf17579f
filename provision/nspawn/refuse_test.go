package nspawn

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/provider"
	"bijou/state/constraints"
)

func newProvider(t *testing.T, config map[string]string) *Provider {
	t.Helper()
	p, err := New(provider.Environment{UUID: "e0a1", Name: "Test 1", Dir: t.TempDir(), Config: config})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRefusesSettings(t *testing.T) {
	// If a storage disk is missing, machines can be stopped but not started.
	if _, err := New(provider.Environment{Config: map[string]string{"storage": "/no/such/disk"}}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"/no/such/disk", "/tmp, no/disk", "/etc/passwd"} {
		if _, err := storageFolders(map[string]string{"storage": bad}); err == nil || !strings.Contains(err.Error(), "nspawn.storage has ") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
	for name, tt := range map[string]struct{ key, value, want string }{
		"a mirror":           {"mirror.jammy", "http://archive.example.com/ubuntu", ""},
		"a folder":           {"mirror.sid", "file:/srv/debian", ""},
		"taken back":         {"mirror.jammy", "", ""},
		"an option":          {"mirror.jammy", "--no-check-gpg", "nspawn.mirror.jammy is \"--no-check-gpg\": want a URL"},
		"a path":             {"mirror.jammy", "/srv/debian", "want a URL"},
		"two":                {"mirror.jammy", "http://a http://b", "want a URL"},
		"of which series":    {"mirror.", "http://a", "mirror.SERIES"},
		"of all":             {"mirror", "http://a", "mirror.SERIES"},
		"a tree of a series": {"tree.jammy", "/srv/jammy", ""},
		"confined":           {"confined", "true", ""},
		"not confined":       {"confined", "false", ""},
		"half confined":      {"confined", "yes", `nspawn.confined is "yes": want true or false`},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckSettings(map[string]string{tt.key: tt.value})
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
		})
	}
	if err := CheckSettings(map[string]string{"aptrepository": "/x"}); err == nil || !strings.Contains(err.Error(), "apt-repository, confined, network, packages, storage, tree") {
		t.Errorf("error %v", err)
	}
}

func TestFit(t *testing.T) {
	host, free := constraints.Hardware{Arch: "amd64", CPUCores: 2, CPUPower: math.MaxUint64, Mem: 4000, RootDisk: 9000}, uint64(5000)
	for _, c := range []struct{ constraints, want string }{
		{"", ""},
		{"mem=4000M cpu-cores=2 root-disk=5000M arch=amd64 cpu-power=1000 tags=^ssd container=nspawn", ""},
		{"mem=4001M", "mem=4001M"},
		{"cpu-cores=3 mem=1G", "cpu-cores=3:"},
		{"root-disk=5001M", "root-disk=5001M"},
		{"arch=arm64", "arch=arm64"},
		{"tags=ssd,^old", "tags=ssd,^old"},
		{"instance-type=m1.small", "instance-type=m1.small"},
		{"container=kvm", "container=kvm"},
	} {
		v, err := constraints.Parse(c.constraints)
		if err != nil {
			t.Fatal(err)
		}
		err = checkHardware(host, free, provider.Spec{Machine: "3", Constraints: v})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "juju resolved 3")) {
			t.Errorf("%s: error %v", c.constraints, err)
		}
	}
	if err := checkHardware(host, free, provider.Spec{Placement: "rack2"}); err == nil {
		t.Error("it can be placed")
	}
	free = 12
	if err := withAdvice(checkHardware(host, free, provider.Spec{})); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("a full disk: error %v", err)
	}
}

// TestJudgedOnce checks that constraints are checked for new machines only: a machine that has used its
// disk can be started again.
func TestJudgedOnce(t *testing.T) {
	p := newProvider(t, nil)
	disk := uint64(1) << 40
	spec := provider.Spec{Machine: "3", Constraints: constraints.Value{RootDisk: &disk}}
	if err := p.checkNewMachine(spec); err == nil || !strings.Contains(err.Error(), "root-disk") {
		t.Errorf("a new machine: error %v", err)
	}
	dir := filepath.Join(p.dir, p.instanceID("3"))
	if err := errors.Join(os.MkdirAll(dir, 0o700), provider.Record{Machine: "3"}.Write(dir)); err != nil {
		t.Fatal(err)
	}
	if err := p.checkNewMachine(spec); err != nil {
		t.Errorf("a machine that is there: error %v", err)
	}
}

// TestBadRecord checks that other machines are listed despite an unreadable record, which still counts as the
// record of its own machine.
func TestBadRecord(t *testing.T) {
	p := newProvider(t, nil)
	var want []provider.Instance
	for machine, text := range map[string]string{"3": `{"environment":"e0a1","machine":"3","address":"10.64.0.7"}`, "4": "{"} {
		dir := filepath.Join(p.dir, p.instanceID(machine))
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "instance.json"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for machine, address := range map[string]string{"3": "10.64.0.7", "4": ""} {
		want = append(want, provider.Instance{ID: p.instanceID(machine), Environment: "e0a1", Machine: machine, Private: address, Public: address})
	}
	slices.SortFunc(want, func(a, b provider.Instance) int { return strings.Compare(a.Machine, b.Machine) })
	found, err := p.Instances(t.Context())
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if err := p.checkNewMachine(provider.Spec{Machine: "4"}); err != nil {
		t.Errorf("a machine that is there: %v", err)
	}
}

func TestRefusesIDs(t *testing.T) {
	p := newProvider(t, nil)
	for _, id := range []string{"", "0", "..", "1/2", "a", "01", "-1", "9999999999"} {
		if _, err := p.Start(t.Context(), provider.Spec{Machine: id}, io.Discard); err == nil {
			t.Errorf("machine %q was started", id)
		}
		if err := p.Stop(t.Context(), id); err == nil {
			t.Errorf("instance %q was stopped", id)
		}
	}
	if err := p.Stop(t.Context(), "bj000000-1"); err != nil {
		t.Errorf("an instance that never was: %v", err)
	}
}

func TestConsole(t *testing.T) {
	l := launch{provider: newProvider(t, nil), spec: provider.Spec{Machine: "1"}}
	if err := os.MkdirAll(l.dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.dir(), "console.log")
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	add("of before\n")
	var boot bytes.Buffer
	l.boot = &boot
	c, err := l.openConsole()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	add("[\x1b[0;32m  OK  \x1b[0m] Started \x1b[0;1;39ma\x1b[0m.\r\n\nhal")
	c.readOn()
	add("f\nno end")
	c.readOn()
	if want := "[  OK  ] Started a.\nhalf\n"; boot.String() != want || c.lastOutput() != "[  OK  ] Started a.; half; no end" {
		t.Errorf("said %q, last %q", &boot, c.lastOutput())
	}
}

func TestStateFolders(t *testing.T) {
	for _, c := range []struct{ state, want, refused string }{
		{"sqlite:/home/a/state/state.db", "/home/a/state", ""},
		{"etcd+unix:///run/a/m:1,/run/a/n:1,/run/b/o?prefix=/x", "/run/a /run/b", ""},
		{"etcd://10.1.2.3:2379,127.0.0.1:2379/x", "", ""},
		{"etcd://127.0.0.1:2379,localhost:2379/x?ca=/y", "", "let etcd listen at an address"},
		{"etcd://[::1]:2379/x", "", "let etcd listen at an address"},
		{"", "", ""},
	} {
		got, err := environmentRecord{State: c.state}.stateFolders()
		if strings.Join(got, " ") != c.want || (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v, %v", c.state, got, err)
		}
	}
}
