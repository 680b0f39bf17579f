package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"

	"bijou/state/osutil"
)

type hintedError struct {
	error
	hints []string
}

func (h hintedError) Unwrap() error { return h.error }

// Hint adds to an error lines that tell the user how to go on. A nil error stays nil.
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

// Report prints the error with its hints, and returns the exit code that belongs to it. If nobody has added
// a hint it prints the error's own. For nil and ErrHelped it prints nothing and returns 0.
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
	hints := addedHints(err)
	if own := ownHint(err); own != "" && len(hints) == 0 {
		hints = []string{own}
	}
	for i, hint := range hints {
		if !slices.Contains(hints[:i], hint) {
			fmt.Fprintf(w, "hint: %s\n", hint)
		}
	}

	if errors.As(err, new(usageError)) || errors.As(err, new(interface{ WrongUsage() })) {
		return ExitUsage
	}

	return ends.code
}

// addedHints returns the hints that were added to an error and to the errors that it wraps, the outermost first.
func addedHints(err error) (hints []string) {
	if h, ok := err.(hintedError); ok {
		hints = append(hints, h.hints...)
	}

	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return append(hints, addedHints(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, wrapped := range e.Unwrap() {
			hints = append(hints, addedHints(wrapped)...)
		}
	}

	return hints
}

// ownHint returns the hint that an error has itself, or that belongs to every error of a disk.
func ownHint(err error) string {
	own, ok := errors.AsType[interface {
		error
		Hint() string
	}](err)
	if ok {
		return own.Hint()
	}

	return osutil.Hint(err)
}

// Caller returns the calling user for records, as USER@HOST. For root it is the user who became root by
// sudo; for anybody else SUDO_USER does not count.
func Caller() string {
	name := fmt.Sprintf("uid %d", os.Getuid())
	suffix := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if sudo := os.Getenv("SUDO_USER"); sudo != "" && os.Getuid() == 0 {
		name = sudo
		suffix = " (sudo)"
	}
	host, _ := os.Hostname()
	return name + "@" + host + suffix
}

// NearestWord returns the one of the words that was probably meant; "" if all words are too far for a slip of the fingers.
func NearestWord(name string, words []string) string {
	best := ""
	fewest := 1 + len(name)/3
	for _, w := range words {
		if d := editDistance(name, w); d <= fewest && (best == "" || d < editDistance(name, best)) {
			best = w
		}
	}

	return best
}

// OnlySlip returns the word that name misspells by one letter or two. It returns an empty string if there
// is none, or if several words are as near.
func OnlySlip(name string, words []string) (only string) {
	const most = 2
	nearest := most + 1
	for _, w := range words {
		switch d := editDistance(name, w); {
		case d < nearest:
			only = w
			nearest = d
		case d == nearest && w != only:
			only = ""
		}
	}

	return only
}

// editDistance counts letters to insert, delete, replace or swap with their neighbour
// (optimal string alignment).
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}

	for j := range rows[0] {
		rows[0][j] = j
	}

	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}

	return rows[len(a)][len(b)]
}
