package juju

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"bijou/state"
)

// jujudFolder is where Juju has its binary, and charm libraries look for it; maxScanned is how
// big a charm's file may be that is looked at, in bytes: code has less.
const jujudFolder, maxScanned = "/var/lib/juju/tools/machine-", 1 << 20

// noteJujudCalls warns of a charm that calls jujud by its path, where machines are this host and
// nobody has put it there. Other providers put it on their machines.
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
