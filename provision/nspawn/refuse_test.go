package nspawn

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/netip"
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
	if _, err := New(provider.Environment{Config: map[string]string{"aptrepository": "/x"}}); err == nil || !strings.Contains(err.Error(), "apt-repository, network, packages, tree") {
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
		err = fit(host, free, provider.Spec{Machine: "3", Constraints: v})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "juju resolved 3")) {
			t.Errorf("%s: error %v", c.constraints, err)
		}
	}
	if err := fit(host, free, provider.Spec{Placement: "rack2"}); err == nil {
		t.Error("it can be placed")
	}
	free = 12
	if err := advise(fit(host, free, provider.Spec{})); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("a full disk: error %v", err)
	}
}

// TestJudgedOnce: a machine that has used its disk is started again.
func TestJudgedOnce(t *testing.T) {
	p := newProvider(t, nil)
	disk := uint64(1) << 40
	spec := provider.Spec{Machine: "3", Constraints: constraints.Value{RootDisk: &disk}}
	if err := p.judge(spec); err == nil || !strings.Contains(err.Error(), "root-disk") {
		t.Errorf("a new machine: error %v", err)
	}
	dir := filepath.Join(p.dir, p.idOf("3"))
	if err := errors.Join(os.MkdirAll(dir, 0o700), writeJSON(filepath.Join(dir, recordFile), record{Machine: "3"})); err != nil {
		t.Fatal(err)
	}
	if err := p.judge(spec); err != nil {
		t.Errorf("a machine that is there: error %v", err)
	}
}

