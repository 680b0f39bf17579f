package install

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
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

	err := places{Jujud: true}.visit(&applet.Call{Applets: []string{"juju"}}, "", nil, note)
	want := []string{"/var/lib/juju/tools/machine-0/jujud", "/usr/bin/juju-exec", "/usr/bin/juju-run"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
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
