package applet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindSelf checks that without /proc the binary finds itself by its own name, which is a path or a name
// on PATH.
func TestFindSelf(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "bijou")
	if err := errors.Join(os.WriteFile(binary, nil, 0o755), os.Symlink("bijou", filepath.Join(dir, "juju"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	none := func() (string, error) { return "", errors.New("no /proc") }
	for _, argv0 := range []string{"bijou", "juju", "./juju", binary} {
		if got, err := findExecutable(none, argv0); got != binary || err != nil {
			t.Errorf("called as %s: %q, %v", argv0, got, err)
		}
	}
	if _, err := findExecutable(none, "elsewhere"); err == nil || !strings.Contains(err.Error(), "no /proc") {
		t.Errorf("a name that is nowhere: %v", err)
	}
	if got, err := findExecutable(func() (string, error) { return "/x", nil }, "bijou"); got != "/x" || err != nil {
		t.Errorf("with /proc: %q, %v", got, err)
	}
}
