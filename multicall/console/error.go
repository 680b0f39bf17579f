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
	"bijou/state/text"
)

// hintedError is an error with the hints that Hint has added.
type hintedError struct {
	error
	hints []string
}

func (h hintedError) Unwrap() error { return h.error }

// Hint adds lines to an error that tell the user what to do next. A nil error stays nil.
func Hint(err error, hints ...string) error {
	if err == nil {
		return nil
	}
	return hintedError{error: err, hints: hints}
}

// usageError marks an error as wrong usage.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// Usage marks an error as wrong usage, for which the exit code is 2 instead of 1.
func Usage(err error) error { return usageError{err} }

// exitError ends an applet with a specific exit code.
type exitError struct {
	error // not printed if its text is empty
	code  int
}

func (e exitError) Unwrap() error { return e.error }

// Exit returns an error that makes an applet end with exit code code, unless err is wrong usage, for which the code is
// ExitUsage. If err is not nil, Report also prints err. For code 0 without an error, Exit returns nil.
func Exit(code int, err error) error {
	if code == ExitOK && err == nil {
		return nil
	}

	if err == nil {
		err = errors.New("")
	}
	return exitError{error: err, code: code}
}

// Report prints the error with its hints, each once, and returns the exit code: 2 for wrong usage, otherwise the
// code that [Exit] has given to the error, or 1. If no hint was added with [Hint], it prints the hint of the error's
// own type, or the hint for a disk error. For nil and ErrHelped it prints nothing and returns 0. For an error without
// a text it prints nothing, and returns the code of Exit, or 1.
func Report(w io.Writer, err error) int {
	if err == nil || errors.Is(err, ErrHelped) {
		return ExitOK
	}

	// If err is not an exitError, the code stays ExitFailure.
	exit := exitError{code: ExitFailure}
	errors.As(err, &exit)
	if err.Error() == "" {
		return exit.code
	}

	fmt.Fprintf(w, "error: %s\n", EscapeText(err.Error()))
	hints := addedHints(err)
	if own := ownHint(err); own != "" && len(hints) == 0 {
		hints = []string{own}
	}
	for i, hint := range hints {
		if !slices.Contains(hints[:i], hint) {
			fmt.Fprintf(w, "hint: %s\n", EscapeText(hint))
		}
	}

	// Packages below console mark their own errors as wrong usage with the method WrongUsage.
	if errors.As(err, new(usageError)) || errors.As(err, new(interface{ WrongUsage() })) {
		return ExitUsage
	}

	return exit.code
}

// EscapeText returns a text with each line escaped by [text.Escape], and without line ends at its end. Parts of a
// text for the terminal can come from a store of charms, a charm or a different host.
func EscapeText(message string) string { return strings.Join(text.EscapeLines(message), "\n") }

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

// ownHint returns the hint of the error's own type, or the hint for a disk error. It returns "" if there is none.
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

// Caller returns the calling user for records, as USER@HOST. For root, it returns the user who called sudo, if any, as
// USER@HOST (sudo). For all other users it ignores SUDO_USER. If the user's name is unknown, USER is "uid N".
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

// NearestWord returns the word that name probably misspells. It returns "" if all words are too different, or if
// several words are equally near.
func NearestWord(name string, words []string) (nearest string) {
	fewest := -1
	for _, word := range words {
		edits := editDistance(name, word)
		switch {
		case !isSlip(name, word, edits):
			// The words are too different.
		case fewest < 0 || edits < fewest:
			nearest = word
			fewest = edits
		case edits == fewest && word != nearest:
			nearest = ""
		}
	}

	return nearest
}

// OnlySlip returns the only word that name can misspell. It returns "" if there is no such word, or if there are
// several, even if one of them is nearer.
func OnlySlip(name string, words []string) (only string) {
	for _, word := range words {
		switch {
		case !isSlip(name, word, editDistance(name, word)) || word == only:
			// The words are too different, or the list has the word twice.
		case only != "":
			return ""
		default:
			only = word
		}
	}

	return only
}

// isSlip reports whether the number of edits is small enough for one word to be a misspelling of the other. It allows
// one edit, or two if both words have at least six bytes, but never more than one for every three bytes of the shorter
// word.
func isSlip(a, b string, edits int) bool {
	length := min(len(a), len(b))
	most := 2
	if length < 6 {
		most = 1
	}
	return edits <= min(most, length/3)
}

// editDistance returns the smallest number of edits that change a into b. An edit inserts, deletes or replaces a byte,
// or swaps two adjacent bytes (optimal string alignment).
func editDistance(a, b string) int {
	// rows[i][j] is the distance between the first i bytes of a and the first j bytes of b.
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

			isSwap := i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1]
			if isSwap {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}

	return rows[len(a)][len(b)]
}
