package home

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// Tools says what InstallTools puts into an environment.
type Tools struct {
	Version string
	Links   []string // the applets' names
}

// InstallTools copies the running binary to tools/VERSION-SHA8/bijou below dir,
// with a link for each applet, and returns VERSION-SHA8. It works when the
// binary's own file is gone already (go run removes it), and may be repeated.
func InstallTools(dir string, t Tools) (name string, err error) {
	binary, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("cannot open the running binary: %w", err)
	}
	defer binary.Close()
	sum, err := sumOf(binary)
	if err != nil {
		return "", fmt.Errorf("cannot read the running binary: %w", err)
	}
	name = t.Version + "-" + sum[:8]
	folder := filepath.Join(dir, "tools", name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the tools folder: %w", err)
	}
	if !holds(filepath.Join(folder, "bijou"), sum) { // or else it would be pulled from under those who run it
		if err := copyExecutable(binary, filepath.Join(folder, "bijou")); err != nil {
			return "", fmt.Errorf("cannot copy the running binary: %w", err)
		}
	}
	return name, link(folder, t.Links)
}

// sumOf is the sha256 of a file from its beginning, in hex.
func sumOf(f *os.File) (string, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// holds says if the file has that content already.
func holds(path, sum string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	now, err := sumOf(f)
	return err == nil && now == sum
}

// link makes a relative link to bijou for every applet.
func link(folder string, applets []string) error {
	for _, a := range applets {
		if a == "bijou" {
			continue
		}
		if err := Symlink("bijou", filepath.Join(folder, a)); err != nil {
			return err
		}
	}
	return nil
}

// copyExecutable writes beside, syncs and renames. No other goroutine may fork
// meanwhile: a child would inherit the descriptor that is open for writing, and
// executing the file would fail with ETXTBSY.
func copyExecutable(from *os.File, to string) error {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	pending, err := renameio.NewPendingFile(to, renameio.WithPermissions(0o755), renameio.IgnoreUmask())
	if err != nil {
		return err
	}
	defer pending.Cleanup()
	if _, err := io.Copy(pending, from); err != nil {
		return err
	}
	return pending.CloseAtomicallyReplace()
}

// Symlink makes the link, replacing what has its name at once.
func Symlink(target, link string) error {
	if err := renameio.Symlink(target, link); err != nil {
		return fmt.Errorf("cannot link %q: %w", link, err)
	}
	return nil
}
