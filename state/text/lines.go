package text

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// LineWriter calls Emit with each line that is written to it, without the line end, until it is closed. It
// splits lines of more than Max bytes. It is safe for concurrent use.
type LineWriter struct {
	Max  int // bytes
	Emit func(line string)

	mu      sync.Mutex
	partial []byte // the beginning of an unfinished line
	closed  bool
}

// Write emits each complete line. It splits a line of more than Max bytes, and emits each full piece even before
// the line is complete. After Close, Write drops p. It never returns an error, since a program must not fail
// because its output is not read.
func (w *LineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return len(p), nil
	}
	w.partial = append(w.partial, p...)

	for {
		line, afterLine, isComplete := bytes.Cut(w.partial, []byte("\n"))
		switch {
		case len(line) > w.Max:
			// Emit the first piece. The next round handles the rest of the line.
			n := wholeRunesLen(line[:w.Max])
			w.Emit(string(line[:n]))
			w.partial = w.partial[n:]
		case isComplete:
			w.Emit(string(bytes.TrimRight(line, "\r")))
			w.partial = afterLine
		default:
			return len(p), nil
		}
	}
}

// Close emits an unfinished last line. Later writes are dropped.
func (w *LineWriter) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.partial) > 0 && !w.closed {
		w.Emit(string(w.partial))
	}
	w.partial = nil
	w.closed = true
}

// wholeRunesLen returns the length of the longest prefix of b that does not end inside a character. If the
// end of b is not UTF-8, or that prefix is empty, it returns len(b).
func wholeRunesLen(b []byte) int {
	// Look for the start of the last character, which is among the last utf8.UTFMax bytes.
	for n := len(b) - 1; n >= len(b)-utf8.UTFMax && n > 0; n-- {
		if !utf8.RuneStart(b[n]) {
			continue
		}
		if utf8.FullRune(b[n:]) {
			return len(b)
		}
		return n
	}

	return len(b)
}

// EscapeInvalid returns the text with bytes that are not UTF-8 escaped as \xNN.
func EscapeInvalid(text string) string {
	if utf8.ValidString(text) {
		return text
	}

	var b strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, text[0])
		} else {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}

	return b.String()
}
