package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Version is the version of a release: numbers with dots between them, and perhaps a hyphen and one
// number more, as in 2018.11.07-1. The zero Version is none, and older than all.
type Version struct{ text string }

// maxVersion bounds a version's text, which becomes part of file names.
const maxVersion = 64

// ParseVersion reads a version.
func ParseVersion(s string) (Version, error) {
	if !isVersion(s) {
		return Version{}, fmt.Errorf("cannot take %q for a version: it is numbers with dots between them, and perhaps a hyphen and a number, as in 2018.11.07-1", s)
	}
	return Version{s}, nil
}

// isVersion wants digits, with single dots between them and at most one hyphen, behind
// which there is no dot.
func isVersion(s string) bool {
	digit, hyphen := false, false
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digit = true
		case !digit || hyphen || c != '.' && c != '-':
			return false
		default:
			digit, hyphen = false, c == '-'
		}
	}
	return digit && len(s) <= maxVersion
}

// String returns the version as it was written.
func (v Version) String() string { return v.text }

// Compare orders versions, by the numbers between the dots and then by the one after the hyphen:
// less than 0 is older. Of two that differ only in that one goes on, the shorter is older. Leading
// zeros do not count, so that versions that differ in nothing else are the same.
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
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Newer reports whether version a is newer than version b. What cannot be read is no
// version: nothing is older, and it is newer than nothing.
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
