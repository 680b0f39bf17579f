package juju

import (
	"errors"
	"strings"
)

// joinedErrors are several errors, each of which is printed in a separate `error:` line.
type joinedErrors []error

// joinErrors joins errors like [errors.Join], but with a different text. It returns nil if there are no
// errors.
func joinErrors(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return joinedErrors(errs)
}

// Error returns all texts. [console.Report] puts "error: " in front of the first.
func (j joinedErrors) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "\nerror: ")
}

func (j joinedErrors) Unwrap() []error { return j }
