package uniter

import (
	"strings"
	"sync"
	"unicode"

	"bijou/state"
	"bijou/state/text"
)

// lastError is the last line that a hook has logged as an error. Its tools log it, in goroutines of their own.
type lastError struct {
	mu   sync.Mutex
	line string
}

// note keeps the last telling line of a message, if its level is that of an error.
func (l *lastError) note(level, message string) {
	if level != "ERROR" && level != "CRITICAL" {
		return
	}

	if strings.Contains(message, "\n") {
		message = text.HideSecrets(message) // one line of a private key does not tell that it is of one
	}
	line := lastTelling(message)
	if line == "" {
		return
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = line
}

func (l *lastError) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line
}

// lastTelling returns the last line that has a letter, cut to maxStderr bytes; empty if there is none. So
// it skips the end of a dictionary, and the marks of a traceback.
func lastTelling(text string) string {
	for text != "" {
		rest := strings.LastIndexByte(text, '\n')
		line := strings.TrimSpace(text[rest+1:])
		if strings.ContainsFunc(line, unicode.IsLetter) {
			return state.Truncate(line, maxStderr)
		}
		text = text[:max(0, rest)]
	}

	return ""
}
