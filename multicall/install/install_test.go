package install

import (
	"bytes"
	"strings"
	"testing"

	"bijou/multicall/console"
	"bijou/testscripts/kit/terminal"
)

// On a terminal it asks, and takes only a yes.
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
		err = confirmDir(console.Streams{In: inner, Err: &errs}, "Link 3 names in /d", "/d")
		if (err == nil) != want || !strings.HasSuffix(errs.String(), "Link 3 names in /d? [y/N] ") {
			t.Errorf("%q: error %v, asked %q", answer, err, errs.String())
		}
		outer.Close()
		inner.Close()
	}
}
