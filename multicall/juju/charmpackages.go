package juju

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var (
	// packageName matches the name at the beginning of a line of requirements.txt, such as ops in "ops >= 2, < 3". It
	// does not match a URL.
	packageName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[ \t]*([A-Za-z0-9][A-Za-z0-9._-]*)(?:[\s\[=<>!~;@#]|$)`)
	})
	// packageInfo matches the name in the directory of an installed package's metadata, such as ops-2.17.0.dist-info.
	packageInfo = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(.+?)-[^-]+\.(dist|egg)-info$`)
	})
)

// notePackages warns of Python packages that a source tree of charmcraft needs and does not contain. charmcraft
// would add them to the charm, but deploy builds nothing.
func (o *operator) notePackages(r *charmRelease) {
	charmDir := r.found.Path
	lacking := missingPackages(os.DirFS(charmDir))
	if len(lacking) == 0 {
		return
	}

	o.note("warning: the charm does not contain these packages of its requirements.txt, so its machines must have them: %s",
		strings.Join(lacking, ", "))

	// The hint below installs into charmDir. An archive is unpacked into a directory that this command removes.
	if !r.isLocal() || r.found.Archive != "" {
		return
	}
	o.note("hint: to add them to the charm: %s", quoteShellWords([]string{"python3", "-m", "pip", "install",
		"--target", filepath.Join(charmDir, "venv"), "-r", filepath.Join(charmDir, "requirements.txt")}))
}

// missingPackages returns the packages that the requirements.txt of a source tree names, except those in the
// directories lib and venv. It returns none for a charm that has its own dispatch file, which can find packages
// elsewhere, and none for a charm without src/charm.py.
func missingPackages(charm fs.FS) (lacking []string) {
	_, dispatchErr := fs.Stat(charm, "dispatch")
	_, programErr := fs.Stat(charm, "src/charm.py")
	if dispatchErr == nil || programErr != nil {
		return nil
	}

	has := map[string]bool{}
	for _, pattern := range []string{"lib/*", "venv/*", "venv/lib/python3*/site-packages/*"} {
		// Glob fails only for an invalid pattern.
		files, _ := fs.Glob(charm, pattern)
		for _, file := range files {
			name := filepath.Base(file)
			// The directory of a package's metadata also shows that the charm has the package.
			if m := packageInfo().FindStringSubmatch(name); m != nil {
				name = m[1]
			}
			has[normalPackage(strings.TrimSuffix(name, ".py"))] = true
		}
	}

	// A charm without requirements.txt needs no packages.
	text, _ := fs.ReadFile(charm, "requirements.txt")
	for _, m := range packageName().FindAllStringSubmatch(string(text), -1) {
		if !has[normalPackage(m[1])] {
			lacking = append(lacking, m[1])
		}
	}

	slices.Sort(lacking)
	return slices.Compact(lacking)
}

// normalPackage returns the package's name in lower case, with underscores instead of hyphens and dots. PEP 503
// treats these spellings as the same name.
func normalPackage(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}
