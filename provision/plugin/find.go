package plugin

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bijou/state/osutil"
)

// Prefix begins the name of each provider's executable.
const Prefix = "bijou-provider-"

// NotFoundError: no folder has the provider's executable.
type NotFoundError struct {
	Name    string
	Folders []string // where it was looked for
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no %s%s in %s", Prefix, e.Name, strings.Join(e.Folders, ", "))
}

// Find returns the first of the folders' executables of that provider.
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
// of these.
func Names(folders []string) []string {
	var names []string
	seen := map[string]bool{}

	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // most of the folders of a path are not there
		}

		for _, e := range entries {
			name, ok := strings.CutPrefix(e.Name(), Prefix)
			if ok && name != "" && !seen[name] && isExecutable(filepath.Join(folder, e.Name())) {
				seen[name] = true
				names = append(names, name)
			}
		}
	}

	return names
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeType == 0 && info.Mode()&0o111 != 0
}

// MismatchError: the executable is another than the one that was accepted.
type MismatchError struct {
	Path, Want, Got string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s differs from the accepted file: its sha256 is %s, not %s", e.Path, e.Got, e.Want)
}

// CheckSum refuses a file of another sha256; an empty one accepts any.
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

// Sum returns the sha256 of a file, in hexadecimal digits.
func Sum(path string) (string, error) {
	sum, _, err := osutil.DigestFile(path)
	if err != nil {
		return sum, fmt.Errorf("cannot read the provider's executable: %w", err)
	}

	return sum, nil
}
