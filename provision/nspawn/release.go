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

// release is a series that debootstrap can install.
type release struct {
	series       string
	distribution string   // the key in distributions, or "" if the series is neither Debian nor Ubuntu
	script       string   // the path of debootstrap's script
	keyrings     []string // one of them must verify the archive's signature
}

// distribution is Debian or Ubuntu.
type distribution struct {
	script         string // debootstrap's script for releases that are newer than debootstrap
	keyring        string
	keyringPackage string
	components     string // the archive's components from which a machine installs, or "" for main
}

// distributions returns the known distributions by name. Each has the script to which debootstrap's symlinks
// for the distribution's newer releases point.
func distributions() map[string]distribution {
	return map[string]distribution{
		"debian": {script: "sid", keyring: "debian-archive-keyring.gpg", keyringPackage: "debian-archive-keyring", components: ""},
		"ubuntu": {script: "gutsy", keyring: "ubuntu-archive-keyring.gpg", keyringPackage: "ubuntu-keyring", components: "main,universe"},
	}
}

// keyringLine matches a line in a debootstrap script that names a keyring.
var keyringLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*keyring\s+(/\S+)`)
})

// findRelease returns the release for a series. If debootstrap has no script for a known release of Debian or
// Ubuntu, findRelease uses the distribution's script for newer releases. It returns an error if the series has
// an invalid name, if debootstrap is not installed, or if there is no script.
func findRelease(series string) (release, error) {
	if !nameForm().MatchString(series) {
		return release{}, fmt.Errorf("%q is not a series", series)
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return release{}, errors.New("this host has no debootstrap: apt-get install debootstrap")
	}

	scripts := []string{series}
	base := charm.BaseOfSeries(series)
	isKnown := base.Version != ""
	if isKnown {
		scripts = append(scripts, distributions()[base.Name].script)
	}

	folder := filepath.Join(cmp.Or(os.Getenv("DEBOOTSTRAP_DIR"), "/usr/share/debootstrap"), "scripts")
	for _, name := range scripts {
		path := filepath.Join(folder, name)
		if text, err := os.ReadFile(path); err == nil {
			return readRelease(series, path, string(text)), nil
		}
	}

	return release{}, fmt.Errorf("debootstrap on this host does not support the series %q; the supported series are in %s", series, folder)
}

// readRelease returns the release that debootstrap's script for a series describes.
func readRelease(series, script, text string) release {
	r := release{series: series, script: script}
	for _, found := range keyringLine().FindAllStringSubmatch(text, -1) {
		r.keyrings = append(r.keyrings, found[1])
	}

	// The keyring shows the distribution.
	for name, d := range distributions() {
		isItsKeyring := func(path string) bool { return filepath.Base(path) == d.keyring }
		if slices.ContainsFunc(r.keyrings, isItsKeyring) {
			r.distribution = name
		}
	}

	return r
}

// checkKeyring returns an error if this host has none of the keyrings that can verify the release's archive.
// Without this check, debootstrap would only print a warning. It returns nil if the release needs no keyring.
func (r release) checkKeyring() error {
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	if len(r.keyrings) == 0 || slices.ContainsFunc(r.keyrings, exists) {
		return nil
	}

	// One keyring is enough, so the error names only one.
	wanted := r.keyrings[len(r.keyrings)-1]
	missing := fmt.Sprintf("this host has no %s to check the archive of the series %q with", wanted, r.series)
	if d, ok := distributions()[r.distribution]; ok {
		return fmt.Errorf("%s: apt-get install %s", missing, d.keyringPackage)
	}
	return errors.New(missing)
}

// args returns the arguments with which debootstrap creates in dir a tree that has the packages. If mirror is "",
// debootstrap uses the mirror in its script.
func (r release) args(dir, mirror string, packages []string) []string {
	args := []string{"--variant=minbase", "--include=" + strings.Join(packages, ",")}
	if components := distributions()[r.distribution].components; components != "" {
		args = append(args, "--components="+components)
	}

	return append(args, r.series, dir, mirror, r.script)
}

// findMirror returns the mirror in the settings. If the settings have none, it returns the mirror that this
// host's own apt uses for the release, or for the host's own release if both are of the same distribution. It
// returns "" if debootstrap must choose the mirror. It returns an error if the mirror in the settings is
// invalid.
func (r release) findMirror(ctx context.Context, config map[string]string) (string, error) {
	if given := config["mirror."+r.series]; given != "" {
		return given, checkMirror(r.series, given)
	}
	if mirror := aptMirror(ctx, r.series); mirror != "" {
		return mirror, nil
	}

	// If this host's own release cannot be found out, debootstrap chooses the mirror.
	hostSeries, err := provider.SeriesOf("/")
	if err != nil {
		return "", nil
	}
	host, err := findRelease(hostSeries)
	if err != nil {
		return "", nil
	}
	isSameDistribution := r.distribution != "" && host.distribution == r.distribution
	if !isSameDistribution {
		return "", nil
	}

	return aptMirror(ctx, hostSeries), nil
}

// checkMirror returns an error unless the mirror is a URL with the scheme http, https or file, without commas or
// white space. So debootstrap cannot take it for an option.
func checkMirror(series, mirror string) error {
	u, err := url.Parse(mirror)
	if err != nil || !slices.Contains([]string{"http", "https", "file"}, u.Scheme) || strings.ContainsFunc(mirror, isSeparator) {
		return fmt.Errorf("nspawn.mirror.%s is %q: want a URL, such as http://MIRROR/debian", series, mirror)
	}
	return nil
}

// CheckSeries returns an error if the series has no tree on this host with the settings in config, and none
// can be created, because the series has an invalid name, or because debootstrap, its script for the series, or
// the archive's keyring is missing. The error names the package to install, if that is known. CheckSeries also
// returns an error if the setting nspawn.packages is invalid. It does not examine a tree that exists or that the
// settings name.
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
