package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SeriesOf returns the series of the system in that folder: its code name, and where it
// has none what it is and its version ("fedora40"), by os-release(5).
func SeriesOf(root string) (string, error) {
	for _, path := range []string{"etc/os-release", "usr/lib/os-release"} {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			continue
		}
		release := map[string]string{}
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			release[name] = strings.Trim(value, `"'`)
		}
		if name := release["VERSION_CODENAME"]; name != "" {
			return name, nil
		}
		if release["ID"] != "" {
			return release["ID"] + release["VERSION_ID"], nil
		}
	}
	return "", fmt.Errorf("cannot tell of which series the system in %q is: its os-release has neither VERSION_CODENAME nor ID", root)
}
