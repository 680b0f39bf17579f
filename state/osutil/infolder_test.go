package osutil

import (
	"os"
	"strings"
	"testing"
)

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
