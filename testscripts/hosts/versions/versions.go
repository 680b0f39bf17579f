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

	"bijou/testscripts/kit/need"
)

// commit is what landed last before this. It moves on with each landing.
//
//go:embed former
var commit string

// Need skips the test with one line if the former binary is not there and cannot be
// built here, or fails it if BIJOU_TEST_REQUIRE names former.
func Need(t testing.TB) {
	t.Helper()
	if _, err := findBinary(commit); err != nil {
		need.Skip(t, "former", err)
	}
}

// Former is the path of the binary that landed before. The test is skipped as by Need.
func Former(t testing.TB) string {
	t.Helper()
	Need(t)
	return At(t, commit)
}

// FormerHas reports whether the file is in the tree that the former binary was built of. Where git's
// history has no such commit, it is taken to be there: what is said of the file is then held.
func FormerHas(path string) bool {
	root, err := findRoot()
	if err != nil {
		return true
	}
	at := strings.TrimSpace(commit)
	if exec.Command("git", "-C", root, "cat-file", "-e", at+"^{commit}").Run() != nil {
		return true
	}
	return exec.Command("git", "-C", root, "cat-file", "-e", at+":"+path).Run() == nil
}

// At is the path of the binary of another commit in git's history.
func At(t testing.TB, commit string) string {
	t.Helper()
	path, err := findBinary(commit)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Current builds this binary, as it is released, and returns its path.
func Current(t testing.TB) string {
	t.Helper()
	return Build(t, nil)
}

// Build builds a program of this tree, or if none is named the binary, as it is released, with
// these variables besides, and returns its path.
func Build(t testing.TB, vars []string, program ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bijou")
	build := exec.Command(findBuild(t), append([]string{path}, program...)...)
	build.Env = append(os.Environ(), vars...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	return path
}

// findBuild returns the script of this checkout.
func findBuild(t testing.TB) string {
	t.Helper()
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, ".ci", "build")
}

// findRoot returns the directory of this checkout, which is above the test's.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}

	for {
		if _, err := os.Stat(filepath.Join(dir, ".ci", "build")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no .ci/build above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// findBinary returns the path of a commit's binary, which is built if need be.
func findBinary(commit string) (string, error) {
	commit = strings.TrimSpace(commit)
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "bijou-test", "versions", commit, "bijou")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(filepath.Join(root, "testscripts/hosts/versions/build"), commit).CombinedOutput()
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("cannot build the binary of %s: %w: %s", commit, err, lines[len(lines)-1])
	}
	return path, nil
}
