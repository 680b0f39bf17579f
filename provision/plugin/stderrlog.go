package plugin

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// stderrLog takes an executable's stderr: it goes to the log, and the last line is kept to explain
// why the process ended.
type stderrLog struct {
	*lineWriter
	log *slog.Logger

	mu   sync.Mutex
	last string
}

func newStderrLog(log *slog.Logger) *stderrLog {
	w := &stderrLog{log: log}
	w.lineWriter = newLineWriter(w.logLine)
	return w
}

// A panic's first line says more than the trace that follows.
func (l *stderrLog) logLine(line string) {
	line = strings.TrimSpace(toUTF8(line))
	if line == "" {
		return
	}
	if isGoPluginLog(line) {
		l.log.Debug("provider says", "line", line)
		return
	}
	l.log.Info("provider says", "line", line)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !strings.HasPrefix(l.last, "panic: ") && !strings.HasPrefix(l.last, "fatal error: ") {
		l.last = line
	}
}

func isGoPluginLog(line string) bool {
	return strings.HasPrefix(line, `{"@level":"debug"`) || strings.HasPrefix(line, `{"@level":"trace"`)
}

// maxLastOutput limits what stands in an error, in bytes.
const maxLastOutput = 300

func (l *stderrLog) errorSuffix() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return ""
	}
	return "; it said: " + toUTF8(l.last[:min(len(l.last), maxLastOutput)])
}

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
