package nspawn

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/provider"
	"bijou/testscripts/kit/need"
)

// fakeDebootstrap puts a fake debootstrap on the PATH, which supports the scripts and writes its arguments
// into the tree that it creates. It returns a directory whose subdirectory keyrings contains the keyrings.
func fakeDebootstrap(t *testing.T, scripts ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}

	keyrings := map[string]string{"sid": "debian", "trixie": "debian", "gutsy": "ubuntu", "jammy": "ubuntu", "kali": "kali"}
	for _, name := range scripts {
		write("share/scripts/"+name, "variants minbase\nkeyring "+dir+"/keyrings/"+keyrings[name]+"-archive-keyring.gpg\n")
	}
	write("keyrings/debian-archive-keyring.gpg", "")
	write("bin/debootstrap", `#!/bin/sh
echo "I: Retrieving everything"
for word; do case $word in -*) ;; *) series=$1 tree=$2; break ;; esac; shift; done
mkdir -p "$tree/etc" "$tree/usr/bin" "$tree/usr/lib/systemd"
echo "VERSION_CODENAME=$series" >"$tree/etc/os-release"
touch "$tree/usr/bin/dpkg" "$tree/usr/bin/sh" "$tree/usr/lib/systemd/systemd"
echo "$1 ${3:-none} ${4##*/}" >"$tree/called"
`)
	// This configuration of apt names no mirror of the host.
	write("bin/apt-get", "#!/bin/sh\n")

	t.Setenv("DEBOOTSTRAP_DIR", filepath.Join(dir, "share"))
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return dir
}

func TestTreesOfOtherSeries(t *testing.T) {
	all := []string{"sid", "trixie", "gutsy", "jammy", "kali"}
	for name, tt := range map[string]struct {
		series  string
		scripts []string
		config  map[string]string
		ubuntus bool   // whether the keyring of Ubuntu exists
		called  string // the arguments of debootstrap: series, mirror, script
		refused string
	}{
		"one that it knows":        {series: "trixie", scripts: all, called: "trixie none trixie"},
		"younger than it":          {series: "trixie", scripts: []string{"sid"}, called: "trixie none sid"},
		"a mirror":                 {series: "trixie", scripts: all, config: map[string]string{"mirror.trixie": "http://a/debian"}, called: "trixie http://a/debian trixie"},
		"another's mirror":         {series: "trixie", scripts: all, config: map[string]string{"mirror.sid": "http://a/debian"}, called: "trixie none trixie"},
		"a mirror beside one tree": {series: "trixie", scripts: all, config: map[string]string{"mirror.trixie": "http://a", "tree": "/no"}, called: "trixie http://a trixie"},
		"Ubuntu's":                 {series: "jammy", scripts: all, ubuntus: true, called: "jammy none jammy"},
		"Ubuntu's, younger":        {series: "noble", scripts: all, ubuntus: true, called: "noble none gutsy"},
		"no keyring":               {series: "noble", scripts: all, refused: `to check the archive of the series "noble" with: apt-get install ubuntu-keyring`},
		"nobody's keyring":         {series: "kali", scripts: all, refused: `no DIR/keyrings/kali-archive-keyring.gpg to check`},
		"not known":                {series: "centos7", scripts: all, refused: `does not support the series "centos7"`},
		"no script at all":         {series: "trixie", refused: `does not support the series "trixie"`},
		"a path":                   {series: "../sid", scripts: all, refused: `"../sid" is not a series`},
		"none":                     {series: "", scripts: all, refused: `"" is not a series`},
		"a bad mirror":             {series: "trixie", scripts: all, config: map[string]string{"mirror.trixie": "-x"}, refused: "want a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fakeDebootstrap(t, tt.scripts...)
			if tt.ubuntus {
				if err := os.WriteFile(filepath.Join(dir, "keyrings/ubuntu-archive-keyring.gpg"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p := newProvider(t, tt.config)

			tree, err := p.ensureTree(t.Context(), "1", tt.series, io.Discard)
			if tt.refused != "" {
				want := strings.ReplaceAll(tt.refused, "DIR", dir)
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one that says %q", err, want)
				}
				if _, err := os.Lstat(filepath.Join(dir, "cache")); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("something is half made: %v", err)
				}
				return
			}
			called, readErr := os.ReadFile(filepath.Join(tree, "called"))
			if err := errors.Join(err, readErr); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.called, strings.TrimSpace(string(called))); diff != "" {
				t.Error(diff)
			}

			// The second call must not create the tree again.
			if err := os.Remove(filepath.Join(tree, "called")); err != nil {
				t.Fatal(err)
			}
			if again, err := p.ensureTree(t.Context(), "2", tt.series, io.Discard); again != tree || err != nil || treeHas(tree, "called") {
				t.Errorf("the second machine: %q, %v", again, err)
			}
		})
	}
}

