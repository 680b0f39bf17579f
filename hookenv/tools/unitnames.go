package tools

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bijou/hookenv/hookapi"
)

var (
	serviceName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	})
	unitName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*/(0|[1-9][0-9]*)$`)
	})
)

// isService reports whether a name can be a service's: words of lower-case letters and digits
// joined by single dashes, a letter first ("mysql", "blog-0").
func isService(name string) bool { return serviceName().MatchString(name) }

// isUnit reports whether a name can be a unit's: a service, a slash, a number without leading
// zeros.
func isUnit(name string) bool { return unitName().MatchString(name) }

// serviceOf returns the service of a unit. It returns a service's name unchanged.
func serviceOf(name string) string {
	service, _, _ := strings.Cut(name, "/")
	return service
}

// sortUnits sorts by service, then by number as a number, and drops repetitions.
func sortUnits(units []string) []string {
	slices.SortFunc(units, func(a, b string) int {
		return cmp.Or(cmp.Compare(serviceOf(a), serviceOf(b)), cmp.Compare(unitNumber(a), unitNumber(b)),
			cmp.Compare(a, b))
	})
	return slices.Compact(units)
}

func unitNumber(unit string) int {
	_, number, _ := strings.Cut(unit, "/")
	n, _ := strconv.Atoi(number) // what is no unit's name sorts first
	return n
}

// unknownNameError names a unit or service that hookapi does not know; to callers it is
// ErrUnknownUnit still.
type unknownNameError string

func (e unknownNameError) Error() string {
	if isService(string(e)) {
		return "unknown application " + string(e)
	}
	return "unknown unit " + string(e)
}

func (e unknownNameError) Unwrap() error { return hookapi.ErrUnknownUnit }

func rewordUnknown(err error, name string) error {
	if !errors.Is(err, hookapi.ErrUnknownUnit) {
		return err
	}
	return unknownNameError(name)
}
