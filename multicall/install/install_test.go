package install

import (
	"bytes"
	"path/filepath"
	"strings"
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
