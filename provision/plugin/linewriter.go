package plugin

import (
	"bytes"
	"sync"
)

// maxLine is how much of a line is kept before it counts as one, in bytes.
const maxLine = 16 << 10

// lineWriter hands on whole lines, without their ends, until it is closed. Several goroutines may
// write.
type lineWriter struct {
	mu      sync.Mutex
	emit    func(line string)
	partial []byte
	closed  bool
}

func newLineWriter(tell func(line string)) *lineWriter { return &lineWriter{emit: tell} }

// Write never fails: whoever writes must not end because nobody listens.
func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return len(p), nil
	}
	l.partial = append(l.partial, p...)
	for {
		at := bytes.IndexByte(l.partial, '\n')
		if at < 0 && len(l.partial) < maxLine {
			return len(p), nil
		}
		if at < 0 || at > maxLine {
			at = maxLine
			l.emit(string(l.partial[:at]))
			l.partial = l.partial[at:]
			continue
		}
		l.emit(string(bytes.TrimRight(l.partial[:at], "\r")))
		l.partial = l.partial[at+1:]
	}
}

// The last line may have no end; what is written from now on is dropped.
func (l *lineWriter) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 && !l.closed {
		l.emit(string(l.partial))
	}
	l.partial, l.closed = nil, true
}
