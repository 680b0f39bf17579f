package hookexec

import (
	"bytes"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// MaxLine is the longest line passed on, in bytes of output; a longer one is split, never
// lost.
const MaxLine = 64 << 10

// lineWriter cuts what is written to it into lines.
type lineWriter struct {
	emit    func(string)
	partial []byte // an unfinished line, at most MaxLine
}

// Write never fails.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for {
		line, after, found := bytes.Cut(l.partial, []byte("\n"))
		switch {
		case len(line) > MaxLine:
			n := wholeRunesLen(line[:MaxLine])
			l.emit(escapeInvalid(line[:n]))
			l.partial = l.partial[n:]
		case found:
			l.emit(escapeInvalid(bytes.TrimRight(line, "\r")))
			l.partial = after
		default:
			return len(p), nil
		}
	}
}

func (l *lineWriter) flush() {
	if len(l.partial) > 0 {
		l.emit(escapeInvalid(l.partial))
	}
	l.partial = nil
}

// wholeRunesLen returns how much of b can be cut off without splitting a character.
func wholeRunesLen(b []byte) int {
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

// escapeInvalid escapes what is not UTF-8 as \xNN.
func escapeInvalid(b []byte) string {
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
