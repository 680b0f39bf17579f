package charm

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bijou/state/osutil"
)

// invalidError is the error for an argument that is not a valid name or value.
type invalidError struct{ error }

// WrongUsage marks the error as a mistake in the command line, for package console.
func (invalidError) WrongUsage() {}

// Invalidf returns an error with this message about an argument of a command.
func Invalidf(format string, args ...any) error { return invalidError{fmt.Errorf(format, args...)} }

// maxName is the length of the longest name in bytes, since names become file names and parts of keys.
const maxName = 128

var (
	relationID = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^relation-[0-9]+$`)
	})
	interfaceName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-zA-Z0-9_]([a-zA-Z0-9._+-]*[a-zA-Z0-9_])?$`)
	})
)

// isCharmName reports whether the text can be a charm's name. Each part between dashes must have a letter, so
// that a number after the last dash of a charm URL can only be its revision.
func isCharmName(name string) bool {
	hasNoLetter := func(part string) bool { return strings.Trim(part, "0123456789") == "" }
	return isWords(name, "-") && !slices.ContainsFunc(strings.Split(name, "-"), hasNoLetter)
}

// isDashedName reports whether the name is valid for a service or series: words with dashes between them. A
// word can be a number, as in "blog-0".
func isDashedName(name string) bool { return isWords(name, "-") }

// isRelationName reports whether the name is valid for a relation: words with dashes or underscores between
// them.
func isRelationName(name string) bool { return isWords(name, "-_") }

// isWords reports whether name consists of words of lower-case letters and digits, with one separator between
// each two words. The name must begin with a letter. Sorting units calls isWords often, and a regular
// expression would be ten times as slow.
func isWords(name, separators string) bool {
	inWord := false
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9' && i > 0:
			inWord = true
		case inWord && strings.IndexByte(separators, c) >= 0:
			inWord = false
		default:
			return false
		}
	}

	return inWord
}

// CheckName returns an error unless name is valid for a charm: lower-case letters, digits and dashes, with a
// letter in each part.
func CheckName(name string) error {
	return checkName("charm", name, isCharmName,
		`lower-case letters, digits and single dashes, with a letter after each dash, as in "my-blog"`)
}

// CheckService returns an error unless name is valid for a service. Unlike in a charm's name, a part after a
// dash can be a number, as in "blog-0". The error counts as a mistake in the command line.
func CheckService(name string) error {
	err := checkName("application", name, isDashedName,
		`lower-case letters, digits and single dashes, as in "my-blog"`)
	if err != nil {
		return Invalidf("%v", err)
	}
	return nil
}

// CheckRelation returns an error unless name is valid for a relation. "relation-7" is not valid, since it
// looks like the id of a relation.
func CheckRelation(name string) error {
	if relationID().MatchString(name) {
		return fmt.Errorf("invalid relation name %q: it looks like a relation id", name)
	}
	return checkName("relation", name, isRelationName,
		`lower-case letters, digits, single dashes and underscores, as in "shared-db"`)
}

// CheckInterface returns an error unless name is valid for the interface of a relation.
func CheckInterface(name string) error {
	return checkName("interface", name, interfaceName().MatchString,
		`letters, digits, dots, dashes, plus signs and underscores, as in "mysql-shared"`)
}

// CheckSeries returns an error unless name is valid for a series, such as "precise".
func CheckSeries(name string) error {
	return checkName("series", name, isDashedName,
		`lower-case letters, digits and single dashes, as in "precise"`)
}

// checkName returns an error if the name is longer than maxName, or if isValid returns false for it. The error
// names the kind of the name. In the second case, it also has want, the form that the name must have.
func checkName(kind, name string, isValid func(string) bool, want string) error {
	if len(name) > maxName {
		return fmt.Errorf("invalid %s name %.20q...: it has %d bytes; the limit is %d", kind, name, len(name), maxName)
	}
	if !isValid(name) {
		return fmt.Errorf("invalid %s name %q: want %s", kind, name, want)
	}

	return nil
}

// UnitName returns the name of a service's unit with the number n, such as "mysql/0".
func UnitName(service string, n int) string { return service + "/" + strconv.Itoa(n) }

