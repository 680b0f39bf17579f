package console

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// hinted is an error with advice for the operator.
type hinted struct {
	error
	hints []string
}

func (h hinted) Unwrap() error { return h.error }

// Hint adds lines of advice to an error: what to do next. A nil error stays nil.
func Hint(err error, hints ...string) error {
	if err == nil {
		return nil
	}
	return hinted{error: err, hints: hints}
}

// usage is an error in how an applet was called.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// Usage marks an error as wrong usage: exit code 2 instead of 1.
func Usage(err error) error { return usage{err} }

// exit is an error that ends with an exit code of its own.
type exit struct {
	error // nil: nothing is printed
	code  int
}

// Error is empty where there is nothing to say.
func (e exit) Error() string {
	if e.error == nil {
		return ""
	}
	return e.error.Error()
}

func (e exit) Unwrap() error { return e.error }

// Exit makes an applet end with that exit code; err, if any, is reported. Code 0
// without an error is nil.
func Exit(code int, err error) error {
	if code == ExitOK && err == nil {
		return nil
	}
	return exit{error: err, code: code}
}

// Report prints the error and its hints, and answers the exit code that goes
// with it; nil and ErrHelped print nothing and answer 0.
func Report(w io.Writer, err error) int {
	if err == nil || errors.Is(err, ErrHelped) {
		return ExitOK
	}
	ends := exit{code: ExitFailure}
	errors.As(err, &ends)
	if err.Error() == "" {
		return ends.code
	}
	fmt.Fprintf(w, "error: %s\n", strings.TrimRight(err.Error(), "\n"))
	for _, h := range hints(err) {
		fmt.Fprintf(w, "hint: %s\n", h)
	}
	if errors.As(err, new(usage)) || errors.As(err, new(interface{ WrongUsage() })) {
		return ExitUsage
	}
	return ends.code
}

// hints collects the advice of the whole chain, the outermost first.
func hints(err error) []string {
	var all []string
	for err != nil {
		var h hinted
		if !errors.As(err, &h) {
			break
		}
		all = append(all, h.hints...)
		err = h.error
	}
	return all
}