// TestCheckSeries checks that CheckSeries refuses each series that a start would refuse.
func TestCheckSeries(t *testing.T) {
	for name, tt := range map[string]struct {
		series string
		config map[string]string
		made   bool
		want   string
	}{
		"it can be made":    {series: "trixie"},
		"no keyring":        {series: "jammy", want: "apt-get install ubuntu-keyring"},
		"it is made":        {series: "jammy", made: true},
		"a tree is given":   {series: "jammy", config: map[string]string{"tree.jammy": "/j"}},
		"one tree for all":  {series: "jammy", config: map[string]string{"tree": "/j"}},
		"it is not a known": {series: "centos7", want: "does not support"},
	} {
		t.Run(name, func(t *testing.T) {
			fakeDebootstrap(t, "sid", "trixie", "jammy")
			if tt.made {
				if err := os.MkdirAll(treeFolder(tt.series, nil), 0o755); err != nil {
					t.Fatal(err)
				}
			}

			err := CheckSeries(tt.config, tt.series)
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	for name, tt := range map[string]struct {
		release release
		want    []string
	}{
		"Debian's": {
			release{series: "trixie", distribution: "debian", script: "/s/sid"},
			[]string{"--variant=minbase", "--include=a,b", "trixie", "/d", "http://m", "/s/sid"},
		},
		"Ubuntu's": {
			release{series: "noble", distribution: "ubuntu", script: "/s/gutsy"},
			[]string{"--variant=minbase", "--include=a,b", "--components=main,universe", "noble", "/d", "http://m", "/s/gutsy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.release.args("/d", "http://m", []string{"a", "b"})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOtherSeriesBoots creates a real tree of a release of Debian other than the host's, from the mirror of
// the host's apt. It boots a machine from the tree.
func TestOtherSeriesBoots(t *testing.T) {
	testTree(t) // skips the test without root, which it also needs
	own, err := provider.SeriesOf("/")
	if err != nil {
		t.Fatal(err)
	}
	if host, err := findRelease(own); err != nil || host.distribution != "debian" {
		need.Skip(t, "debootstrap", "this host is not Debian's, or has no debootstrap")
	}
	series := "bullseye"
	if own == series {
		series = "bookworm"
	}

	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	p := provideIn(t, t.TempDir(), "")
	spec := provider.Spec{Environment: "e", Machine: "1", Series: series, Token: "e-1"}
	t.Cleanup(func() {
		if err := p.Stop(context.Background(), p.instanceID("1")); err != nil {
			t.Error(err)
		}
		nothingLeft(t, p)
	})
	var boot strings.Builder
	i, err := p.Start(t.Context(), spec, &boot)
	if err != nil || !i.Running {
		t.Fatalf("%+v, %v\n%s", i, err, &boot)
	}
	if !strings.Contains(boot.String(), "creating the tree of "+series) || !strings.Contains(boot.String(), "tree, step 11: ") {
		t.Errorf("its progress is not told:\n%s", &boot)
	}

	tree := treeFolder(series, nil)
	if found, err := provider.SeriesOf(tree); found != series || err != nil {
		t.Errorf("the tree is of %q, %v", found, err)
	}
	if left, err := filepath.Glob(filepath.Join(tree, "var/cache/apt/archives/*.deb")); len(left) > 0 || err != nil {
		t.Errorf("packages are left: %q, %v", left, err)
	}
}
