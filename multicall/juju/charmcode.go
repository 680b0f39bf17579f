package juju

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bijou/state"
	"bijou/state/lazyregexp"
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
	scanCode(charmDir, nil, func(name string, data []byte) error {
		if !bytes.Contains(data, []byte(jujudFolder)) {
			return nil
		}
		o.note("warning: the charm's %s calls %s*/jujud, which is not on this host: sudo bijou install --jujud puts it there", name, jujudFolder)
		return filepath.SkipAll
	})
}

// scanCode reads the charm's files that are small enough to be code, without the folders of those
// names. found may end it with filepath.SkipAll.
func scanCode(charmDir string, without []string, found func(name string, data []byte) error) {
	_ = filepath.WalkDir(charmDir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && slices.Contains(without, d.Name()):
			return filepath.SkipDir
		case err != nil || !d.Type().IsRegular():
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxScanned {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		name, _ := filepath.Rel(charmDir, path)
		return found(name, data)
	})
}

var snapPattern = lazyregexp.New(`\bsnap install [^\n'"]{1,40}|["']snap["'], *["']install["'][^\n\])]{0,40}|` +
	`(operator_libs_linux\.v\d+|charms\.layer|charmhelpers\.fetch)( import |\.)snap\b|\blayer:snap\b|filename: *\S+\.snap\b`)

// maxSnapSigns bounds how many files one warning names.
const maxSnapSigns = 3

// noteSnaps warns of a charm that installs snaps, unless snapd is known to be there: on a host of
// its own that is not known here. Libraries are not looked into, only what calls them.
func (o *operator) noteSnaps(charmDir string) {
	where := "which need snapd on its machines"
	if e, err := o.home.Choose(o.name); err == nil && e.Provider == state.ProviderLocal {
		if _, err := exec.LookPath("snap"); err == nil {
			return
		}
		where = "and this host has no snapd"
	}
	var signs []string
	scanCode(charmDir, []string{"charmhelpers", "operator_libs_linux", "docs", "tests", "venv", ".git"}, func(name string, data []byte) error {
		if sign := snapPattern.Compiled().Find(data); sign != nil && !slices.Contains([]string{".md", ".rst", ".txt"}, filepath.Ext(name)) {
			signs = append(signs, fmt.Sprintf("%s has %q", name, bytes.TrimSpace(sign)))
		}
		if len(signs) == maxSnapSigns {
			return filepath.SkipAll
		}
		return nil
	})
	if len(signs) > 0 {
		o.note("warning: the charm installs snaps, %s: %s", where, strings.Join(signs, ", "))
	}
}
