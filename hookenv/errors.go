package hookenv

import (
	"errors"
	"fmt"

	"bijou/hookenv/hookapi"
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

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

func exitCode(err error) int {
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailure
}

func errorResult(err error) Result {
	return Result{Exit: exitCode(err), Stderr: []byte("ERROR " + err.Error() + "\n")}
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

// IsCallerError reports whether an error of GetSetting or SetSettings lies in what was asked for;
// otherwise the agent itself has failed.
func IsCallerError(err error) bool {
	return errors.As(err, new(usageError)) || errors.Is(err, hookapi.ErrUnknownUnit) ||
		errors.Is(err, hookapi.ErrRelationNotFound) || errors.Is(err, errBrokenOthers) || errors.Is(err, errBrokenChange)
}
