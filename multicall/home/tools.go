package home

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/state/osutil"
)

// InstallTools copies the running binary to tools/VERSION-SHA8/bijou below dir, with a symlink for each applet, and
// returns VERSION-SHA8. It also works if the file of the running binary is already gone, as after go run. A second call
// keeps the copy, and creates the same symlinks again.
func InstallTools(dir, version string, applets []string) (name string, err error) {
	name, sum, binary, err := readTools(version)
	if err != nil {
		return "", err
	}

	tools := Fetched{Name: name, SHA256: sum, Links: applets}
	const failure = "cannot copy the running binary"
	return name, keepTools(dir, tools, binary, failure)
}

// ToolsName returns the name that InstallTools assigns to the running binary.
func ToolsName(version string) (string, error) {
	name, _, _, err := readTools(version)
	return name, err
}

// readTools returns the running binary, its checksum, and the name of its tools' directory.
func readTools(version string) (name, sum string, binary []byte, err error) {
	binary, err = os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", "", nil, fmt.Errorf("cannot read the running binary: %w", err)
	}

	sum = osutil.Digest(binary)
	return version + "-" + sum[:8], sum, binary, nil
}

// Fetched describes a binary that was fetched from the state.
type Fetched struct {
	Name   string   // VERSION-SHA8
	SHA256 string   // in hex
	Links  []string // the applets' names
}

// PutTools writes a fetched binary to tools/NAME/bijou below dir, with its symlinks. It writes nothing and returns an
// error if f.Name is a path, or does not end with the first eight digits of f.SHA256, or if content has a different
// checksum. It can be repeated.
func PutTools(dir string, f Fetched, content io.Reader) error {
	isFolderName := filepath.Base(f.Name) == f.Name
	hasSum := len(f.SHA256) >= 8 && strings.HasSuffix(f.Name, "-"+f.SHA256[:8])
	if !isFolderName || !hasSum {
		return fmt.Errorf("cannot store the binary %q: the end of the name does not match the binary's SHA-256 sum %s", f.Name, f.SHA256)
	}

	failure := fmt.Sprintf("cannot store the binary %q", f.Name)
	// Read everything first, since writing an executable blocks forks, and the source may be slow.
	data, err := io.ReadAll(content)
	if sum := osutil.Digest(data); err == nil && sum != f.SHA256 {
		err = fmt.Errorf("the SHA-256 sum is %s, not %s", sum, f.SHA256)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", failure, err)
	}

	return keepTools(dir, f, data, failure)
}

// keepTools writes the binary data into the directory dir/tools/NAME, unless that has the same binary already, and
// creates the applets' symlinks there. If the binary cannot be written, the error begins with failure.
func keepTools(dir string, f Fetched, data []byte, failure string) error {
	folder := filepath.Join(dir, "tools", f.Name)
	if err := osutil.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("cannot create the tools directory: %w", err)
	}

	path := filepath.Join(folder, "bijou")
	// Do not write the same binary again, since processes may be running it.
	if existingSum, _, err := osutil.DigestFile(path); err != nil || existingSum != f.SHA256 {
		if err := osutil.WriteFile(path, data, 0o755, osutil.ExactMode); err != nil {
			return fmt.Errorf("%s: %w", failure, err)
		}
	}

	return linkApplets(folder, f.Links)
}

// HasTools reports whether the environment's directory has the tools called name.
func (e Environment) HasTools(name string) bool {
	_, err := os.Stat(filepath.Join(e.Dir, "tools", name, "bijou"))
	return err == nil
}

// SweepTools removes the directories of tools, except those named in keep and those for which isUsed returns true. It
// leaves alone directories whose name is not that of tools. If it cannot remove a directory, it continues with the next
// one.
func (e Environment) SweepTools(keep []string, isUsed func(folder string) bool) error {
	entries, err := os.ReadDir(filepath.Join(e.Dir, "tools"))
	if err != nil {
		return fmt.Errorf("cannot list old tools: %w", err)
	}

	for _, entry := range entries {
		isKept := slices.Contains(keep, entry.Name()) || !toolsPattern().MatchString(entry.Name())
		folder := filepath.Join(e.Dir, "tools", entry.Name())
		if !isKept && !isUsed(folder) {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}

	if err != nil {
		return fmt.Errorf("cannot remove old tools: %w", err)
	}

	return nil
}

// toolsPattern matches the end of the name of a directory of tools.
var toolsPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-[0-9a-f]{8}$`)
})

// linkApplets creates, beside the binary, a symlink to it for each applet except bijou, which is the binary itself.
func linkApplets(folder string, applets []string) error {
	var links []string
	for _, a := range applets {
		if a != "bijou" {
			links = append(links, filepath.Join(folder, a))
		}
	}

	if err := osutil.Symlink("bijou", links...); err != nil {
		return fmt.Errorf("cannot link the tools in %q: %w", folder, err)
	}

	return nil
}

// Symlink creates a symlink to target. It replaces an existing file by a rename.
func Symlink(target, link string) error {
	if err := osutil.Symlink(target, link); err != nil {
		return fmt.Errorf("cannot link %q: %w", link, err)
	}

	return nil
}
