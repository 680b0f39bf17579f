package juju

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/state"
)

// maxScanned is the size in bytes above which a charm's file is not searched. Source files are smaller.
const maxScanned = 1 << 20

// jujuCall is a program that Juju installs on its machines, and that charms call by its path.
type jujuCall struct {
	pattern func() *regexp.Regexp
	shown   string // the program's name in warnings
	paths   string // a glob that matches the program's path
}

// jujuCalls returns the programs of Juju for which noteCalls searches charms.
func jujuCalls() []jujuCall {
	return []jujuCall{
		{pattern: jujudPattern, shown: "/var/lib/juju/tools/machine-*/jujud", paths: "/var/lib/juju/tools/machine-*/jujud"},
		{pattern: jujuExecPattern, shown: "/usr/bin/juju-exec or juju-run", paths: "/usr/bin/juju-exec"},
	}
}

var (
	jujudPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`/var/lib/juju/tools/machine-`)
	})
	jujuExecPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`/usr/bin/juju-(exec|run)\b`)
	})
	snapPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)(^[ \t]*|["'\x60&;] *)(sudo +)?snap install [^\n'"\x60]{1,40}|` +
			`["']snap["'], *["']install["'][^\n\])]{0,40}|` +
			`(operator_libs_linux\.v\d+|charmlibs|charms\.layer|charmhelpers\.fetch)( import |\.)snap\b`)
	})
	// snapFilePattern is for YAML files, in which a charm names a layer that installs snaps, or snaps as
	// resources.
	snapFilePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\blayer:snap\b|filename: *\S+\.snap\b`)
	})
	kernelModulePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[ \t]*(sudo +)?(/sbin/)?(modprobe|insmod) [^\n]{1,40}|` +
			`["'](sudo +)?(/sbin/)?(modprobe|insmod)\b[^\n"']{0,40}["']|charmhelpers\.core\.kernel\b|modules-load\.d\b`)
	})
	kernelModuleFilePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\blinux\.kernel_modules\b`)
	})
)

// machineNeed is an operation of a charm that some machines do not support.
type machineNeed struct {
	does             string                                          // the operation, as a clause for warnings
	inCode, inYAML   func() *regexp.Regexp                           // how the operation looks in code, and in YAML files
	describeObstacle func(provider string, hostHasSnapd bool) string // returns "" if machines support the operation
}

// machineNeeds returns the operations for which noteCalls searches charms.
func machineNeeds() []machineNeed {
	return []machineNeed{
		{does: "installs snaps", inCode: snapPattern, inYAML: snapFilePattern, describeObstacle: describeMissingSnapd},
		{does: "loads kernel modules", inCode: kernelModulePattern, inYAML: kernelModuleFilePattern, describeObstacle: describeForeignKernel},
	}
}

// describeMissingSnapd returns the end of the sentence "the charm installs snaps, …". It says why machines of the
// provider cannot have snaps or, for a provider whose machines bijou does not know, what they need. It is empty if
// snaps can be installed.
func describeMissingSnapd(provider string, hostHasSnapd bool) string {
	switch {
	case provider == state.ProviderNspawn:
		return "and snapd does not run in containers of the provider nspawn"
	case provider != state.ProviderLocal:
		return "which need snapd on its machines"
	case !hostHasSnapd:
		return "and this host has no snapd"
	}
	return ""
}

// describeForeignKernel returns why the provider's machines cannot load kernel modules, or "" if they can.
func describeForeignKernel(provider string, _ bool) string {
	if provider == state.ProviderNspawn {
		return "which containers of the provider nspawn cannot do"
	}
	return ""
}

// noteCalls warns if the charm calls programs of Juju that its machines do not have, or performs operations
// that its machines do not support. Machines of all providers except local have Juju's programs. noteCalls
// prints no warning for a charm that only includes a library for snaps or kernel modules.
func (o *operator) noteCalls(charmDir string) {
	provider := "" // unknown, if the environment cannot be read
	if e, err := o.home.Choose(o.name); err == nil {
		provider = e.Provider
	}

	for _, call := range jujuCalls() {
		installed, _ := filepath.Glob(call.paths) // fails only for an invalid pattern
		// The warning names one file, and does not show the text that was found in it. The pattern is the same
		// for code and for YAML files.
		names, _ := findInCode(charmDir, call.pattern, call.pattern, 1)
		if provider == state.ProviderLocal && len(installed) == 0 && len(names) > 0 {
			o.note("warning: the charm's %s calls %s, which does not exist on this host; to install it: sudo bijou install --jujud",
				names[0], call.shown)
		}
	}

	_, snapErr := exec.LookPath("snap")
	hostHasSnapd := snapErr == nil
	for _, need := range machineNeeds() {
		obstacle := need.describeObstacle(provider, hostHasSnapd)
		if obstacle == "" {
			continue
		}

		// Three examples are enough for a warning. The first two directories, and venv, have libraries.
		_, signs := findInCode(charmDir, need.inCode, need.inYAML, 3, "charmhelpers", "operator_libs_linux",
			"docs", "tests", "venv")
		if len(signs) > 0 {
			o.note("warning: the charm %s, %s: %s", need.does, obstacle, strings.Join(signs, ", "))
		}
	}
}

// findInCode searches a charm's files for the pattern, or for inYAML in YAML files. It returns the names of
// up to maxFiles files in which it finds the pattern, relative to charmDir. signs describes, for each name,
// the text that was found. findInCode skips documentation, large files, hidden directories, and directories
// whose name is in skippedDirs.
func findInCode(
	charmDir string,
	pattern, inYAML func() *regexp.Regexp,
	maxFiles int,
	skippedDirs ...string,
) (names, signs []string) {
	// The function below returns only errors that skip files, so WalkDir returns none.
	_ = filepath.WalkDir(charmDir, func(path string, d fs.DirEntry, err error) error {
		if len(names) == maxFiles {
			return filepath.SkipAll
		}
		if err != nil {
			// The charm may have directories and files that cannot be read.
			return nil
		}
		isSkippedName := d.Name()[0] == '.' || slices.Contains(skippedDirs, d.Name())
		if d.IsDir() && path != charmDir && isSkippedName {
			return filepath.SkipDir
		}

		if !isSearchable(d) {
			return nil
		}

		wanted := pattern
		if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
			wanted = inYAML
		}

		// Nothing is found in a file that cannot be read.
		data, _ := os.ReadFile(path)
		if found := wanted().Find(data); found != nil {
			name, _ := filepath.Rel(charmDir, path) // never fails, since path is below charmDir
			names = append(names, name)
			signs = append(signs, fmt.Sprintf("%s contains %q", name, bytes.TrimSpace(found)))
		}

		return nil
	})

	return names, signs
}

// isSearchable reports whether findInCode searches the file: a regular file of at most maxScanned bytes that is
// neither documentation nor a file of recipes for just.
func isSearchable(file fs.DirEntry) bool {
	hasSkippedExt := slices.Contains([]string{".md", ".rst", ".txt", ".just"}, filepath.Ext(file.Name()))
	if hasSkippedExt || !file.Type().IsRegular() {
		return false
	}

	info, err := file.Info()
	return err == nil && info.Size() <= maxScanned
}
