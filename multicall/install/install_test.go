package install

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bijou/multicall/console"
)

// On a terminal it asks, and takes only a yes.
func TestInstallAsks(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "n\n": false, "\x04": false} {
		outer, inner, err := openTerminal()
		if err != nil {
			t.Skip(err)
		}
		var errs bytes.Buffer
		if _, err := outer.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		err = confirmDir(console.Streams{In: inner, Err: &errs}, "/d", 3)
		if (err == nil) != want || !strings.HasSuffix(errs.String(), "Link 3 names in /d? [y/N] ") {
			t.Errorf("%q: error %v, asked %q", answer, err, errs.String())
		}
		outer.Close()
		inner.Close()
	}
}

func openTerminal() (outer, inner *os.File, err error) {
	if outer, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(outer.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(outer.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		inner, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	return outer, inner, err
}
