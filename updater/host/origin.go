package host

import (
	"fmt"
	"path/filepath"

	"bijou/state/jsonfile"
	"bijou/state/osutil"
	"bijou/updater/release"
)

// origin is the release that a program was installed from.
type origin struct {
	Version string `json:"version"`
	Sums    string `json:"sums"`              // the digest of the release's SHA256SUMS
	Program string `json:"program,omitempty"` // the program's own; "": the package brings none
}

// maxOrigins is how many are kept: of the program that is being installed, and of the one
// that runs until then.
const maxOrigins = 2

func originsFile(dir string) string { return filepath.Join(dir, "installed.json") }

// keepOrigin records the release from which a program comes. It is called before the program is used, so
// that a running program finds its own origin in the record even after a crash.
func (h *Host) keepOrigin(p Package, program string) error {
	newest := origin{Version: p.Version, Sums: p.Sums}
	if program != "" {
		var err error
		newest.Program, _, err = osutil.DigestFile(program)
		if err != nil {
			return fmt.Errorf("cannot write what is installed: %w", err)
		}
	}

	var before []origin
	_, _ = jsonfile.Read(originsFile(h.dir), &before) // a file that cannot be read is replaced
	all := append([]origin{newest}, before...)
	if err := jsonfile.Write(originsFile(h.dir), all[:min(maxOrigins, len(all))]); err != nil {
		return fmt.Errorf("cannot write what is installed: %w", err)
	}
	return nil
}

// InstalledSums returns the digest of the SHA256SUMS of the release that installed the program of that
// version. It is empty if no worker of this server has installed it.
func InstalledSums(dir, program, version string) (string, error) {
	var all []origin
	_, err := jsonfile.Read(originsFile(dir), &all)
	if err != nil || len(all) == 0 {
		return "", err
	}

	own, _, err := osutil.DigestFile(program)
	for _, o := range all {
		if err == nil && release.Same(o.Version, version) && (o.Program == own || o.Program == "") {
			return o.Sums, nil
		}
	}

	return "", err
}
