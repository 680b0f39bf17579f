package nspawn

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/provision/provider"
)

// TestTree checks that a tree that cannot be booted is refused, with a hint.
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
	refused("bookworm", "remove that directory")
	write("etc/os-release", "ID=debian\nVERSION_CODENAME=bookworm\n")
	write("usr/bin/dpkg", "")
	write("usr/bin/sh", "")
	if err := os.Symlink("/usr/bin", filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	refused("bookworm", "lib/systemd/systemd is missing")
	write("usr/lib/systemd/systemd", "")
	refused("noble", `"bookworm", not "noble": deploy with --series bookworm`)
	if err := checkTree(dir, "bookworm"); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/os-release"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused("bookworm", "VERSION_CODENAME")
}

// TestTreeOfAMachine checks that a machine that has booted keeps its tree, while other machines get the
// tree with the configured packages.
func TestTreeOfAMachine(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	own, err := provider.SeriesOf("/")
	if err != nil {
		t.Skip(err)
	}
	tree := func(name string) string {
		dir := filepath.Join(cacheFolder(), "trees", own+name)
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
	old, fresh, more := tree("-1"), tree("-2"), tree("-2-4ba4360a") // the last digits are the hash of "git,jq"
	for packages, want := range map[string]string{"": fresh, "jq, git": more, " git\njq git": more} {
		p := newProvider(t, map[string]string{"packages": packages})
		if got, err := p.ensureTree(t.Context(), "1", own, io.Discard); got != want || err != nil {
			t.Errorf("with %q: %q, %v; want %q", packages, got, err, want)
		}
		dir := filepath.Join(p.dir, p.instanceID("1"))
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.Symlink(old, filepath.Join(dir, "base"))); err != nil {
			t.Fatal(err)
		}
		if got, err := p.ensureTree(t.Context(), "1", own, io.Discard); got != old || err != nil {
			t.Errorf("of a machine of before: %q, %v", got, err)
		}
	}
	p := newProvider(t, map[string]string{"packages": "git --include=x"})
	if _, err := p.ensureTree(t.Context(), "1", own, io.Discard); err == nil || !strings.Contains(err.Error(), `has "--include=x"`) {
		t.Errorf("what is no package: %v", err)
	}
}

func TestProgress(t *testing.T) {
	var boot bytes.Buffer
	last := printProgress(strings.NewReader(strings.Repeat("I: Retrieving libacl1\n", 25)+"E: no more\n"), &boot)
	if want := strings.Repeat("tree, step N: Retrieving libacl1\n", 3); last != "E: no more" ||
		strings.NewReplacer("1:", "N:", "11:", "N:", "21:", "N:").Replace(boot.String()) != want {
		t.Errorf("last %q, said\n%s", last, &boot)
	}
}

// TestProgressOfLongLine checks that a line of any length does not end the reading of debootstrap's output.
func TestProgressOfLongLine(t *testing.T) {
	out := strings.NewReader(strings.Repeat("#", 300<<10) + "\nE: no more\n\n")
	if last := printProgress(out, io.Discard); last != "E: no more" || out.Len() > 0 {
		t.Errorf("last %.20q, %d bytes unread", last, out.Len())
	}
}
