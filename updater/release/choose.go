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

// Release is one release as its publisher shows it.
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
	Size int64 // bytes
}

// Choice is a release with its parsed version.
type Choice struct {
	Release Release
	Version Version
}

// Choose returns the newest release that the environment takes. Its tag must be readable and have the
// prefix (empty: any). Drafts never count, pre-releases only in staging. ok is false if there is none.
func Choose(env, prefix string, all []Release) (best Choice, ok bool) {
	return newest(prefix, all, func(c Choice) bool {
		return env == record.EnvProduction && !c.Release.PreRelease || env == record.EnvStaging
	})
}

// Lookup returns the release of that version, whether or not an environment would take
// it; never a draft, and only one with the prefix (empty: any).
func Lookup(version, prefix string, all []Release) (Release, error) {
	best, ok := newest(prefix, all, func(c Choice) bool { return Same(c.Version.String(), version) })
	if !ok {
		return Release{}, fmt.Errorf("there is no release of version %s", version)
	}
	return best.Release, nil
}

// newest returns the best release among those that have the prefix, are no drafts, and that takes accepts.
func newest(prefix string, all []Release, takes func(c Choice) bool) (best Choice, ok bool) {
	for _, r := range all {
		p, v, err := ParseTag(r.Tag)
		if err != nil || r.Draft || prefix != "" && p != prefix {
			continue
		}

		if c := (Choice{Release: r, Version: v}); takes(c) && (!ok || isBetter(c, best)) {
			best = c
			ok = true
		}
	}

	return best, ok
}

// isBetter reports whether a is a better choice than b: a newer version, or a finished release of the same
// version, or the first tag. So the order of the list does not matter.
func isBetter(a, b Choice) bool {
	if c := a.Version.Compare(b.Version); c != 0 {
		return c > 0
	}
	if a.Release.PreRelease != b.Release.PreRelease {
		return b.Release.PreRelease
	}

	return cmp.Less(a.Release.Tag, b.Release.Tag)
}

// Incomplete reports whether the release lacks SumsFile, without which nothing is
// installed. Files are often uploaded after a release was published, that one last.
func (r Release) Incomplete() bool {
	return !slices.ContainsFunc(r.Assets, func(a Asset) bool { return a.Name == SumsFile })
}

// filterComplete returns the complete releases, and ErrIncomplete if one that is not
// would have been taken.
func filterComplete(env, prefix string, all []Release) (whole []Release, err error) {
	best, ok := Choose(env, prefix, all)
	whole = slices.DeleteFunc(slices.Clone(all), Release.Incomplete)
	if ok && best.Release.Incomplete() {
		err = fmt.Errorf("%w: release %q lacks %s", ErrIncomplete, best.Release.Tag, SumsFile)
	}
	return whole, err
}

// ErrIncomplete is the error of a newest release that cannot be installed yet.
var ErrIncomplete = errors.New("a release is not complete yet")

// The forms in which a release comes to a server.
const (
	Deb     = "deb"
	Tarball = "tarball"
)

// AssetName returns the name of the file that brings the version in that form to machines
// of that architecture, in Go's words (amd64, arm64).
func AssetName(form string, v Version, arch string) string {
	if form == Deb {
		return fmt.Sprintf("neco_%s_%s.deb", v, arch)
	}
	return fmt.Sprintf("bijou_%s_linux_%s.tar.gz", v, arch)
}

// Find returns the asset of exactly that name, however many others there are.
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

// Version is the version of a release: numbers with dots between them, and perhaps a hyphen and one
// number more, as in 2018.11.07-1. The zero Version is none, and older than all.
type Version struct{ text string }

// maxVersion bounds a version's text, which becomes part of file names.
const maxVersion = 64

// ParseVersion reads a version.
func ParseVersion(s string) (Version, error) {
	if len(s) > maxVersion || !versionPattern().MatchString(s) {
		return Version{}, fmt.Errorf(
			"cannot take %q for a version: it is numbers with dots between them, and perhaps a hyphen and a number, as in 2018.11.07-1",
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

// Compare compares versions: first the numbers between the dots, then the one after the hyphen. A version
// that only continues another is newer. Leading zeros do not count.
func (v Version) Compare(o Version) int {
	main, revision, _ := strings.Cut(v.text, "-")
	otherMain, otherRevision, _ := strings.Cut(o.text, "-")
	return cmp.Or(
		slices.CompareFunc(strings.Split(main, "."), strings.Split(otherMain, "."), compareDecimals),
		compareDecimals(revision, otherRevision),
	)
}

// compareDecimals compares numbers of any length; "" is before 0.
func compareDecimals(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	a = strings.TrimLeft(a, "0")
	b = strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Newer reports whether version a is newer than version b. A text that is no version is newer than nothing,
// and nothing is older.
func Newer(a, b string) bool { return parseOrZero(a).Compare(parseOrZero(b)) > 0 }

// Same reports whether a and b are the same version, or the same text.
func Same(a, b string) bool {
	v := parseOrZero(a)
	return a == b || v != Version{} && v.Compare(parseOrZero(b)) == 0
}

func parseOrZero(s string) Version {
	v, err := ParseVersion(s)
	if err != nil {
		return Version{}
	}
	return v
}

// ParseTag reads a tag, PREFIX-VERSION: all up to its first hyphen is the
// prefix, and the rest the version.
func ParseTag(tag string) (prefix string, v Version, err error) {
	prefix, rest, ok := strings.Cut(tag, "-")
	if !ok || prefix == "" {
		return "", Version{}, fmt.Errorf("cannot take tag %q for a release: it is not PREFIX-VERSION", tag)
	}
	v, err = ParseVersion(rest)
	if err != nil {
		return "", Version{}, fmt.Errorf("cannot take tag %q for a release: %w", tag, err)
	}

	return prefix, v, nil
}
