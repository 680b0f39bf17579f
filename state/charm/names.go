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

// invalidError is of a caller's argument that is no name or value of its kind.
type invalidError struct{ error }

// WrongUsage marks the error for package console: nothing was tried.
func (invalidError) WrongUsage() {}

// Invalidf returns an error with that message about an argument of a command.
func Invalidf(format string, args ...any) error { return invalidError{fmt.Errorf(format, args...)} }

// maxName bounds every name: names become file names and parts of keys.
const maxName = 128

var (
	relationID = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^relation-[0-9]+$`)
	})
	interfaceName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-zA-Z0-9_]([a-zA-Z0-9._+-]*[a-zA-Z0-9_])?$`)
	})
)

// isCharmName reports whether the text can be a charm's name. A letter must follow every dash, so that the
// text behind the last dash of a charm URL can only be its revision.
func isCharmName(name string) bool {
	hasNoLetter := func(part string) bool { return strings.Trim(part, "0123456789") == "" }
	return isWords(name, "-") && !slices.ContainsFunc(strings.Split(name, "-"), hasNoLetter)
}

// isDashedName reports whether the name is valid for a service or series: words with dashes between, which
// may be numbers, as in "blog-0".
func isDashedName(name string) bool { return isWords(name, "-") }

func isRelationName(name string) bool { return isWords(name, "-_") }

// isWords reports whether name consists of words of lower-case letters and digits, with one of the
// separators between any two. It must begin with a letter. Sorting units calls it often, and a regular
// expression would take ten times as long.
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

// CheckName returns an error unless name can be a charm's: lower-case letters, digits and
// dashes, a letter in every part.
func CheckName(name string) error {
	return checkName("charm", name, isCharmName,
		`lower-case letters, digits and single dashes, with a letter after each dash, as in "my-blog"`)
}

// CheckService returns an error unless name can be a service's: as a charm's, but parts
// may be numbers ("blog-0").
func CheckService(name string) error {
	err := checkName("application", name, isDashedName,
		`lower-case letters, digits and single dashes, as in "my-blog"`)
	if err != nil {
		return Invalidf("%v", err)
	}
	return nil
}

// CheckRelation returns an error unless name can be a relation's. "relation-7" cannot: it
// would be taken for the id of a relation.
func CheckRelation(name string) error {
	if relationID().MatchString(name) {
		return fmt.Errorf("invalid relation name %q: it looks like a relation id", name)
	}
	return checkName("relation", name, isRelationName,
		`lower-case letters, digits, single dashes and underscores, as in "shared-db"`)
}

// CheckInterface returns an error unless name can be the interface's of a relation.
func CheckInterface(name string) error {
	return checkName("interface", name, interfaceName().MatchString,
		`letters, digits, dots, dashes, plus signs and underscores, as in "mysql-shared"`)
}

// CheckSeries returns an error unless name can be a series' ("precise").
func CheckSeries(name string) error {
	return checkName("series", name, isDashedName,
		`lower-case letters, digits and single dashes, as in "precise"`)
}

func checkName(kind, name string, isValid func(string) bool, want string) error {
	if len(name) > maxName {
		return fmt.Errorf("invalid %s name %.20q...: it has %d bytes, at most %d", kind, name, len(name), maxName)
	}
	if !isValid(name) {
		return fmt.Errorf("invalid %s name %q: want %s", kind, name, want)
	}

	return nil
}

// UnitName returns the name of a service's n-th unit: "mysql/0".
func UnitName(service string, n int) string { return service + "/" + strconv.Itoa(n) }

// ParseUnit splits "mysql/0". A number with leading zeros or a sign is an error, so that a
// unit has exactly one name.
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

func invalidUnitError(name string) error {
	if len(name) > 2*maxName {
		name = name[:2*maxName] + "..."
	}
	return Invalidf("invalid unit name %q: want APPLICATION/NUMBER, as in \"mysql/0\"", name)
}

// IsUnit reports whether name is a unit's.
func IsUnit(name string) bool {
	_, _, err := ParseUnit(name)
	return err == nil
}

// UnitTag returns a unit's name as one word for file names and keys: "unit-mysql-0". It
// panics if name is not a unit's.
func UnitTag(name string) string {
	service, n, err := ParseUnit(name)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return "unit-" + service + "-" + strconv.Itoa(n)
}

// ParseUnitTag returns the unit of a tag that UnitTag made.
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

// CompareUnits orders unit names by service, then by number as a number. Other names come
// after them, bytewise.
func CompareUnits(a, b string) int { return parsedUnitOf(a).compare(parsedUnitOf(b)) }

// SortUnits sorts unit names in place, in the order of CompareUnits. Each is parsed once.
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

type parsedUnit struct {
	name, service string
	number        int
	isUnit        bool
}

func parsedUnitOf(name string) parsedUnit {
	service, n, err := ParseUnit(name)
	return parsedUnit{name: name, service: service, number: n, isUnit: err == nil}
}

func (u parsedUnit) compare(o parsedUnit) int {
	switch {
	case !u.isUnit && !o.isUnit:
		return cmp.Compare(u.name, o.name)
	case !u.isUnit:
		return 1
	case !o.isUnit:
		return -1
	}

	return cmp.Or(cmp.Compare(u.service, o.service), cmp.Compare(u.number, o.number))
}

// maxRevision is the greatest that JSON's numbers and an int hold: old charms have dates
// for revisions, to the minute.
const maxRevision = min(math.MaxInt, 1<<53-1)

func parseRevision(data []byte) (int, error) {
	text := strings.TrimSpace(string(data))
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	return n, checkRevision(n)
}

func checkRevision(n int) error {
	if n < 0 || n > maxRevision {
		return fmt.Errorf("revision %d is out of range: want 0 to %d", n, maxRevision)
	}
	return nil
}

func revisionText(n int) []byte { return []byte(strconv.Itoa(n) + "\n") }

// WriteRevision makes n the revision of the charm in dir, atomically. In a directory that cannot be
// written it fails, and the caller sets ArchiveOptions.Revision instead.
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
