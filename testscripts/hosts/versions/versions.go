// Package versions provides the previous binary and this one, for tests of environments whose agents run
// both.
//
// It contains no knowledge about the behaviour of the binaries.
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

// commit is the commit of the former binary. It changes with each landing.
//
//go:embed former
var commit string

// Need skips the test with one line if the former binary does not exist and cannot be built here. If
// BIJOU_TEST_REQUIRE names former, the test fails.
func Need(t testing.TB) {
	t.Helper()
	if _, err := findBinary(commit); err != nil {
		need.Skip(t, "former", err)
	}
}

// Former returns the path of the previous binary. It skips the test as Need does.
func Former(t testing.TB) string {
	t.Helper()
	Need(t)
	return At(t, commit)
}

// FormerHas reports whether the source of the former binary contains the file. If git's history does not have
// that commit, it returns true.
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

// At returns the path of the binary of a commit in git's history.
func At(t testing.TB, commit string) string {
	t.Helper()
	path, err := findBinary(commit)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Current builds this binary like a released one, and returns its path.
func Current(t testing.TB) string {
	t.Helper()
	return Build(t, nil)
}

// Build builds a program of this tree like a released one, with these additional variables, and returns
// its path. Without a name it builds the binary.
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

// findBuild returns the build script of this checkout.
func findBuild(t testing.TB) string {
	t.Helper()
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, ".ci", "build")
}

// findRoot returns the directory of this checkout. It is above the test's directory.
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

// findBinary returns the path of a commit's binary, and builds it if needed.
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
