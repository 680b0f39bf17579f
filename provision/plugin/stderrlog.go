package plugin

import (
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
