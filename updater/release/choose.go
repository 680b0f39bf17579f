package release

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bijou/updater/record"
)

// Release is a published release.
type Release struct {
	Tag        string
	Draft      bool
	PreRelease bool
	Assets     []Asset
}

// Asset is one file of a release.
type Asset struct {
	Name string
	URL  string
	Size int64 // in bytes
}

// Choice is a release with its parsed version.
type Choice struct {
	Release Release
	Version Version
}

// Choose returns the newest release that the environment accepts. Staging also accepts pre-releases, production
// does not, and other environments accept no release. The release's tag must be valid and have the prefix, if
// the prefix is not empty. Drafts are never chosen. ok is false if there is no such release.
func Choose(env, prefix string, all []Release) (best Choice, ok bool) {
	return newest(prefix, all, func(c Choice) bool {
		if env == record.EnvStaging {
			return true
		}
		return env == record.EnvProduction && !c.Release.PreRelease
	})
}

// Lookup returns the release of the given version, even if no environment accepts the release. The release's
// tag must have the prefix, if the prefix is not empty. Lookup never returns drafts, and prefers a release that
// is not a pre-release. It returns an error if there is no such release.
func Lookup(version, prefix string, all []Release) (Release, error) {
	best, ok := newest(prefix, all, func(c Choice) bool { return Same(c.Version.String(), version) })
	if !ok {
		return Release{}, fmt.Errorf("there is no release of version %s", version)
	}
	return best.Release, nil
}

// newest returns the best release that is not a draft, has a valid tag with the prefix, and for which accepts
// returns true. An empty prefix stands for any prefix. ok is false if there is no such release.
func newest(prefix string, all []Release, accepts func(c Choice) bool) (best Choice, ok bool) {
	for _, r := range all {
		tagPrefix, v, err := ParseTag(r.Tag)
		if err != nil || r.Draft {
			continue
		}
		if prefix != "" && tagPrefix != prefix {
			continue
		}

		c := Choice{Release: r, Version: v}
		if accepts(c) && (!ok || isBetter(c, best)) {
			best = c
			ok = true
		}
	}

	return best, ok
}

// isBetter reports whether a is a better choice than b. A newer version is better. For the same version, a
// finished release is better than a pre-release. Otherwise the tag that sorts first is better, so that the
// choice does not depend on the order of the list.
func isBetter(a, b Choice) bool {
	if c := a.Version.Compare(b.Version); c != 0 {
		return c > 0
	}
	if a.Release.PreRelease != b.Release.PreRelease {
		return b.Release.PreRelease
	}

	return cmp.Less(a.Release.Tag, b.Release.Tag)
}

// Incomplete reports whether the release lacks SumsFile, without which it cannot be installed. Publishers
// often upload files after they have published a release, with SumsFile last.
func (r Release) Incomplete() bool {
	return !slices.ContainsFunc(r.Assets, func(a Asset) bool { return a.Name == SumsFile })
}

// filterComplete returns the complete releases. It also returns ErrIncomplete if the release that Choose
// returns from all releases is not complete.
func filterComplete(env, prefix string, all []Release) (complete []Release, err error) {
	best, ok := Choose(env, prefix, all)
	complete = slices.DeleteFunc(slices.Clone(all), Release.Incomplete)
	if ok && best.Release.Incomplete() {
		err = fmt.Errorf("%w: release %q lacks %s", ErrIncomplete, best.Release.Tag, SumsFile)
	}
	return complete, err
}

// ErrIncomplete is returned if the newest release cannot be installed yet.
var ErrIncomplete = errors.New("a release is not complete yet")

// The forms in which a server gets a release.
const (
	Deb     = "deb"
	Tarball = "tarball"
)

// AssetName returns the name of the file that contains the version in the given form, for hosts of the given
// architecture. An architecture is a GOARCH, such as amd64.
func AssetName(form string, v Version, arch string) string {
	if form == Deb {
		return fmt.Sprintf("neco_%s_%s.deb", v, arch)
	}
	return fmt.Sprintf("bijou_%s_linux_%s.tar.gz", v, arch)
}

// Find returns the asset called name. It returns an error if there is no such asset, or more than one.
func (r Release) Find(name string) (Asset, error) {
	var found []Asset
	var names []string
	for _, a := range r.Assets {
		names = append(names, a.Name)
		if a.Name == name {
			found = append(found, a)
		}
	}

	switch len(found) {
	case 0:
		return Asset{}, fmt.Errorf("release %q has no asset %q; it has: %s",
			r.Tag, name, strings.Join(names, ", "))
	case 1:
		return found[0], nil
	}

	return Asset{}, fmt.Errorf("release %q has %d assets %q", r.Tag, len(found), name)
}

// Version is the version of a release: numbers with dots between them, optionally followed by a hyphen and
// another number, as in 2018.11.07-1. The zero Version is older than all others.
type Version struct{ text string }

// maxVersion limits the length of a version, which becomes part of file names.
const maxVersion = 64

// ParseVersion parses a version. It returns an error if s does not have the form of a [Version], or has more
// than maxVersion bytes.
func ParseVersion(s string) (Version, error) {
	if len(s) > maxVersion || !versionPattern().MatchString(s) {
		return Version{}, fmt.Errorf(
			"invalid version %q: want numbers separated by dots, optionally followed by a hyphen and a number, such as 2018.11.07-1",
			s,
		)
	}

	return Version{s}, nil
}

var versionPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[0-9]+(\.[0-9]+)*(-[0-9]+)?\z`)
})

// String returns the version as it was written.
func (v Version) String() string { return v.text }

// Compare compares versions: first the numbers between the dots, then the number after the hyphen. If one
// version is the beginning of the other, the longer one is newer. Leading zeros are ignored.
func (v Version) Compare(other Version) int {
	main, revision, _ := strings.Cut(v.text, "-")
	otherMain, otherRevision, _ := strings.Cut(other.text, "-")
	c := slices.CompareFunc(strings.Split(main, "."), strings.Split(otherMain, "."), compareDecimals)
	if c != 0 {
		return c
	}
	return compareDecimals(revision, otherRevision)
}

// compareDecimals compares decimal numbers of any length. "" comes before 0.
func compareDecimals(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	a = strings.TrimLeft(a, "0")
	b = strings.TrimLeft(b, "0")
	// Without leading zeros, the longer number is greater.
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Newer reports whether version a is newer than version b. A text that is not a version counts as older
// than all versions.
func Newer(a, b string) bool { return parseOrZero(a).Compare(parseOrZero(b)) > 0 }

// Same reports whether a and b are the same version according to [Version.Compare], or the same text.
func Same(a, b string) bool {
	if a == b {
		return true
	}
	v := parseOrZero(a)
	isVersion := v != Version{}
	return isVersion && v.Compare(parseOrZero(b)) == 0
}

// parseOrZero returns the version, or the zero Version if s is not a version.
func parseOrZero(s string) Version {
	v, err := ParseVersion(s)
	if err != nil {
		return Version{}
	}
	return v
}

// ParseTag parses a tag PREFIX-VERSION. The prefix ends at the tag's first hyphen.
func ParseTag(tag string) (prefix string, v Version, err error) {
	prefix, version, ok := strings.Cut(tag, "-")
	if !ok || prefix == "" {
		return "", Version{}, fmt.Errorf("%q is not the tag of a release: want PREFIX-VERSION", tag)
	}
	v, err = ParseVersion(version)
	if err != nil {
		return "", Version{}, fmt.Errorf("%q is not the tag of a release: %w", tag, err)
	}

	return prefix, v, nil
}
