package script

import (
	"os"
	"path/filepath"
	"strings"
)

// shortScripts returns the scripts that `go test -short` runs, over SQLite only: one for each role of the
// binary.
func shortScripts() []string {
	return []string{
		"agent/agent-midhook", // an agent that dies in a hook
		"machines/machines",   // the provisioner
		"neco/neco-commands",  // the commands for boot servers
		"necoupdates/neco-update",
		"operator/applets", // one binary under many names
		"operator/juju-road",
		"refusals/juju-exitcodes",
		"relations/relation-walk",
		"hooktools/hook-tools",
		"trouble/resolved",
		"units/hooks",
		"upgrades/upgrade-charm",
	}
}

// shortFiles returns the scripts of a suite that `go test -short` runs.
func shortFiles(suite string) (files []string) {
	for _, s := range shortScripts() {
		if name, ok := strings.CutPrefix(s, suite+"/"); ok {
			files = append(files, name+".txtar")
		}
	}
	return files
}

// suiteName returns the name of the current suite, whose tests run in its directory.
func suiteName() (string, error) {
	dir, err := os.Getwd()
	return filepath.Base(dir), err
}
