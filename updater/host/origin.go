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

// maxOrigins is the number of recorded origins: that of the program that is being installed, those of previous
// releases that could not be installed, and that of the program that runs until then.
const maxOrigins = 8

func originsFile(dir string) string { return filepath.Join(dir, "installed.json") }

// keepOrigin records the release from which a program comes. It must be called before the program is
// installed. So a running program finds its own origin in the record, even after a crash.
func (h *Host) keepOrigin(p Package, program string) error {
	newest := origin{Version: p.Version, Sums: p.Sums}
	if program != "" {
		var err error
		newest.Program, _, err = osutil.DigestFile(program)
		if err != nil {
			return fmt.Errorf("cannot record the installed release: %w", err)
		}
	}

	var before []origin
	// A file that cannot be read is replaced.
	_, _ = jsonfile.Read(originsFile(h.dir), &before)
	// A retried installation must not push out the origin of the running program.
	before = slices.DeleteFunc(before, func(o origin) bool { return o == newest })
	all := append([]origin{newest}, before...)
	if err := jsonfile.Write(originsFile(h.dir), all[:min(maxOrigins, len(all))]); err != nil {
		return fmt.Errorf("cannot record the installed release: %w", err)
	}
	return nil
}

// InstalledSums returns the digest of the SHA256SUMS of the release from which the program of version
// was installed. It returns "" if no worker on this server has installed that version.
func InstalledSums(dir, program, version string) (string, error) {
	var all []origin
	_, err := jsonfile.Read(originsFile(dir), &all)
	if err != nil || len(all) == 0 {
		return "", err
	}

	own, _, err := osutil.DigestFile(program)
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
