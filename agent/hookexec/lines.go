package hookexec

import (
	"bytes"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// MaxLine is the longest line passed on, in bytes of output; a longer one is
// split, never lost.
const MaxLine = 64 << 10

// lines is a writer that cuts what it gets into lines.
type lines struct {
	emit func(string)
	rest []byte // an unfinished line, at most MaxLine
}

// Write never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, after, found := bytes.Cut(l.rest, []byte("\n"))
		switch {
		case len(line) > MaxLine:
			n := wholeRunes(line[:MaxLine])
			l.emit(printable(line[:n]))
			l.rest = l.rest[n:]
		case found:
			l.emit(printable(bytes.TrimRight(line, "\r")))
			l.rest = after
		default:
			return len(p), nil
		}
	}
}

// flush passes on a last line that has no end.
func (l *lines) flush() {
	if len(l.rest) > 0 {
		l.emit(printable(l.rest))
	}
	l.rest = nil
}

// wholeRunes is how much of b can be cut off without splitting a character.
func wholeRunes(b []byte) int {
	for n := len(b) - 1; n >= len(b)-utf8.UTFMax && n > 0; n-- {
		if utf8.RuneStart(b[n]) {
			if utf8.FullRune(b[n:]) {
				return len(b)
			}
			return n
		}
	}
	return len(b)
}

// printable escapes what is not UTF-8 as \xNN.
func printable(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			s.WriteString(`\x` + hex.EncodeToString(b[:1]))
		} else {
			s.Write(b[:n])
		}
		b = b[n:]
	}
	return s.String()
}
