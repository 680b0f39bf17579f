package home

import (
	"fmt"
	"path/filepath"

	"bijou/state/jsonfile"
	"bijou/state/osutil"
)

// defaults is the file's document.
type defaults struct {
	Config map[string]string `json:"config"`
}

// Defaults reads the configuration values that new environments of this host begin with; none if
// nobody has set any.
func (h Home) Defaults() (map[string]string, error) {
	var d defaults
	_, err := jsonfile.Read(filepath.Join(h.Dir, defaultsFile), &d)
	return d.Config, err
}

// SetDefaults replaces them.
func (h Home) SetDefaults(config map[string]string) error {
	if err := osutil.MkdirAll(h.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot make %q: %w", h.Dir, err)
	}
	return jsonfile.Write(filepath.Join(h.Dir, defaultsFile), defaults{Config: config})
}
