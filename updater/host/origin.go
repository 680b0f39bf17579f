package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"bijou/updater/release"
)

// origin is which release a program was installed from.
type origin struct {
	Version string `json:"version"`
	Sums    string `json:"sums"`              // the digest of the release's SHA256SUMS
	Program string `json:"program,omitempty"` // the program's own; "": the package brings none
}

// maxOrigins is how many are kept: of the program that is being installed, and of the
// one that runs until then.
const maxOrigins = 2

func originsFile(dir string) string { return filepath.Join(dir, "installed.json") }

func readOrigins(dir string) (all []origin, err error) {
	data, err := os.ReadFile(originsFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what was installed: %w", err)
	}
	return all, nil
}

// keepOrigin writes down what the program at that path is of, before it is put to use:
// whatever is killed then, the program that runs tells which of them it is.
func (h *Host) keepOrigin(p Package, program string) error {
	o := origin{Version: p.Version, Sums: p.Sums}
	all, err := readOrigins(h.dir)
	if err == nil && program != "" {
		o.Program, err = digestOf(program)
	}
	if err != nil {
		return err
	}
	all = append([]origin{o}, all...)
	data, err := json.Marshal(all[:min(maxOrigins, len(all))])
	if err == nil {
		err = release.Keep(originsFile(h.dir), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot write what is installed: %w", err)
	}
	return nil
}

// Sums is the digest of the SHA256SUMS that a program of that version was installed by;
// "": it was not installed by this worker or one before it.
func Sums(dir, program, version string) (string, error) {
	all, err := readOrigins(dir)
	if err != nil || len(all) == 0 {
		return "", err
	}
	own, err := digestOf(program)
	if err != nil {
		return "", err
	}
	for _, o := range all {
		if release.Same(o.Version, version) && (o.Program == own || o.Program == "") {
			return o.Sums, nil
		}
	}
	return "", nil
}

// digestOf is a file's SHA-256 sum.
func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}
