package hookenv

import (
	"errors"
	"fmt"
)

// The exit codes of hook tools. charm-helpers takes exitUsage of relation-get
// for "no value", so no error may change its code.
const (
	exitFailure = 1 // it failed while running, or in transport
	exitUsage   = 2 // wrong usage or arguments
)

// errHelp ends parsing: the caller wants the tool's help.
var errHelp = errors.New("internal error: help was printed as an error")

// usageError is wrong usage: exit code 2.
type usageError string

func (e usageError) Error() string { return string(e) }

// UsageErrorf returns an error for which a tool exits with 2: wrong usage or arguments.
func UsageErrorf(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// IsUsageError reports whether UsageErrorf made the error, or what it wraps.
func IsUsageError(err error) bool { return errors.As(err, new(usageError)) }

func exitCode(err error) int {
	if IsUsageError(err) {
		return exitUsage
	}
	return exitFailure
}

// ErrorResult returns what a caller gets of an error that no tool has met.
func ErrorResult(err error) Result {
	return Result{Exit: exitCode(err), Stderr: []byte("ERROR " + err.Error() + "\n")}
}
