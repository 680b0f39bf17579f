package juju

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"bijou/state"
)

// jujudFolder is where Juju has its binary, and charm libraries look for it; maxScanned
// bounds the files of a charm that are searched for it, in bytes: code is smaller.
const jujudFolder, maxScanned = "/var/lib/juju/tools/machine-", 1 << 20

// noteJujudCalls warns on the provider "local" only: others put jujud on their machines.
func (o *operator) noteJujudCalls(charmDir string) {
	e, err := o.home.Choose(o.name)
	links, _ := filepath.Glob(jujudFolder + "*/jujud")
	if err != nil || e.Provider != state.ProviderLocal || len(links) > 0 {
		return
	}
	_ = filepath.WalkDir(charmDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxScanned {
			return nil
		}
		if data, err := os.ReadFile(path); err != nil || !bytes.Contains(data, []byte(jujudFolder)) {
			return nil
		}
		name, _ := filepath.Rel(charmDir, path)
		o.note("warning: the charm's %s calls %s*/jujud, which is not on this host: sudo bijou install --jujud puts it there", name, jujudFolder)
		return filepath.SkipAll
	})
}
