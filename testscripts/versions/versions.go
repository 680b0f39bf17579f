// Package versions has the binary that landed before this one, and this one, for tests
// of what becomes of an environment whose agents are of both.
//
// It knows nothing of what the binaries do. Tests import it.
package versions

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bijou/testscripts/need"
)

// commit is what landed last before this. It moves on with each landing.
//
//go:embed former
var commit string

// Need skips the test with one line if the former binary is not there and cannot be
// built here, or fails it if BIJOU_TEST_REQUIRE names former.
func Need(t testing.TB) {
	t.Helper()
	if _, err := findFormer(); err != nil {
		need.Skip(t, "former", err)
	}
}

// Former is the path of the binary that landed before. The test is skipped as by Need.
func Former(t testing.TB) string {
	t.Helper()
	Need(t)
	path, err := findFormer()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Current builds this binary, as it is shipped, and returns its path.
func Current(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bijou")
	build := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", path, "bijou")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	return path
}

// findFormer is where the former binary is; it is built if need be.
func findFormer() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "bijou-test", "versions", strings.TrimSpace(commit), "bijou")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	out, err := exec.Command(filepath.Join("..", "versions", "build")).CombinedOutput()
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("cannot build what landed before: %w", err)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("cannot build what landed before: %s", lines[len(lines)-1])
	}
	return path, nil
}
