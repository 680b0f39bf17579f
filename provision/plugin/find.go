package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bijou/state/osutil"
)

// Prefix begins the name of each provider's executable.
const Prefix = "bijou-provider-"

// NotFoundError means that no directory has the provider's executable.
type NotFoundError struct {
	Name    string
	Folders []string // the searched directories
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no %s%s in %s", Prefix, e.Name, strings.Join(e.Folders, ", "))
}

// Find returns the path of the provider's executable in the first directory that has one. It ignores relative
// directories. It returns a NotFoundError if no directory has the executable.
func Find(name string, folders []string) (string, error) {
	for _, folder := range folders {
		path := filepath.Join(folder, Prefix+name)
		if filepath.IsAbs(path) && isExecutable(path) {
			return path, nil
		}
	}

	return "", &NotFoundError{Name: name, Folders: folders}
}

// Names returns the names of the providers that have an executable in one of the directories, in the order
// of the directories. Like Find, it ignores relative directories.
func Names(folders []string) []string {
	var names []string
	seen := map[string]bool{}

	for _, folder := range folders {
		if !filepath.IsAbs(folder) {
			continue
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			// Most of the directories do not exist.
			continue
		}

		for _, e := range entries {
			name, hasPrefix := strings.CutPrefix(e.Name(), Prefix)
			if !hasPrefix || name == "" || seen[name] {
				continue
			}
			if isExecutable(filepath.Join(folder, e.Name())) {
				seen[name] = true
				names = append(names, name)
			}
		}
	}

	return names
}

// isExecutable reports whether the path leads to a regular file that some user can execute.
func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// MismatchError means that the executable is not the file that the operator has accepted.
type MismatchError struct {
	Path, Want, Got string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s differs from the accepted file: its sha256 is %s, not %s", e.Path, e.Got, e.Want)
}

// CheckSum returns a MismatchError if the file's SHA-256 digest is not want, in hexadecimal of any case. It
// returns a different error if it cannot read the file. If want is empty, it accepts any file.
func CheckSum(path, want string) error {
	if want == "" {
		return nil
	}

	got, err := Sum(path)
	if err != nil {
		return err
	}
	if got != strings.ToLower(want) {
		return &MismatchError{Path: path, Want: want, Got: got}
	}

	return nil
}

// Sum returns the SHA-256 digest of a file in hexadecimal.
func Sum(path string) (string, error) {
	sum, _, err := osutil.DigestFile(path)
	if err != nil {
		return sum, fmt.Errorf("cannot read the provider's executable: %w", err)
	}

	return sum, nil
}
