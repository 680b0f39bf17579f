package uniter

import (
	"strings"
	"sync"
	"unicode"

	"bijou/state"
	"bijou/state/text"
)

// lastError is the last line that a hook has logged as an error. Several goroutines can use it at once, since
// each of the hook's tools logs in its own goroutine.
type lastError struct {
	mu   sync.Mutex
	line string
}

// note keeps the last line of the message that contains a letter, if level is ERROR or CRITICAL. It ignores all
// other messages.
func (l *lastError) note(level, message string) {
	if level != "ERROR" && level != "CRITICAL" {
		return
	}

	if strings.Contains(message, "\n") {
		// Hide secrets before one line is selected, since a single line of a private key cannot be recognized.
		message = text.HideSecrets(message)
	}
	line := lastTelling(message)
	if line == "" {
		return
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = line
}

// get returns the line that note has kept last, or an empty string.
func (l *lastError) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line
}

// lastTelling returns the last line that contains a letter, cut to maxStderr bytes. It skips lines such as a
// closing brace, or the markers in a traceback. It returns an empty string if no line contains a letter.
func lastTelling(text string) string {
	for text != "" {
		newline := strings.LastIndexByte(text, '\n') // -1 if only the first line is left
		line := strings.TrimSpace(text[newline+1:])
		if strings.ContainsFunc(line, unicode.IsLetter) {
			return state.Truncate(line, maxStderr)
		}
		text = text[:max(0, newline)]
	}

	return ""
}
