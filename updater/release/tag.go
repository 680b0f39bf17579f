package release

import (
	"fmt"
	"strings"
)

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
