package wrap

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

func TestError(t *testing.T) {
	if err := Error(nil, "cannot read %q", "f"); err != nil {
		t.Errorf("nothing is wrong, but there is the error %v", err)
	}
	err := Error(fs.ErrNotExist, "cannot read 100%% of %q", "f")
	if err.Error() != `cannot read 100% of "f": file does not exist` || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestResult(t *testing.T) {
	read := func(name string, failure error) (err error) {
		defer Result(&err, "cannot read %q", name)
		return failure
	}
	if err := read("f", nil); err != nil {
		t.Error(err)
	}
	if err := read("f", fs.ErrNotExist); err.Error() != `cannot read "f": file does not exist` {
		t.Error(err)
	}
}

func TestInFolder(t *testing.T) {
	folder := t.TempDir()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()

	_, relative := root.Open("sub/file")
	_, absolute := os.Open("/nowhere/file")
	for want, err := range map[string]error{"in " + folder + ": openat sub/file: ": relative, "open /nowhere/file: ": absolute, "in " + folder + ": symlinkat x link/x: ": root.Symlink("x", "link/x")} {
		if err = InFolder(err, folder); !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v does not begin with %q", err, want)
		}
	}
	if InFolder(nil, folder) != nil {
		t.Error("nothing is wrong, but there is an error")
	}
}

func TestUnless(t *testing.T) {
	missing := Error(fs.ErrNotExist, "cannot read %q", "f")
	if err := errors.Join(Unless(nil, fs.ErrNotExist), Unless(missing, fs.ErrNotExist)); err != nil {
		t.Error(err)
	}
	if err := Unless(missing, fs.ErrExist); err != missing {
		t.Errorf("another error became %v", err)
	}
}
