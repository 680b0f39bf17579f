package juju

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"bijou/state"
)

// jujudFolder is where Juju has its binary, and charm libraries look for it.
const jujudFolder = "/var/lib/juju/tools/machine-"

// maxScanned is how much of a charm's file is looked at, in bytes: code has less.
const maxScanned = 1 << 20

// noteJujud warns of a charm that calls jujud by its path, where machines are this host and
// nobody has put it there. Other providers put it on their machines.
func (o *operator) noteJujud(charmDir string) {
	e, err := o.home.Choose(o.name)
	if err != nil || e.Provider != state.ProviderLocal {
		return
	}
	if links, _ := filepath.Glob(jujudFolder + "*/jujud"); len(links) > 0 {
		return
	}
	if file := fileNaming(charmDir, jujudFolder); file != "" {
		o.note("warning: the charm's %s calls %s*/jujud, which is not on this host: sudo bijou install --jujud puts it there", file, jujudFolder)
	}
}

// fileNaming returns the first file below a folder that has the text in it; "" if none has.
func fileNaming(dir, text string) (found string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil || info.Size() > maxScanned {
			return nil
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(text)) {
			found, _ = filepath.Rel(dir, path)
			return filepath.SkipAll
		}
		return nil
	})
	return found
}
