package nspawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/provision/provider"
	"bijou/state/charm"
)

// release is a series as debootstrap makes it.
type release struct {
	series       string
	distribution string   // "" where that is neither Debian nor Ubuntu
	script       string   // of debootstrap
	keyrings     []string // of which one checks the archive's signature
}

// distribution is Debian or Ubuntu.
type distribution struct {
	script         string // of debootstrap, for releases that are younger than it
	keyring        string
	keyringPackage string
	components     string // of the archive, which a machine installs from; "": main
}

// distributions returns the known distributions by name, each with debootstrap's script for its releases.
// Younger releases have debootstrap's own links to these scripts.
func distributions() map[string]distribution {
	return map[string]distribution{
		"debian": {script: "sid", keyring: "debian-archive-keyring.gpg", keyringPackage: "debian-archive-keyring", components: ""},
		"ubuntu": {script: "gutsy", keyring: "ubuntu-archive-keyring.gpg", keyringPackage: "ubuntu-keyring", components: "main,universe"},
	}
}

// keyringLine matches where a script of debootstrap names a keyring.
var keyringLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*keyring\s+(/\S+)`)
})

// findRelease returns the release of that series, or says that debootstrap does not know it.
func findRelease(series string) (release, error) {
	if !nameForm().MatchString(series) {
		return release{}, fmt.Errorf("%q is not a series", series)
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return release{}, errors.New("this host has no debootstrap: apt-get install debootstrap")
	}

	scripts := []string{series}
	if base := charm.BaseOfSeries(series); base.Version != "" {
		scripts = append(scripts, distributions()[base.Name].script)
	}

	folder := filepath.Join(cmp.Or(os.Getenv("DEBOOTSTRAP_DIR"), "/usr/share/debootstrap"), "scripts")
	for _, name := range scripts {
		path := filepath.Join(folder, name)
		if text, err := os.ReadFile(path); err == nil {
			return readRelease(series, path, string(text)), nil
		}
	}

	return release{}, fmt.Errorf("debootstrap on this host does not know the series %q: %s lists those that it can make", series, folder)
}

// readRelease returns what debootstrap's script for a series says of it.
func readRelease(series, script, text string) release {
	r := release{series: series, script: script}
	for _, found := range keyringLine().FindAllStringSubmatch(text, -1) {
		r.keyrings = append(r.keyrings, found[1])
	}

	for name, d := range distributions() {
		isOf := func(path string) bool { return filepath.Base(path) == d.keyring }
		if slices.ContainsFunc(r.keyrings, isOf) {
			r.distribution = name
		}
	}

	return r
}

// checkKeyring refuses a release whose archive this host cannot verify. debootstrap itself would only warn.
func (r release) checkKeyring() error {
	isThere := func(path string) bool { _, err := os.Stat(path); return err == nil }
	if len(r.keyrings) == 0 || slices.ContainsFunc(r.keyrings, isThere) {
		return nil
	}

	missing := fmt.Sprintf("this host has no %s to check the archive of the series %q with", r.keyrings[len(r.keyrings)-1], r.series)
	if d, ok := distributions()[r.distribution]; ok {
		return fmt.Errorf("%s: apt-get install %s", missing, d.keyringPackage)
	}
	return errors.New(missing)
}

// args returns debootstrap's arguments for a tree in dir.
func (r release) args(dir, mirror string, packages []string) []string {
	args := []string{"--variant=minbase", "--include=" + strings.Join(packages, ",")}
	if components := distributions()[r.distribution].components; components != "" {
		args = append(args, "--components="+components)
	}

	// Without a mirror debootstrap takes the script's own.
	return append(args, r.series, dir, mirror, r.script)
}

// findMirror returns the mirror that settings name, else the one of this host's own apt where that has the
// distribution; "" leaves it to debootstrap.
func (r release) findMirror(ctx context.Context, config map[string]string) (string, error) {
	if given := config["mirror."+r.series]; given != "" {
		return given, checkMirror(r.series, given)
	}
	if m := aptMirror(ctx, r.series); m != "" {
		return m, nil
	}

	own, err := provider.SeriesOf("/")
	if err != nil {
		return "", nil
	}
	host, err := findRelease(own)
	if err != nil || r.distribution == "" || host.distribution != r.distribution {
		return "", nil
	}
	return aptMirror(ctx, own), nil
}

// checkMirror refuses a mirror that debootstrap would take for an option, or that it cannot fetch anything
// from.
func checkMirror(series, mirror string) error {
	u, err := url.Parse(mirror)
	if err != nil || !slices.Contains([]string{"http", "https", "file"}, u.Scheme) || strings.ContainsFunc(mirror, isSeparator) {
		return fmt.Errorf("nspawn.mirror.%s is %q: want a URL, as in http://MIRROR/debian", series, mirror)
	}
	return nil
}

// CheckSeries returns an error if machines of that series cannot boot on this host with these settings:
// there is no tree of the series, and none can be made. The error names the package to install.
func CheckSeries(config map[string]string, series string) error {
	added, err := extraPackages(config)
	if err != nil {
		return err
	}
	if givenTree(config, series) != "" || treeHas(treeFolder(series, added), ".") {
		return nil
	}

	r, err := findRelease(series)
	if err != nil {
		return err
	}
	return r.checkKeyring()
}
