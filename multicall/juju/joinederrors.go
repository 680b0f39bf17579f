package juju

import (
	"errors"
	"strings"
)

// joinedErrors are several errors, each of which is printed in a separate `error:` line.
type joinedErrors []error

// joinErrors joins errors like [errors.Join], except that several errors become [joinedErrors]. It returns
// nil if there are no errors. Several errors must not contain nil.
func joinErrors(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return joinedErrors(errs)
}

// Error returns the texts of all errors, one per line. All except the first begin with "error: ", since
// [console.Report] prints "error: " before the whole text.
func (j joinedErrors) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "\nerror: ")
}

// Unwrap returns the errors.
func (j joinedErrors) Unwrap() []error { return j }
