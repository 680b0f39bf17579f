package host

import (
	"fmt"
	"path/filepath"
	"slices"

	"bijou/state/jsonfile"
	"bijou/state/osutil"
	"bijou/updater/release"
)

// origin is the release from which a program was installed.
type origin struct {
	Version string `json:"version"`
	Sums    string `json:"sums"`              // the digest of the release's SHA256SUMS
	Program string `json:"program,omitempty"` // the digest of the program, or "" if the package has no program
}

// maxOrigins is the maximum number of recorded origins. The newest is the origin of the program that is being
// installed. If several releases could not be installed, their origins come before that of the running program.
const maxOrigins = 8

// originsFile returns the path of the file with the origins, the newest first.
func originsFile(dir string) string { return filepath.Join(dir, "installed.json") }

// keepOrigin records the release from which a program comes. program is the path of the program, or "" if the
// package has no program. keepOrigin must be called before the program is installed, so that a running
// program finds its own origin in the record, even after a crash. The record keeps the last maxOrigins origins.
func (h *Host) keepOrigin(p Package, program string) error {
	newest := origin{Version: p.Version, Sums: p.Sums}
	if program != "" {
		var err error
		newest.Program, _, err = osutil.DigestFile(program)
		if err != nil {
			return fmt.Errorf("cannot record the installed release: %w", err)
		}
	}

	var previous []origin
	// A file that cannot be read is replaced.
	_, _ = jsonfile.Read(originsFile(h.dir), &previous)
	// A retried installation must not push out the origin of the running program.
	previous = slices.DeleteFunc(previous, func(o origin) bool { return o == newest })
	all := append([]origin{newest}, previous...)
	if err := jsonfile.Write(originsFile(h.dir), all[:min(maxOrigins, len(all))]); err != nil {
		return fmt.Errorf("cannot record the installed release: %w", err)
	}
	return nil
}

// InstalledSums returns the digest of the SHA256SUMS of the release from which the program, which has the
// given version, was installed. It returns "" if no recorded origin matches the program and its version. dir is
// the worker's directory.
func InstalledSums(dir, program, version string) (string, error) {
	var origins []origin
	_, err := jsonfile.Read(originsFile(dir), &origins)
	if err != nil {
		return "", err
	}
	if len(origins) == 0 {
		return "", nil
	}

	digest, _, err := osutil.DigestFile(program)
	if err != nil {
		return "", err
	}
	for _, o := range origins {
		// If the package did not contain the program, only the version can be compared.
		mayBeSameProgram := o.Program == digest || o.Program == ""
		if mayBeSameProgram && release.Same(o.Version, version) {
			return o.Sums, nil
		}
	}

	return "", nil
}
