package install

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/testscripts/kit/terminal"
)

// TestJujudPlaces checks that the programs that charms call are linked where Juju has them, and that no
// others are linked without --dir.
func TestJujudPlaces(t *testing.T) {
	var got []string
	note := func(_ console.Streams, dir string, names []string) error {
		for _, name := range names {
			got = append(got, filepath.Join(dir, name))
		}
		return nil
	}

	units := func(console.Streams) error {
		got = append(got, "units")
		return nil
	}

	jujud := []string{"/var/lib/juju/tools/machine-0/jujud", "/usr/bin/juju-exec", "/usr/bin/juju-run"}
	for _, tt := range []struct {
		what string
		p    places
		want []string
	}{
		{"jujud", places{Jujud: true}, jujud},
		{"jujud and a directory", places{Jujud: true, Dir: "/d"}, append(slices.Clone(jujud), "/d/juju")},
		{"unit files", places{Systemd: true}, []string{"units"}},
		{"unit files and jujud", places{Systemd: true, Jujud: true}, append([]string{"units"}, jujud...)},
		{"unit files and a directory", places{Systemd: true, Dir: "/d"}, []string{"units", "/d/juju"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			got = nil
			err := tt.p.visit(&applet.Call{Applets: []string{"juju"}}, "", units, note)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestLeftOutSymlinksGo checks that install removes a left out symlink to any version of bijou, and keeps the files
// of other programs.
func TestLeftOutSymlinksGo(t *testing.T) {
	for target, want := range map[string]bool{"/opt/old/bijou": true, "/snap/bin/juju": false} {
		t.Run(target, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(target, filepath.Join(dir, "juju")); err != nil {
				t.Fatal(err)
			}

			s := console.Streams{Out: io.Discard, Err: io.Discard}
			if err := (Command{Without: []string{"juju"}}).makeLinks(s, dir, []string{"neco"}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "juju")); os.IsNotExist(err) != want {
				t.Errorf("removed: %t, want %t", !want, want)
			}
		})
	}
}

// TestLeftOutIsNotCounted checks that install creates no symlink for a name that is left out, and does not count it,
// also if the name is not an applet's of the default directory.
func TestLeftOutIsNotCounted(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	s := console.Streams{Out: &out, Err: io.Discard}
	if err := (Command{Without: []string{"juju-exec"}}).makeLinks(s, dir, []string{"juju-exec", "juju-run"}); err != nil {
		t.Fatal(err)
	}

	if !strings.HasPrefix(out.String(), dir+": 1 symlinks to ") {
		t.Errorf("said %q, want 1 symlink", out.String())
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 1 {
		t.Errorf("created %q, %v", names, err)
	}
}

// TestNecoUnitsGoWithoutLinks checks that the unit files of neco's daemons can be removed after the symlinks.
func TestNecoUnitsGoWithoutLinks(t *testing.T) {
	set, err := places{Systemd: true, Neco: true}.selectUnits()
	if err != nil || len(set.units) == 0 {
		t.Errorf("got %d unit files, %v", len(set.units), err)
	}
}

// TestInstallAsks checks that install asks for confirmation on a terminal, and continues only after a yes.
func TestInstallAsks(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "n\n": false, "\x04": false} {
		outer, inner, err := terminal.Open(24, 80)
		if err != nil {
			t.Skip(err)
		}
		var errs bytes.Buffer
		if _, err := outer.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		err = confirmDir(console.Streams{In: inner, Err: &errs}, "Create 3 symlinks in /d", "/d")
		if (err == nil) != want || !strings.HasSuffix(errs.String(), "Create 3 symlinks in /d? [y/N] ") {
			t.Errorf("%q: error %v, asked %q", answer, err, errs.String())
		}
		outer.Close()
		inner.Close()
	}
}

// TestForceIsOnlyForForeignFiles checks that install names all files of other programs, with the flag that replaces
// them, and that it returns any other error once and without that hint.
func TestForceIsOnlyForForeignFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"neco", "juju"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	install := func(names ...string) string {
		var errs bytes.Buffer
		s := console.Streams{Out: io.Discard, Err: io.Discard}
		console.Report(&errs, Command{}.makeLinks(s, dir, names))
		return errs.String()
	}

	got := install("neco", "charm", "juju")
	if strings.Count(got, "belongs to another program") != 2 || !strings.Contains(got, "hint: --force replaces these files") {
		t.Errorf("files of other programs: got %q", got)
	}

	// Root may write to every directory, but no directory has names this long.
	long := strings.Repeat("n", 300)
	got = install(long, long)
	if strings.Count(got, syscall.ENAMETOOLONG.Error()) != 1 || strings.Contains(got, "--force") {
		t.Errorf("another error: got %q", got)
	}
}
