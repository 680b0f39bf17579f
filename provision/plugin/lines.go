package plugin

import (
	"bytes"
	"sync"
)

// longest is how much of a line is kept before it counts as one, in bytes.
const longest = 16 << 10

// lines is a writer that hands on whole lines, without their ends, until it is
// ended. Several goroutines may write.
type lines struct {
	mu    sync.Mutex
	tell  func(line string)
	begun []byte
	over  bool
}

func newLines(tell func(line string)) *lines { return &lines{tell: tell} }

// Write never fails: whoever writes must not end because nobody listens.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return len(p), nil
	}
	l.begun = append(l.begun, p...)
	for {
		at := bytes.IndexByte(l.begun, '\n')
		if at < 0 && len(l.begun) < longest {
			return len(p), nil
		}
		if at < 0 || at > longest {
			at = longest
			l.tell(string(l.begun[:at]))
			l.begun = l.begun[at:]
			continue
		}
		l.tell(string(bytes.TrimRight(l.begun[:at], "\r")))
		l.begun = l.begun[at+1:]
	}
}

// end hands on what has no end yet; what is written from now on is dropped.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.begun) > 0 && !l.over {
		l.tell(string(l.begun))
	}
	l.begun, l.over = nil, true
}