// TestBadRecord: one that cannot be read hides no other machine, and is its own machine's.
func TestBadRecord(t *testing.T) {
	p := newProvider(t, nil)
	var want []provider.Instance
	for machine, text := range map[string]string{"3": `{"environment":"e0a1","machine":"3","address":"10.64.0.7"}`, "4": "{"} {
		dir := filepath.Join(p.dir, p.idOf(machine))
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, recordFile), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for machine, address := range map[string]string{"3": "10.64.0.7", "4": ""} {
		want = append(want, provider.Instance{ID: p.idOf(machine), Environment: "e0a1", Machine: machine, Private: address, Public: address})
	}
	slices.SortFunc(want, func(a, b provider.Instance) int { return strings.Compare(a.Machine, b.Machine) })
	found, err := p.Instances(t.Context())
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if err := p.judge(provider.Spec{Machine: "4"}); err != nil {
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

// TestTree: one that cannot be booted from is refused, with what to do.
func TestTree(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(series, want string) {
		t.Helper()
		if err := checkTree(dir, series); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	refused("bookworm", "remove that folder")
	write("etc/os-release", "ID=debian\nVERSION_CODENAME=bookworm\n")
	write("usr/bin/dpkg", "")
	write("usr/bin/sh", "")
	if err := os.Symlink("/usr/bin", filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	refused("bookworm", "it has no lib/systemd/systemd")
	write("usr/lib/systemd/systemd", "")
	refused("noble", `"bookworm" only, not "noble": deploy with --series bookworm`)
	if err := checkTree(dir, "bookworm"); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/os-release"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused("bookworm", "VERSION_CODENAME")
}

// TestTreeOfBefore: the tree that is there serves its series, whatever the host is now.
func TestTreeOfBefore(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	p := newProvider(t, nil)
	for series, want := range map[string]string{"elder": `"elder": deploy with`, "../elder": "no series", "": "no series"} {
		if _, err := p.tree(t.Context(), "1", series, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one that says %q", series, err, want)
		}
	}
	dir := filepath.Join(cache(), "trees", "elder-1")
	for path, text := range map[string]string{
		"etc/os-release": "VERSION_CODENAME=elder\n", "usr/bin/dpkg": "", "usr/bin/sh": "", "usr/lib/systemd/systemd": "",
	} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := p.tree(t.Context(), "1", "elder", io.Discard); err != nil || got != dir {
		t.Errorf("tree %q, error %v; want %q", got, err, dir)
	}
}

// TestTreeOfAMachine: a machine stays with the tree that its files lie over; others get the one
// with the packages that are wanted.
func TestTreeOfAMachine(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	own, err := provider.SeriesOf("/")
	if err != nil {
		t.Skip(err)
	}
	tree := func(name string) string {
		dir := filepath.Join(cache(), "trees", own+name)
		for path, text := range map[string]string{
			"etc/os-release": "VERSION_CODENAME=" + own + "\n", "usr/bin/dpkg": "", "usr/bin/sh": "", "usr/lib/systemd/systemd": "",
		} {
			path = filepath.Join(dir, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	old, fresh, more := tree("-1"), tree("-2"), tree("-2-4ba4360a") // the last digits are of "git,jq"
	for packages, want := range map[string]string{"": fresh, "jq, git": more, " git\njq git": more} {
		p := newProvider(t, map[string]string{"packages": packages})
		if got, err := p.tree(t.Context(), "1", own, io.Discard); got != want || err != nil {
			t.Errorf("with %q: %q, %v; want %q", packages, got, err, want)
		}
		dir := filepath.Join(p.dir, p.idOf("1"))
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.Symlink(old, filepath.Join(dir, "base"))); err != nil {
			t.Fatal(err)
		}
		if got, err := p.tree(t.Context(), "1", own, io.Discard); got != old || err != nil {
			t.Errorf("of a machine of before: %q, %v", got, err)
		}
	}
	p := newProvider(t, map[string]string{"packages": "git --include=x"})
	if _, err := p.tree(t.Context(), "1", own, io.Discard); err == nil || !strings.Contains(err.Error(), `has "--include=x"`) {
		t.Errorf("what is no package: %v", err)
	}
}

func TestProgress(t *testing.T) {
	var boot bytes.Buffer
	last := progress(strings.NewReader(strings.Repeat("I: Retrieving libacl1\n", 25)+"E: no more\n"), &boot)
	if want := strings.Repeat("tree, step N: Retrieving libacl1\n", 3); last != "E: no more" ||
		strings.NewReplacer("1:", "N:", "11:", "N:", "21:", "N:").Replace(boot.String()) != want {
		t.Errorf("last %q, said\n%s", last, &boot)
	}
}

func TestChoose(t *testing.T) {
	a, b := newProvider(t, nil), newProvider(t, nil)
	if a.bridge() == b.bridge() || len(a.bridge()) > 15 {
		t.Errorf("bridges %s, %s", a.bridge(), b.bridge())
	}
	n, err := a.choose()
	if err != nil || n.Subnet.Bits() != 24 || !netip.MustParsePrefix("10.64.0.0/10").Overlaps(n.Subnet) {
		t.Errorf("network %v, %v", n.Subnet, err)
	}
	for _, c := range []struct{ asked, want string }{
		{"10.7.7.0/24", ""},
		{"10.7.7.0/16", "want one like"},
		{"x", "want one like"},
		{"127.0.0.0/24", "choose another"},
	} {
		n, err := newProvider(t, map[string]string{"network": c.asked}).choose()
		if c.want == "" && (err != nil || n.Subnet.String() != c.asked) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: network %v, error %v", c.asked, n.Subnet, err)
		}
	}
}

func TestParseRoute(t *testing.T) {
	if p, ok := parseRoute("0002000A", "00FFFFFF"); !ok || p.String() != "10.0.2.0/24" {
		t.Errorf("%v %v", p, ok)
	}
	if p, ok := parseRoute("Destination", "Mask"); ok {
		t.Errorf("a headline is %v", p)
	}
}

// TestAddresses: they go round, and one that is in use is no one else's.
func TestAddresses(t *testing.T) {
	p := newProvider(t, nil)
	n := network{Subnet: netip.MustParsePrefix("10.70.0.0/24")}
	for _, want := range []string{"10.70.0.10", "10.70.0.11"} {
		a, err := p.free(n)
		if err != nil || a.String() != want {
			t.Fatalf("%s, %v; want %s", a, err, want)
		}
		n.Last = a
	}
	dir := filepath.Join(p.dir, p.idOf("7"))
	if err := errors.Join(os.MkdirAll(dir, 0o700), writeJSON(filepath.Join(dir, recordFile), record{Machine: "7", Address: "10.70.0.10"})); err != nil {
		t.Fatal(err)
	}
	n.Last = n.host(lastMachine)
	if a, err := p.free(n); err != nil || a.String() != "10.70.0.11" {
		t.Errorf("%s, %v", a, err)
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
	c, err := l.follow()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	var boot bytes.Buffer
	add("[\x1b[0;32m  OK  \x1b[0m] Started \x1b[0;1;39ma\x1b[0m.\r\n\nhal")
	c.copyTo(&boot)
	add("f\nno end")
	c.copyTo(&boot)
	if want := "[  OK  ] Started a.\nhalf\n"; boot.String() != want || c.last() != "[  OK  ] Started a.; half; no end" {
		t.Errorf("said %q, last %q", &boot, c.last())
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
