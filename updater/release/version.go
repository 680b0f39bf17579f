package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Version is the version of a release: numbers with dots between them, and
// perhaps a hyphen and one number more, as in 2018.11.07-1. The zero Version is
// none, and older than all.
type Version struct{ text string }

// maxVersion is how long a version's text may be: it becomes part of file names.
const maxVersion = 64

// ParseVersion reads a version.
func ParseVersion(s string) (Version, error) {
	if !isVersion(s) {
		return Version{}, fmt.Errorf("cannot take %q for a version: it is numbers with dots between them, and perhaps a hyphen and a number, as in 2018.11.07-1", s)
	}
	return Version{s}, nil
}

// isVersion tells if s is digits, with single dots between them and at most one
// hyphen, behind which there is no dot.
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

// String is the version as it was written.
func (v Version) String() string { return v.text }

// Compare orders versions, by the numbers between the dots and then by the one
// after the hyphen: less than 0 is older. Of two that differ only in that one
// goes on, the shorter is older. Leading zeros do not count, so that versions
// that differ in nothing else are the same.
func (v Version) Compare(o Version) int {
	main, revision, _ := strings.Cut(v.text, "-")
	otherMain, otherRevision, _ := strings.Cut(o.text, "-")
	return cmp.Or(
		slices.CompareFunc(strings.Split(main, "."), strings.Split(otherMain, "."), compareNumbers),
		compareNumbers(revision, otherRevision),
	)
}

// compareNumbers compares decimal numbers of any length; none is before 0.
func compareNumbers(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Newer tells if the version written a is newer than the one written b. What
// cannot be read is no version: nothing is older, and it is newer than nothing.
func Newer(a, b string) bool { return parse(a).Compare(parse(b)) > 0 }

// Same tells if a and b are the same version, or the same text.
func Same(a, b string) bool {
	v := parse(a)
	return a == b || v != Version{} && v.Compare(parse(b)) == 0
}

func parse(s string) Version {
	v, err := ParseVersion(s)
	if err != nil {
		return Version{}
	}
	return v
}
