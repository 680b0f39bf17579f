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

// isService reports whether a name can be the name of a service. Such a name begins with a letter, and consists of words
// of lower-case letters and digits that are joined by single dashes ("mysql", "blog-0").
func isService(name string) bool { return serviceName().MatchString(name) }

// isUnit reports whether a name can be the name of a unit: a service, a slash, and a number without leading zeros.
func isUnit(name string) bool { return unitName().MatchString(name) }

// serviceOf returns the service of a unit. It returns a service's name unchanged.
func serviceOf(name string) string {
	service, _, _ := strings.Cut(name, "/")
	return service
}

// sortUnits sorts units by service and number, removes duplicates, and returns the result. It changes its argument.
func sortUnits(units []string) []string {
	slices.SortFunc(units, func(a, b string) int {
		// Different texts can have the same service and number, such as mysql and mysql/0. The last comparison puts
		// equal texts side by side, as Compact needs them.
		return cmp.Or(cmp.Compare(serviceOf(a), serviceOf(b)), cmp.Compare(unitNumber(a), unitNumber(b)),
			cmp.Compare(a, b))
	})
	return slices.Compact(units)
}

// unitNumber returns the number in the name of a unit.
func unitNumber(unit string) int {
	_, number, _ := strings.Cut(unit, "/")
	n, _ := strconv.Atoi(number) // 0 for a service
	return n
}

// unknownNameError is the error for an unknown unit or service. It names the unit or service. It wraps
// [hookapi.ErrUnknownUnit].
type unknownNameError string

func (e unknownNameError) Error() string {
	if isService(string(e)) {
		return "unknown application " + string(e)
	}
	return "unknown unit " + string(e)
}

func (e unknownNameError) Unwrap() error { return hookapi.ErrUnknownUnit }

// rewordUnknown replaces [hookapi.ErrUnknownUnit] with an unknownNameError for this name. It returns other
// errors, and nil, unchanged.
func rewordUnknown(err error, name string) error {
	if !errors.Is(err, hookapi.ErrUnknownUnit) {
		return err
	}
	return unknownNameError(name)
}