// ParseUnit splits the name of a unit, such as "mysql/0". It returns an error for a number with leading zeros
// or a sign, so that a unit has only one name, and for a number above 2^31-1.
func ParseUnit(name string) (service string, n int, err error) {
	service, digits, ok := strings.Cut(name, "/")
	if !ok || CheckService(service) != nil {
		return "", 0, invalidUnitError(name)
	}
	n, err = strconv.Atoi(digits)
	if err != nil || n < 0 || n > 1<<31-1 || strconv.Itoa(n) != digits {
		return "", 0, invalidUnitError(name)
	}

	return service, n, nil
}

// invalidUnitError returns the error for a text that is not the name of a unit.
func invalidUnitError(name string) error {
	if len(name) > 2*maxName {
		name = name[:2*maxName] + "..."
	}
	return Invalidf("invalid unit name %q: want APPLICATION/NUMBER, as in \"mysql/0\"", name)
}

// IsUnit reports whether name is valid for a unit.
func IsUnit(name string) bool {
	_, _, err := ParseUnit(name)
	return err == nil
}

// UnitTag returns a unit's name as one word for file names and keys, such as "unit-mysql-0". It panics if
// name is not valid for a unit.
func UnitTag(name string) string {
	service, n, err := ParseUnit(name)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return "unit-" + service + "-" + strconv.Itoa(n)
}

// ParseUnitTag returns the name of the unit with the tag, such as "mysql/0" for "unit-mysql-0". It returns an
// error for a text that is not the tag of a unit.
func ParseUnitTag(tag string) (name string, err error) {
	rest, ok := strings.CutPrefix(tag, "unit-")
	if dash := strings.LastIndexByte(rest, '-'); ok && dash >= 0 {
		name = rest[:dash] + "/" + rest[dash+1:]
	}
	if !IsUnit(name) {
		return "", fmt.Errorf("invalid unit tag %q: want unit-APPLICATION-NUMBER", tag)
	}

	return name, nil
}

// CompareUnits compares unit names by service, and then by number. Texts that are not the names of units come
// last, in bytewise order.
func CompareUnits(a, b string) int { return parsedUnitOf(a).compare(parsedUnitOf(b)) }

// SortUnits sorts unit names in place, in the order of CompareUnits. It parses each name only once.
func SortUnits(names []string) {
	parsed := make([]parsedUnit, len(names))
	for i, name := range names {
		parsed[i] = parsedUnitOf(name)
	}
	slices.SortFunc(parsed, parsedUnit.compare)
	for i, u := range parsed {
		names[i] = u.name
	}
}

// parsedUnit is a text with its parts, if it is the name of a unit.
type parsedUnit struct {
	name, service string
	number        int
	isUnit        bool
}

// parsedUnitOf parses the name of a unit. isUnit is false in the result for any other text.
func parsedUnitOf(name string) parsedUnit {
	service, n, err := ParseUnit(name)
	return parsedUnit{name: name, service: service, number: n, isUnit: err == nil}
}

// compare orders units as CompareUnits does: by service and number, and other texts after all units.
func (u parsedUnit) compare(other parsedUnit) int {
	switch {
	case !u.isUnit && !other.isUnit:
		return cmp.Compare(u.name, other.name)
	case !u.isUnit:
		return 1
	case !other.isUnit:
		return -1
	}

	return cmp.Or(cmp.Compare(u.service, other.service), cmp.Compare(u.number, other.number))
}

// MaxRevision is the greatest revision of a charm, which a JSON number and an int can hold. Some old charms use the date
// and time as their revision.
const MaxRevision = min(math.MaxInt, 1<<53-1)

// parseRevision parses the content of a revision file. It returns an error unless the content is a number from
// 0 to MaxRevision.
func parseRevision(data []byte) (int, error) {
	text := strings.TrimSpace(string(data))
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	return n, checkRevision(n)
}

// checkRevision returns an error unless n is from 0 to MaxRevision.
func checkRevision(n int) error {
	if n < 0 || n > MaxRevision {
		return fmt.Errorf("revision %d is out of range: want 0 to %d", n, MaxRevision)
	}
	return nil
}

// revisionText returns the content of a revision file.
func revisionText(n int) []byte { return []byte(strconv.Itoa(n) + "\n") }

// WriteRevision makes n the revision of the charm in dir. It is atomic. If the directory cannot be written,
// the caller can set ArchiveOptions.Revision instead.
func WriteRevision(dir string, n int) error {
	if err := checkRevision(n); err != nil {
		return err
	}

	name := filepath.Join(dir, "revision")
	err := osutil.WriteFile(name, revisionText(n), 0o644)
	if err != nil {
		return fmt.Errorf("cannot write revision of charm %q: %w", dir, err)
	}

	return nil
}
