package home

import (
	"fmt"
	"path/filepath"

	"bijou/state/jsonfile"
	"bijou/state/osutil"
)

// defaults is the content of the file with the defaults.
type defaults struct {
	Config map[string]string `json:"config"`
}

// Defaults returns the initial configuration of new environments on this host. It is empty by default.
func (h Home) Defaults() (map[string]string, error) {
	var d defaults
	// A missing file leaves d empty.
	_, err := jsonfile.Read(filepath.Join(h.Dir, defaultsFile), &d)
	return d.Config, err
}

// SetDefaults replaces the initial configuration of new environments on this host.
func (h Home) SetDefaults(config map[string]string) error {
	if err := osutil.MkdirAll(h.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot create %q: %w", h.Dir, err)
	}
	return jsonfile.Write(filepath.Join(h.Dir, defaultsFile), defaults{Config: config})
}
