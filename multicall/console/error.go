package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
)

type hintedError struct {
	error
	hints []string
}

func (h hintedError) Unwrap() error { return h.error }

// Hint adds lines of advice to an error: what to do next. A nil error stays nil.
func Hint(err error, hints ...string) error {
	if err == nil {
		return nil
	}
	return hintedError{error: err, hints: hints}
}

type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// Usage marks an error as wrong usage: exit code 2 instead of 1.
func Usage(err error) error { return usageError{err} }

// exitError ends an applet with an exit code of its own.
type exitError struct {
	error // without a text: nothing is printed
	code  int
}

func (e exitError) Unwrap() error { return e.error }

// Exit makes an applet end with that exit code; err, if any, is reported. Code 0 without
// an error is nil.
func Exit(code int, err error) error {
	if code == ExitOK && err == nil {
		return nil
	}
	if err == nil {
		err = errors.New("")
	}
	return exitError{error: err, code: code}
}

// Report prints the error and its hints, and returns the exit code that goes with it; nil
// and ErrHelped print nothing and return 0.
func Report(w io.Writer, err error) int {
	if err == nil || errors.Is(err, ErrHelped) {
		return ExitOK
	}
	ends := exitError{code: ExitFailure}
	errors.As(err, &ends)
	if err.Error() == "" {
		return ends.code
	}
	fmt.Fprintf(w, "error: %s\n", strings.TrimRight(err.Error(), "\n"))
	for _, h := range collectHints(err) {
		fmt.Fprintf(w, "hint: %s\n", h)
	}
	if errors.As(err, new(usageError)) || errors.As(err, new(interface{ WrongUsage() })) {
		return ExitUsage
	}
	return ends.code
}

func collectHints(err error) []string {
	var all []string
	for h, ok := errors.AsType[hintedError](err); ok; h, ok = errors.AsType[hintedError](h.error) {
		all = append(all, h.hints...)
	}
	return all
}

// Caller returns who calls, for records: USER@HOST, with the user who became root by sudo.
// SUDO_USER is not believed of anybody else.
func Caller() string {
	name, suffix := fmt.Sprintf("uid %d", os.Getuid()), ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if sudo := os.Getenv("SUDO_USER"); sudo != "" && os.Getuid() == 0 {
		name, suffix = sudo, " (sudo)"
	}
	host, _ := os.Hostname()
	return name + "@" + host + suffix
}
